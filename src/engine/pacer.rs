//! Keeps the calls to each provider within this node's share of its pace. A call is set aside before its
//! delivery is claimed, so that what waits for the pace holds no claim; it is paid for when it is made.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::pace::Bucket;
use belfry_domain::warm_up::PaceNow;
use belfry_domain::{Pace, PacePlan, Priority, UnixMs};

use super::settle::SharedRef;
use crate::facts::Fact;
use crate::ports::clock::Boot;
use crate::ports::paces::{SHARE_LEASE, ShareAsk};
use crate::ports::policy::Policy;

/// How often a node asks for its shares.
const EVERY: Duration = Duration::from_secs(1);
/// Of a fast pace, the calls of so long a time are waited for and claimed together.
const TOGETHER: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(super) struct Pacer {
    shares: Arc<Mutex<BTreeMap<String, Share>>>,
    /// Of the latest question.
    number: AtomicU64,
    left: AtomicBool,
}

/// This node's part in one pace.
struct Share {
    plan: PacePlan,
    /// What the plan came to when it was last asked for.
    pace: Pace,
    /// `None`: no part of it.
    bucket: Option<Bucket>,
    /// When it ends unless it is extended.
    until: Boot,
}

impl Share {
    const fn none(plan: PacePlan, pace: Pace) -> Self {
        Self { plan, pace, bucket: None, until: Boot::ZERO }
    }

    fn parts(&self, now: Boot) -> u32 {
        self.bucket.as_ref().filter(|_| now < self.until).map_or(0, Bucket::parts)
    }

    /// Whether that changes what this node may do.
    fn grant(&mut self, parts: u32, now: Boot, until: Boot) -> bool {
        let before = self.parts(now);
        if now >= self.until {
            // Others may have had it since: it must not come back to life with the new lease.
            self.bucket = None;
        }
        self.until = until;
        if before == parts {
            return false;
        }
        match &mut self.bucket {
            Some(bucket) if parts > 0 => bucket.share(&self.pace, parts, now),
            bucket => *bucket = (parts > 0).then(|| Bucket::new(&self.pace, parts, now)),
        }
        true
    }
}

/// How many calls of a provider may be claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    urgent: u16,
    others: u16,
    /// When to look again.
    pub next: Option<Boot>,
}

impl Room {
    const ALL: Self = Self { urgent: u16::MAX, others: u16::MAX, next: None };
    /// The share that brings more nudges the claimer.
    const NONE: Self = Self { urgent: 0, others: 0, next: None };

    pub const fn of(self, priority: Priority) -> u16 {
        match priority {
            Priority::High => self.urgent,
            Priority::Normal | Priority::Low => self.others,
        }
    }

    fn in_bucket(bucket: &Bucket, now: Boot) -> Self {
        let room = bucket.room(now);
        // One is kept for what is urgent: it must not wait behind what merely came first.
        let kept = u32::from(bucket.parts() > 1);
        let others = room.saturating_sub(kept);
        let together = bucket.filled_in(TOGETHER).clamp(1, (bucket.parts() / 2).max(1));
        let next = match (room, others) {
            (0, _) => Some(bucket.room_at(1)),
            (_, 0) => Some(bucket.room_at(together + kept)),
            _ => None,
        };
        let short = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        Self { urgent: short(room), others: short(others), next }
    }
}

/// A call that was set aside for a claim; put back unless it is made.
pub(super) struct PacedCall {
    shares: Arc<Mutex<BTreeMap<String, Share>>>,
    provider: String,
    made: bool,
}

impl Drop for PacedCall {
    fn drop(&mut self) {
        let mut shares = locked(&self.shares);
        if let Some(bucket) = shares.get_mut(&self.provider).and_then(|share| share.bucket.as_mut())
            && !self.made
        {
            bucket.put_back();
        }
    }
}

impl PacedCall {
    /// The call is about to be made.
    ///
    /// # Errors
    /// Not now, because the share has changed or ended since; about when instead.
    pub(super) fn make(&mut self, now: Boot) -> Result<(), Boot> {
        let mut shares = locked(&self.shares);
        // A pace that is gone from the configuration holds up nothing.
        let Some(share) = shares.get_mut(&self.provider) else { return Ok(()) };
        match share.bucket.as_mut().filter(|_| now < share.until) {
            Some(bucket) => bucket.call(now)?,
            None => return Err(now + EVERY),
        }
        self.made = true;
        Ok(())
    }
}

fn locked(shares: &Mutex<BTreeMap<String, Share>>) -> MutexGuard<'_, BTreeMap<String, Share>> {
    shares.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pacer {
    /// How many calls may be claimed for `provider`, whose pace goes by `plan`.
    pub(super) fn room(&self, provider: &str, plan: Option<&PacePlan>, now: Boot) -> Room {
        let Some(plan) = plan else { return Room::ALL };
        match locked(&self.shares).get(provider) {
            Some(Share { plan: known, bucket: Some(bucket), until, .. }) if known == plan && now < *until => {
                Room::in_bucket(bucket, now)
            }
            _ => Room::NONE,
        }
    }

    /// To be made of a claim; `None` where the provider has no pace.
    pub(super) fn set_aside(&self, provider: &str) -> Option<PacedCall> {
        locked(&self.shares).get_mut(provider)?.bucket.as_mut()?.set_aside();
        Some(PacedCall { shares: self.shares.clone(), provider: provider.to_owned(), made: false })
    }

    /// Takes up the paces of `policy` as they are now; those that are new, or have come to another step.
    fn take_up(&self, policy: &Policy, now: UnixMs) -> Vec<Fact> {
        let mut shares = locked(&self.shares);
        shares.retain(|name, _| policy.providers.get(name).is_some_and(|provider| provider.pace.is_some()));
        let mut changed = Vec::new();
        for (name, provider) in &policy.providers {
            let Some(plan) = &provider.pace else { continue };
            let PaceNow { pace, warming } = plan.at(now);
            if shares.get(name).is_none_or(|share| share.plan != *plan || share.pace != pace) {
                shares.insert(name.clone(), Share::none(plan.clone(), pace));
                changed.push(Fact::Paced { provider: name.clone(), pace, warming });
            }
        }
        changed
    }

    /// What there is to ask the store.
    fn asks(&self, now: Boot) -> Vec<ShareAsk> {
        let ask = |(name, share): (&String, &Share)| ShareAsk {
            pace: name.clone(),
            parts: share.pace.burst(),
            using: share.parts(now),
        };
        locked(&self.shares).iter().map(ask).collect()
    }

    /// What the store answered; the shares that changed. `until`: counted from before it was asked.
    fn granted(&self, asks: &[ShareAsk], granted: &[u32], now: Boot, until: Boot) -> Vec<Fact> {
        let mut shares = locked(&self.shares);
        let mut changed = Vec::new();
        for (ask, parts) in asks.iter().zip(granted) {
            let Some(share) = shares.get_mut(&ask.pace) else { continue };
            if share.grant(*parts, now, until) {
                changed.push(Fact::PaceShared { provider: ask.pace.clone(), parts: *parts, of: ask.parts });
            }
        }
        changed
    }
}

pub(super) async fn run(shared: SharedRef) {
    let mut policy = shared.deps.policy.clone();
    let mut reloads = true;
    while !shared.pacer.left.load(Ordering::SeqCst) {
        let now = policy.borrow_and_update().clone();
        let paced = ask(&shared, &now).await;
        if !paced && !reloads {
            return;
        }
        let again = shared.deps.clock.boot() + EVERY;
        tokio::select! {
            biased;
            changed = policy.changed(), if reloads => reloads = changed.is_ok(),
            () = shared.deps.clock.sleep_until(again), if paced => {}
        }
    }
}

/// Asks for this node's shares; whether there is anything to ask about.
async fn ask(shared: &SharedRef, policy: &Policy) -> bool {
    let changed = shared.pacer.take_up(policy, shared.deps.clock.now());
    changed.iter().for_each(|fact| shared.deps.facts.record(fact));
    // A second time at once where something is to be given up: others wait to hear that it was.
    for _ in 0..2 {
        let asked_at = shared.deps.clock.boot();
        let asks = shared.pacer.asks(asked_at);
        if asks.is_empty() {
            return false;
        }
        let number = shared.pacer.number.fetch_add(1, Ordering::SeqCst) + 1;
        let worker = &shared.settings.worker;
        let granted = match shared.deps.paces.shares(worker, number, asks.clone()).await {
            Ok(granted) => granted,
            Err(why) => {
                shared.deps.facts.record(&Fact::StoreUnavailable { verb: "shares", why });
                return true;
            }
        };
        let changed = shared.pacer.granted(&asks, &granted, shared.deps.clock.boot(), asked_at + SHARE_LEASE);
        if !changed.is_empty() {
            changed.iter().for_each(|fact| shared.deps.facts.record(fact));
            shared.nudge.notify_one();
        }
        if !asks.iter().zip(&granted).any(|(ask, granted)| *granted < ask.using) {
            break;
        }
    }
    true
}

/// Nothing is called any more: the others may have this node's shares. Where the store does not hear
/// it, they have them when the lease is over.
pub(super) async fn leave(shared: &SharedRef) {
    shared.pacer.left.store(true, Ordering::SeqCst);
    let asks: Vec<ShareAsk> = std::mem::take(&mut *locked(&shared.pacer.shares))
        .into_keys()
        .map(|pace| ShareAsk { pace, parts: 0, using: 0 })
        .collect();
    if !asks.is_empty() {
        let number = shared.pacer.number.fetch_add(1, Ordering::SeqCst) + 1;
        shared.deps.paces.shares(&shared.settings.worker, number, asks).await.ok();
    }
}
