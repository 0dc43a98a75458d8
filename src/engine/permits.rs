//! How many calls may be under way, per provider and priority. Whatever waits holds no claim, so
//! claims are only asked for where a permit is free. High lanes always keep some.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::{Lane, Priority};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

#[derive(Default)]
pub(super) struct Permits {
    taken: Arc<Mutex<BTreeMap<Lane, u16>>>,
    changed: Arc<Notify>,
}

/// One call's permit; given back when dropped, however the task ends.
pub(super) struct Permit {
    lane: Lane,
    taken: Arc<Mutex<BTreeMap<Lane, u16>>>,
    changed: Arc<Notify>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.lane) {
            *count = count.saturating_sub(1);
        }
        drop(taken);
        self.changed.notify_waiters();
    }
}

impl Permits {
    /// The share of `concurrency` that lanes below each priority may not use.
    fn reserved(priority: Priority, concurrency: u16) -> u16 {
        match priority {
            Priority::High => 0,
            Priority::Normal => concurrency.div_ceil(4),
            Priority::Low => concurrency.div_ceil(4) + concurrency / 4,
        }
    }

    /// How many more calls a lane may start now.
    pub(super) fn free(&self, lane: &Lane, concurrency: u16) -> u16 {
        // Below three the reserves would leave a lane nothing at all.
        let concurrency = concurrency.max(3);
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |priority: Priority| taken.get(&Lane::new(lane.provider.clone(), priority)).copied().unwrap_or(0);
        let total: u16 = Priority::ALL.iter().map(|one| of(*one)).sum();
        let at_or_below: u16 = Priority::ALL.iter().filter(|one| **one >= lane.priority).map(|one| of(*one)).sum();
        let own = (concurrency - Self::reserved(lane.priority, concurrency)).saturating_sub(at_or_below);
        own.min(concurrency.saturating_sub(total))
    }

    pub(super) fn take(&self, lane: &Lane) -> Permit {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner).entry(lane.clone()).or_default() += 1;
        Permit { lane: lane.clone(), taken: self.taken.clone(), changed: self.changed.clone() }
    }

    /// Calls under way in one lane.
    pub(super) fn taken(&self, lane: &Lane) -> u16 {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).get(lane).copied().unwrap_or(0)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).values().map(|count| usize::from(*count)).sum()
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
    fn every_lane_can_work_even_at_concurrency_one() {
        for priority in Priority::ALL {
            assert!(Permits::default().free(&Lane::new("main", *priority), 1) >= 1, "{priority}");
        }
    }
}
