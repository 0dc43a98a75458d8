//! Every verb called twice, as after a reply that never came.

use belfry::ports::deliveries::{Accepted, Reclaim, Written};
use belfry_domain::State;

use crate::contract::fixture::{LEASE_MS, ask, ended, intent, next, queued};
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    accept_twice,
    claim_twice,
    renew_twice,
    spend_twice,
    settle_twice,
    settle_twice_with_others_in_between,
    a_settle_that_goes_on_twice,
    apply_twice,
    reclaim_twice,
    purge_and_probe_twice,
);

async fn accept_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    assert!(matches!(h.accept(intent(&h, "k")).await, Accepted::Repeat(_)));
    assert_eq!(h.claims(ask(1, 10)).await.claims.len(), 1);
}

async fn claim_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    let (first, again) = (h.claim(1).await, h.claim(1).await);
    assert_eq!((first.delivery, first.token), (again.delivery, again.token));
}

async fn renew_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    assert!(h.renew(&claim).await);
    assert!(h.renew(&claim).await);
}

async fn spend_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    assert_eq!(h.spend(&claim, 1).await, Written::Done);
    assert_eq!(h.spend(&claim, 1).await, Written::Done);
    assert_eq!(h.stored(&claim.delivery).await.rev, 2);
}

async fn settle_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let next = ended(&h, &claim.delivery, State::Accepted);
    assert_eq!(h.settle(&claim, &next).await, Written::Done);
    assert_eq!(h.settle(&claim, &next).await, Written::Done);
    assert_eq!(h.stored(&next).await, next);
    // Another write of the same worker is none of it.
    assert_eq!(h.settle(&claim, &queued(&h, &next)).await, Written::Stale);
}

async fn settle_twice_with_others_in_between(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let back = queued(&h, &claim.delivery);
    assert_eq!(h.settle(&claim, &back).await, Written::Done);
    // Somebody writes, somebody claims: the first write is done all the same, and stays so once.
    assert_eq!(h.apply(&next(&back, State::Queued)).await, Written::Done);
    assert_eq!(h.settle(&claim, &back).await, Written::Done);
    let second = h.claim(2).await;
    assert_eq!(h.settle(&claim, &back).await, Written::Done);
    assert_eq!(h.stored(&back).await, second.delivery);
    assert!(h.renew(&second).await);
}

async fn a_settle_that_goes_on_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let looked = next(&claim.delivery, claim.delivery.state);
    assert_eq!(h.settle(&claim, &looked).await, Written::Done);
    assert_eq!(h.settle(&claim, &looked).await, Written::Done);
    assert_eq!(h.settle(&claim, &ended(&h, &looked, State::Accepted)).await, Written::Done);
}

async fn apply_twice(h: Harness) {
    let intent = intent(&h, "k");
    let cancelled = ended(&h, &intent.deliveries[0], State::Cancelled);
    h.create(intent).await;
    assert_eq!(h.apply(&cancelled).await, Written::Done);
    assert_eq!(h.apply(&cancelled).await, Written::Done);
    // Another write of that rev is not that write.
    let other = next(&cancelled, State::Superseded);
    let rival = belfry_domain::Delivery { rev: cancelled.rev, ..other };
    assert_eq!(h.apply(&rival).await, Written::Moved(Box::new(cancelled)));
}

async fn reclaim_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    h.clock.step(LEASE_MS);
    let seen = h.store.held(1).await.unwrap().remove(0);
    let reclaim = Reclaim { next: queued(&h, &claim.delivery), seen };
    assert_eq!(h.reclaim(reclaim.clone()).await, Written::Done);
    assert_eq!(h.reclaim(reclaim.clone()).await, Written::Done);
    let second = h.claim(2).await;
    assert_eq!(h.reclaim(reclaim).await, Written::Stale);
    assert!(h.renew(&second).await);
}

async fn purge_and_probe_twice(h: Harness) {
    h.create(intent(&h, "k")).await;
    assert_eq!(super::purge::purge(&h).await, Default::default());
    assert_eq!(super::purge::purge(&h).await, Default::default());
    h.store.probe().await.unwrap();
    h.store.probe().await.unwrap();
}
