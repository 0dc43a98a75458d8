//! One SMTP session, driven step by step, each with its own deadline.
//!
//! lettre gives the commands and the login's answers; its `AsyncSmtpConnection` is not used, because
//! it writes the final dot in one call with the message (so the claim could not be checked right
//! before), keeps what came in plain text across STARTTLS, and cannot be asked what it has read.

mod opening;

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::time::Duration;

use lettre::transport::smtp::commands::{Data, Mail, Noop, Quit, Rcpt, Rset};
use lettre::transport::smtp::extension::{MailBodyParameter, MailParameter};
use tokio::time::{Instant, timeout};

use self::opening::Offers;
use super::classify::{Phase, Told};
use super::config::{SmtpReuse, SmtpTimeouts};
use super::message::BuiltMail;
use super::reply::{Reply, ReplyReader};
use super::wire::Wire;
use crate::ports::channel::Call;

/// The message is written in blocks of this size, each with its own deadline.
const BLOCK: usize = 64 * 1024;
/// A polite QUIT is given up after this: the connection is closed either way.
const BYE: Duration = Duration::from_secs(1);

/// Where a session stopped, and what was told.
#[derive(Debug)]
pub(super) struct Trouble {
    pub phase: Phase,
    pub told: Told,
    /// The machine's own words (of the network, of name look-up, of TLS), for `doctor`.
    pub detail: Option<String>,
}

impl Trouble {
    pub const fn new(phase: Phase, told: Told) -> Self {
        Self { phase, told, detail: None }
    }

    fn of(phase: Phase, told: Told, error: &io::Error) -> Self {
        Self { detail: Some(error.to_string()), ..Self::new(phase, told) }
    }
}

pub(super) struct Connection {
    wire: Wire,
    offers: Offers,
    born: Instant,
    last_used: Instant,
    messages: u32,
    /// The last transaction ended before its message: MAIL must not meet the old one.
    needs_reset: bool,
    /// A whole exchange is behind us and nothing is left unread.
    reusable: bool,
}

impl Connection {
    /// Sends one mail to one recipient. Whatever it says, see [`Self::is_reusable`] after it; a
    /// connection whose `deliver` was dropped half-way is not.
    pub async fn deliver(&mut self, mail: &BuiltMail, limits: &SmtpTimeouts, call: &Call) -> Result<Reply, Trouble> {
        let text = dots_doubled(&mail.bytes);
        if mail.needs_smtputf8 && !self.offers.smtputf8 {
            return Err(Trouble::new(Phase::Mail, Told::Lacks("the address needs SMTPUTF8")));
        }
        if self.offers.size.flatten().is_some_and(|limit| mail.bytes.len() > limit) {
            return Err(Trouble::new(Phase::Mail, Told::TooLarge));
        }
        self.reusable = false;
        self.messages += 1;
        self.envelope(mail, limits).await?;
        let reply = self.message(&text, limits, call).await?;
        self.reusable = reply.code != 421;
        self.last_used = Instant::now();
        positive(Phase::Dot, reply)
    }

    /// MAIL, RCPT and DATA, in one flight where the server takes that; each reply counts for itself.
    async fn envelope(&mut self, mail: &BuiltMail, limits: &SmtpTimeouts) -> Result<(), Trouble> {
        let mut steps = Vec::with_capacity(4);
        if self.needs_reset {
            steps.push((Phase::Mail, Rset.to_string(), 250, limits.command.0));
        }
        steps.push((Phase::Mail, self.mail_from(mail), 250, limits.command.0));
        let rcpt = Rcpt::new(mail.to.for_command(), vec![]).to_string();
        steps.push((Phase::Rcpt, rcpt, 250, limits.command.0));
        steps.push((Phase::Data, Data.to_string(), 354, limits.data.0));
        self.needs_reset = true;
        if self.offers.pipelining {
            let flight: String = steps.iter().map(|(_, command, ..)| command.as_str()).collect();
            within(Phase::Mail, limits.command.0, self.wire.write_all(flight.as_bytes())).await?;
        }
        let mut refused = None;
        for (phase, command, wanted, limit) in steps {
            let reply = if self.offers.pipelining {
                self.reply(phase, limit).await
            } else {
                self.command(phase, command, limit).await
            };
            let reply = match (reply, refused.take()) {
                (Ok(reply), None) => reply,
                // The first refusal is the one that counts; the rest is only read.
                (Ok(reply), Some(first)) if reply.code != 354 && reply.code != 421 => {
                    refused = Some(first);
                    continue;
                }
                // A server that wants the message although it refused its envelope, or is gone.
                (_, Some(first)) => return Err(first),
                (Err(trouble), None) => return Err(trouble),
            };
            if reply.class() != wanted / 100 {
                let gone = reply.code == 421;
                let trouble = Trouble::new(phase, Told::Reply(reply));
                if gone {
                    return Err(trouble);
                }
                if !self.offers.pipelining {
                    self.settled();
                    return Err(trouble);
                }
                refused = Some(trouble);
            }
        }
        match refused {
            Some(trouble) => {
                self.settled();
                Err(trouble)
            }
            None => Ok(()),
        }
    }

    fn mail_from(&self, mail: &BuiltMail) -> String {
        let mut parameters = Vec::new();
        if self.offers.size.is_some() {
            parameters.push(MailParameter::Size(mail.bytes.len()));
        }
        if mail.needs_smtputf8 {
            parameters.push(MailParameter::SmtpUtfEight);
            if self.offers.eight_bit {
                parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
            }
        }
        Mail::new(Some(mail.from.for_command()), parameters).to_string()
    }

    /// Every reply was read; the next transaction begins with RSET.
    fn settled(&mut self) {
        self.reusable = true;
        self.last_used = Instant::now();
    }

    /// The message, the final dot and the answer to it.
    async fn message(&mut self, text: &[u8], limits: &SmtpTimeouts, call: &Call) -> Result<Reply, Trouble> {
        let last = text.len().saturating_sub(1) / BLOCK * BLOCK;
        for block in text[..last].chunks(BLOCK) {
            if let Err(trouble) = within(Phase::Body, limits.block.0, self.wire.write_all(block)).await {
                return Err(self.last_words(trouble, limits).await);
            }
        }
        if self.wire.has_news() {
            // It has refused or left before the dot: then the dot must not be written at all.
            return Err(self.last_words(Trouble::new(Phase::Body, Told::Cut), limits).await);
        }
        call.commit().map_err(|_| Trouble::new(Phase::Body, Told::LeaseLost))?;
        let mut ending = text[last..].to_vec();
        ending.extend_from_slice(b".\r\n");
        if let Err(trouble) = self.write_ending(&ending, limits.block.0).await {
            return Err(if trouble.phase == Phase::Body { self.last_words(trouble, limits).await } else { trouble });
        }
        let reply = self.reply(Phase::Dot, limits.end_of_data.0).await?;
        self.needs_reset = false;
        Ok(reply)
    }

    /// The last block with the final dot. Until its last octet is handed over, the server cannot
    /// have seen the dot, and the trouble is one of [`Phase::Body`].
    async fn write_ending(&mut self, ending: &[u8], limit: Duration) -> Result<(), Trouble> {
        let deadline = Instant::now() + limit;
        let mut left = ending;
        while !left.is_empty() {
            let within_limit = deadline.saturating_duration_since(Instant::now());
            let written = within(Phase::Body, within_limit, self.wire.write_some(left)).await?;
            left = &left[written..];
        }
        let within_limit = deadline.saturating_duration_since(Instant::now());
        within(Phase::Dot, within_limit, self.wire.flush()).await
    }

    /// Why a server ended the exchange before the dot, where it said so before it closed.
    async fn last_words(&mut self, trouble: Trouble, limits: &SmtpTimeouts) -> Trouble {
        if trouble.told != Told::Cut {
            return trouble;
        }
        match self.reply(Phase::Body, limits.command.0).await {
            Ok(reply) => Trouble::new(Phase::Body, Told::Reply(reply)),
            Err(_) => trouble,
        }
    }

    /// Asks nothing and waits for the answer, for `doctor`.
    pub async fn noop(&mut self, limits: &SmtpTimeouts) -> Result<(), Trouble> {
        let reply = self.command(Phase::Mail, Noop, limits.greeting.0).await?;
        positive(Phase::Mail, reply).map(|_| ())
    }

    /// Says QUIT without waiting for the answer, and closes.
    pub async fn bye(mut self) {
        // Whether it got there makes no difference: the connection is closed either way.
        drop(timeout(BYE, self.wire.write_all(Quit.to_string().as_bytes())).await);
    }

    pub const fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Idle too long, too old, or has carried enough.
    pub fn is_spent(&self, reuse: &SmtpReuse) -> bool {
        self.messages >= reuse.messages
            || self.last_used.elapsed() >= reuse.idle.0
            || self.born.elapsed() >= reuse.age.0
    }

    /// The server closed it, or said something unasked (421) while it was idle.
    pub fn has_news(&mut self) -> bool {
        self.wire.has_news()
    }

    async fn command(&mut self, phase: Phase, command: impl Display, limit: Duration) -> Result<Reply, Trouble> {
        within(phase, limit, self.wire.write_all(command.to_string().as_bytes())).await?;
        self.reply(phase, limit).await
    }

    /// The next whole reply, within `limit`.
    async fn reply(&mut self, phase: Phase, limit: Duration) -> Result<Reply, Trouble> {
        let wire = &mut self.wire;
        within(phase, limit, async {
            let mut reader = ReplyReader::default();
            for _ in 0..MOST_LINES {
                let line = wire.read_line().await?;
                let whole = reader.push(&line).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
                if let Some(reply) = whole {
                    return Ok(reply);
                }
            }
            Err(io::ErrorKind::InvalidData.into())
        })
        .await
    }
}

/// A reply with more lines than this is no reply.
const MOST_LINES: usize = 200;

fn positive(phase: Phase, reply: Reply) -> Result<Reply, Trouble> {
    if reply.is_positive() { Ok(reply) } else { Err(Trouble::new(phase, Told::Reply(reply))) }
}

async fn within<T>(phase: Phase, limit: Duration, step: impl Future<Output = io::Result<T>>) -> Result<T, Trouble> {
    match timeout(limit, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(Trouble::of(phase, Told::Garbled, &error)),
        Ok(Err(error)) => Err(Trouble::of(phase, Told::Cut, &error)),
        Err(_) => Err(Trouble::new(phase, Told::Silence)),
    }
}

/// RFC 5321 4.5.2: a line that begins with a dot gets one more.
fn dots_doubled(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut at_line_start = true;
    for &byte in text {
        if at_line_start && byte == b'.' {
            out.push(b'.');
        }
        out.push(byte);
        at_line_start = byte == b'\n';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots() {
        assert_eq!(dots_doubled(b".\r\n..\r\na.b\r\n.x\r\n"), b"..\r\n...\r\na.b\r\n..x\r\n");
    }
}
