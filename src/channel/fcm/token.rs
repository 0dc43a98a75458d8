//! The access token that every call carries: fetched once for all who wait for it, renewed before it
//! ends, given up when it is refused.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belfry_domain::outcome::{Outcome, Why, WhyCode};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

use super::account::Account;
use super::grant::{self, Granted};
use crate::channel::https::{Fault, Https};
use crate::ports::clock::{Boot, Clock};

/// Renewed so long before its end: enough for a token endpoint that is away for a while.
const RENEWED_BEFORE: Duration = Duration::from_secs(5 * 60);
/// For so long a failure is everybody's answer: who comes right after it does not ask again.
const FAILURE_KEPT: Duration = Duration::from_secs(1);
/// With a token that still lives, a renewal that failed is tried again after so long.
const RENEWED_AGAIN: Duration = Duration::from_secs(30);

/// One access token.
pub(super) struct Access {
    /// `Bearer …`, marked as sensitive.
    pub header: HeaderValue,
    renew_at: Boot,
    ends_at: Boot,
}

/// Why there is none: nothing was sent then.
#[derive(Clone, Debug)]
pub(super) struct NoToken {
    pub outcome: Outcome,
    /// The machine's own words: of the network, of TLS.
    pub detail: Option<String>,
}

type Fetched = Result<Arc<Access>, NoToken>;
type Fetch = BoxFuture<'static, Fetched>;

#[derive(Default)]
struct Held {
    access: Option<Arc<Access>>,
    /// Lives as long as somebody waits for it; whoever is left drives it on.
    fetch: Option<WeakShared<Fetch>>,
    failure: Option<(NoToken, Boot)>,
    /// Where a renewal failed: not before.
    renew_again_at: Boot,
}

pub(super) struct Tokens {
    fetcher: Arc<Fetcher>,
    held: Arc<Mutex<Held>>,
}

impl Tokens {
    pub(super) fn new(account: Account, https: Https, clock: Arc<dyn Clock>) -> Self {
        Self { fetcher: Arc::new(Fetcher { account, https, clock }), held: Arc::default() }
    }

    /// A token that was not `refused`.
    pub(super) async fn get(&self, refused: Option<&Arc<Access>>) -> Fetched {
        let now = self.fetcher.clock.boot();
        let (fetch, living) = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let is_refused = |one: &Arc<Access>| refused.is_some_and(|refused| Arc::ptr_eq(one, refused));
            held.access.take_if(|access| is_refused(access) || now >= access.ends_at);
            if let Some(access) = &held.access
                && (now < access.renew_at || now < held.renew_again_at)
            {
                return Ok(access.clone());
            }
            if let Some((failure, until)) = &held.failure
                && now < *until
            {
                return Err(failure.clone());
            }
            (self.join(&mut held), held.access.clone())
        };
        match fetch.await {
            Ok(access) => Ok(access),
            // The old one is good until it is refused.
            Err(failure) => living.ok_or(failure),
        }
    }

    /// The fetch that is under way, else a new one.
    fn join(&self, held: &mut Held) -> Shared<Fetch> {
        if let Some(fetch) = held.fetch.as_ref().and_then(WeakShared::upgrade) {
            return fetch;
        }
        let fetch = fetch(self.fetcher.clone(), self.held.clone()).boxed().shared();
        held.fetch = fetch.downgrade();
        fetch
    }
}

async fn fetch(fetcher: Arc<Fetcher>, held: Arc<Mutex<Held>>) -> Fetched {
    let fetched = fetcher.fetch().await;
    let now = fetcher.clock.boot();
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    held.fetch = None;
    match &fetched {
        Ok(access) => {
            held.access = Some(access.clone());
            held.failure = None;
        }
        Err(failure) => {
            held.failure = Some((failure.clone(), now + FAILURE_KEPT));
            held.renew_again_at = now + RENEWED_AGAIN;
        }
    }
    fetched
}

struct Fetcher {
    account: Account,
    https: Https,
    clock: Arc<dyn Clock>,
}

impl Fetcher {
    async fn fetch(&self) -> Fetched {
        // Its life is counted from before it was asked for.
        let asked_at = self.clock.boot();
        let refused = |code| NoToken { outcome: grant::refused(Why::new(code)), detail: None };
        let assertion = self.account.assertion(self.clock.now()).map_err(|_| refused(WhyCode::CredentialRefused))?;
        let request =
            grant::request(&self.account.token_uri, &assertion).map_err(|_| refused(WhyCode::SetupRefused))?;
        let answer = self.https.ask(request, &|| Ok(())).await.map_err(never_asked)?;
        let Granted { token, lives } =
            grant::read(&answer, self.clock.now()).map_err(|outcome| NoToken { outcome, detail: None })?;
        let header = bearer(&token).ok_or_else(|| refused(WhyCode::CredentialRefused))?;
        Ok(Arc::new(Access {
            header,
            // One that lives shorter than that is not fetched anew for every call.
            renew_at: asked_at + lives.saturating_sub(RENEWED_BEFORE).max(lives / 2),
            ends_at: asked_at + lives,
        }))
    }
}

fn bearer(token: &SecretString) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// A token that may have been granted is nothing that was sent to anybody.
fn never_asked(fault: Fault) -> NoToken {
    let (code, detail) = match fault {
        Fault::NotTaken { code, detail } => (code, detail),
        Fault::Unknown { code: WhyCode::TimedOutAfter } => (WhyCode::TimedOutBefore, None),
        Fault::Unknown { .. } | Fault::Internal | Fault::LeaseLost => (WhyCode::Unreachable, None),
    };
    NoToken { outcome: Outcome::NotAccepted { retry_after: None, why: Why::new(code) }, detail }
}
