//! The store of notifications and deliveries. Every verb is atomic per item, bounded, and safe to
//! call again after a lost reply. The store compares and writes; what is written was decided by
//! [`belfry_domain::step`].

use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, Lane, Notification, NotificationId, UnixMs};

use super::StoreError;
use super::attachments::{Attached, AttachedId};
use super::search::{Page, Query};

/// Most items in one call of any verb.
pub const MOST_ITEMS: usize = 128;

/// A new intent, planned and frozen.
#[derive(Clone, Debug)]
pub struct NewNotification {
    pub notification: Notification,
    /// In the order of the request.
    pub deliveries: Vec<Delivery>,
    /// The frozen inputs (addresses, data, content): canonical JSON, opaque to the store.
    pub inputs: String,
    /// What the inputs name and do not hold, each once; kept while they are.
    pub attached: Vec<Attached>,
    /// Keyed hash of its owner and the recipient that it names, hex: what search finds it by. Only those that name one
    /// take room for it.
    pub recipient_hash: Option<String>,
    /// Keyed hash that groups versions of one collapse key per address slot, by delivery.
    pub collapse_groups: Vec<Option<CollapseGroup>>,
}

/// `version` raises the group's newest version at accept, never lowers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollapseGroup {
    pub group: String,
    pub version: i64,
}

/// What accept found, per item.
#[derive(Clone, Debug)]
pub enum Accepted {
    Created,
    /// The id is known and its record lives. Where the fingerprints are the same, `repeats` already
    /// counts this one; the caller compares them again to tell a repeat from a mistake.
    Repeat(Box<Record>),
    /// The id is known, its record is gone.
    Remembered(Tombstone),
}

/// Proof of a claim: compared inside every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Grows with every claim of the same delivery.
    pub fence: u64,
    /// Random per claim call.
    pub nonce: u64,
}

#[derive(Clone, Debug)]
pub struct ClaimAsk {
    pub worker: String,
    /// Of this call: the same nonce again answers with the same claims, where they still hold.
    pub nonce: u64,
    /// How many to claim from each lane at the most, in this order. All lanes of one provider
    /// together get no more than the largest of their maxima.
    pub lanes: Vec<(Lane, u16)>,
    /// Ask for one delivery of those that have to run alone (`Delivery::claim_alone`); otherwise
    /// those are left out.
    pub alone: bool,
}

/// One claimed delivery with all that a call needs, read in the same step.
#[derive(Clone, Debug)]
pub struct Claim {
    /// In state `sending`, at its new `rev`.
    pub delivery: Delivery,
    pub notification: Notification,
    /// `None` once purged.
    pub inputs: Option<String>,
    pub token: Token,
    /// The newest version accepted in the delivery's collapse group.
    pub newest_version: Option<i64>,
    /// That could not be asked for: it may be outdated, and is not to be sent yet.
    pub newest_away: bool,
    /// A call has to wait until it outlives what the store is set to outlive: [`Deliveries::durable`].
    pub unconfirmed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Claims {
    pub claims: Vec<Claim>,
    /// When the next delivery of the asked lanes comes due, where none is left that is.
    pub next_due: Option<UnixMs>,
}

/// A write under a claim. Where `next` is no longer `sending` the claim ends with it.
#[derive(Clone, Debug)]
pub struct Settle {
    pub next: Delivery,
    pub token: Token,
}

/// What became of a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    Done,
    /// The claim is no longer this token's.
    Stale,
    /// The claim holds but the record has moved on: decide again on this one.
    Moved(Box<Delivery>),
    /// There is no such delivery (any more), or none that can be read.
    Gone,
    /// Nothing is known: its part of the store could not be asked, while others could. The same write may
    /// be made again.
    Away,
}

#[derive(Clone, Copy, Debug)]
pub struct Spend {
    pub id: DeliveryId,
    pub token: Token,
    /// The `rev` it was decided on; the stored one is one higher afterwards.
    pub rev: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renewed {
    pub id: DeliveryId,
    pub held: bool,
}

/// A claim as the sweeper sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub id: DeliveryId,
    pub token: Token,
    pub worker: String,
    /// By the store's clock.
    pub lease_until: UnixMs,
    pub lapsed: bool,
    pub lease: Duration,
    /// It was the only one in its batch, because it had to be.
    pub alone: bool,
}

/// Ends a lapsed claim, unless it was renewed or settled since it was seen.
#[derive(Clone, Debug)]
pub struct Reclaim {
    pub next: Delivery,
    pub seen: Held,
}

/// Whose records a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub tenant: String,
    pub environment: String,
}

impl Owner {
    #[must_use]
    pub fn of(notification: &Notification) -> Self {
        Self { tenant: notification.tenant.clone(), environment: notification.environment.clone() }
    }

    #[must_use]
    pub fn owns(&self, record: &Record) -> bool {
        record.notification.tenant == self.tenant && record.notification.environment == self.environment
    }
}

/// What the three ages have come to. Content goes once all deliveries ended and the notification's
/// own `keep_content_ms` has passed since (kept while one is failed or parked); a record goes
/// `keep_record` after its end and leaves a tombstone while it has to be remembered; a tombstone
/// goes when its window closes. Parked and failed records are kept while their window is open.
#[derive(Clone, Copy, Debug)]
pub struct PurgeAsk {
    pub now: UnixMs,
    pub keep_record: Duration,
    /// Most items of each age in one call.
    pub limit: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub contents: u32,
    pub records: u32,
    pub tombstones: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneDepth {
    pub lane: Lane,
    /// Due now, and not held.
    pub due: u64,
    pub waiting: u64,
    pub sending: u64,
    /// Of what is due and not held.
    pub oldest_due: Option<UnixMs>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    pub lanes: Vec<LaneDepth>,
    pub unknown: u64,
    pub oldest_unknown: Option<UnixMs>,
    pub parked: u64,
    /// The hold that stands ([`super::holds`]), and how many deliveries are held; where those are very
    /// many, a lower bound.
    pub restored_at: Option<UnixMs>,
    pub held_back: u64,
}

#[async_trait]
pub trait Deliveries: Send + Sync + 'static {
    /// Durable before it returns. An id that is known changes nothing but its count of repeats.
    async fn accept(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>, StoreError>;

    /// Due deliveries become `sending` under a fence higher than any before, but for those that a hold
    /// ([`super::holds`]) keeps. Tenants take turns within a lane; within a tenant the longest due goes
    /// first.
    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError>;

    /// Extends the leases of claims that still hold, a lapsed but unreclaimed one included. Says nothing of
    /// those whose part of the store could not be asked.
    async fn renew(&self, claims: Vec<(DeliveryId, Token)>) -> Result<Vec<Renewed>, StoreError>;

    /// Records durably that the call is about to be made (`spent`, `rev` + 1).
    async fn spend(&self, batch: Vec<Spend>) -> Result<Vec<Written>, StoreError>;

    /// Writes under a claim: token and `rev` must be the stored ones. `next` may be in another lane.
    async fn settle(&self, batch: Vec<Settle>) -> Result<Vec<Written>, StoreError>;

    /// Writes without a claim where the stored `rev` is `next.rev - 1`; never ends a claim that
    /// somebody holds.
    async fn apply(&self, batch: Vec<Delivery>) -> Result<Vec<Written>, StoreError>;

    /// The claims that are out, at most `limit`, those that lapse first first.
    async fn held(&self, limit: u32) -> Result<Vec<Held>, StoreError>;

    async fn reclaim(&self, batch: Vec<Reclaim>) -> Result<Vec<Written>, StoreError>;

    /// Deliveries as they stand, in no order; absent ones are left out, and of several those whose part of
    /// the store could not be asked.
    async fn load(&self, ids: Vec<DeliveryId>) -> Result<Vec<Delivery>, StoreError>;

    /// Accepted deliveries whose receipt window has closed.
    async fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>, StoreError>;

    /// The record, its owner checked: a foreign one is `None` like an absent one.
    async fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>, StoreError>;

    /// What is left of an intent whose record is gone, while its window is open. An id is derived from
    /// its owner, so there is none to check.
    async fn remembered(&self, id: NotificationId) -> Result<Option<Tombstone>, StoreError>;

    /// Returns once everything that was read before the call is as durable as an answer has to be. What
    /// is read may be ahead of the disk: to answer a repeat from it alone would acknowledge what a power
    /// cut could still take.
    async fn durable(&self) -> Result<(), StoreError>;

    /// The record that a delivery belongs to; a foreign one is `None` like an absent one.
    async fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>, StoreError>;

    /// The frozen inputs, while they are kept.
    async fn inputs(&self, id: NotificationId) -> Result<Option<String>, StoreError>;

    /// Contents that the notification's inputs name, in the order of `ids`, of which there are at most [`MOST_ITEMS`];
    /// `None` for what is not there.
    async fn attached(&self, of: NotificationId, ids: Vec<AttachedId>) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    async fn search(&self, query: Query) -> Result<Page, StoreError>;

    async fn purge(&self, ask: PurgeAsk) -> Result<Purged, StoreError>;

    async fn depths(&self) -> Result<Depths, StoreError>;

    /// Returns when something may have come due by an accept, an apply or a settle since the last
    /// call returned. May return for nothing.
    async fn due_changed(&self);

    /// A real write and read of a probe in every part of the store, for readiness. Answers which parts are away
    /// and why, for people; what belongs elsewhere can be worked on.
    ///
    /// # Errors
    /// [`StoreError`]: nothing can.
    async fn probe(&self) -> Result<Vec<String>, StoreError>;
}
