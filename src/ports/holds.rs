//! What was due before the store was restored from a backup: it may have been sent between the backup
//! and the loss, so it is held until a person has looked. A hold is one moment per installation. While
//! it stands no claim gives out what was due at or before it, on any node: that is compared in the same
//! step that claims.

use async_trait::async_trait;
use belfry_domain::{Delivery, UnixMs};

use super::StoreError;

/// Some of what is held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldPage {
    /// Waiting ones that were due by then; none where no hold stands (any more).
    pub deliveries: Vec<Delivery>,
    /// The store's own place after which to go on; opaque to callers. Nothing: these were the last.
    pub next: Option<String>,
}

#[async_trait]
pub trait Holds: Send + Sync + 'static {
    /// Holds what is due at or before `at`, unless a hold stands already, and returns the moment that
    /// counts: later than that of any hold before, which a late node may still bring. Durable, and in force in all of the store, before it returns; the same call again after
    /// an error finishes it.
    async fn hold(&self, at: UnixMs) -> Result<UnixMs, StoreError>;

    /// The hold that stands.
    async fn standing(&self) -> Result<Option<UnixMs>, StoreError>;

    /// Up to `limit` (at most [`MOST_ITEMS`](super::deliveries::MOST_ITEMS)) of what is held, each once
    /// where nothing moves meanwhile. A place that the store did not give out is the beginning.
    async fn held_back(&self, after: Option<&str>, limit: u16) -> Result<HeldPage, StoreError>;

    /// Lets go of what the hold of `at` keeps; a hold of another moment stays. Durable before it
    /// returns; the same call again after an error finishes it.
    async fn release(&self, at: UnixMs) -> Result<(), StoreError>;
}
