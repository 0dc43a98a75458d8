//! Apple's push service, over HTTP/2.
//!
//! Nothing can have been sent before the request's first byte; after it, only Apple's own word or HTTP/2's says that
//! it was not. The device replaces a second copy by its collapse id; Apple itself remembers no key of ours.

mod certificate;
pub mod classify;
pub mod config;
mod request;
mod settings;
mod token;

use std::sync::Arc;

use async_trait::async_trait;
use belfry_domain::UnixMs;
use belfry_domain::outcome::{Outcome, RepeatGuard, Why, WhyCode};

pub use self::token::Mints;

use self::classify::{Told, Topic, classify, is_expired_login};
use self::config::ApnsConfig;
use self::request::{Draft, Unsendable};
use self::settings::{Login, Settings};
use self::token::{CannotSign, Mint, Minted, Renewal};
use super::https::{Commit, Fault, Https};
use super::setting::{WrongSetting, wrong};
use crate::ports::certificate::CertificateEnd;
use crate::ports::channel::{Call, Channel, CheckProblem};
use crate::ports::clock::Clock;
use crate::ports::message::Outgoing;

/// One `[providers.<name>]` of kind `apns`. Connections are its own: Apple allows one team on each.
pub struct ApnsChannel {
    https: Https,
    url: String,
    place: String,
    topic: String,
    /// `None`: a certificate.
    mint: Option<Arc<Mint>>,
    /// Of the certificate.
    ends: Option<UnixMs>,
    clock: Arc<dyn Clock>,
}

/// Why a call brought no word of Apple's.
enum Unmade {
    Fault(Fault),
    CannotSign,
}

impl From<CannotSign> for Unmade {
    fn from(CannotSign: CannotSign) -> Self {
        Self::CannotSign
    }
}

impl Unmade {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Fault(fault) => fault.outcome(),
            Self::CannotSign => {
                let why = Why::said(WhyCode::TryLater, "the login could not be signed");
                Outcome::NotAccepted { retry_after: None, why }
            }
        }
    }
}

impl ApnsChannel {
    /// Reads and checks the configuration. Connects nowhere.
    ///
    /// # Errors
    /// [`WrongSetting`] names the first key that is wrong.
    pub fn new(config: &ApnsConfig, mints: &Mints, clock: Arc<dyn Clock>) -> Result<Self, WrongSetting> {
        let Settings { url, place, topic, login, https } = Settings::read(config).map_err(first)?;
        let (mint, ends) = match login {
            Login::Token(id, signer) => (Some(mints.of(id, *signer, &*clock)), None),
            Login::Certificate(ends) => (None, ends),
        };
        Ok(Self { https, url, place, topic, mint, ends, clock })
    }

    /// Everything wrong with a configuration, key and certificate files included. Connects nowhere.
    #[must_use]
    pub fn problems(config: &ApnsConfig) -> Vec<WrongSetting> {
        Settings::problems(config)
    }

    /// Where it connects to: `api.push.apple.com`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Connects, logs in, and asks for a device that nobody has; for `doctor`. Apple looks at the login and the
    /// topic first, so that "no such device" says that they are right.
    ///
    /// # Errors
    /// Why a message would not get through now.
    pub async fn check(&self) -> Result<(), CheckProblem> {
        let draft = Draft::nobodys(&self.url, &self.topic)
            .map_err(|unsendable| CheckProblem { why: unsendable.why(), detail: None })?;
        let told = self.told(&draft, &|| Ok(())).await.map_err(|unmade| CheckProblem {
            why: unmade.outcome().why().clone(),
            detail: if let Unmade::Fault(Fault::NotTaken { detail, .. }) = unmade { detail } else { None },
        })?;
        let outcome = classify(&told, Topic::App);
        match (&outcome, outcome.why().code) {
            (Outcome::Accepted { .. } | Outcome::RecipientGone { .. }, _)
            | (Outcome::Refused { .. }, WhyCode::BadToken | WhyCode::WrongApp)
            | (Outcome::Throttled { .. }, WhyCode::RateLimited) => Ok(()),
            _ => Err(CheckProblem { why: outcome.why().clone(), detail: None }),
        }
    }

    async fn told(&self, draft: &Draft, commit: Commit<'_>) -> Result<Told, Unmade> {
        let Some(mint) = &self.mint else { return self.ask(draft, None, commit).await };
        let minted = mint.current(&*self.clock)?;
        let told = self.ask(draft, Some(&minted), commit).await?;
        if !is_expired_login(&told) {
            return Ok(told);
        }
        match mint.after_expiry(&minted, &*self.clock)? {
            Renewal::Token(minted) => self.ask(draft, Some(&minted), commit).await,
            Renewal::TooYoung => Ok(told),
        }
    }

    async fn ask(&self, draft: &Draft, login: Option<&Arc<Minted>>, commit: Commit<'_>) -> Result<Told, Unmade> {
        let request = draft.with(login.map(|minted| minted.authorization.clone()));
        let answer = self.https.ask(request, commit).await.map_err(Unmade::Fault)?;
        Ok(Told::read(&answer, self.clock.now(), draft.token()))
    }
}

/// [`Settings::read`] gives one at least.
fn first(found: Vec<WrongSetting>) -> WrongSetting {
    found.into_iter().next().unwrap_or_else(|| wrong("url", "cannot be used"))
}

#[async_trait]
impl Channel for ApnsChannel {
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::Collapse
    }

    /// Apple says that it has a notification, never that a device showed it.
    fn receipts(&self) -> bool {
        false
    }

    fn certificate_end(&self) -> Option<CertificateEnd> {
        self.ends.map(|at| CertificateEnd::seen(at, self.clock.now()))
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        let draft = match Draft::of(out, &self.url, &self.topic) {
            Ok(draft) => draft,
            Err(unsendable) => return Outcome::Refused { why: unsendable.why() },
        };
        match self.told(&draft, &|| call.commit()).await {
            Ok(told) => classify(&told, draft.topic),
            Err(unmade) => unmade.outcome(),
        }
    }
}

impl Unsendable {
    fn why(&self) -> Why {
        match self {
            Self::BadToken => Why::new(WhyCode::TokenMalformed),
            Self::TooLarge { bytes, most } => {
                Why::said(WhyCode::TooLarge, format!("{bytes} bytes where {most} are allowed"))
            }
            Self::NotAPush => Why::said(WhyCode::RenderFailed, "the message is no push"),
        }
    }
}

impl std::fmt::Debug for ApnsChannel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ApnsChannel({} for {})", self.place, self.topic)
    }
}
