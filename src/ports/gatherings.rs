//! What gathers: which items wait for which slot. An item is put in before its notification is accepted, so that no crash
//! between leaves one out; what stands here and was never accepted, or has ended, is nobody's item.

use async_trait::async_trait;
use belfry_domain::gather::{Gather, Slot};
use belfry_domain::{DeliveryId, Key, UnixMs};

use super::StoreError;
use super::deliveries::Owner;

/// Most items of a slot that one look gives: a slot holds what its class allows, and what came back to it late.
pub const MOST_LOOKED_AT: u16 = 128;

/// An item that comes in.
#[derive(Clone, Debug)]
pub struct Join {
    /// [`belfry_domain::gather::group`].
    pub group: Key,
    pub item: DeliveryId,
    /// Whose it is; the same for all of a group.
    pub owner: Owner,
    /// By the clock of whoever accepts it; its `send_at` where that lies ahead.
    pub at: UnixMs,
    pub gather: Gather,
}

/// A slot whose items are to go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSlot {
    pub slot: Slot,
    pub owner: Owner,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueSlots {
    /// The longest due first.
    pub slots: Vec<DueSlot>,
    /// When the next one comes due, where none is left that is; of what was put in before the call.
    pub next: Option<UnixMs>,
}

#[async_trait]
pub trait Gatherings: Send + Sync + 'static {
    /// Puts each item into its group's open slot: the one that it is in already, else the one that others wait in and
    /// that ends after [`Join::at`], else a new one that ends [`Gather::span`] later. With as many items as
    /// [`Gather::most`] a slot is due at once, and the next opens another. Answers in the order of the batch. Durable
    /// before it returns; the same call again changes nothing while the slot is open.
    ///
    /// # Errors
    /// [`StoreError`]; so for every method. Some items may be in.
    async fn join(&self, batch: Vec<Join>) -> Result<Vec<Slot>, StoreError>;

    /// Puts an item into its own slot once more, and makes that due again.
    async fn rejoin(&self, of: DueSlot, item: DeliveryId) -> Result<(), StoreError>;

    /// Up to `limit` slots that are due at `now`.
    async fn due(&self, now: UnixMs, limit: u16) -> Result<DueSlots, StoreError>;

    /// Up to [`MOST_LOOKED_AT`] items of a slot, in no order.
    async fn items(&self, slot: Slot) -> Result<Vec<DeliveryId>, StoreError>;

    /// Takes items out; with the last of them the slot is gone. Durable before it returns, and again the same.
    async fn leave(&self, slot: Slot, items: Vec<DeliveryId>) -> Result<(), StoreError>;

    /// Puts off a slot whose items cannot go out now: it is due at `until`.
    async fn put_off(&self, slot: Slot, until: UnixMs) -> Result<(), StoreError>;
}
