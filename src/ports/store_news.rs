//! What a store finds out about itself that an operator has to know.

use belfry_domain::{DeliveryId, NotificationId, UnixMs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreNews {
    /// A server has lost what another one acknowledged. What this node holds and has settled lately was
    /// put back; `lost` are notifications that this node accepted and that are gone.
    WentBack {
        shard: u16,
        since: UnixMs,
        until: UnixMs,
        /// Writes that are missing, those of all nodes together.
        steps: u64,
        lost: Vec<NotificationId>,
    },
    /// A delivery that is stored cannot be read. It stays as it is, and nothing is done with it.
    Unreadable { delivery: DeliveryId, what: String },
    /// A start waits for the store's servers.
    Awaited { why: String },
    /// The store's clock and this node's differ by so much (milliseconds, positive: the store is ahead).
    ClockSkew { ms: i64 },
    /// This node's clock is so far ahead (milliseconds, negative: behind) of what most nodes and the store agree on that it
    /// takes no part; `None`: no longer.
    Astray { ms: Option<i64> },
}

/// Whoever is told. Must not block.
pub trait StoreWatch: Send + Sync + 'static {
    fn tell(&self, news: StoreNews);
}

/// Tells nobody.
pub struct Unwatched;

impl StoreWatch for Unwatched {
    fn tell(&self, _news: StoreNews) {}
}
