//! What waits for a cap or for the end of quiet hours: when it looks again, and what is told of it.

use std::time::Duration;

use belfry_domain::admission::{LONGEST_UNSEEN, LOOK_AGAIN, Verdict, refused};
use belfry_domain::caps::{Cap, Ledger, Per, Then};
use belfry_domain::delivery::DeferWhy;
use belfry_domain::key::KeyKind;
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::timeline::{Happened, Timeline};
use belfry_domain::{Class, Delivery, Event, Key, Order, State, UnixMs, Why, WhyCode, child_key, step};
use proptest::prelude::*;

use super::fixtures::{NOW, class, env, fresh, mark};

fn cap(limit: u32, window: Duration, then: Then) -> Cap {
    let (name, per) = ("x".into(), Per::Scope);
    Cap { name, per, limit, window, then, classes: vec![], channels: vec![], templates: vec![] }
}

fn call(number: u64) -> Key {
    child_key(KeyKind::Take, &[&number.to_be_bytes()])
}

/// Claimed, and told this.
fn told(before: &Delivery, class: &Class, verdict: Verdict) -> Delivery {
    let claimed = Delivery { state: State::Sending { fence: 1 }, ..before.clone() };
    step(&claimed, class, Event::Admitted(verdict), env(false)).unwrap().next
}

fn capped(cap: &str, wait: Duration) -> Verdict {
    Verdict::Capped { until: NOW.plus(wait), cap: cap.into() }
}

fn quiet(wait: Duration) -> Verdict {
    Verdict::Hold { until: NOW.plus(wait), why: DeferWhy::QuietHours }
}

/// A reload may have raised the limit, or taken the quiet hours away.
#[test]
fn whatever_waits_for_what_a_reload_may_change_is_looked_at_again_and_shows_until_when_it_waits() {
    let class = Class { expiry: Duration::from_secs(7_200), ..class(Order::SendThenRecord) };
    let delivery = Delivery { expires_at: NOW.plus(class.expiry), ..fresh(&class) };
    let hour = Duration::from_secs(3_600);
    for (verdict, why) in [(capped("hourly", hour), DeferWhy::Cap), (quiet(hour), DeferWhy::QuietHours)] {
        let next = told(&delivery, &class, verdict);
        assert_eq!(
            (next.state, next.due_at),
            (State::Deferred { until: NOW.plus(hour), why }, NOW.plus(LONGEST_UNSEEN))
        );
    }
    let soon = told(&delivery, &class, quiet(LOOK_AGAIN));
    assert_eq!(soon.due_at, NOW.plus(LOOK_AGAIN));
}

/// It expires first, and nobody is to think that the recipient's morning was then.
#[test]
fn a_timeline_tells_the_end_of_quiet_hours_also_where_it_is_too_late() {
    let class = class(Order::SendThenRecord);
    let delivery = Delivery { expires_at: NOW.plus(LOOK_AGAIN), ..fresh(&class) };
    let next = told(&delivery, &class, quiet(LOOK_AGAIN * 9));
    assert_eq!(next.state, State::Deferred { until: NOW.plus(LOOK_AGAIN), why: DeferWhy::QuietHours });
    let last = &next.timeline.entries.last().unwrap().happened;
    assert!(matches!(last, Happened::Deferred { until, .. } if *until == NOW.plus(LOOK_AGAIN * 9)), "{last:?}");
}

#[test]
fn a_long_wait_is_one_entry_that_names_the_cap_and_pushes_nothing_out() {
    let class = class(Order::SendThenRecord);
    let mut delivery = fresh(&class);
    let before = delivery.timeline.entries.len();
    for _ in 0..100 {
        delivery = told(&delivery, &class, capped("hourly", LOOK_AGAIN));
    }
    delivery = told(&delivery, &class, capped("daily", LOOK_AGAIN));
    delivery = told(&delivery, &class, quiet(LOOK_AGAIN));
    let until = NOW.plus(LOOK_AGAIN);
    let entry = |why, cap: Option<&str>, times| Happened::Deferred { until, why, cap: cap.map(str::to_owned), times };
    let expected = [
        entry(DeferWhy::Cap, Some("hourly"), 100),
        entry(DeferWhy::Cap, Some("daily"), 1),
        entry(DeferWhy::QuietHours, None, 1),
    ];
    let told: Vec<_> = delivery.timeline.entries[before..].iter().map(|entry| entry.happened.clone()).collect();
    assert_eq!((told.as_slice(), delivery.timeline.left_out), (expected.as_slice(), 0));
}

#[test]
fn what_may_have_reached_somebody_never_falls_out_of_a_timeline() {
    let mut timeline = Timeline::default();
    let attempt = |attempt, outcome| Happened::Attempt {
        send: 1,
        attempt,
        claim: mark(1),
        outcome,
        why: Why::new(WhyCode::TryLater),
        took: Duration::ZERO,
    };
    timeline.push(NOW, Happened::Received { via: belfry_domain::timeline::Hop::Http });
    for number in 0..500 {
        // Now and then nobody knows.
        let outcome = if number % 12 == 0 { OutcomeKind::Unknown } else { OutcomeKind::NotAccepted };
        timeline.push(NOW, attempt(number, outcome));
        timeline.put_off(NOW, NOW, DeferWhy::Retry, None);
    }
    assert_eq!((timeline.entries.len(), timeline.unknowns(1)), (Timeline::LIMIT, 42));
    assert_eq!(timeline.left_out, 1 + 2 * 500 - Timeline::LIMIT as u32);
    assert!(matches!(timeline.entries[0].happened, Happened::Received { .. }));
    assert!(matches!(timeline.entries[63].happened, Happened::Deferred { .. }));
}

#[test]
fn what_expires_for_want_of_room_names_the_cap_and_nothing_else_does() {
    let class = class(Order::SendThenRecord);
    let waiting = told(&fresh(&class), &class, capped("hourly", LOOK_AGAIN));
    let named = "as many as the cap \"hourly\" allows";
    assert_eq!(waiting.reason(), format!("Waiting because {named} are counted."));
    let reason = told(&waiting, &class, Verdict::Expire).reason();
    assert_eq!(reason, format!("Expired before there was room for it: {named} were counted."));
    // There was room since, and it waited for something else.
    let waited = told(&waiting, &class, quiet(LOOK_AGAIN));
    assert_eq!(
        told(&waited, &class, Verdict::Expire).reason(),
        "Expired before it could be sent: it waited for the end of the recipient's quiet hours."
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// With limit 2, one accepted and one under way that comes to nothing, nobody waits for the first to leave the
    /// window. `calls`: how many seconds before now each began, whether it has ended, and what it can last.
    #[test]
    fn what_waits_for_room_that_a_call_may_give_back_looks_again_soon(
        calls in prop::collection::vec((0u64..4_000, any::<bool>(), 1u64..1_200), 1..8),
        limit in 1u32..5, window in 1u64..4_000, suppress: bool, maybe_sent: bool,
    ) {
        let now = UnixMs(10_000_000);
        let then = if suppress { Then::Suppress } else { Then::Defer };
        let cap = cap(limit, Duration::from_secs(window), then);
        let mut ledger = Ledger::default();
        let mut calls = calls;
        calls.sort_by(|one, other| other.cmp(one));
        let mut open = Vec::new();
        for (number, (ago, ended, longest)) in calls.into_iter().enumerate() {
            let (began, mine) = (now.minus(Duration::from_secs(ago)), call(number as u64));
            if ledger.take(began, &cap, mine, Duration::from_secs(longest)).is_ok() {
                if ended {
                    ledger.count(began, mine);
                } else if longest > ago {
                    open.push(mine);
                }
            }
        }
        let Err(full) = ledger.clone().take(now, &cap, call(99), Duration::ZERO) else { return Ok(()) };
        let delivery = Delivery { maybe_sent, ..fresh(&class(Order::SendThenRecord)) };
        let verdict = refused(&delivery, &cap, full, now);
        open.iter().for_each(|mine| ledger.give_back(*mine));
        let room = ledger.take(now, &cap, call(99), Duration::ZERO).is_ok();
        match verdict {
            Verdict::Capped { until, .. } if room => prop_assert!(until <= now.plus(LOOK_AGAIN), "{until:?} {full:?}"),
            Verdict::Capped { until, .. } => prop_assert_eq!(until, full.until),
            other => prop_assert!(suppress && !maybe_sent && !room, "{:?}", other),
        }
    }
}
