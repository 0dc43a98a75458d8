//! What is held since the store was restored from a backup.

use std::time::Duration;

use belfry_domain::delivery::{DeferWhy, State};
use belfry_domain::{Asked, Event, Order, UnixMs, step};

use super::fixtures::{ACCEPTED_AT, NOW, action, class, env, fresh, mark};

#[test]
fn what_waits_and_was_due_by_then_is_held_and_says_so() {
    let class = class(Order::SendThenRecord);
    let mut delivery = fresh(&class);
    delivery.due_at = ACCEPTED_AT;
    let before = UnixMs(ACCEPTED_AT.0 - 1);
    for (state, waits) in [
        (State::Queued, true),
        (State::Scheduled { until: ACCEPTED_AT }, true),
        (State::Deferred { until: ACCEPTED_AT, why: DeferWhy::Retry }, true),
        (State::Sending { fence: 1 }, false),
        (State::Accepted, false),
        (State::Cancelled, false),
    ] {
        delivery.state = state;
        assert_eq!(delivery.held_back(Some(ACCEPTED_AT)), waits, "{state:?}");
        assert!(!delivery.held_back(Some(before)) && !delivery.held_back(None), "{state:?}");
    }
    delivery.state = State::Queued;
    delivery.maybe_sent = true;
    let said = delivery.reason_held_back("2026-11-30T08:00:00Z");
    assert!(said.contains("restored from a backup at 2026-11-30T08:00:00Z") && said.contains("belfry restored"));
    assert!(said.ends_with("It may have arrived already."), "{said}");
}

#[test]
fn a_claim_that_ends_without_a_call_leaves_it_as_due_as_before_and_a_person_makes_it_due_now() {
    for order in [Order::SendThenRecord, Order::RecordThenSend] {
        let class = class(order);
        let mut delivery = fresh(&class);
        delivery.due_at = ACCEPTED_AT;
        delivery.state = State::Sending { fence: 1 };
        for event in [Event::Released, Event::Lapsed { claim: mark(1), alone: false }] {
            let next = step(&delivery, &class, event, env(false)).unwrap().next;
            assert_eq!((next.state, next.due_at), (State::Queued, ACCEPTED_AT));
            assert!(next.held_back(Some(NOW)));
        }
        delivery.state = State::Failed;
        delivery.ended_at = Some(ACCEPTED_AT);
        let asked = Asked::Redrive { after_send: delivery.send };
        let event = Event::Act { by: "key_1".into(), action: action(1, asked) };
        let next = step(&delivery, &class, event, env(false)).unwrap().next;
        assert_eq!((next.state, next.due_at), (State::Queued, NOW));
        assert!(!next.held_back(Some(UnixMs(NOW.0 - Duration::from_secs(1).as_millis() as i64))));
    }
}
