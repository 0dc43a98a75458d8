//! The ports over the core, once for every way of running it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::share::Shares;
use belfry_domain::{Delivery, DeliveryId, NotificationId, UnixMs};

use super::accept::NewRows;
use super::core::{Core, Result};
use super::read::Reads;
use super::write::{NextRow, ReclaimRow, SettleRow};
use super::writer::Answered::{self, Committed, OnDisk};
use crate::ports::admin::{ApiKey, ApiKeys, Installation, KeptTemplate};
use crate::ports::attachments::AttachedId;
use crate::ports::caps::{Caps, Ended, TakeAsk, TakeEnd, Taken};
use crate::ports::deliveries::{
    Accepted, ClaimAsk, Claims, Deliveries, Depths, Held, NewNotification, Owner, PurgeAsk, Purged, Reclaim, Renewed,
    Settle, Spend, Token, Written,
};
use crate::ports::holds::{HeldPage, Holds};
use crate::ports::outbox::{OutboxMessage, OutboxMessages};
use crate::ports::paces::{Paces, ShareAsk};
use crate::ports::pauses::{KeptPause, PauseId, PausePut, Pauses, WaitingPage};
use crate::ports::preferences::{Kept, Person, PreferenceBook, Wishes};
use crate::ports::recipients::{
    DeadPage, DeadToken, Device, DeviceRef, NewDevice, Profile, Recipient, Recipients, Registered,
};
use crate::ports::search::{Page, Query};
use crate::ports::suppressions::{Addressee, Found, Put, Suppressed, SuppressedPage, SuppressionId, Suppressions};
use crate::store::due::DueSignal;

/// How operations reach the core. The time they are told is the store's own.
pub trait Shell: Send + Sync + 'static {
    /// Runs in a transaction, possibly more than once: only the last counts.
    fn write<T, F>(&self, answered: Answered, verb: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: Fn(&mut Core, UnixMs) -> Result<T> + Send + 'static;

    /// Runs on one state of the database, everything written before the call included.
    fn read<T, F>(&self, verb: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: FnOnce(Reads<'_>, UnixMs) -> Result<T> + Send + 'static;

    fn due(&self) -> &DueSignal;

    fn now(&self) -> UnixMs;
}

/// The embedded store in one of its shells.
pub struct Store<S> {
    pub(super) shell: S,
    /// By pace. In memory: one process has the file, and its end is the end of whoever held a share.
    shares: Mutex<BTreeMap<String, Shares>>,
}

impl<S> Store<S> {
    pub(super) fn new(shell: S) -> Self {
        Self { shell, shares: Mutex::default() }
    }
}

#[async_trait]
impl<S: Shell> Deliveries for Store<S> {
    async fn accept(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>> {
        let batch = batch.into_iter().map(NewRows::of).collect::<Result<Vec<_>>>()?;
        self.shell.write(OnDisk, move |core, _| core.accept(&batch)).await
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims> {
        self.shell.write(OnDisk, move |core, now| core.claim(now, &ask)).await?.read()
    }

    async fn renew(&self, claims: Vec<(DeliveryId, Token)>) -> Result<Vec<Renewed>> {
        self.shell.write(Committed, move |core, now| core.renew(now, &claims)).await
    }

    async fn spend(&self, batch: Vec<Spend>) -> Result<Vec<Written>> {
        self.shell.write(OnDisk, move |core, _| core.spend(&batch)).await
    }

    async fn settle(&self, batch: Vec<Settle>) -> Result<Vec<Written>> {
        let batch = batch.into_iter().map(SettleRow::of).collect::<Result<Vec<_>>>()?;
        self.shell.write(Committed, move |core, _| core.settle(&batch)).await
    }

    async fn apply(&self, batch: Vec<Delivery>) -> Result<Vec<Written>> {
        let batch = batch.into_iter().map(NextRow::of).collect::<Result<Vec<_>>>()?;
        self.shell.write(OnDisk, move |core, _| core.apply(&batch)).await
    }

    async fn held(&self, limit: u32) -> Result<Vec<Held>> {
        self.shell.read(move |reads, now| reads.held(now, limit)).await
    }

    async fn reclaim(&self, batch: Vec<Reclaim>) -> Result<Vec<Written>> {
        let batch = batch.into_iter().map(ReclaimRow::of).collect::<Result<Vec<_>>>()?;
        self.shell.write(OnDisk, move |core, now| core.reclaim(now, &batch)).await
    }

    async fn load(&self, ids: Vec<DeliveryId>) -> Result<Vec<Delivery>> {
        self.shell.read(move |reads, _| reads.load(&ids)).await
    }

    async fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>> {
        self.shell.read(move |reads, _| reads.receipts_overdue(now, limit)).await
    }

    async fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>> {
        let owner = owner.clone();
        self.shell.read(move |reads, _| reads.read(&owner, id)).await
    }

    async fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>> {
        let owner = owner.clone();
        self.shell.read(move |reads, _| reads.read_by_delivery(&owner, id)).await
    }

    async fn remembered(&self, id: NotificationId) -> Result<Option<Tombstone>> {
        self.shell.read(move |reads, _| reads.tombstone(id)).await
    }

    async fn durable(&self) -> Result<()> {
        // Nothing to write: its sync covers all that was committed before.
        self.shell.write(OnDisk, |_, _| Ok(())).await
    }

    async fn inputs(&self, id: NotificationId) -> Result<Option<String>> {
        self.shell.read(move |reads, _| reads.inputs(id)).await
    }

    async fn attached(&self, _of: NotificationId, ids: Vec<AttachedId>) -> Result<Vec<Option<Vec<u8>>>> {
        self.shell.read(move |reads, _| reads.attached(&ids)).await
    }

    async fn search(&self, query: Query) -> Result<Page> {
        self.shell.read(move |reads, _| reads.search(&query)).await
    }

    async fn purge(&self, ask: PurgeAsk) -> Result<Purged> {
        self.shell.write(Committed, move |core, _| core.purge(ask)).await
    }

    async fn depths(&self) -> Result<Depths> {
        self.shell.read(|reads, now| reads.depths(now)).await
    }

    async fn due_changed(&self) {
        self.shell.due().changed().await;
    }

    async fn probe(&self) -> Result<Vec<String>> {
        self.shell.write(OnDisk, |core, now| core.probe(now)).await?;
        // It is there as a whole, or not at all.
        Ok(Vec::new())
    }
}

#[async_trait]
impl<S: Shell> Holds for Store<S> {
    async fn hold(&self, at: UnixMs) -> Result<UnixMs> {
        self.shell.write(OnDisk, move |core, _| core.put_hold(at)).await
    }

    async fn standing(&self) -> Result<Option<UnixMs>> {
        self.shell.read(|reads, _| reads.standing()).await
    }

    async fn held_back(&self, after: Option<&str>, limit: u16) -> Result<HeldPage> {
        let after = after.map(str::to_owned);
        self.shell.read(move |reads, _| reads.held_back(after.as_deref(), limit)).await
    }

    async fn release(&self, at: UnixMs) -> Result<()> {
        self.shell.write(OnDisk, move |core, _| core.release_hold(at)).await
    }
}

#[async_trait]
impl<S: Shell> Paces for Store<S> {
    async fn shares(&self, node: &str, number: u64, asks: Vec<ShareAsk>) -> Result<Vec<u32>> {
        let now = self.shell.now();
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let mut one = |ask: &ShareAsk| shares.entry(ask.pace.clone()).or_default().ask(now, node, number, ask);
        Ok(asks.iter().map(&mut one).collect())
    }
}

#[async_trait]
impl<S: Shell> Caps for Store<S> {
    async fn take(&self, batch: Vec<TakeAsk>) -> Result<Vec<Taken>> {
        self.shell.write(OnDisk, move |core, now| core.take_places(now, &batch)).await
    }

    async fn end(&self, batch: Vec<TakeEnd>) -> Result<Vec<Ended>> {
        let ended = vec![Ended::Done; batch.len()];
        self.shell.write(Committed, move |core, now| core.end_places(now, &batch)).await.map(|()| ended)
    }
}

#[async_trait]
impl<S: Shell> ApiKeys for Store<S> {
    async fn create(&self, key: ApiKey) -> Result<()> {
        self.shell.write(OnDisk, move |core, _| core.create_key(&key)).await
    }

    async fn by_hash(&self, hash: &str) -> Result<Option<ApiKey>> {
        let hash = hash.to_owned();
        self.shell.read(move |reads, _| reads.key_by_hash(&hash)).await
    }

    async fn by_id(&self, id: &str) -> Result<Option<ApiKey>> {
        let id = id.to_owned();
        self.shell.read(move |reads, _| reads.key_by_id(&id)).await
    }

    async fn list(&self) -> Result<Vec<ApiKey>> {
        self.shell.read(|reads, _| reads.keys()).await
    }

    async fn revoke(&self, id: &str, now: UnixMs) -> Result<bool> {
        let id = id.to_owned();
        self.shell.write(OnDisk, move |core, _| core.revoke_key(&id, now)).await
    }
}

#[async_trait]
impl<S: Shell> Installation for Store<S> {
    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        self.shell.write(OnDisk, move |core, _| core.secret(&fresh)).await
    }

    async fn keep_template(&self, version: &str, kept: &KeptTemplate) -> Result<()> {
        let (version, kept) = (version.to_owned(), kept.clone());
        self.shell.write(OnDisk, move |core, now| core.keep_template(now, &version, &kept)).await
    }

    async fn template(&self, version: &str) -> Result<Option<KeptTemplate>> {
        let version = version.to_owned();
        self.shell.read(move |reads, _| reads.template(&version)).await
    }
}

#[async_trait]
impl<S: Shell> OutboxMessages for Store<S> {
    async fn add(&self, message: OutboxMessage, keep: u32) -> Result<u64> {
        self.shell.write(OnDisk, move |core, _| core.add_message(&message, keep)).await
    }

    async fn list(
        &self,
        owner: &Owner,
        to: Option<&str>,
        after: Option<u64>,
        limit: u16,
    ) -> Result<Vec<OutboxMessage>> {
        let (owner, to) = (owner.clone(), to.map(str::to_owned));
        self.shell.read(move |reads, _| reads.messages(&owner, to.as_deref(), after, limit)).await
    }

    async fn clear(&self, owner: &Owner, to: Option<&str>) -> Result<u64> {
        let (owner, to) = (owner.clone(), to.map(str::to_owned));
        self.shell.write(OnDisk, move |core, _| core.clear_messages(&owner, to.as_deref())).await
    }
}

#[async_trait]
impl<S: Shell> Recipients for Store<S> {
    async fn put_profile(&self, owner: &Owner, recipient: &str, profile: &Profile) -> Result<()> {
        let (owner, recipient, profile) = (owner.clone(), recipient.to_owned(), profile.clone());
        self.shell.write(OnDisk, move |core, _| core.put_profile(&owner, &recipient, &profile)).await
    }

    async fn recipient(&self, owner: &Owner, recipient: &str) -> Result<Option<Recipient>> {
        let (owner, recipient) = (owner.clone(), recipient.to_owned());
        self.shell.read(move |reads, _| reads.recipient(&owner, &recipient)).await
    }

    async fn remove_recipient(&self, owner: &Owner, recipient: &str) -> Result<bool> {
        let (owner, recipient) = (owner.clone(), recipient.to_owned());
        self.shell.write(OnDisk, move |core, _| core.remove_recipient(&owner, &recipient)).await
    }

    async fn register(&self, owner: &Owner, recipient: &str, device: &NewDevice, now: UnixMs) -> Result<Registered> {
        let (owner, recipient, device) = (owner.clone(), recipient.to_owned(), device.clone());
        self.shell.write(OnDisk, move |core, _| core.register(&owner, &recipient, &device, now)).await
    }

    async fn remove_device(&self, owner: &Owner, of: &DeviceRef) -> Result<bool> {
        let (owner, of) = (owner.clone(), of.clone());
        self.shell.write(OnDisk, move |core, _| core.remove_device(&owner, &of)).await
    }

    async fn device(&self, owner: &Owner, of: &DeviceRef) -> Result<Option<Device>> {
        let (owner, of) = (owner.clone(), of.clone());
        self.shell.read(move |reads, _| reads.device(&owner, &of)).await
    }

    async fn bury(&self, owner: &Owner, word: &DeadToken) -> Result<bool> {
        let (owner, word) = (owner.clone(), word.clone());
        self.shell.write(OnDisk, move |core, now| core.bury_token(&owner, &word, now)).await
    }

    async fn exhume(&self, owner: &Owner, word: &DeadToken) -> Result<()> {
        let (owner, word) = (owner.clone(), word.clone());
        self.shell.write(OnDisk, move |core, _| core.exhume_token(&owner, &word)).await
    }

    async fn dead(&self, owner: &Owner, since: UnixMs, after: Option<&str>, limit: u16) -> Result<DeadPage> {
        let (owner, after) = (owner.clone(), after.map(str::to_owned));
        self.shell.read(move |reads, _| reads.dead(&owner, since, after.as_deref(), limit)).await
    }
}

#[async_trait]
impl<S: Shell> Suppressions for Store<S> {
    async fn put(&self, owner: &Owner, entry: &Suppressed) -> Result<Put> {
        let (owner, entry) = (owner.clone(), entry.clone());
        self.shell.write(OnDisk, move |core, _| core.put_suppression(&owner, &entry)).await
    }

    async fn lift(&self, owner: &Owner, id: SuppressionId) -> Result<()> {
        let owner = owner.clone();
        self.shell.write(OnDisk, move |core, _| core.lift_suppression(&owner, id)).await
    }

    async fn find(&self, whom: Vec<Addressee>) -> Vec<Found> {
        let count = whom.len();
        let look = move |reads: Reads<'_>, _| Ok(whom.iter().map(|one| reads.suppressions_of(one)).collect());
        self.shell.read(look).await.unwrap_or_else(|away| vec![Err(away); count])
    }

    async fn listed(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SuppressedPage> {
        let (owner, after) = (owner.clone(), after.map(str::to_owned));
        self.shell.read(move |reads, _| reads.suppressions(&owner, after.as_deref(), limit)).await
    }
}

#[async_trait]
impl<S: Shell> PreferenceBook for Store<S> {
    async fn write(&self, whom: &Person, before: Option<&Wishes>, next: Option<&Wishes>) -> Result<bool> {
        let (whom, before, next) = (whom.clone(), before.cloned(), next.cloned());
        let verb = move |core: &mut Core, _| core.write_preferences(&whom, before.as_ref(), next.as_ref());
        self.shell.write(OnDisk, verb).await
    }

    async fn preferences(&self, whom: Vec<Person>) -> Vec<Kept> {
        let count = whom.len();
        let look = move |reads: Reads<'_>, _| Ok(whom.iter().map(|one| reads.preferences_of(one)).collect());
        self.shell.read(look).await.unwrap_or_else(|away| vec![Err(away); count])
    }
}

#[async_trait]
impl<S: Shell> Pauses for Store<S> {
    async fn pause(&self, new: &KeptPause) -> Result<PausePut> {
        let new = new.clone();
        self.shell.write(OnDisk, move |core, _| core.put_pause(&new)).await
    }

    async fn resume(&self, id: PauseId) -> Result<Option<KeptPause>> {
        self.shell.write(OnDisk, move |core, _| core.drop_pause(id)).await
    }

    async fn pauses(&self) -> Result<Vec<KeptPause>> {
        self.shell.read(|reads, _| reads.pauses()).await
    }

    async fn drop_over(&self, now: UnixMs) -> Result<Vec<KeptPause>> {
        self.shell.write(OnDisk, move |core, _| core.drop_over(now)).await
    }

    async fn waiting(&self, after: Option<&str>, limit: u16, notifications: bool) -> Result<WaitingPage> {
        let after = after.map(str::to_owned);
        self.shell.read(move |reads, _| reads.waiting(after.as_deref(), limit, notifications)).await
    }
}
