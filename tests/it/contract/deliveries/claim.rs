use std::collections::BTreeMap;

use belfry::ports::deliveries::{Claim, ClaimAsk, MOST_ITEMS, Settle, Written};
use belfry_domain::delivery::StateName;
use belfry_domain::{Delivery, Lane, Priority, State, UnixMs};

use crate::contract::fixture::{LEASE_MS, ask, due_in, ended, in_lane, intent, intent_of, main_lane, queued};
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    what_is_due_becomes_sending_under_a_fence,
    nothing_is_claimed_before_it_is_due,
    the_next_due_time_is_of_the_asked_lanes,
    what_is_claimed_is_nobody_elses,
    no_lane_gives_more_than_was_asked,
    all_lanes_of_a_provider_share_the_largest_of_their_maxima,
    a_call_is_bounded,
    the_same_nonce_again_gets_what_still_holds,
    the_same_nonce_of_another_worker_is_another_claim,
    fences_grow_over_ten_thousand_claims_under_a_frozen_clock,
    case_106_of_fifty_workers_one_gets_it_and_a_finished_intent_nobody,
    what_must_run_alone_is_left_out_and_claimed_one_by_one,
    purged_content_is_none,
);

async fn what_is_due_becomes_sending_under_a_fence(h: Harness) {
    let intent = intent(&h, "k");
    h.create(intent.clone()).await;
    let claim = h.claim(7).await;
    let expected = Delivery { state: State::Sending { fence: 1 }, rev: 1, ..intent.deliveries[0].clone() };
    assert_eq!(claim.delivery, expected);
    assert_eq!((claim.token.fence, claim.token.nonce), (1, 7));
    assert_eq!(claim.notification, intent.notification);
    assert_eq!(claim.inputs, Some(intent.inputs));
    assert_eq!(claim.newest_version, None);
    let record = h.record("k").await.unwrap();
    assert_eq!((record.state(), &record.deliveries), (StateName::Sending, &vec![expected]));
    let held = h.store.held(10).await.unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].token, held[0].worker.as_str()), (claim.token, "w1"));
    assert_eq!(held[0].lease_until, UnixMs(START.0 + LEASE_MS));
}

async fn nothing_is_claimed_before_it_is_due(h: Harness) {
    h.create(due_in(intent(&h, "k"), 3 * LEASE_MS)).await;
    for step in [0, 3 * LEASE_MS - 1] {
        h.clock.step(step);
        let claims = h.claims(ask(1, 10)).await;
        assert!(claims.claims.is_empty());
        assert_eq!(claims.next_due, Some(UnixMs(START.0 + 3 * LEASE_MS)));
    }
    h.clock.step(1);
    assert_eq!(h.claim(2).await.delivery.rev, 1);
    // Case 70: a clock that steps back makes nothing early and loses nothing.
    h.clock.step(-3 * LEASE_MS);
    h.create(due_in(intent(&h, "l"), 10)).await;
    assert!(h.claims(ask(3, 10)).await.claims.is_empty());
    h.clock.step(10);
    assert_eq!(h.claims(ask(4, 10)).await.claims.len(), 1);
}

async fn the_next_due_time_is_of_the_asked_lanes(h: Harness) {
    let other = Lane::new("other", Priority::High);
    assert_eq!(h.claims(ask(1, 10)).await.next_due, None);
    h.create(in_lane(due_in(intent(&h, "soon"), 10), &other)).await;
    h.create(due_in(intent(&h, "later"), 500)).await;
    h.create(due_in(intent(&h, "latest"), 900)).await;
    assert_eq!(h.claims(ask(2, 10)).await.next_due, Some(UnixMs(START.0 + 500)));
    let both = ClaimAsk { lanes: vec![(main_lane(), 1), (other, 1)], ..ask(3, 1) };
    assert_eq!(h.claims(both.clone()).await.next_due, Some(UnixMs(START.0 + 10)));
    h.clock.step(500);
    // What is left in the main lane is not due yet.
    let claims = h.claims(ClaimAsk { nonce: 4, ..both }).await;
    assert_eq!((claims.claims.len(), claims.next_due), (2, Some(UnixMs(START.0 + 900))));
    // What is left is due: there is nothing to wait for.
    h.create(intent(&h, "now")).await;
    h.create(intent(&h, "now too")).await;
    let claims = h.claims(ask(5, 1)).await;
    assert_eq!((claims.claims.len(), claims.next_due), (1, None));
}

async fn what_is_claimed_is_nobody_elses(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 3)).await;
    assert_eq!(h.claims(ask(1, 2)).await.claims.len(), 2);
    assert_eq!(h.claims(ask(2, 2)).await.claims.len(), 1);
    assert!(h.claims(ask(3, 2)).await.claims.is_empty());
    // Not even when its lease has run out: only the sweeper ends a claim.
    h.clock.step(10 * LEASE_MS);
    assert!(h.claims(ask(4, 2)).await.claims.is_empty());
}

async fn no_lane_gives_more_than_was_asked(h: Harness) {
    let lanes: Vec<Lane> = ["a", "b", "c"].map(|name| Lane::new(name, Priority::Normal)).into();
    for lane in &lanes {
        h.create(in_lane(intent_of(&h, &lane.provider, "acme", 5), lane)).await;
    }
    let unknown = Lane::new("nobody", Priority::Low);
    let lanes = vec![(lanes[0].clone(), 2), (lanes[1].clone(), 0), (unknown, 9), (lanes[2].clone(), 9)];
    let claims = h.claims(ClaimAsk { lanes, ..ask(1, 0) }).await.claims;
    let mut counts = BTreeMap::new();
    claims.iter().for_each(|claim| *counts.entry(claim.delivery.lane.provider.clone()).or_insert(0) += 1);
    assert_eq!(counts, BTreeMap::from([("a".into(), 2), ("c".into(), 5)]));
}

async fn all_lanes_of_a_provider_share_the_largest_of_their_maxima(h: Harness) {
    let lanes: Vec<Lane> = Priority::ALL.iter().map(|priority| Lane::new("a", *priority)).collect();
    for (n, lane) in lanes.iter().enumerate() {
        h.create(in_lane(intent_of(&h, &format!("k{n}"), "acme", 5), lane)).await;
    }
    let lanes: Vec<_> = lanes.into_iter().zip([3, 7, 2]).collect();
    let claims = h.claims(ClaimAsk { lanes, ..ask(1, 0) }).await.claims;
    let priorities: Vec<_> = claims.iter().map(|claim| claim.delivery.lane.priority).collect();
    assert_eq!(priorities, [&[Priority::High; 3][..], &[Priority::Normal; 4][..]].concat());
}

async fn a_call_is_bounded(h: Harness) {
    for n in 0..3 {
        h.create(intent_of(&h, &format!("k{n}"), "acme", 50)).await;
    }
    assert_eq!(h.claims(ask(1, u16::MAX)).await.claims.len(), MOST_ITEMS);
    assert_eq!(h.claims(ask(2, u16::MAX)).await.claims.len(), 150 - MOST_ITEMS);
}

async fn the_same_nonce_again_gets_what_still_holds(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 4)).await;
    let first = h.claims(ask(1, 3)).await.claims;
    let again = h.claims(ask(1, 3)).await.claims;
    let deliveries = |claims: &[Claim]| -> Vec<_> {
        let mut all: Vec<_> = claims.iter().map(|one| (one.delivery.clone(), one.token, one.inputs.clone())).collect();
        all.sort_by_key(|(delivery, ..)| delivery.id);
        all
    };
    assert_eq!(deliveries(&first), deliveries(&again));
    // The worker counts from before it asked again, so the lease does too.
    h.clock.step(10_000);
    h.claims(ask(1, 3)).await;
    let until: Vec<_> = h.store.held(10).await.unwrap().iter().map(|held| held.lease_until).collect();
    assert_eq!(until, [UnixMs(START.0 + 10_000 + LEASE_MS); 3]);
    assert_eq!(h.settle(&first[0], &ended(&h, &first[0].delivery, State::Accepted)).await, Written::Done);
    assert_eq!(deliveries(&h.claims(ask(1, 3)).await.claims).len(), 2);
    // Another nonce gets what was left.
    assert_eq!(h.claims(ask(2, 3)).await.claims.len(), 1);
}

async fn the_same_nonce_of_another_worker_is_another_claim(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 2)).await;
    let ours = h.claims(ask(1, 1)).await.claims.remove(0);
    let theirs = h.claims(ClaimAsk { worker: "w2".into(), ..ask(1, 1) }).await.claims.remove(0);
    assert_ne!(ours.delivery.id, theirs.delivery.id);
}

async fn fences_grow_over_ten_thousand_claims_under_a_frozen_clock(h: Harness) {
    for n in 0..2 {
        h.create(intent_of(&h, &format!("k{n}"), "acme", 50)).await;
    }
    let mut fences = BTreeMap::new();
    for round in 0..100 {
        let claims = h.claims(ask(round, 100)).await.claims;
        assert_eq!(claims.len(), 100);
        for claim in &claims {
            let before = fences.insert(claim.delivery.id, claim.token.fence);
            assert!(before.is_none_or(|before| before < claim.token.fence), "{before:?} {claim:?}");
            assert_eq!(claim.delivery.state, State::Sending { fence: claim.token.fence });
        }
        let back = claims.iter().map(|claim| Settle { next: queued(&h, &claim.delivery), token: claim.token });
        let written = h.store.settle(back.collect()).await.unwrap();
        assert!(written.iter().all(|one| *one == Written::Done));
    }
}

async fn case_106_of_fifty_workers_one_gets_it_and_a_finished_intent_nobody(h: Harness) {
    for round in 0..20_u64 {
        h.create(intent(&h, &format!("k{round}"))).await;
        let asks = (0..50).map(|worker| {
            let ask = ClaimAsk { worker: format!("w{worker}"), ..ask(round * 100 + worker, 1) };
            let store = h.store.clone();
            async move { store.claim(ask).await.unwrap().claims }
        });
        let won: Vec<_> = futures::future::join_all(asks).await.into_iter().flatten().collect();
        assert_eq!(won.len(), 1, "round {round}");
        let next = ended(&h, &won[0].delivery, State::Accepted);
        assert_eq!(h.settle(&won[0], &next).await, Written::Done);
        assert!(h.claims(ask(round * 100 + 99, 1)).await.claims.is_empty());
        assert_eq!(h.stored(&next).await, next);
    }
}

async fn what_must_run_alone_is_left_out_and_claimed_one_by_one(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 3)).await;
    let claims = h.claims(ask(1, 3)).await.claims;
    for claim in &claims[..2] {
        let poisoned = Delivery { lapses: 2, ..queued(&h, &claim.delivery) };
        assert!(poisoned.claim_alone());
        assert_eq!(h.settle(claim, &poisoned).await, Written::Done);
    }
    assert_eq!(h.settle(&claims[2], &queued(&h, &claims[2].delivery)).await, Written::Done);
    let together = h.claims(ask(2, 10)).await.claims;
    assert_eq!(together.len(), 1);
    assert_eq!(together[0].delivery.id, claims[2].delivery.id);
    let alone = |nonce| ClaimAsk { alone: true, ..ask(nonce, 10) };
    let first = h.claims(alone(3)).await.claims;
    let second = h.claims(alone(4)).await.claims;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert!(h.claims(alone(5)).await.claims.is_empty());
    let held = h.store.held(10).await.unwrap();
    for held in held {
        assert_eq!(held.alone, held.id != claims[2].delivery.id);
    }
    // Back to the others once it is no longer suspected.
    let cleared = Delivery { lapses: 0, ..queued(&h, &first[0].delivery) };
    assert_eq!(h.settle(&first[0], &cleared).await, Written::Done);
    assert_eq!(h.claims(ask(6, 10)).await.claims.len(), 1);
}

async fn purged_content_is_none(h: Harness) {
    h.create(intent(&h, "k")).await;
    let done = h.finish(1, State::Accepted).await;
    h.clock.step(super::purge::AFTER_CONTENT);
    assert_eq!(super::purge::purge(&h).await.contents, 1);
    let again = Delivery { send: 2, ..queued(&h, &done) };
    assert_eq!(h.apply(&again).await, Written::Done);
    let claim = h.claim(2).await;
    assert_eq!((claim.inputs, claim.delivery.send), (None, 2));
}
