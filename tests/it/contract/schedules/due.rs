//! What is due, and given to one at a time.

use belfry::ports::schedules::{MOST_DUE, Paused, Schedule, Taken, Wrote};
use belfry_domain::UnixMs;

use super::{of, schedule};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;
use crate::contract::recipients::other;

on_every_store!(
    what_is_due_is_given_out_the_longest_due_first,
    what_was_given_out_is_given_to_others_only_after_a_while,
    what_is_written_is_looked_at_when_it_says,
    what_is_paused_over_or_gone_is_never_due,
    a_look_is_bounded,
);

fn at(ms: i64) -> UnixMs {
    UnixMs(START.0 + ms)
}

/// Names of what is due, and when to look again.
async fn look(h: &Harness, now: i64, again: i64) -> (Vec<String>, Option<i64>) {
    let Taken { due, unreadable, then } = h.store.take_due(at(now), at(again), MOST_DUE).await.unwrap();
    assert_eq!(unreadable, 0);
    (due.into_iter().map(|one| one.schedule.name).collect(), then.map(|then| then.0 - START.0))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn what_is_due_is_given_out_the_longest_due_first(h: Harness) {
    assert_eq!(look(&h, 1_000, 2_000).await, (names(&[]), None));
    for (name, due) in [("late", 10), ("next", 30), ("first", -5_000), ("later", 31)] {
        h.keep(&schedule(name, due)).await;
    }
    h.keep(&of(&other(), "theirs", 20)).await;
    assert_eq!(look(&h, -5_001, 0).await, (names(&[]), Some(-5_000)));
    assert_eq!(look(&h, 30, 5_000).await, (names(&["first", "late", "theirs", "next"]), Some(31)));
    let taken = h.store.take_due(at(31), at(5_000), 9).await.unwrap();
    assert_eq!(taken.due, [h.scheduled(&acme(), "later").await.unwrap()]);
}

async fn what_was_given_out_is_given_to_others_only_after_a_while(h: Harness) {
    h.keep(&schedule("daily", 0)).await;
    assert_eq!(look(&h, 0, 500).await, (names(&["daily"]), Some(500)));
    assert_eq!(look(&h, 499, 999).await, (names(&[]), Some(500)));
    // Whoever had it is gone, and it stands as it stood.
    assert_eq!(look(&h, 500, 1_000).await, (names(&["daily"]), Some(1_000)));
    assert_eq!(h.scheduled(&acme(), "daily").await.unwrap().schedule, schedule("daily", 0));
}

async fn what_is_written_is_looked_at_when_it_says(h: Harness) {
    h.keep(&schedule("daily", 0)).await;
    look(&h, 0, 500).await;
    let before = h.scheduled(&acme(), "daily").await.unwrap().written;
    let moved = schedule("daily", 100);
    assert_eq!(h.store.write_schedule(&acme(), "daily", Some(&before), Some(&moved)).await, Ok(Wrote::Done));
    assert_eq!(look(&h, 99, 500).await, (names(&[]), Some(100)));
    assert_eq!(look(&h, 100, 500).await.0, names(&["daily"]));
}

async fn what_is_paused_over_or_gone_is_never_due(h: Harness) {
    let paused = Schedule { paused: Some(Paused { since: START, by: "key_1".into() }), ..schedule("paused", 0) };
    let over = Schedule { next: None, ..schedule("over", 0) };
    for one in [&paused, &over, &schedule("gone", 0), &schedule("daily", 7)] {
        h.keep(one).await;
    }
    let before = h.scheduled(&acme(), "gone").await.unwrap().written;
    h.store.write_schedule(&acme(), "gone", Some(&before), None).await.unwrap();
    assert_eq!(look(&h, 7, 500).await, (names(&["daily"]), Some(500)));
    let before = h.scheduled(&acme(), "daily").await.unwrap().written;
    let ended = Schedule { next: None, ..schedule("daily", 7) };
    h.store.write_schedule(&acme(), "daily", Some(&before), Some(&ended)).await.unwrap();
    assert_eq!(look(&h, 1_000_000, 2_000_000).await, (names(&[]), None));
}

async fn a_look_is_bounded(h: Harness) {
    for number in 0..MOST_DUE + 8 {
        h.keep(&schedule(&format!("s{number}"), 0)).await;
    }
    let take = async |limit| h.store.take_due(at(0), at(9), limit).await.unwrap().due.len();
    assert_eq!(take(0).await, 1);
    assert_eq!(take(3).await, 3);
    assert_eq!(take(u16::MAX).await, usize::from(MOST_DUE));
    assert_eq!(take(MOST_DUE).await, 4);
    assert_eq!(take(MOST_DUE).await, 0);
}
