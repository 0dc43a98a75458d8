//! The ledgers of caps: how many calls may have reached somebody within a window. What a store does with one is
//! modelled by [`belfry_domain::caps::Ledgers`]; moments are the store's own.

use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::caps::{Fate, Full, Take};
use belfry_domain::{Key, UnixMs};

use super::StoreError;

/// Most caps that one call comes under.
pub const MOST_TAKES: usize = 16;

/// One cap's ledger, and how much it has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub ledger: Key,
    pub limit: u32,
    pub window: Duration,
}

impl Room {
    #[must_use]
    pub const fn of(take: &Take<'_>) -> Self {
        Self { ledger: take.key, limit: take.cap.limit, window: take.cap.window }
    }
}

/// A place with every cap that one call comes under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeAsk {
    /// By ledger; at most [`MOST_TAKES`].
    pub rooms: Vec<Room>,
    pub reservation: Key,
    /// From the take to the end of the call.
    pub longest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// In each of them.
    All,
    /// In none.
    Full {
        /// Which of the rooms, the first that is full.
        at: usize,
        full: Full,
        /// By the clock that `full` goes by.
        now: UnixMs,
    },
    /// Its part of the store could not be asked, or did not answer: perhaps in some of them.
    Away,
}

/// What becomes of a call's places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeEnd {
    /// At most [`MOST_TAKES`].
    pub ledgers: Vec<Key>,
    pub reservation: Key,
    pub fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    /// Its part of the store could not be asked, or did not answer: perhaps in some of them.
    Away,
}

/// Both verbs take at most [`MOST_ITEMS`](super::deliveries::MOST_ITEMS) and answer each, in order. Both may be
/// called again after a lost answer: the same reservation has one place, and what has ended has ended.
#[async_trait]
pub trait Caps: Send + Sync + 'static {
    /// All places of an ask, or none. As durable before it returns as an accept: a place that is lost lets one too
    /// many through.
    async fn take(&self, batch: Vec<TakeAsk>) -> Result<Vec<Taken>, StoreError>;

    /// A place that has ended counts up to now at the latest, or is gone. Where that is lost it counts for longer.
    async fn end(&self, batch: Vec<TakeEnd>) -> Result<Vec<Ended>, StoreError>;
}
