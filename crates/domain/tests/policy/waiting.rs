//! How long what waits for room waits before it looks again.

use std::time::Duration;

use belfry_domain::admission::{LOOK_AGAIN, Verdict, refused};
use belfry_domain::caps::{Cap, Ledger, Per, Then};
use belfry_domain::key::KeyKind;
use belfry_domain::{Delivery, Key, Order, UnixMs, child_key};
use proptest::prelude::*;

use super::fixtures::{class, fresh};

fn cap(limit: u32, window: Duration, then: Then) -> Cap {
    let (name, per) = ("x".into(), Per::Scope);
    Cap { name, per, limit, window, then, classes: vec![], channels: vec![], templates: vec![] }
}

fn call(number: u64) -> Key {
    child_key(KeyKind::Take, &[&number.to_be_bytes()])
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
