//! How many claims may be in hand, per provider and priority. Whatever waits holds no claim, so
//! claims are only asked for where a permit is free. High lanes always keep some.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::{Lane, Priority};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Outcomes that may wait for their record before claiming stops.
const MOST_SETTLING: usize = 512;

#[derive(Default)]
pub(super) struct Permits {
    taken: Arc<Mutex<BTreeMap<Lane, u16>>>,
    /// Claims that are being asked for; what they bring is work that has not begun.
    asking: Arc<AtomicUsize>,
    /// Outcomes on their way into the record.
    settling: Arc<AtomicUsize>,
    changed: Arc<Notify>,
    /// Something ended: whoever waits for the end of everything looks again. Not `changed`, which
    /// the claimer itself waits on.
    ended: Arc<Notify>,
}

/// A claim being asked for, until dropped.
pub(super) struct Asking {
    asking: Arc<AtomicUsize>,
    ended: Arc<Notify>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.asking.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_waiters();
    }
}

/// An outcome being recorded, until dropped.
pub(super) struct Settling {
    settling: Arc<AtomicUsize>,
    changed: Arc<Notify>,
    ended: Arc<Notify>,
}

impl Drop for Settling {
    fn drop(&mut self) {
        if self.settling.fetch_sub(1, Ordering::SeqCst) == MOST_SETTLING {
            self.changed.notify_waiters();
        }
        self.ended.notify_waiters();
    }
}

/// One claim's permit, until its call has ended; given back when dropped, however the task ends.
pub(super) struct Permit {
    lane: Lane,
    taken: Arc<Mutex<BTreeMap<Lane, u16>>>,
    changed: Arc<Notify>,
    ended: Arc<Notify>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.lane) {
            *count = count.saturating_sub(1);
        }
        drop(taken);
        self.changed.notify_waiters();
        self.ended.notify_waiters();
    }
}

/// The share of `concurrency` that lanes below each priority may not use.
fn reserved(priority: Priority, concurrency: u16) -> u16 {
    match priority {
        Priority::High => 0,
        Priority::Normal => concurrency.div_ceil(4),
        Priority::Low => concurrency.div_ceil(4) + concurrency / 4,
    }
}

/// How many more of `concurrency` a priority may take, where `taken` says what each has. What is kept from
/// a priority is kept from all below it: whoever comes first, and is not done for long, takes nothing of it.
/// The most urgent may take what is kept for them even where others have more than they should, because one
/// claim asked for several of their lanes.
pub(super) fn free(priority: Priority, concurrency: u16, taken: impl Fn(Priority) -> u16) -> u16 {
    // Below three the reserves would leave a lane nothing at all.
    let concurrency = concurrency.max(3);
    let left = |level: Priority| {
        let at_or_below: u16 = Priority::ALL.iter().filter(|one| **one >= level).map(|one| taken(*one)).sum();
        (concurrency - reserved(level, concurrency)).saturating_sub(at_or_below)
    };
    let left = Priority::ALL.iter().filter(|level| **level <= priority).map(|level| left(*level)).min().unwrap_or(0);
    match priority {
        Priority::High => left.max(reserved(Priority::Normal, concurrency).saturating_sub(taken(priority))),
        Priority::Normal | Priority::Low => left,
    }
}

impl Permits {
    /// How many more claims a lane may have in hand.
    pub(super) fn free(&self, lane: &Lane, concurrency: u16) -> u16 {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |priority: Priority| taken.get(&Lane::new(lane.provider.clone(), priority)).copied().unwrap_or(0);
        free(lane.priority, concurrency, of)
    }

    /// To be held while something is settled, and taken before its permit is given back: whoever
    /// waits for the end of everything must not miss it in between.
    pub(super) fn settling(&self) -> Settling {
        self.settling.fetch_add(1, Ordering::SeqCst);
        Settling { settling: self.settling.clone(), changed: self.changed.clone(), ended: self.ended.clone() }
    }

    /// So much waits to be settled that nothing more is to be claimed.
    pub(super) fn backed_up(&self) -> bool {
        self.settling.load(Ordering::SeqCst) >= MOST_SETTLING
    }

    pub(super) fn take(&self, lane: &Lane) -> Permit {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner).entry(lane.clone()).or_default() += 1;
        Permit {
            lane: lane.clone(),
            taken: self.taken.clone(),
            changed: self.changed.clone(),
            ended: self.ended.clone(),
        }
    }

    /// To be held while a claim is asked for, and taken before looking whether that is still wanted:
    /// a claim that comes back after everything seemed idle would be broken off in its call.
    pub(super) fn asking(&self) -> Asking {
        self.asking.fetch_add(1, Ordering::SeqCst);
        Asking { asking: self.asking.clone(), ended: self.ended.clone() }
    }

    /// Nothing is under way, and nothing about to be.
    pub(super) fn idle(&self) -> bool {
        self.asking.load(Ordering::SeqCst) == 0 && self.in_flight() == 0 && self.settling.load(Ordering::SeqCst) == 0
    }

    /// Claims in hand in one lane.
    pub(super) fn taken(&self, lane: &Lane) -> u16 {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).get(lane).copied().unwrap_or(0)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).values().map(|count| usize::from(*count)).sum()
    }

    /// Resolves at the next call or claim that ends after this one.
    pub(super) fn something_ended(&self) -> OwnedNotified {
        self.ended.clone().notified_owned()
    }

    /// Resolves at the next permit given back after this call.
    pub(super) fn changed(&self) -> OwnedNotified {
        self.changed.clone().notified_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_lanes_always_keep_workers() {
        let permits = Permits::default();
        let (high, low) = (Lane::new("main", Priority::High), Lane::new("main", Priority::Low));
        let held: Vec<_> = (0..permits.free(&low, 8)).map(|_| permits.take(&low)).collect();
        assert_eq!(held.len(), 4);
        assert_eq!(permits.free(&low, 8), 0);
        assert_eq!(permits.free(&Lane::new("main", Priority::Normal), 8), 2);
        assert_eq!(permits.free(&high, 8), 4);
        drop(held);
        assert_eq!((permits.in_flight(), permits.free(&high, 8)), (0, 8));
    }

    #[test]
    fn high_lanes_keep_workers_whichever_of_the_others_comes_first() {
        let [high, normal, low] = [Priority::High, Priority::Normal, Priority::Low].map(|one| Lane::new("main", one));
        for order in [[&normal, &low], [&low, &normal]] {
            let permits = Permits::default();
            let mut held = Vec::new();
            for lane in order {
                held.extend((0..permits.free(lane, 8)).map(|_| permits.take(lane)));
            }
            assert_eq!((held.len(), permits.free(&high, 8)), (6, 2), "{order:?}");
        }
        // One claim brought as many as each lane might have had alone.
        let permits = Permits::default();
        let _held: Vec<_> = [&normal; 6].into_iter().chain([&low; 4]).map(|lane| permits.take(lane)).collect();
        assert_eq!([&high, &normal, &low].map(|lane| permits.free(lane, 8)), [2, 0, 0]);
        let _urgent: Vec<_> = (0..2).map(|_| permits.take(&high)).collect();
        assert_eq!(permits.free(&high, 8), 0);
    }

    #[test]
    fn every_lane_can_work_even_at_concurrency_one() {
        for priority in Priority::ALL {
            assert!(Permits::default().free(&Lane::new("main", *priority), 1) >= 1, "{priority}");
        }
    }
}
