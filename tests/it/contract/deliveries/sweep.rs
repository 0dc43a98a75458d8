use belfry::ports::deliveries::{Held, Reclaim, Token, Written};
use belfry_domain::{State, UnixMs};

use crate::contract::fixture::{LEASE, LEASE_MS, ask, ended, intent, intent_of, next, queued};
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    held_claims_come_in_the_order_of_their_lapse,
    a_lapsed_claim_may_be_renewed,
    reclaim_ends_a_lapsed_claim_and_the_next_fence_is_higher,
    reclaim_spares_a_claim_that_has_not_lapsed,
    reclaim_spares_a_claim_that_was_renewed_or_settled_since,
    reclaim_on_an_older_rev_is_told_the_newer_record,
    case_4_after_a_reclaim_the_old_worker_is_stale,
    a_clock_that_steps_back_ends_no_claim_early,
);

async fn held(h: &Harness) -> Vec<Held> {
    h.store.held(100).await.unwrap()
}

async fn held_claims_come_in_the_order_of_their_lapse(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 3)).await;
    let first = h.claims(ask(1, 1)).await.claims.remove(0);
    h.clock.step(1_000);
    h.claims(ask(2, 1)).await;
    h.clock.step(1_000);
    h.claims(ask(3, 1)).await;
    let nonces = |held: Vec<Held>| held.iter().map(|one| one.token.nonce).collect::<Vec<_>>();
    assert_eq!(nonces(held(&h).await), [1, 2, 3]);
    assert_eq!(nonces(h.store.held(2).await.unwrap()), [1, 2]);
    assert!(h.renew(&first).await);
    // The last and the renewed one lapse together.
    assert_eq!(nonces(h.store.held(1).await.unwrap()), [2]);
    h.clock.step(LEASE_MS - 1_000);
    let all = held(&h).await;
    assert_eq!(all.iter().map(|one| one.lapsed).collect::<Vec<_>>(), [true, false, false]);
    assert!(all.iter().all(|one| one.lease == LEASE && one.worker == "w1" && !one.alone));
}

async fn a_lapsed_claim_may_be_renewed(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    h.clock.step(LEASE_MS);
    assert!(held(&h).await[0].lapsed);
    assert!(h.renew(&claim).await);
    let after = held(&h).await;
    assert_eq!((after[0].lapsed, after[0].lease_until), (false, UnixMs(START.0 + 2 * LEASE_MS)));
    for token in [Token { fence: 2, ..claim.token }, Token { nonce: 2, ..claim.token }] {
        let renewed = h.store.renew(vec![(claim.delivery.id, token)]).await.unwrap();
        assert!(!renewed[0].held);
    }
    assert_eq!(held(&h).await, after);
    // A renewal is no write of the record.
    assert_eq!(h.stored(&claim.delivery).await, claim.delivery);
}

async fn reclaim_ends_a_lapsed_claim_and_the_next_fence_is_higher(h: Harness) {
    h.create(intent(&h, "k")).await;
    for round in 1..=5 {
        let claim = h.claim(round).await;
        assert_eq!(claim.token.fence, round);
        h.clock.step(LEASE_MS);
        let seen = held(&h).await.remove(0);
        assert_eq!((seen.id, seen.token), (claim.delivery.id, claim.token));
        let next = queued(&h, &claim.delivery);
        assert_eq!(h.reclaim(Reclaim { next: next.clone(), seen }).await, Written::Done);
        assert_eq!(h.stored(&next).await, next);
        assert_eq!(held(&h).await, []);
        assert!(!h.renew(&claim).await);
    }
}

async fn reclaim_spares_a_claim_that_has_not_lapsed(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    h.clock.step(LEASE_MS - 1);
    // Whatever the sweeper believes to have seen: the store's own clock decides.
    let seen = Held { lapsed: true, ..held(&h).await.remove(0) };
    let reclaim = Reclaim { next: queued(&h, &claim.delivery), seen };
    assert_eq!(h.reclaim(reclaim.clone()).await, Written::Stale);
    h.clock.step(1);
    assert_eq!(h.reclaim(reclaim).await, Written::Done);
}

async fn reclaim_spares_a_claim_that_was_renewed_or_settled_since(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    h.clock.step(LEASE_MS);
    let reclaim = Reclaim { next: queued(&h, &claim.delivery), seen: held(&h).await.remove(0) };
    assert!(h.renew(&claim).await);
    assert_eq!(h.reclaim(reclaim.clone()).await, Written::Stale);
    // Not even once the renewed lease has lapsed too: what was seen is not what is there.
    h.clock.step(LEASE_MS);
    assert_eq!(h.reclaim(reclaim.clone()).await, Written::Stale);
    let done = ended(&h, &claim.delivery, State::Accepted);
    assert_eq!(h.settle(&claim, &done).await, Written::Done);
    assert_eq!(h.reclaim(reclaim).await, Written::Stale);
    assert_eq!(h.stored(&done).await, done);
}

async fn reclaim_on_an_older_rev_is_told_the_newer_record(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    h.clock.step(LEASE_MS);
    let seen = held(&h).await.remove(0);
    let newer = next(&claim.delivery, claim.delivery.state);
    assert_eq!(h.apply(&newer).await, Written::Done);
    let on_old = Reclaim { next: queued(&h, &claim.delivery), seen: seen.clone() };
    assert_eq!(h.reclaim(on_old).await, Written::Moved(Box::new(newer.clone())));
    assert_eq!(h.reclaim(Reclaim { next: queued(&h, &newer), seen }).await, Written::Done);
}

async fn case_4_after_a_reclaim_the_old_worker_is_stale(h: Harness) {
    h.create(intent(&h, "k")).await;
    let old = h.claim(1).await;
    h.clock.step(LEASE_MS);
    let reclaim = Reclaim { next: queued(&h, &old.delivery), seen: held(&h).await.remove(0) };
    assert_eq!(h.reclaim(reclaim).await, Written::Done);
    // Its settle has the very rev that the reclaim wrote.
    let late = ended(&h, &old.delivery, State::Accepted);
    assert_eq!(h.settle(&old, &late).await, Written::Stale);
    assert_eq!(h.spend(&old, old.delivery.rev).await, Written::Stale);
    let new = h.claim(2).await;
    assert!(new.token.fence > old.token.fence);
    assert_eq!(h.settle(&old, &late).await, Written::Stale);
    assert_eq!(h.settle(&new, &ended(&h, &new.delivery, State::Accepted)).await, Written::Done);
    assert_eq!(h.settle(&old, &late).await, Written::Stale);
}

async fn a_clock_that_steps_back_ends_no_claim_early(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    h.clock.step(-3_600_000);
    let seen = held(&h).await.remove(0);
    assert!(!seen.lapsed);
    // A renewal counts from the clock as it is, so that a lease never outlasts its worker by an hour.
    assert!(h.renew(&claim).await);
    assert_eq!(held(&h).await[0].lease_until, UnixMs(h.now().0 + LEASE_MS));
    h.clock.step(LEASE_MS);
    let seen = held(&h).await.remove(0);
    assert!(seen.lapsed);
    assert_eq!(h.reclaim(Reclaim { next: queued(&h, &claim.delivery), seen }).await, Written::Done);
    assert_eq!(h.claim(2).await.token.fence, 2);
}
