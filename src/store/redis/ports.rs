//! The port of deliveries, verb by verb.

use async_trait::async_trait;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, NotificationId, UnixMs};

use super::codec::Result;
use super::store::RedisStore;
use crate::ports::attachments::AttachedId;
use crate::ports::deliveries::{
    Accepted, ClaimAsk, Claims, Deliveries, Depths, Held, NewNotification, Owner, PurgeAsk, Purged, Reclaim, Renewed,
    Settle, Spend, Token, Written,
};
use crate::ports::search::{Page, Query};

#[async_trait]
impl Deliveries for RedisStore {
    async fn accept(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>> {
        self.in_time()?;
        self.accept_all(batch).await
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims> {
        self.in_time()?;
        self.claim_over_shards(&ask).await
    }

    async fn renew(&self, claims: Vec<(DeliveryId, Token)>) -> Result<Vec<Renewed>> {
        self.renew_all(&claims).await
    }

    async fn spend(&self, batch: Vec<Spend>) -> Result<Vec<Written>> {
        self.spend_all(&batch).await
    }

    async fn settle(&self, batch: Vec<Settle>) -> Result<Vec<Written>> {
        self.settle_all(&batch).await
    }

    async fn apply(&self, batch: Vec<Delivery>) -> Result<Vec<Written>> {
        self.apply_all(&batch).await
    }

    async fn held(&self, limit: u32) -> Result<Vec<Held>> {
        self.all_held(limit).await
    }

    async fn reclaim(&self, batch: Vec<Reclaim>) -> Result<Vec<Written>> {
        self.reclaim_all(&batch).await
    }

    async fn load(&self, ids: Vec<DeliveryId>) -> Result<Vec<Delivery>> {
        self.load_all(&ids).await
    }

    async fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>> {
        self.in_time()?;
        self.overdue(now, limit).await
    }

    async fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>> {
        self.record(owner, self.names.shard_of(&id.0), self.names.notification(id)).await
    }

    async fn remembered(&self, id: NotificationId) -> Result<Option<Tombstone>> {
        self.tombstone(id).await
    }

    async fn durable(&self) -> Result<()> {
        self.link.settled().await
    }

    async fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>> {
        self.record(owner, self.names.shard_of(&id.0), self.names.delivery(id)).await
    }

    async fn inputs(&self, id: NotificationId) -> Result<Option<String>> {
        self.inputs_of(id).await
    }

    async fn attached(&self, of: NotificationId, ids: Vec<AttachedId>) -> Result<Vec<Option<Vec<u8>>>> {
        self.contents(of, &ids).await
    }

    async fn search(&self, query: Query) -> Result<Page> {
        self.find(&query).await
    }

    async fn purge(&self, ask: PurgeAsk) -> Result<Purged> {
        self.in_time()?;
        self.purge_all(ask).await
    }

    async fn depths(&self) -> Result<Depths> {
        self.all_depths().await
    }

    async fn due_changed(&self) {
        self.due.changed().await;
    }

    async fn probe(&self) -> Result<Vec<String>> {
        self.in_time()?;
        self.probe_all().await
    }
}
