//! From nothing to a session that takes mail: connect, greet, encrypt, log in.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::commands::{Auth, Ehlo, Starttls};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::Instant;

use super::{Connection, Trouble, positive, within};
use crate::channel::smtp::classify::{Phase, Told};
use crate::channel::smtp::config::SmtpTimeouts;
use crate::channel::smtp::reply::Reply;
use crate::channel::smtp::settings::Settings;
use crate::channel::smtp::wire::Wire;

/// What the server offered in EHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offers {
    pub starttls: bool,
    pub pipelining: bool,
    pub smtputf8: bool,
    pub eight_bit: bool,
    /// Outer: offered. Inner: the largest message, where there is a limit.
    pub size: Option<Option<usize>>,
    pub auth: Vec<String>,
}

impl Offers {
    fn of(ehlo: &Reply) -> Self {
        let mut offers = Self::default();
        for line in ehlo.lines.iter().skip(1) {
            let line = line.to_ascii_uppercase();
            let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
            match words.next() {
                Some("STARTTLS") => offers.starttls = true,
                Some("PIPELINING") => offers.pipelining = true,
                Some("SMTPUTF8") => offers.smtputf8 = true,
                Some("8BITMIME") => offers.eight_bit = true,
                Some("SIZE") => {
                    offers.size = Some(words.next().and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0));
                }
                Some("AUTH") => offers.auth.extend(words.map(str::to_owned)),
                _ => {}
            }
        }
        offers
    }
}

impl Connection {
    /// Connects, greets, encrypts where that is asked for, and logs in.
    pub async fn open(settings: &Settings) -> Result<Self, Trouble> {
        let limits = &settings.timeouts;
        let (wire, peer) = connect(settings).await?;
        let wire = if settings.implicit_tls { encrypted(wire, settings).await? } else { wire };
        let now = Instant::now();
        let mut this = Self {
            wire,
            offers: Offers::default(),
            born: now,
            last_used: now,
            messages: 0,
            needs_reset: false,
            reusable: false,
        };
        this.reply(Phase::Greeting, limits.greeting.0).await.and_then(|reply| positive(Phase::Greeting, reply))?;
        this.ehlo(settings).await?;
        let wants_tls = !peer.ip().is_loopback() || settings.trusts_own_roots;
        if !this.wire.is_encrypted() && wants_tls {
            this = this.starttls(settings).await?;
        }
        if let Some(login) = &settings.login {
            this.log_in(login.mechanism, &login.credentials, limits).await?;
        }
        this.reusable = true;
        Ok(this)
    }

    async fn ehlo(&mut self, settings: &Settings) -> Result<(), Trouble> {
        let name = match (&settings.helo, self.wire.local_address()) {
            (Some(name), _) => ClientId::Domain(name.clone()),
            (None, Ok(SocketAddr::V4(address))) => ClientId::Ipv4(*address.ip()),
            (None, Ok(SocketAddr::V6(address))) => ClientId::Ipv6(*address.ip()),
            (None, Err(_)) => return Err(Trouble::new(Phase::Ehlo, Told::Cut)),
        };
        let reply = self.command(Phase::Ehlo, Ehlo::new(name), settings.timeouts.greeting.0).await?;
        self.offers = Offers::of(&positive(Phase::Ehlo, reply)?);
        Ok(())
    }

    async fn starttls(mut self, settings: &Settings) -> Result<Self, Trouble> {
        if !self.offers.starttls {
            return Err(Trouble::new(Phase::Tls, Told::Insecure("the server offers no STARTTLS")));
        }
        let reply = self.command(Phase::Tls, Starttls, settings.timeouts.greeting.0).await?;
        positive(Phase::Tls, reply)?;
        self.wire = encrypted(self.wire, settings).await?;
        // What was offered in plain text is forgotten (RFC 3207 4.2).
        self.ehlo(settings).await?;
        Ok(self)
    }

    async fn log_in(
        &mut self,
        mechanism: Mechanism,
        credentials: &Credentials,
        limits: &SmtpTimeouts,
    ) -> Result<(), Trouble> {
        let lacks = |what| Trouble::new(Phase::Auth, Told::Lacks(what));
        if !self.offers.auth.contains(&mechanism.to_string()) {
            return Err(lacks("the server does not offer the configured login mechanism"));
        }
        let first =
            Auth::new(mechanism, credentials.clone(), None).map_err(|_| lacks("the login cannot be written"))?;
        let mut reply = self.command(Phase::Auth, first, limits.greeting.0).await?;
        // LOGIN asks twice. XOAUTH2 wraps its refusal in one more challenge, answered by an empty
        // line, before it says 535.
        for _ in 0..3 {
            if reply.code != 334 {
                break;
            }
            let challenge = STANDARD.decode(reply.text.trim()).ok().and_then(|it| String::from_utf8(it).ok());
            let answer = match mechanism {
                Mechanism::Login => Auth::new(mechanism, credentials.clone(), Some(challenge.unwrap_or_default()))
                    .map_err(|_| lacks("the server asks something that is neither user nor password"))?
                    .to_string(),
                Mechanism::Plain | Mechanism::Xoauth2 => "\r\n".to_owned(),
            };
            reply = self.command(Phase::Auth, answer, limits.greeting.0).await?;
        }
        positive(Phase::Auth, reply).map(|_| ())
    }
}

/// Every address in order, each with its share of what is left of the deadline: one that swallows
/// packets must not use up the others' time.
async fn connect(settings: &Settings) -> Result<(Wire, SocketAddr), Trouble> {
    let limit = settings.timeouts.connect.0;
    let deadline = Instant::now() + limit;
    let host = (settings.host.as_str(), settings.port);
    let found = within(Phase::Connect, limit, tokio::net::lookup_host(host)).await?;
    let addresses: Vec<SocketAddr> = found.collect();
    let mut trouble = Trouble::new(Phase::Connect, Told::Cut);
    for (at, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - at).unwrap_or(1);
        match within(Phase::Connect, share, Wire::connect(*address)).await {
            Ok(wire) => return Ok((wire, *address)),
            Err(next) => trouble = next,
        }
    }
    Err(trouble)
}

async fn encrypted(wire: Wire, settings: &Settings) -> Result<Wire, Trouble> {
    let handshake = wire.into_tls(settings.tls.clone(), settings.server_name.clone());
    match within(Phase::Tls, settings.timeouts.greeting.0, handshake).await {
        // rustls reports a bad certificate as invalid data.
        Err(Trouble { told: Told::Garbled, detail, .. }) => {
            let told = Told::Insecure("the certificate or the handshake is not acceptable");
            Err(Trouble { detail, ..Trouble::new(Phase::Tls, told) })
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers() {
        let reply = Reply::of(
            "250-mail.example.com greets SMTPUTF8\n250-PIPELINING\n250-SIZE 1000\n250-starttls\n\
             250-AUTH PLAIN LOGIN\n250-AUTH=XOAUTH2\n250 8BITMIME",
        );
        let expected = Offers {
            starttls: true,
            pipelining: true,
            smtputf8: false,
            eight_bit: true,
            size: Some(Some(1000)),
            auth: ["PLAIN", "LOGIN", "XOAUTH2"].map(str::to_owned).to_vec(),
        };
        assert_eq!(Offers::of(&reply), expected);
        assert_eq!(Offers::of(&Reply::of("250-x\n250 SIZE 0")).size, Some(None));
        assert_eq!(Offers::of(&Reply::of("250 x")), Offers::default());
    }
}
