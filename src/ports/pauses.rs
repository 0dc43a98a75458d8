//! Pauses: what waits because an operator said so. What each of them holds is [`belfry_domain::pause`]'s; here they are
//! kept, and what a node knows of them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use belfry_domain::key::{KeyKind, NotAnId, child_key};
use belfry_domain::pause::Pause;
use belfry_domain::{Delivery, Key, Notification, UnixMs};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::StoreError;

/// Most pauses of an installation: each of them is compared with every call.
pub const MOST_PAUSES: usize = 256;

/// A pause, by whom and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPause {
    pub pause: Pause,
    /// Public name of the API key that said so last.
    pub by: String,
    /// Whatever an operator wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl KeptPause {
    /// The same for every pause of one thing, of one tenant or of all: a later one takes the place of an earlier.
    #[must_use]
    pub fn id(&self) -> PauseId {
        let Pause { paused, tenant, .. } = &self.pause;
        let parts = [paused.what(), paused.name().unwrap_or(""), tenant.as_deref().unwrap_or("")];
        PauseId(child_key(KeyKind::Pause, &parts.map(str::as_bytes)))
    }
}

/// `pau_` and 24 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseId(pub Key);

impl PauseId {
    pub const PREFIX: &'static str = "pau_";
}

impl fmt::Display for PauseId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", Self::PREFIX, self.0)
    }
}

impl FromStr for PauseId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        text.strip_prefix(Self::PREFIX).ok_or(NotAnId)?.parse().map(Self)
    }
}

/// What became of a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PausePut {
    /// It is kept like this. `is_new`: none with its id stood.
    Kept { pause: Box<KeptPause>, is_new: bool },
    /// There are [`MOST_PAUSES`] others already.
    TooMany,
}

/// Some of what waits.
#[derive(Clone, Debug, Default)]
pub struct WaitingPage {
    /// With its notification where that was asked for and can be read.
    pub waiting: Vec<(Delivery, Option<Notification>)>,
    /// The store's own place after which to go on; opaque. Nothing: these were the last.
    pub next: Option<String>,
}

#[async_trait]
pub trait Pauses: Send + Sync + 'static {
    /// Keeps a pause, in place of one with the same id. As long as that is not over by the new one's `since`, its own
    /// `since` stays. Durable before it returns; the same call again changes nothing.
    async fn pause(&self, new: &KeptPause) -> Result<PausePut, StoreError>;

    /// Removes the pause and answers it, if there is one. Durable before it returns.
    async fn resume(&self, id: PauseId) -> Result<Option<KeptPause>, StoreError>;

    /// All of them in the order of their ids; what is over as well. Sees all that was acknowledged before the call.
    async fn pauses(&self) -> Result<Vec<KeptPause>, StoreError>;

    /// Removes those that are over at `now`, and answers each to one caller.
    async fn drop_over(&self, now: UnixMs) -> Result<Vec<KeptPause>, StoreError>;

    /// Up to `limit` (at most [`MOST_ITEMS`](super::deliveries::MOST_ITEMS)) of all that waits, each once where nothing
    /// moves meanwhile. A place that the store did not give out is the beginning.
    async fn waiting(&self, after: Option<&str>, limit: u16, notifications: bool) -> Result<WaitingPage, StoreError>;
}

/// The pauses as a node read them last.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    kept: Vec<KeptPause>,
    rules: Vec<Pause>,
}

impl Seen {
    fn of(kept: Vec<KeptPause>) -> Self {
        Self { rules: kept.iter().map(|one| one.pause.clone()).collect(), kept }
    }

    /// By id; what has been over since the reading as well.
    #[must_use]
    pub fn kept(&self) -> &[KeptPause] {
        &self.kept
    }

    /// The same as what is asked before a call.
    #[must_use]
    pub fn rules(&self) -> &[Pause] {
        &self.rules
    }
}

/// What a node goes by: one for all of its rooms, so that what was paused over its own API is in force here before that
/// is answered. While the store is away the list that was read last stands.
pub struct Board {
    store: Arc<dyn Pauses>,
    /// Number of the latest reading that began.
    begun: AtomicU64,
    /// And of the reading that this is.
    seen: watch::Sender<(u64, Option<Arc<Seen>>)>,
}

impl Board {
    #[must_use]
    pub fn new(store: Arc<dyn Pauses>) -> Self {
        Self { store, begun: AtomicU64::new(0), seen: watch::Sender::new((0, None)) }
    }

    #[must_use]
    pub const fn store(&self) -> &Arc<dyn Pauses> {
        &self.store
    }

    /// `None` before the first reading: then nobody knows what is paused.
    #[must_use]
    pub fn seen(&self) -> Option<Arc<Seen>> {
        self.seen.borrow().1.clone()
    }

    /// Hears of every list that differs from the one before.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<(u64, Option<Arc<Seen>>)> {
        self.seen.subscribe()
    }

    /// Reads the list.
    ///
    /// # Errors
    /// [`StoreError`]: what was read before stands.
    pub async fn look(&self) -> Result<(), StoreError> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let read = Seen::of(self.store.pauses().await?);
        self.seen.send_if_modified(|(latest, seen)| {
            // A slow reading must not bring back what a later one no longer saw.
            if *latest > number {
                return false;
            }
            *latest = number;
            let news = seen.as_deref() != Some(&read);
            if news {
                *seen = Some(Arc::new(read));
            }
            news
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::ChannelKind;
    use belfry_domain::pause::Paused;

    use super::*;

    fn pause(paused: Paused) -> KeptPause {
        let pause = Pause { paused, tenant: None, since: UnixMs(1), until: None, forced: false };
        KeptPause { pause, by: "key_1".into(), why: None }
    }

    #[test]
    fn ids_are_derived_and_read_back() {
        let it = pause(Paused::Class("marketing".into()));
        let id = it.id();
        // Golden: a change here orphans every stored pause.
        assert_eq!(id.to_string(), "pau_7a1c4799cf101b02ca532fba");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "pau_", "pau_00", &id.to_string()[4..], &format!("{id}0"), &id.to_string().to_uppercase()] {
            assert_eq!(bad.parse::<PauseId>(), Err(NotAnId), "{bad}");
        }
        let later = Pause { since: UnixMs(9), until: Some(UnixMs(10)), forced: true, ..it.pause.clone() };
        assert_eq!(KeptPause { pause: later, by: "key_2".into(), why: Some("x".into()) }.id(), id);
        let theirs = Pause { tenant: Some("acme".into()), ..it.pause.clone() };
        assert_ne!(KeptPause { pause: theirs, ..it.clone() }.id(), id);
        assert_ne!(pause(Paused::Template("marketing".into())).id(), id);
    }

    #[test]
    fn a_pause_of_anything_is_read_back() {
        let all = [
            Paused::All,
            Paused::Channel(ChannelKind::WebPush),
            Paused::Provider("main".into()),
            Paused::Class("digest".into()),
            Paused::Template("welcome".into()),
            Paused::Group("\"ä\" \u{1f514}".into()),
        ];
        for paused in all {
            let it = pause(paused);
            let text = serde_json::to_string(&it).unwrap();
            assert_eq!(serde_json::from_str::<KeptPause>(&text).unwrap(), it, "{text}");
        }
    }
}
