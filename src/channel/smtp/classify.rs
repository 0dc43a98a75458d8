//! What a server's answer means, by the phase it came in. Pure: no socket, no clock.
//!
//! The first digit decides, then the enhanced code (RFC 5321 4.2.1, RFC 3463). Before the final
//! dot nothing can have been sent; after it only the server's own word says that it was not.

use std::time::Duration;

use belfry_domain::outcome::{Outcome, ThrottleScope, Why, WhyCode};

use super::reply::Reply;
use super::words::{self, Unsaid};

/// How far the exchange had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Connect,
    Tls,
    Greeting,
    Ehlo,
    Auth,
    Mail,
    Rcpt,
    Data,
    /// The message itself, the final dot not yet handed to the socket.
    Body,
    /// The final dot was written.
    Dot,
}

/// What came of the last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Reply(Reply),
    /// The connection could not be made or was lost.
    Cut,
    /// The deadline passed.
    Silence,
    /// Something that is no SMTP reply.
    Garbled,
    /// Why there is no secure connection, in our words.
    Insecure(&'static str),
    /// What the server lacks, in our words.
    Lacks(&'static str),
    /// Larger than the SIZE that the server named.
    TooLarge,
    /// No connection of ours came free in time.
    Busy,
    /// The claim no longer covered the call right before the final dot.
    LeaseLost,
}

/// How long others wait after a 421: it says "not now", nothing about any message.
const AFTER_421: Duration = Duration::from_secs(5);
/// How long others wait after our login was refused, unless the breaker knows better.
const AFTER_REFUSED_LOGIN: Duration = Duration::from_secs(60);

/// An outcome out of the closed set; the server's words without what is `unsaid`.
#[must_use]
pub fn classify(phase: Phase, told: &Told, unsaid: &Unsaid<'_>) -> Outcome {
    let not_accepted = |why| Outcome::NotAccepted { retry_after: None, why };
    match told {
        Told::Reply(reply) => of_reply(phase, reply, unsaid),
        Told::Busy => Outcome::Throttled {
            after: AFTER_421,
            scope: ThrottleScope::Provider,
            why: Why::new(WhyCode::TimedOutBefore),
        },
        Told::LeaseLost => not_accepted(Why::new(WhyCode::LeaseLost)),
        Told::TooLarge => Outcome::Refused { why: Why::new(WhyCode::TooLarge) },
        Told::Lacks(what) if phase == Phase::Auth => refused_login(Why::said(WhyCode::CredentialRefused, *what)),
        Told::Lacks(what) => Outcome::Refused { why: Why::said(WhyCode::NotSupported, *what) },
        Told::Insecure(what) => not_accepted(Why::said(WhyCode::TlsFailed, *what)),
        Told::Cut if phase == Phase::Dot => Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) },
        Told::Silence if phase == Phase::Dot => {
            Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::TimedOutAfter) }
        }
        Told::Garbled if phase == Phase::Dot => {
            Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::Unrecognised) }
        }
        Told::Cut => {
            not_accepted(Why::new(if phase == Phase::Tls { WhyCode::TlsFailed } else { WhyCode::Unreachable }))
        }
        Told::Silence => not_accepted(Why::new(WhyCode::TimedOutBefore)),
        Told::Garbled => not_accepted(Why::new(WhyCode::Unrecognised)),
    }
}

/// Whether the same call may be made once more on a fresh connection: the old one had gone stale,
/// which says nothing about this message.
#[must_use]
pub fn went_stale(phase: Phase, told: &Told) -> bool {
    phase != Phase::Dot && matches!(told, Told::Cut | Told::Reply(Reply { code: 421, .. }))
}

fn of_reply(phase: Phase, reply: &Reply, unsaid: &Unsaid<'_>) -> Outcome {
    let said = |code| Why::said(code, words::told(reply, unsaid));
    match reply.class() {
        2 if phase == Phase::Dot => {
            Outcome::Accepted { provider_ref: words::queue_id(&reply.text).map(str::to_owned), why: said(WhyCode::Ok) }
        }
        4 if reply.code == 421 => {
            Outcome::Throttled { after: AFTER_421, scope: ThrottleScope::Provider, why: said(WhyCode::TryLater) }
        }
        4 if phase == Phase::Auth => {
            Outcome::Throttled { after: AFTER_421, scope: ThrottleScope::Provider, why: said(WhyCode::TryLater) }
        }
        4 => Outcome::NotAccepted { retry_after: None, why: said(WhyCode::TryLater) },
        5 => permanent(phase, reply, said),
        // A reply out of turn: 354 after the dot, 250 in answer to DATA.
        _ if phase == Phase::Dot => Outcome::Unknown { retry_after: None, why: said(WhyCode::Unrecognised) },
        _ => Outcome::NotAccepted { retry_after: None, why: said(WhyCode::Unrecognised) },
    }
}

fn permanent(phase: Phase, reply: &Reply, said: impl Fn(WhyCode) -> Why) -> Outcome {
    match phase {
        // Our login, not anybody's message.
        Phase::Auth => return refused_login(said(WhyCode::CredentialRefused)),
        Phase::Mail | Phase::Rcpt | Phase::Data if asks_for_login(reply) => {
            return refused_login(said(WhyCode::CredentialRefused));
        }
        Phase::Connect | Phase::Tls => {
            return Outcome::NotAccepted { retry_after: None, why: said(WhyCode::TlsFailed) };
        }
        // A host that doesn't serve us says so before it has seen a message.
        Phase::Greeting | Phase::Ehlo => {
            return Outcome::NotAccepted { retry_after: None, why: said(WhyCode::Unreachable) };
        }
        Phase::Mail | Phase::Rcpt | Phase::Data | Phase::Body | Phase::Dot => {}
    }
    if phase == Phase::Rcpt && names_no_mailbox(reply) {
        return Outcome::RecipientGone { since: None, why: said(WhyCode::NoSuchRecipient) };
    }
    let code = match (reply.code, reply.detail()) {
        _ if phase == Phase::Rcpt && refuses_recipient(reply) => WhyCode::RecipientRefused,
        (_, Some((2, 3) | (3, 4))) => WhyCode::TooLarge,
        // 552 is also a mailbox over its quota, which it says in the enhanced code or at RCPT.
        (552, Some((2, 2))) => WhyCode::PolicyRefused,
        (552, None) if phase == Phase::Rcpt => WhyCode::PolicyRefused,
        (552, _) => WhyCode::TooLarge,
        (_, Some((6, 7 | 9 | 10))) => WhyCode::NotSupported,
        (_, Some((7, _))) => WhyCode::PolicyRefused,
        (_, Some((1, _))) => WhyCode::PolicyRefused,
        (_, Some(_)) => WhyCode::ContentRefused,
        (550 | 554 | 571 | 573, None) => WhyCode::PolicyRefused,
        (_, None) => WhyCode::ContentRefused,
    };
    Outcome::Refused { why: said(code) }
}

fn refused_login(why: Why) -> Outcome {
    Outcome::Throttled { after: AFTER_REFUSED_LOGIN, scope: ThrottleScope::Credential, why }
}

/// 530 and 535, 538 (RFC 4954), or X.7.8 to X.7.11: the server wants a login, or TLS first.
fn asks_for_login(reply: &Reply) -> bool {
    matches!(reply.code, 530 | 534 | 535 | 538) || matches!(reply.detail(), Some((7, 8..=11)))
}

/// RFC 3463 X.1.1 (no such mailbox) and X.1.6 (it moved), RFC 7505 X.1.10 (its domain takes no mail): only a word
/// that can mean nothing else, for nothing goes to the address any more after it. A bare 550 is also a relay that does
/// not know us, a block list, or a sender that was not believed. X.1.2 is what a relay's name look-up said today, and
/// X.1.3 what one parser makes of the address.
fn names_no_mailbox(reply: &Reply) -> bool {
    matches!(reply.detail(), Some((1, 1 | 6 | 10)))
}

/// The recipient was refused, and whether there is such a mailbox is not said.
fn refuses_recipient(reply: &Reply) -> bool {
    match reply.detail() {
        Some((1, detail)) => matches!(detail, 2 | 3),
        Some(_) => false,
        None => matches!(reply.code, 511 | 550 | 551 | 553),
    }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
