//! What one accept and one claim with its settle cost the server, in processor time; and how it
//! comes to remember: accepted, ended, and purged down to the tombstone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use belfry::machine::{MachineClock, MachineDice};
use belfry::ports::clock::{Clock, Dice};
use belfry::ports::deliveries::{Claim, ClaimAsk, Deliveries, MOST_ITEMS, NewNotification, PurgeAsk, Settle, Written};
use belfry_domain::delivery::Stop;
use belfry_domain::outcome::{RepeatGuard, Why, WhyCode};
use belfry_domain::step::{Env, Event, step};
use belfry_domain::timeline::ClaimMark;
use belfry_domain::{Class, Delivery, Lane, Order, Outcome, Priority};
use tokio::task::JoinSet;

use super::float;
use crate::child::own_busy;
use crate::delivered::{PROVIDER, class, loop_over, rate};
use crate::records::Shape;
use crate::stores::Place;

const CALLERS: usize = 64;
const DUE: Shape = Shape::webhook(PROVIDER);
const LATER: Shape = DUE.in_a_month();
const WORKER: &str = "bench";
/// Past what keeps content, far from what ends the window.
const LONG_ENDED: Duration = Duration::from_secs(4 * 86_400);
/// So many are ended before they are purged.
const AT_ONCE: usize = 64 * MOST_ITEMS;
/// How many it remembers is told this often.
const TELL: Duration = Duration::from_secs(30);

/// For one item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub accept: Duration,
    pub claim_and_settle: Duration,
}

pub(super) struct Prober<'a> {
    place: &'a Place,
    store: Arc<dyn Deliveries>,
    class: Arc<Class>,
    /// The number of the next notification; as many are remembered.
    next: usize,
}

impl<'a> Prober<'a> {
    /// Where so many are remembered already.
    pub(super) fn new(place: &'a Place, store: Arc<dyn Deliveries>, remembered: usize) -> Self {
        let class = Arc::new(class(DUE.class, Order::SendThenRecord, Priority::Normal));
        Self { place, store, class, next: remembered }
    }

    pub(super) const fn remembered(&self) -> usize {
        self.next
    }

    /// The Redis server's main thread, or this program.
    async fn busy(&self) -> Result<Duration> {
        match &self.place.redis {
            Some(redis) => Ok(redis.told().await?.busy),
            None => own_busy(),
        }
    }

    /// So many times so many items; all of them are remembered afterwards.
    pub(super) async fn probe(&mut self, (times, items): (usize, usize)) -> Result<Vec<Cost>> {
        let mut costs = Vec::new();
        for _ in 0..times {
            let all = self.planned(DUE, items);
            let idle = self.busy().await?;
            let store = self.store.clone();
            loop_over(all, CALLERS, move |one| {
                let store = store.clone();
                async move {
                    store.accept(vec![one]).await?;
                    Ok(())
                }
            })
            .await?;
            let accepted = self.busy().await?;
            self.settle_all(items).await?;
            let settled = self.busy().await?;
            let each = |from: Duration, to: Duration| to.saturating_sub(from).div_f64(float(items));
            costs.push(Cost { accept: each(idle, accepted), claim_and_settle: each(accepted, settled) });
            self.purge().await?;
        }
        Ok(costs)
    }

    fn planned(&mut self, shape: Shape, items: usize) -> Vec<NewNotification> {
        let from = self.next;
        self.next += items;
        (from..self.next).map(|at| shape.planned(at, MachineClock.now())).collect()
    }

    async fn settle_all(&self, items: usize) -> Result<()> {
        let lanes = vec![(Lane::new(PROVIDER, Priority::Normal), u16::try_from(MOST_ITEMS)?)];
        let mut left = items;
        while left > 0 {
            let ask = ClaimAsk { worker: WORKER.into(), nonce: MachineDice.roll(), lanes: lanes.clone(), alone: false };
            let claims = self.store.claim(ask).await?.claims;
            ensure!(!claims.is_empty(), "{left} of {items} are not due");
            left = left.checked_sub(claims.len()).context("claimed more than there were")?;
            let settles = claims.iter().map(|claim| self.accepted(claim)).collect::<Result<Vec<_>>>()?;
            let written = self.store.settle(settles).await?;
            ensure!(written.iter().all(|one| *one == Written::Done), "not all were settled");
        }
        Ok(())
    }

    fn accepted(&self, claim: &Claim) -> Result<Settle> {
        let mark = ClaimMark { worker: WORKER.into(), fence: claim.token.fence };
        let outcome = Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) };
        let event = Event::Called { claim: mark, outcome, took: Duration::from_millis(20) };
        Ok(Settle { next: after(&self.class, &claim.delivery, event)?, token: claim.token })
    }

    /// Takes in and ends new ones until so many are remembered.
    pub(super) async fn remember_up_to(&mut self, size: usize) -> Result<()> {
        let (started, first, mut told) = (Instant::now(), self.next, Instant::now());
        while self.next < size {
            let all = self.planned(LATER, AT_ONCE.min(size - self.next));
            let mut ending = JoinSet::new();
            for batch in all.chunks(MOST_ITEMS) {
                ending.spawn(cancelled(self.store.clone(), self.class.clone(), batch.to_vec()));
                if ending.len() >= 8
                    && let Some(done) = ending.join_next().await
                {
                    done??;
                }
            }
            while let Some(done) = ending.join_next().await {
                done??;
            }
            self.purge().await?;
            if told.elapsed() > TELL {
                told = Instant::now();
                eprintln!("remembered: {} of {size}, {:.0}/s", self.next, rate(self.next - first, started));
            }
        }
        Ok(())
    }

    /// Nothing is left of what has ended but tombstones.
    async fn purge(&self) -> Result<()> {
        let now = MachineClock.now().plus(LONG_ENDED);
        let limit = u16::try_from(MOST_ITEMS)?;
        // Every ended one once for its content and once for its record.
        for _ in 0..=self.next.div_ceil(MOST_ITEMS) * 2 + 64 {
            let purged = self.store.purge(PurgeAsk { now, keep_record: Duration::ZERO, limit }).await?;
            ensure!(purged.tombstones == 0, "what should be remembered was forgotten");
            if purged.contents + purged.records == 0 {
                return Ok(());
            }
        }
        anyhow::bail!("purging does not end")
    }
}

async fn cancelled(store: Arc<dyn Deliveries>, class: Arc<Class>, batch: Vec<NewNotification>) -> Result<()> {
    let stop = || Event::StopAsked(Stop::Cancel { by: "bench".into(), why: "to be remembered".into() });
    let ended = batch.iter().map(|one| after(&class, &one.deliveries[0], stop())).collect::<Result<Vec<_>>>()?;
    store.accept(batch).await?;
    let written = store.apply(ended).await?;
    ensure!(written.iter().all(|one| *one == Written::Done), "not all were cancelled");
    Ok(())
}

fn after(class: &Class, delivery: &Delivery, event: Event) -> Result<Delivery> {
    let env = Env { now: MachineClock.now(), jitter: MachineDice.roll(), receipts: false, guard: RepeatGuard::None };
    Ok(step(delivery, class, event, env).ok().context("it stays as it is")?.next)
}
