//! Waiting for what other processes do: for a condition, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Looks until `found` finds something.
///
/// # Panics
/// After `within`, naming what never happened.
#[track_caller]
pub(crate) fn until<T>(what: &str, within: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + within;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "not within {within:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Lets real time pass where time itself is the condition: a lease of another process.
pub fn pass(span: Duration) {
    let end = Instant::now() + span;
    until("time passes", span * 2, || (Instant::now() >= end).then_some(()));
}
