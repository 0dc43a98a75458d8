use belfry::ports::deliveries::{ClaimAsk, Depths, LaneDepth, Written};
use belfry_domain::{Delivery, Lane, Priority, State, UnixMs};

use crate::contract::fixture::{PARKED, ask, due_in, ended, in_lane, intent, intent_of, main_lane, queued};
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    lanes_are_counted_by_what_waits_and_what_is_sent,
    unknown_and_parked_are_counted,
    another_lane_is_another_count
);

/// Lanes that hold something; a store may list empty ones.
pub async fn depths(h: &Harness) -> Depths {
    let mut depths = h.store.depths().await.unwrap();
    depths.lanes.retain(|lane| lane.waiting + lane.sending > 0);
    depths.lanes.sort_by(|one, other| one.lane.cmp(&other.lane));
    depths
}

fn depth(lane: &Lane, due: u64, waiting: u64, sending: u64) -> LaneDepth {
    let oldest_due = (due > 0).then_some(START);
    LaneDepth { lane: lane.clone(), due, waiting, sending, oldest_due }
}

async fn lanes_are_counted_by_what_waits_and_what_is_sent(h: Harness) {
    let (main, other) = (main_lane(), Lane::new("other", Priority::High));
    assert_eq!(depths(&h).await, Depths::default());
    h.create(intent_of(&h, "a", "acme", 3)).await;
    h.create(due_in(intent_of(&h, "b", "acme", 2), 1_000)).await;
    h.create(in_lane(intent(&h, "c"), &other)).await;
    assert_eq!(depths(&h).await.lanes, [depth(&main, 3, 5, 0), depth(&other, 1, 1, 0)]);
    let claim = h.claims(ask(1, 1)).await.claims.remove(0);
    assert_eq!(depths(&h).await.lanes[0], depth(&main, 2, 4, 1));
    h.clock.step(1_000);
    assert_eq!(depths(&h).await.lanes[0], depth(&main, 4, 4, 1));
    // What must run alone waits like the others.
    let alone = Delivery { lapses: 2, ..queued(&h, &claim.delivery) };
    assert_eq!(h.settle(&claim, &alone).await, Written::Done);
    assert_eq!(depths(&h).await.lanes[0], depth(&main, 5, 5, 0));
    // A repeat counts nothing.
    h.accept(intent_of(&h, "a", "acme", 3)).await;
    assert_eq!(depths(&h).await.lanes[0], depth(&main, 5, 5, 0));
    let claims = h.claims(ask(2, 10)).await.claims;
    for claim in &claims {
        h.settle(claim, &ended(&h, &claim.delivery, State::Accepted)).await;
    }
    let left = LaneDepth { oldest_due: Some(h.now()), ..depth(&main, 1, 1, 0) };
    assert_eq!(depths(&h).await.lanes[0], left);
}

async fn unknown_and_parked_are_counted(h: Harness) {
    for (nonce, state) in [(1, State::Unknown), (2, PARKED), (3, State::Unknown)] {
        h.create(intent(&h, &format!("k{nonce}"))).await;
        h.finish(nonce, state).await;
        h.clock.step(100);
    }
    let now = depths(&h).await;
    assert_eq!((now.unknown, now.oldest_unknown, now.parked), (2, Some(START), 1));
    let first = h.record("k1").await.unwrap().deliveries.remove(0);
    assert_eq!(h.apply(&ended(&h, &first, State::Delivered)).await, Written::Done);
    let parked = h.record("k2").await.unwrap().deliveries.remove(0);
    assert_eq!(h.apply(&queued(&h, &parked)).await, Written::Done);
    let now = depths(&h).await;
    assert_eq!((now.unknown, now.oldest_unknown, now.parked), (1, Some(UnixMs(START.0 + 200)), 0));
    assert_eq!(now.lanes.len(), 1);
}

async fn another_lane_is_another_count(h: Harness) {
    let gone = Lane::new("gone", Priority::Normal);
    h.create(in_lane(intent_of(&h, "k", "acme", 3), &gone)).await;
    let claims = h.claims(ClaimAsk { lanes: vec![(gone.clone(), 2)], ..ask(1, 0) }).await.claims;
    for claim in &claims {
        let rerouted = Delivery { lane: main_lane(), ..queued(&h, &claim.delivery) };
        assert_eq!(h.settle(claim, &rerouted).await, Written::Done);
    }
    assert_eq!(depths(&h).await.lanes, [depth(&gone, 1, 1, 0), depth(&main_lane(), 2, 2, 0)]);
}
