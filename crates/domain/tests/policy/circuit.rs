//! What is said of what waits behind an open circuit, and for its turn at a provider that has a pace.

use belfry_domain::breaker::OpenWhy;
use belfry_domain::delivery::{DeferWhy, State};
use belfry_domain::warm_up::WarmDay;
use belfry_domain::{Order, UnixMs};

use super::fixtures::{ACCEPTED_AT, NOW, class, fresh};

#[test]
fn what_would_go_out_but_for_the_circuit_says_so() {
    let class = class(Order::SendThenRecord);
    let later = UnixMs(NOW.0 + 1);
    let mut delivery = fresh(&class);
    for (state, due_at, waits) in [
        (State::Queued, ACCEPTED_AT, true),
        (State::Deferred { until: later, why: DeferWhy::Breaker }, later, true),
        (State::Deferred { until: NOW, why: DeferWhy::Retry }, NOW, true),
        (State::Scheduled { until: NOW }, NOW, true),
        // It would not go out yet.
        (State::Deferred { until: later, why: DeferWhy::Retry }, later, false),
        (State::Scheduled { until: later }, later, false),
        (State::Sending { fence: 1 }, ACCEPTED_AT, false),
        (State::Accepted, ACCEPTED_AT, false),
    ] {
        (delivery.state, delivery.due_at) = (state, due_at);
        let said = delivery.reason_behind_circuit(OpenWhy::Silent, "08:00", NOW);
        let expected = "Waiting: nothing goes through its provider since 08:00: calls are taken and never answered.";
        assert_eq!(said.as_deref(), waits.then_some(expected), "{state:?}");
    }
    (delivery.state, delivery.maybe_sent) = (State::Queued, true);
    let said = delivery.reason_behind_circuit(OpenWhy::Silent, "08:00", NOW).unwrap();
    assert!(said.ends_with("never answered. It may have arrived already."), "{said}");
}

#[test]
fn what_is_due_says_how_often_its_provider_is_called() {
    let class = class(Order::SendThenRecord);
    let mut delivery = fresh(&class);
    delivery.state = State::Queued;
    let said = |delivery: &belfry_domain::Delivery, warming| delivery.reason_paced("50 times in 1d", warming, NOW);
    assert_eq!(
        said(&delivery, None).as_deref(),
        Some("Waiting for a worker. Its provider is called at most 50 times in 1d.")
    );
    assert_eq!(
        said(&delivery, Some(WarmDay { day: 3, of: 14 })).as_deref(),
        Some("Waiting for a worker. Its provider is called at most 50 times in 1d, on day 3 of 14 of its warm-up.")
    );
    for (state, due_at) in [
        (State::Scheduled { until: UnixMs(NOW.0 + 1) }, UnixMs(NOW.0 + 1)),
        (State::Sending { fence: 1 }, ACCEPTED_AT),
        (State::Accepted, ACCEPTED_AT),
    ] {
        (delivery.state, delivery.due_at) = (state, due_at);
        assert_eq!(said(&delivery, None), None, "{state:?}");
    }
}
