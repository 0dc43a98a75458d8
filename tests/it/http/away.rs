//! A store that fails on request: before it does anything, after it did, or by never answering.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use belfry::ports::StoreError;
use belfry::ports::attachments::AttachedId;
use belfry::ports::deliveries::*;
use belfry::ports::search::{Page, Query};
use belfry::store::sqlite::InlineStore;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, NotificationId, UnixMs};

pub struct Failing {
    inner: OnceLock<Arc<InlineStore>>,
    /// Calls that still get through; `usize::MAX` is healthy.
    left: AtomicUsize,
    lose_reply: AtomicBool,
    hangs: AtomicBool,
    accepted: AtomicUsize,
}

impl Failing {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: OnceLock::new(),
            left: AtomicUsize::new(usize::MAX),
            lose_reply: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
        })
    }

    pub fn serve(&self, inner: Arc<InlineStore>) {
        assert!(self.inner.set(inner).is_ok());
    }

    /// Lets `calls` through, then fails.
    pub fn fail_after(&self, calls: usize) {
        self.left.store(calls, Ordering::SeqCst);
    }

    pub fn heal(&self) {
        self.fail_after(usize::MAX);
    }

    /// From now on it never answers.
    pub fn hang(&self) {
        self.hangs.store(true, Ordering::SeqCst);
    }

    pub fn lose_next_reply(&self) {
        self.lose_reply.store(true, Ordering::SeqCst);
    }

    /// How many intents became durable.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    async fn inner(&self) -> Result<&Arc<InlineStore>, StoreError> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let gone = |left: usize| (left != usize::MAX).then(|| left.saturating_sub(1));
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, gone) {
            Ok(0) => Err(StoreError::Unavailable("away".into())),
            Ok(_) | Err(_) => Ok(self.inner.get().unwrap()),
        }
    }
}

#[async_trait]
impl Deliveries for Failing {
    async fn accept(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>, StoreError> {
        let answers = self.inner().await?.accept(batch).await?;
        let created = answers.iter().filter(|one| matches!(one, Accepted::Created)).count();
        self.accepted.fetch_add(created, Ordering::SeqCst);
        if self.lose_reply.swap(false, Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the reply was lost".into()));
        }
        Ok(answers)
    }
    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError> {
        self.inner().await?.claim(ask).await
    }
    async fn renew(&self, claims: Vec<(DeliveryId, Token)>) -> Result<Vec<Renewed>, StoreError> {
        self.inner().await?.renew(claims).await
    }
    async fn spend(&self, batch: Vec<Spend>) -> Result<Vec<Written>, StoreError> {
        self.inner().await?.spend(batch).await
    }
    async fn settle(&self, batch: Vec<Settle>) -> Result<Vec<Written>, StoreError> {
        self.inner().await?.settle(batch).await
    }
    async fn apply(&self, batch: Vec<Delivery>) -> Result<Vec<Written>, StoreError> {
        self.inner().await?.apply(batch).await
    }
    async fn held(&self, limit: u32) -> Result<Vec<Held>, StoreError> {
        self.inner().await?.held(limit).await
    }
    async fn reclaim(&self, batch: Vec<Reclaim>) -> Result<Vec<Written>, StoreError> {
        self.inner().await?.reclaim(batch).await
    }
    async fn load(&self, ids: Vec<DeliveryId>) -> Result<Vec<Delivery>, StoreError> {
        self.inner().await?.load(ids).await
    }
    async fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>, StoreError> {
        self.inner().await?.receipts_overdue(now, limit).await
    }
    async fn durable(&self) -> Result<(), StoreError> {
        self.inner().await?.durable().await
    }
    async fn remembered(&self, id: NotificationId) -> Result<Option<Tombstone>, StoreError> {
        self.inner().await?.remembered(id).await
    }
    async fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>, StoreError> {
        self.inner().await?.read(owner, id).await
    }
    async fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>, StoreError> {
        self.inner().await?.read_by_delivery(owner, id).await
    }
    async fn inputs(&self, id: NotificationId) -> Result<Option<String>, StoreError> {
        self.inner().await?.inputs(id).await
    }
    async fn attached(&self, of: NotificationId, ids: Vec<AttachedId>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.inner().await?.attached(of, ids).await
    }
    async fn search(&self, query: Query) -> Result<Page, StoreError> {
        self.inner().await?.search(query).await
    }
    async fn purge(&self, ask: PurgeAsk) -> Result<Purged, StoreError> {
        self.inner().await?.purge(ask).await
    }
    async fn depths(&self) -> Result<Depths, StoreError> {
        self.inner().await?.depths().await
    }
    async fn due_changed(&self) {
        std::future::pending().await
    }
    async fn probe(&self) -> Result<Vec<String>, StoreError> {
        self.inner().await?.probe().await
    }
}
