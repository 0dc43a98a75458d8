//! What a person does about what is held since the store was restored from a backup: look at it, let it
//! go, cancel it. Bounded calls, each safe to repeat.

use std::collections::BTreeMap;
use std::sync::Arc;

use belfry_domain::delivery::{StateName, Stop};
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::{ChannelKind, Class, Delivery, Env, Event, UnixMs, step};

use super::actions::stepped;
use super::instant::rfc3339;
use crate::facts::{Fact, FactSink};
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::deliveries::{Deliveries, MOST_ITEMS, Written};
use crate::ports::holds::Holds;

/// Deliveries shown by themselves.
pub const SAMPLE: usize = 20;
/// Pages of [`MOST_ITEMS`] that one call looks at.
const PAGES_READ: usize = 8;
/// And that one call cancels from: each waits for the disk.
const PAGES_CANCELLED: usize = 4;
/// How often a cancellation is decided anew because a delivery moved meanwhile.
const MOST_TRIES: usize = 4;

pub struct Restored {
    holds: Arc<dyn Holds>,
    deliveries: Arc<dyn Deliveries>,
    clock: Arc<dyn Clock>,
    facts: Arc<dyn FactSink>,
}

/// What is held of one class on one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub held: u64,
    /// Of these, past their expiry: released, they end as expired.
    pub expired: u64,
}

/// Some of what is held, counted.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// The hold that stands.
    pub restored_at: Option<UnixMs>,
    /// All that is held, of which this call has looked at some; where it is very much, a lower bound.
    pub held: u64,
    pub by: BTreeMap<(String, ChannelKind), Held>,
    pub oldest_due: Option<UnixMs>,
    pub newest_due: Option<UnixMs>,
    pub sample: Vec<Delivery>,
    /// Where to go on.
    pub next: Option<String>,
}

/// Which hold a person means, who it is, and what they say.
#[derive(Clone, Debug)]
pub struct Wish {
    pub by: String,
    pub restored_at: UnixMs,
    /// Empty: nothing was said.
    pub why: String,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    Done,
    /// No hold stands: it was released before.
    Before,
    /// Another hold stands.
    Another(UnixMs),
}

/// What became of a cancellation, in deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldCancelled {
    pub cancelled: u64,
    /// Of other classes: still held.
    pub left: u64,
    /// Another hold stands; nothing was done.
    pub another: Option<UnixMs>,
    /// Where to go on.
    pub next: Option<String>,
}

impl Restored {
    #[must_use]
    pub const fn new(
        holds: Arc<dyn Holds>,
        deliveries: Arc<dyn Deliveries>,
        clock: Arc<dyn Clock>,
        facts: Arc<dyn FactSink>,
    ) -> Self {
        Self { holds, deliveries, clock, facts }
    }

    /// The hold that stands.
    ///
    /// # Errors
    /// [`StoreError`]; so for every call here.
    pub async fn standing(&self) -> Result<Option<UnixMs>, StoreError> {
        self.holds.standing().await
    }

    /// Counts on from `after`, up to a bound.
    ///
    /// # Errors
    /// As [`Self::standing`].
    pub async fn preview(&self, after: Option<String>) -> Result<Preview, StoreError> {
        let mut found = Preview { restored_at: self.standing().await?, next: after, ..Preview::default() };
        if found.restored_at.is_none() {
            found.next = None;
            return Ok(found);
        }
        found.held = self.deliveries.depths().await?.held_back;
        let now = self.clock.now();
        for _ in 0..PAGES_READ {
            let page = self.holds.held_back(found.next.as_deref(), most()).await?;
            page.deliveries.into_iter().for_each(|one| found.count(one, now));
            found.next = page.next;
            if found.next.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Lets everything go that is held since that moment.
    ///
    /// # Errors
    /// As [`Self::standing`]; the same call again finishes it.
    pub async fn release(&self, wish: &Wish) -> Result<Released, StoreError> {
        let stands = self.standing().await?;
        if let Some(other) = stands.filter(|stands| *stands != wish.restored_at) {
            return Ok(Released::Another(other));
        }
        // Where none stands as well: an earlier release may have come only half way.
        self.holds.release(wish.restored_at).await?;
        if stands.is_none() {
            return Ok(Released::Before);
        }
        self.facts.record(&Fact::HoldReleased { by: wish.by.clone(), at: wish.restored_at });
        Ok(Released::Done)
    }

    /// Cancels on from `after`, up to a bound, what is held: of these classes, or of all where none is
    /// named.
    ///
    /// # Errors
    /// As [`Self::standing`]; the same call again finishes it.
    pub async fn cancel(
        &self,
        wish: &Wish,
        classes: &[String],
        after: Option<String>,
    ) -> Result<HeldCancelled, StoreError> {
        let mut told = HeldCancelled { next: after, ..HeldCancelled::default() };
        let stands = self.standing().await?;
        if stands != Some(wish.restored_at) {
            return Ok(HeldCancelled { another: stands, ..HeldCancelled::default() });
        }
        let ended = self.cancel_pages(wish, classes, &mut told).await;
        // Also where it came only half way: that much is done.
        if told.cancelled > 0 {
            let (by, cancelled) = (wish.by.clone(), told.cancelled);
            self.facts.record(&Fact::HeldCancelled { by, at: wish.restored_at, cancelled });
        }
        ended.map(|()| told)
    }

    async fn cancel_pages(&self, wish: &Wish, classes: &[String], told: &mut HeldCancelled) -> Result<(), StoreError> {
        for _ in 0..PAGES_CANCELLED {
            let page = self.holds.held_back(told.next.as_deref(), most()).await?;
            let meant = |one: &Delivery| classes.is_empty() || classes.contains(&one.class);
            let (ours, others): (Vec<_>, Vec<_>) = page.deliveries.into_iter().partition(meant);
            told.left += others.len() as u64;
            self.stop_all(wish, ours, &mut told.cancelled).await?;
            told.next = page.next;
            if told.next.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Counts those that it has cancelled, also where it fails on the way.
    async fn stop_all(&self, wish: &Wish, mut open: Vec<Delivery>, cancelled: &mut u64) -> Result<(), StoreError> {
        let env = Env { now: self.clock.now(), jitter: 0, receipts: false, guard: RepeatGuard::None };
        let stop = Stop::Cancel { by: wish.by.clone(), why: wish.reason() };
        for _ in 0..MOST_TRIES {
            let mut decided = Vec::with_capacity(open.len());
            for one in open {
                let class = Class::unconfigured(&one.class, one.lease);
                // Whoever has said so before has ended it.
                decided.extend(step(&one, &class, Event::StopAsked(stop.clone()), env).ok());
            }
            if decided.is_empty() {
                return Ok(());
            }
            let writes = decided.iter().map(|transition| transition.next.clone()).collect();
            let written = self.deliveries.apply(writes).await?;
            open = Vec::new();
            let mut away = false;
            for (transition, written) in decided.into_iter().zip(written) {
                match written {
                    Written::Done => {
                        *cancelled += u64::from(transition.next.state.name() == StateName::Cancelled);
                        for fact in transition.facts {
                            self.facts.record(&stepped(&transition.next, fact));
                        }
                    }
                    // What is no longer held is no longer meant.
                    Written::Moved(now) if now.held_back(Some(wish.restored_at)) => open.push(*now),
                    Written::Away => away = true,
                    Written::Moved(_) | Written::Stale | Written::Gone => {}
                }
            }
            if away {
                return Err(StoreError::Unavailable("a part of it is away".into()));
            }
        }
        if open.is_empty() { Ok(()) } else { Err(StoreError::Unavailable("some moved all the while".into())) }
    }
}

impl Preview {
    fn count(&mut self, one: Delivery, now: UnixMs) {
        let of = self.by.entry((one.class.clone(), one.channel)).or_default();
        of.held += 1;
        of.expired += u64::from(one.expires_at <= now);
        self.oldest_due = self.oldest_due.into_iter().chain([one.due_at]).min();
        self.newest_due = self.newest_due.max(Some(one.due_at));
        if self.sample.len() < SAMPLE {
            self.sample.push(one);
        }
    }
}

impl Wish {
    /// For the timeline.
    fn reason(&self) -> String {
        let held = format!("held since the store was restored from a backup at {}", rfc3339(self.restored_at));
        if self.why.is_empty() { held } else { format!("{held}: {}", self.why) }
    }
}

fn most() -> u16 {
    u16::try_from(MOST_ITEMS).unwrap_or(u16::MAX)
}
