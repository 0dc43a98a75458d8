//! The store as a drilled node has it: it gets no further once the node has stopped, and one guard can
//! be off.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::delivery::State;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, NotificationId, UnixMs};

use super::Guard;
use super::life::{Life, Point};
use crate::machine::MachineTasks;
use crate::ports::StoreError;
use crate::ports::attachments::AttachedId;
use crate::ports::clock::{Clock, Tasks};
use crate::ports::deliveries::{
    Accepted, ClaimAsk, Claims, Deliveries, Depths, Held, NewNotification, Owner, PurgeAsk, Purged, Reclaim, Renewed,
    Settle, Spend, Token, Written,
};
use crate::ports::search::{Page, Query};

type Result<T> = std::result::Result<T, StoreError>;

/// How long a write lies in a buffer that is written behind, with [`Guard::DurableFirst`] off.
const BEHIND: Duration = Duration::from_secs(1);
/// More than one scene ever holds.
const MOST_HELD: u32 = 100;

pub struct Line {
    pub inner: Arc<dyn Deliveries>,
    pub life: Arc<Life>,
    pub off: Option<Guard>,
    pub clock: Arc<dyn Clock>,
    /// The node's own: what it has not written when it dies is gone with it.
    pub tasks: Arc<MachineTasks>,
}

impl Line {
    /// Neither a call nor its answer passes a node that has stopped.
    async fn pass<T>(&self, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.life.go_on().await;
        let answer = call.await;
        self.life.go_on().await;
        answer
    }

    fn write_behind(&self, batch: Vec<NewNotification>) -> Vec<Accepted> {
        let answers = batch.iter().map(|_| Accepted::Created).collect();
        let (inner, clock, life) = (self.inner.clone(), self.clock.clone(), self.life.clone());
        let later = async move {
            clock.sleep_until(clock.boot() + BEHIND).await;
            life.go_on().await;
            // Nobody is left who could be told.
            inner.accept(batch).await.ok();
        };
        self.tasks.start("write-behind", Box::pin(later));
        answers
    }

    async fn current(&self, id: DeliveryId) -> Result<Option<Delivery>> {
        Ok(self.inner.load(vec![id]).await?.into_iter().next())
    }

    /// Whoever writes last wins, whether or not the claim is still its own.
    async fn settle_unfenced(&self, batch: Vec<Settle>) -> Result<Vec<Written>> {
        let held = self.inner.held(MOST_HELD).await?;
        let mut written = Vec::with_capacity(batch.len());
        for mut settle in batch {
            if let Some(stored) = self.current(settle.next.id).await? {
                settle.next.rev = stored.rev + 1;
            }
            written.extend(match held.iter().find(|one| one.id == settle.next.id) {
                Some(current) => self.inner.settle(vec![Settle { token: current.token, ..settle }]).await?,
                None => self.inner.apply(vec![settle.next]).await?,
            });
        }
        Ok(written)
    }

    /// The record goes on, but says nothing of a call.
    async fn spend_unmarked(&self, batch: Vec<Spend>) -> Result<Vec<Written>> {
        let mut written = Vec::with_capacity(batch.len());
        for spend in batch {
            let stored = self.current(spend.id).await?.filter(|stored| stored.rev == spend.rev);
            let Some(mut next) = stored else {
                written.push(Written::Stale);
                continue;
            };
            next.rev += 1;
            written.extend(self.inner.settle(vec![Settle { next, token: spend.token }]).await?);
        }
        Ok(written)
    }
}

/// As if it had never been spent.
fn put_back(reclaim: &mut Reclaim) {
    let next = &mut reclaim.next;
    if next.state == State::Unknown {
        next.state = State::Queued;
        next.due_at = next.created_at;
        next.ended_at = None;
        next.spent = false;
        next.maybe_sent = false;
    }
}

#[async_trait]
impl Deliveries for Line {
    async fn accept(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>> {
        self.life.go_on().await;
        if self.off == Some(Guard::DurableFirst) {
            return Ok(self.write_behind(batch));
        }
        let answer = self.inner.accept(batch).await;
        self.life.reach(Point::Committed).await;
        answer
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims> {
        self.life.go_on().await;
        let claims = self.inner.claim(ask).await?;
        if !claims.claims.is_empty() {
            self.life.reach(Point::Claimed).await;
        }
        self.life.go_on().await;
        Ok(claims)
    }

    async fn renew(&self, claims: Vec<(DeliveryId, Token)>) -> Result<Vec<Renewed>> {
        self.pass(self.inner.renew(claims)).await
    }

    async fn spend(&self, batch: Vec<Spend>) -> Result<Vec<Written>> {
        self.life.reach(Point::BeforeSpend).await;
        match self.off {
            Some(Guard::SpentMark) => self.pass(self.spend_unmarked(batch)).await,
            Some(Guard::Fence) => {
                let written = self.pass(self.inner.spend(batch)).await?;
                // Refused or not, it is taken for done.
                Ok(written.into_iter().map(|_| Written::Done).collect())
            }
            _ => self.pass(self.inner.spend(batch)).await,
        }
    }

    async fn settle(&self, batch: Vec<Settle>) -> Result<Vec<Written>> {
        self.life.reach(Point::BeforeSettle).await;
        match self.off {
            Some(Guard::Fence) => self.pass(self.settle_unfenced(batch)).await,
            _ => self.pass(self.inner.settle(batch)).await,
        }
    }

    async fn apply(&self, batch: Vec<Delivery>) -> Result<Vec<Written>> {
        self.pass(self.inner.apply(batch)).await
    }

    async fn held(&self, limit: u32) -> Result<Vec<Held>> {
        if self.off == Some(Guard::LeaseLapses) {
            // Nobody ever looks for what another one left.
            return Ok(Vec::new());
        }
        self.pass(self.inner.held(limit)).await
    }

    async fn reclaim(&self, mut batch: Vec<Reclaim>) -> Result<Vec<Written>> {
        if self.off == Some(Guard::LapseIsUnknown) {
            batch.iter_mut().for_each(put_back);
        }
        self.pass(self.inner.reclaim(batch)).await
    }

    async fn load(&self, ids: Vec<DeliveryId>) -> Result<Vec<Delivery>> {
        self.pass(self.inner.load(ids)).await
    }

    async fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>> {
        self.pass(self.inner.receipts_overdue(now, limit)).await
    }

    async fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>> {
        self.pass(self.inner.read(owner, id)).await
    }

    async fn remembered(&self, id: NotificationId) -> Result<Option<Tombstone>> {
        self.pass(self.inner.remembered(id)).await
    }

    async fn durable(&self) -> Result<()> {
        self.pass(self.inner.durable()).await
    }

    async fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>> {
        self.pass(self.inner.read_by_delivery(owner, id)).await
    }

    async fn inputs(&self, id: NotificationId) -> Result<Option<String>> {
        self.pass(self.inner.inputs(id)).await
    }

    async fn attached(&self, of: NotificationId, ids: Vec<AttachedId>) -> Result<Vec<Option<Vec<u8>>>> {
        self.pass(self.inner.attached(of, ids)).await
    }

    async fn search(&self, query: Query) -> Result<Page> {
        self.pass(self.inner.search(query)).await
    }

    async fn purge(&self, ask: PurgeAsk) -> Result<Purged> {
        self.pass(self.inner.purge(ask)).await
    }

    async fn depths(&self) -> Result<Depths> {
        self.pass(self.inner.depths()).await
    }

    async fn due_changed(&self) {
        self.inner.due_changed().await;
    }

    async fn probe(&self) -> Result<Vec<String>> {
        self.pass(self.inner.probe()).await
    }
}
