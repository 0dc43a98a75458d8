//! Requests to other people's servers: HTTP/2 over TLS (HTTP/1.1 where the other side knows no better),
//! some kept connections per origin, and for every request one of three words: answered, certainly not
//! taken, or nobody knows.
//!
//! Written on `h2` itself, since the difference between *not taken* and *unknown* lies in frames that a
//! general client does not show: a stream refused, or above the last one of a GOAWAY, or never written,
//! was not taken and is sent again here; whatever else ends without an answer may have had its effect.

mod address;
mod connection;
mod dial;
mod exchange;
mod origin;
pub mod retry_after;
mod seen;
mod settings;
mod tls;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belfry_domain::{Outcome, Why, WhyCode};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use self::address::is_inside;
pub use self::settings::{Addresses, HttpsSettings, Identity, Limits, Protocol};

use self::dial::Target;
use self::exchange::Lost;
use self::origin::Origin;
use super::setting::WrongSetting;
use crate::ports::channel::LeaseLost;

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// `None`: the headers came, but the body did not end in time, within bounds, or whole.
    pub body: Option<Bytes>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The claim no longer covers the call; nothing was taken.
    LeaseLost,
    /// Certainly not taken.
    NotTaken {
        /// `Unreachable`, `TlsFailed`, `TimedOutBefore`, or `TryLater` (refused again and again).
        code: WhyCode,
        /// The machine's own words, of the network or of TLS; never an address or a token.
        detail: Option<String>,
    },
    /// Certainly not taken: the host has no address but internal ones, and those may not be called
    /// ([`Addresses::PublicOnly`]). Whether that is the host's fault or our name server's is not known here.
    Internal,
    /// It may have been taken.
    Unknown {
        /// `TimedOutAfter` or `CutAfter`.
        code: WhyCode,
    },
}

impl Fault {
    /// What it means for the message. A fault is never a refusal.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let not_accepted = |code| Outcome::NotAccepted { retry_after: None, why: Why::new(code) };
        match self {
            Self::LeaseLost => not_accepted(WhyCode::LeaseLost),
            Self::NotTaken { code, .. } => not_accepted(*code),
            Self::Internal => not_accepted(WhyCode::Unreachable),
            Self::Unknown { code } => Outcome::Unknown { retry_after: None, why: Why::new(*code) },
        }
    }

    fn not_taken(code: WhyCode, detail: impl Into<String>) -> Self {
        Self::NotTaken { code, detail: Some(detail.into()) }
    }
}

/// Asked right before the first byte that could have an effect leaves, each time one does.
pub type Commit<'a> = &'a (dyn Fn() -> Result<(), LeaseLost> + Send + Sync);

/// How often a request is sent in all, while each time it is certain that it was not taken.
const TRIES: usize = 3;

/// Cheap to clone. With the last clone its connections end.
#[derive(Clone)]
pub struct Https(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    origins: Mutex<HashMap<Target, Kept>>,
}

struct Kept {
    origin: Arc<Origin>,
    used: Instant,
}

/// What every origin needs.
struct Shared {
    settings: Arc<HttpsSettings>,
    tls: Arc<rustls::ClientConfig>,
    /// One task per connection; they end with this value.
    tasks: Mutex<JoinSet<()>>,
}

impl Shared {
    fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Ended ones are let go as new ones start, so that the set stays as small as what runs.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

impl Https {
    /// Connects nowhere.
    ///
    /// # Errors
    /// [`WrongSetting`] names the text that cannot be used.
    pub fn new(settings: HttpsSettings) -> Result<Self, WrongSetting> {
        let tls = Arc::new(tls::client(&settings)?);
        let shared = Arc::new(Shared { settings: Arc::new(settings), tls, tasks: Mutex::default() });
        Ok(Self(Arc::new(Inner { shared, origins: Mutex::default() })))
    }

    /// One request, one answer. The request's URI is absolute: https, or http on loopback.
    ///
    /// May be dropped at any point; a request under way is then called off, which takes nothing back.
    ///
    /// # Errors
    /// [`Fault`]: what is known of a request without an answer.
    pub async fn ask(&self, request: Request<Bytes>, commit: Commit<'_>) -> Result<Answer, Fault> {
        let target = Target::of(request.uri())?;
        let origin = self.origin(target);
        let settings = &self.0.shared.settings;
        let stream_by = Instant::now() + settings.answer;
        let mut answer_by = None;
        let mut avoid = None;
        let mut last = Fault::NotTaken { code: WhyCode::TryLater, detail: None };
        for _ in 0..TRIES {
            let slot = origin.stream(avoid.as_ref(), stream_by).await?;
            commit().map_err(|LeaseLost| Fault::LeaseLost)?;
            let by = *answer_by.get_or_insert_with(|| Instant::now() + settings.answer);
            match slot.exchange(&request, by, settings).await {
                Ok(answer) => return Ok(answer),
                Err(Lost::Unknown(code)) => return Err(Fault::Unknown { code }),
                Err(Lost::Refused) => last = Fault::NotTaken { code: WhyCode::TryLater, detail: None },
                Err(Lost::NeverWritten) => last = Fault::NotTaken { code: WhyCode::Unreachable, detail: None },
            }
            avoid = Some(slot.connection().clone());
        }
        Err(last)
    }

    fn origin(&self, target: Target) -> Arc<Origin> {
        let now = Instant::now();
        let mut origins = self.origins();
        if let Some(kept) = origins.get_mut(&target) {
            kept.used = now;
            return kept.origin.clone();
        }
        while origins.len() >= self.0.shared.settings.origins.max(1) {
            // Whoever asks holds its origin: nothing under way is cut.
            let unused = origins.iter().filter(|(_, kept)| Arc::strong_count(&kept.origin) == 1);
            let Some(oldest) = unused.min_by_key(|(_, kept)| kept.used).map(|(target, _)| target.clone()) else {
                break;
            };
            origins.remove(&oldest);
        }
        let origin = Arc::new(Origin::new(target.clone(), self.0.shared.clone()));
        origins.insert(target, Kept { origin: origin.clone(), used: now });
        origin
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<Target, Kept>> {
        // Nothing that holds the lock can panic half-way through a change.
        self.0.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Https {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Https({} origins)", self.origins().len())
    }
}

#[cfg(test)]
mod tests;
