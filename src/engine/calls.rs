//! Who may call a provider now. A claim is asked for a little ahead of its call, so that a provider
//! is never idle while the store is asked; here the claims in hand take turns, the urgent first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::{Lane, Priority};
use tokio::sync::oneshot;

use super::permits::free;

/// Claims are taken ahead for so long a time of a provider's calls: longer than it takes to claim.
const AHEAD: Duration = Duration::from_millis(10);
const MOST_AHEAD: u16 = 256;

const LANES: usize = Priority::ALL.len();

/// One provider's calls.
#[derive(Default)]
struct Door {
    concurrency: u16,
    taken: [u16; LANES],
    waiting: [VecDeque<oneshot::Sender<Slot>>; LANES],
    /// How long its calls take of late, in microseconds; 0 until one has ended.
    average_us: u64,
}

#[derive(Clone, Default)]
pub(super) struct Calls {
    doors: Arc<Mutex<BTreeMap<String, Door>>>,
}

/// The right to call, until dropped.
pub(super) struct Slot {
    calls: Calls,
    lane: Lane,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.calls.give_back(&self.lane);
    }
}

const fn place(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

impl Door {
    fn admits(&self, priority: Priority) -> bool {
        free(priority, self.concurrency, |one| self.taken[place(one)]) > 0
    }

    fn is_in_use(&self) -> bool {
        self.taken.iter().any(|taken| *taken > 0) || self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    /// Whoever is next and may call now; the slot counts as taken.
    fn next(&mut self) -> Option<(Priority, oneshot::Sender<Slot>)> {
        for priority in Priority::ALL.iter().copied() {
            if !self.waiting[place(priority)].is_empty() && self.admits(priority) {
                self.taken[place(priority)] += 1;
                return self.waiting[place(priority)].pop_front().map(|waiter| (priority, waiter));
            }
        }
        None
    }
}

impl Calls {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Door>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn among at most `concurrency` calls of the lane's provider.
    pub(super) async fn enter(&self, lane: &Lane, concurrency: u16) -> Slot {
        let turn = {
            let mut doors = self.locked();
            let door = doors.entry(lane.provider.clone()).or_default();
            door.concurrency = concurrency;
            let at = place(lane.priority);
            // Nobody overtakes in a lane.
            if door.waiting[at].is_empty() && door.admits(lane.priority) {
                door.taken[at] += 1;
                return Slot { calls: self.clone(), lane: lane.clone() };
            }
            // Whoever gave up waiting stands at the front; where nobody gives a turn back they would pile up.
            while door.waiting[at].front().is_some_and(oneshot::Sender::is_closed) {
                door.waiting[at].pop_front();
            }
            let (tell, turn) = oneshot::channel();
            door.waiting[at].push_back(tell);
            turn
        };
        match turn.await {
            Ok(slot) => slot,
            // Nobody drops a waiter; and if, one call more is better than a claim that never ends.
            Err(_) => {
                self.locked().entry(lane.provider.clone()).or_default().taken[place(lane.priority)] += 1;
                Slot { calls: self.clone(), lane: lane.clone() }
            }
        }
    }

    /// A turn where nobody else has one.
    pub(super) fn enter_alone(&self, lane: &Lane) -> Option<Slot> {
        let mut doors = self.locked();
        let door = doors.entry(lane.provider.clone()).or_default();
        if door.is_in_use() {
            return None;
        }
        door.taken[place(lane.priority)] += 1;
        Some(Slot { calls: self.clone(), lane: lane.clone() })
    }

    /// How many calls are under way.
    pub(super) fn under_way(&self, provider: &str) -> u16 {
        self.locked().get(provider).map_or(0, |door| door.taken.iter().sum())
    }

    /// Forgets what nobody uses at this moment. Whether there was such a thing, or nothing.
    pub(super) fn forget_idle(&self, provider: &str) -> bool {
        let mut doors = self.locked();
        let idle = !doors.get(provider).is_some_and(Door::is_in_use);
        if idle {
            doors.remove(provider);
        }
        idle
    }

    fn give_back(&self, lane: &Lane) {
        let mut doors = self.locked();
        let Some(door) = doors.get_mut(&lane.provider) else { return };
        let taken = &mut door.taken[place(lane.priority)];
        *taken = taken.saturating_sub(1);
        let mut granted = Vec::new();
        while let Some((priority, waiter)) = door.next() {
            granted.push((Lane::new(lane.provider.clone(), priority), waiter));
        }
        drop(doors);
        for (lane, waiter) in granted {
            // A waiter that was broken off gives it back in its turn.
            drop(waiter.send(Slot { calls: self.clone(), lane }));
        }
    }

    /// A call has ended after `took`.
    pub(super) fn took(&self, provider: &str, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min(600_000_000);
        if let Some(door) = self.locked().get_mut(provider) {
            door.average_us = if door.average_us == 0 { took } else { (door.average_us * 7 + took) / 8 };
        }
    }

    /// How many claims to hold for a provider that takes `concurrency` calls at once: those, and as
    /// many as it will be through with in [`AHEAD`]. What is claimed waits no longer than that, so it
    /// is nearly as free to be cancelled as what is queued.
    pub(super) fn in_hand(&self, provider: &str, concurrency: u16) -> u16 {
        let average = self.locked().get(provider).map_or(0, |door| door.average_us);
        let soon = u64::from(concurrency) * u64::try_from(AHEAD.as_micros()).unwrap_or(0);
        // Nothing is known of a provider that has not answered yet.
        let ahead = soon.checked_div(average).unwrap_or(1);
        let ahead = u16::try_from(ahead).unwrap_or(u16::MAX).clamp(1, MOST_AHEAD);
        concurrency.saturating_add(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(priority: Priority) -> Lane {
        Lane::new("main", priority)
    }

    async fn entered(calls: &Calls, priority: Priority) -> Slot {
        calls.enter(&lane(priority), 4).await
    }

    #[tokio::test]
    async fn turns_are_taken_in_order_and_the_urgent_first() {
        let calls = Calls::default();
        // Of four slots one is kept for the high lane.
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(entered(&calls, Priority::Normal).await);
        }
        let mut first = Box::pin(entered(&calls, Priority::Normal));
        let mut second = Box::pin(entered(&calls, Priority::Normal));
        assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
        let urgent = entered(&calls, Priority::High).await;
        let mut more_urgent = Box::pin(entered(&calls, Priority::High));
        assert!(futures::poll!(&mut more_urgent).is_pending());
        drop(held.pop());
        assert!(futures::poll!(&mut first).is_pending());
        let more_urgent = more_urgent.await;
        drop((urgent, more_urgent));
        let first = first.await;
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn whoever_gives_up_waiting_takes_no_slot_along() {
        let calls = Calls::default();
        let held: Vec<_> = futures::future::join_all((0..3).map(|_| entered(&calls, Priority::Normal))).await;
        let mut gone = Box::pin(entered(&calls, Priority::Normal));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        let mut next = Box::pin(entered(&calls, Priority::Normal));
        assert!(futures::poll!(&mut next).is_pending());
        drop(held);
        next.await;
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(entered(&calls, Priority::Normal).await);
        }
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn as_much_is_claimed_ahead_as_is_called_soon() {
        let calls = Calls::default();
        assert_eq!(calls.in_hand("main", 8), 9);
        for (took, in_hand) in [(200, 264), (500, 168), (20_000, 12), (100_000, 9), (5_000_000, 9)] {
            let calls = Calls::default();
            calls.locked().entry("main".into()).or_default();
            calls.took("main", Duration::from_micros(took));
            assert_eq!(calls.in_hand("main", 8), in_hand, "{took} µs");
        }
    }
}
