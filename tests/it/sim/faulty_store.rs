//! The store as a node sees it over a bad line: calls that fail before, replies that get lost
//! after, and stalls that outlast a lease.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry::ports::StoreError;
use belfry::ports::attachments::AttachedId;
use belfry::ports::caps::{Caps, Ended, TakeAsk, TakeEnd, Taken};
use belfry::ports::deliveries::*;
use belfry::ports::gatherings::{DueSlot, DueSlots, Gatherings, Join};
use belfry::ports::paces::{Paces, ShareAsk};
use belfry::ports::pauses::{KeptPause, PauseId, PausePut, Pauses, WaitingPage};
use belfry::ports::schedules::{Kept, Schedule, SchedulePage, Schedules, Taken as DueNow, Wrote};
use belfry::ports::search::{Page, Query};
use belfry::store::sqlite::InlineStore;
use belfry_domain::caps::Fate;
use belfry_domain::delivery::State;
use belfry_domain::gather::Slot;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, NotificationId, UnixMs};

use super::bugs::Bug;
use super::executor::{NodeId, WORLD};
use super::world::{Failover, LEASE, Phase, World};

pub struct FaultyStore {
    pub node: NodeId,
    pub inner: Arc<InlineStore>,
    pub world: World,
    pub bug: Option<Bug>,
}

impl FaultyStore {
    async fn over_the_line<R>(&self, call: impl Future<Output = Result<R, StoreError>>) -> Result<R, StoreError> {
        let sim = &self.world.sim;
        sim.yields(sim.below(3)).await;
        if self.world.faults() {
            if sim.chance(1) {
                sim.sleep(Duration::from_millis(sim.below(3 * LEASE.as_millis() as u64))).await;
            }
            if sim.chance(3) {
                return Err(StoreError::Unavailable("failed before".into()));
            }
        }
        let answer = call.await;
        sim.yields(sim.below(2)).await;
        if self.world.faults() && sim.chance(3) {
            return Err(StoreError::Unavailable("reply lost".into()));
        }
        answer
    }

    /// Planted: whoever writes last wins, whether or not the claim is still its own.
    async fn without_fence(&self, batch: Vec<Settle>) -> Result<Vec<Written>, StoreError> {
        let held = self.inner.held(1_000).await?;
        let mut forced = Vec::new();
        for mut settle in batch {
            if let Some(current) = held.iter().find(|one| one.id == settle.next.id) {
                settle.token = current.token;
                let stored = self.inner.load(vec![settle.next.id]).await?;
                settle.next.rev = stored[0].rev + 1;
                forced.push(settle);
            } else if let Some(stored) = self.inner.load(vec![settle.next.id]).await?.into_iter().next() {
                settle.next.rev = stored.rev + 1;
                return self.inner.apply(vec![settle.next]).await;
            }
        }
        self.inner.settle(forced).await.map(|written| written.into_iter().map(|_| Written::Done).collect())
    }
}

#[async_trait]
impl Deliveries for FaultyStore {
    async fn accept(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>, StoreError> {
        if self.bug == Some(Bug::AckBeforeCommit) {
            let (inner, sim) = (self.inner.clone(), self.world.sim.clone());
            let answers = batch.iter().map(|_| Accepted::Created).collect();
            let late = async move {
                if sim.chance(60) {
                    sim.sleep(Duration::from_millis(50)).await;
                    drop(inner.accept(batch).await);
                }
            };
            // Stands for a write-behind buffer; the world's own task would survive the crash.
            self.world.sim.start(WORLD, Box::pin(late));
            return Ok(answers);
        }
        let answer = self.over_the_line(self.inner.accept(batch)).await;
        if answer.is_ok() {
            let mut told = self.world.told();
            told.phase = told.phase.max(Some(Phase::Committed));
        }
        answer
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError> {
        let world = self.world.clone();
        self.over_the_line(async {
            let mut claims = self.inner.claim(ask).await?;
            let waited_for = !matches!(world.told().failover, Failover::Never);
            claims.claims.iter_mut().for_each(|claim| claim.unconfirmed = waited_for);
            if !claims.claims.is_empty() {
                world.reach(Phase::Claimed);
            }
            Ok(claims)
        })
        .await
    }

    async fn renew(&self, claims: Vec<(DeliveryId, Token)>) -> Result<Vec<Renewed>, StoreError> {
        let mut renewed = self.over_the_line(self.inner.renew(claims.clone())).await?;
        if let Failover::Done { lost, .. } = &self.world.told().failover {
            let is_lost = |id| claims.iter().any(|claim| claim.0 == id && lost.contains(claim));
            renewed.iter_mut().filter(|one| is_lost(one.id)).for_each(|one| one.held = false);
        }
        Ok(renewed)
    }

    async fn spend(&self, batch: Vec<Spend>) -> Result<Vec<Written>, StoreError> {
        if self.bug == Some(Bug::NoSpend) {
            // The record goes on without the mark: rev moves by an idle write instead.
            let mut written = Vec::new();
            for spend in batch {
                let stored = self.inner.load(vec![spend.id]).await?.into_iter().next();
                let Some(mut stored) = stored.filter(|one| one.rev == spend.rev) else {
                    written.push(Written::Stale);
                    continue;
                };
                stored.rev += 1;
                written.extend(self.inner.settle(vec![Settle { next: stored, token: spend.token }]).await?);
            }
            return Ok(written);
        }
        let world = self.world.clone();
        self.over_the_line(async {
            let written = self.inner.spend(batch).await?;
            world.reach(Phase::Spent);
            Ok(written)
        })
        .await
    }

    async fn settle(&self, batch: Vec<Settle>) -> Result<Vec<Written>, StoreError> {
        let world = self.world.clone();
        self.over_the_line(async {
            let written = match self.bug {
                Some(Bug::NoFence) => self.without_fence(batch).await?,
                _ => self.inner.settle(batch).await?,
            };
            world.reach(Phase::Settled);
            Ok(written)
        })
        .await
    }

    async fn apply(&self, batch: Vec<Delivery>) -> Result<Vec<Written>, StoreError> {
        if self.bug == Some(Bug::UnmarkedItems) && batch.iter().any(|one| one.folding().is_some()) {
            return Ok(vec![Written::Done; batch.len()]);
        }
        self.over_the_line(self.inner.apply(batch)).await
    }

    async fn held(&self, limit: u32) -> Result<Vec<Held>, StoreError> {
        self.over_the_line(self.inner.held(limit)).await
    }

    async fn reclaim(&self, mut batch: Vec<Reclaim>) -> Result<Vec<Written>, StoreError> {
        if self.bug == Some(Bug::LapseIsNotSent) {
            for one in &mut batch {
                if one.next.state == State::Unknown {
                    one.next.state = State::Queued;
                    one.next.due_at = one.next.created_at;
                    one.next.ended_at = None;
                    one.next.spent = false;
                    one.next.maybe_sent = false;
                }
            }
        }
        self.over_the_line(self.inner.reclaim(batch)).await
    }

    async fn load(&self, ids: Vec<DeliveryId>) -> Result<Vec<Delivery>, StoreError> {
        self.over_the_line(self.inner.load(ids)).await
    }

    async fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>, StoreError> {
        self.over_the_line(self.inner.receipts_overdue(now, limit)).await
    }

    async fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>, StoreError> {
        self.over_the_line(self.inner.read(owner, id)).await
    }

    async fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>, StoreError> {
        self.over_the_line(self.inner.read_by_delivery(owner, id)).await
    }

    async fn durable(&self) -> Result<(), StoreError> {
        if matches!(self.world.told().failover, Failover::ToCome) {
            let held = self.inner.held(1_000).await?;
            let lost = held.into_iter().map(|one| (one.id, one.token)).collect();
            let answers_at = self.world.sim.now() + Duration::from_millis(500);
            self.world.told().failover = Failover::Done { lost, answers_at };
        }
        if matches!(self.world.told().failover, Failover::Done { answers_at, .. } if self.world.sim.now() < answers_at)
        {
            return Err(StoreError::Unavailable("the primary is gone".into()));
        }
        self.over_the_line(self.inner.durable()).await
    }

    async fn remembered(&self, id: NotificationId) -> Result<Option<Tombstone>, StoreError> {
        self.over_the_line(self.inner.remembered(id)).await
    }

    async fn inputs(&self, id: NotificationId) -> Result<Option<String>, StoreError> {
        self.over_the_line(self.inner.inputs(id)).await
    }

    async fn attached(&self, of: NotificationId, ids: Vec<AttachedId>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.over_the_line(self.inner.attached(of, ids)).await
    }

    async fn search(&self, query: Query) -> Result<Page, StoreError> {
        self.over_the_line(self.inner.search(query)).await
    }

    async fn purge(&self, ask: PurgeAsk) -> Result<Purged, StoreError> {
        self.over_the_line(self.inner.purge(ask)).await
    }

    async fn depths(&self) -> Result<Depths, StoreError> {
        self.over_the_line(self.inner.depths()).await
    }

    async fn due_changed(&self) {
        self.inner.due_changed().await;
    }

    async fn probe(&self) -> Result<Vec<String>, StoreError> {
        self.over_the_line(self.inner.probe()).await
    }
}

#[async_trait]
impl Pauses for FaultyStore {
    async fn pause(&self, new: &KeptPause) -> Result<PausePut, StoreError> {
        self.over_the_line(self.inner.pause(new)).await
    }

    async fn resume(&self, id: PauseId) -> Result<Option<KeptPause>, StoreError> {
        self.over_the_line(self.inner.resume(id)).await
    }

    async fn pauses(&self) -> Result<Vec<KeptPause>, StoreError> {
        let read = match self.over_the_line(self.inner.pauses()).await {
            Err(_) if self.bug == Some(Bug::AwayIsUnpaused) => return Ok(Vec::new()),
            read => read?,
        };
        let rules = read.iter().map(|one| one.pause.clone()).collect();
        self.world.told().pauses_read.insert(self.node, rules);
        Ok(read)
    }

    async fn drop_over(&self, now: UnixMs) -> Result<Vec<KeptPause>, StoreError> {
        self.over_the_line(self.inner.drop_over(now)).await
    }

    async fn waiting(&self, after: Option<&str>, limit: u16, notifications: bool) -> Result<WaitingPage, StoreError> {
        self.over_the_line(self.inner.waiting(after, limit, notifications)).await
    }
}

#[async_trait]
impl Gatherings for FaultyStore {
    async fn join(&self, batch: Vec<Join>) -> Result<Vec<Slot>, StoreError> {
        self.over_the_line(self.inner.join(batch)).await
    }

    async fn rejoin(&self, of: DueSlot, item: DeliveryId) -> Result<(), StoreError> {
        self.over_the_line(self.inner.rejoin(of, item)).await
    }

    async fn due(&self, now: UnixMs, limit: u16) -> Result<DueSlots, StoreError> {
        self.over_the_line(self.inner.due(now, limit)).await
    }

    async fn items(&self, slot: Slot) -> Result<Vec<DeliveryId>, StoreError> {
        self.over_the_line(self.inner.items(slot)).await
    }

    async fn leave(&self, slot: Slot, items: Vec<DeliveryId>) -> Result<(), StoreError> {
        self.over_the_line(self.inner.leave(slot, items)).await
    }

    async fn put_off(&self, slot: Slot, until: UnixMs) -> Result<(), StoreError> {
        self.over_the_line(self.inner.put_off(slot, until)).await
    }
}

#[async_trait]
impl Schedules for FaultyStore {
    async fn write_schedule(
        &self,
        owner: &Owner,
        name: &str,
        before: Option<&str>,
        next: Option<&Schedule>,
    ) -> Result<Wrote, StoreError> {
        self.over_the_line(self.inner.write_schedule(owner, name, before, next)).await
    }

    async fn schedule(&self, owner: &Owner, name: &str) -> Result<Option<Kept>, StoreError> {
        self.over_the_line(self.inner.schedule(owner, name)).await
    }

    async fn schedules(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SchedulePage, StoreError> {
        self.over_the_line(self.inner.schedules(owner, after, limit)).await
    }

    async fn take_due(&self, now: UnixMs, again: UnixMs, limit: u16) -> Result<DueNow, StoreError> {
        let taken = self.over_the_line(self.inner.take_due(now, again, limit)).await?;
        if self.bug == Some(Bug::MovedOnFirst) {
            for Kept { schedule, written } in &taken.due {
                let next = schedule.rhythm().and_then(|rhythm| rhythm.after(now));
                let moved = Schedule { next, ..schedule.clone() };
                self.inner.write_schedule(&schedule.owner(), &schedule.name, Some(written), Some(&moved)).await?;
            }
        }
        Ok(taken)
    }
}

#[async_trait]
impl Paces for FaultyStore {
    async fn shares(&self, node: &str, number: u64, asks: Vec<ShareAsk>) -> Result<Vec<u32>, StoreError> {
        let sim = &self.world.sim;
        if self.world.faults() && sim.chance(10) {
            let (inner, node) = (self.inner.clone(), node.to_owned());
            self.heard_late(async move { drop(inner.shares(&node, number, asks).await) });
            return Err(StoreError::Unavailable("no answer yet".into()));
        }
        self.over_the_line(self.inner.shares(node, number, asks)).await
    }
}

/// A call that was given up, and is heard all the same, perhaps after later ones.
impl FaultyStore {
    fn heard_late(&self, call: impl Future<Output = ()> + Send + 'static) {
        let sim = self.world.sim.clone();
        let late = async move {
            sim.sleep(Duration::from_millis(sim.below(5_000))).await;
            call.await;
        };
        self.world.sim.start(WORLD, Box::pin(late));
    }
}

#[async_trait]
impl Caps for FaultyStore {
    async fn take(&self, mut batch: Vec<TakeAsk>) -> Result<Vec<Taken>, StoreError> {
        if self.bug == Some(Bug::CountedAtTake) {
            batch.iter_mut().for_each(|ask| ask.longest = Duration::ZERO);
        }
        if self.world.faults() && self.world.sim.chance(5) {
            let inner = self.inner.clone();
            self.heard_late(async move { drop(inner.take(batch).await) });
            return Err(StoreError::Unavailable("no answer yet".into()));
        }
        self.over_the_line(self.inner.take(batch)).await
    }

    async fn end(&self, mut batch: Vec<TakeEnd>) -> Result<Vec<Ended>, StoreError> {
        if self.bug == Some(Bug::CountedIsGivenBack) {
            batch.iter_mut().for_each(|end| end.fate = Fate::GivenBack);
        }
        if self.world.faults() && self.world.sim.chance(5) {
            let inner = self.inner.clone();
            self.heard_late(async move { drop(inner.end(batch).await) });
            return Err(StoreError::Unavailable("no answer yet".into()));
        }
        self.over_the_line(self.inner.end(batch)).await
    }
}
