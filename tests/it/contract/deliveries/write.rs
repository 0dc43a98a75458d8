use belfry::ports::deliveries::{Settle, Spend, Token, Written};
use belfry_domain::delivery::StateName;
use belfry_domain::{Delivery, DeliveryId, Lane, Priority, State};

use crate::contract::fixture::{acme, ask, ended, intent, intent_of, next, queued};
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    spend_records_that_the_call_is_about_to_be_made,
    spend_needs_the_claim_and_the_rev,
    settle_ends_the_claim_with_the_state,
    settle_may_go_on_under_the_claim,
    settle_of_another_token_is_stale,
    settle_on_an_older_rev_is_told_the_newer_record,
    settle_may_change_the_lane,
    apply_compares_the_rev,
    apply_keeps_a_claim_that_somebody_holds,
    apply_never_ends_or_makes_a_claim,
    what_is_absent_is_gone,
    each_item_of_a_batch_stands_alone,
    a_notification_is_its_least_finished_delivery,
);

async fn spend_records_that_the_call_is_about_to_be_made(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    assert_eq!(h.spend(&claim, 1).await, Written::Done);
    let spent = Delivery { spent: true, rev: 2, ..claim.delivery.clone() };
    assert_eq!(h.stored(&spent).await, spent);
    assert!(h.renew(&claim).await);
    assert_eq!(h.settle(&claim, &ended(&h, &spent, State::Accepted)).await, Written::Done);
}

async fn spend_needs_the_claim_and_the_rev(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let id = claim.delivery.id;
    for token in [Token { fence: 2, ..claim.token }, Token { nonce: 2, ..claim.token }] {
        assert_eq!(h.store.spend(vec![Spend { id, token, rev: 1 }]).await.unwrap(), [Written::Stale]);
    }
    for rev in [0, 2, u64::MAX] {
        assert_eq!(h.spend(&claim, rev).await, Written::Moved(Box::new(claim.delivery.clone())));
    }
    assert_eq!(h.stored(&claim.delivery).await, claim.delivery);
    // Somebody asked for a stop meanwhile: not a repeat of our own spend, though one rev higher.
    let asked = next(&claim.delivery, claim.delivery.state);
    assert_eq!(h.apply(&asked).await, Written::Done);
    assert_eq!(h.spend(&claim, 1).await, Written::Moved(Box::new(asked.clone())));
    assert_eq!(h.settle(&claim, &ended(&h, &asked, State::Cancelled)).await, Written::Done);
    assert_eq!(h.spend(&claim, 3).await, Written::Stale);
}

async fn settle_ends_the_claim_with_the_state(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let next = ended(&h, &claim.delivery, State::Accepted);
    assert_eq!(h.settle(&claim, &next).await, Written::Done);
    assert_eq!(h.stored(&next).await, next);
    assert_eq!(h.store.held(10).await.unwrap(), []);
    assert!(!h.renew(&claim).await);
    assert_eq!(h.record("k").await.unwrap().state(), StateName::Accepted);
}

async fn settle_may_go_on_under_the_claim(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let looked = Delivery { maybe_sent: true, ..next(&claim.delivery, claim.delivery.state) };
    assert_eq!(h.settle(&claim, &looked).await, Written::Done);
    assert_eq!(h.stored(&looked).await, looked);
    assert!(h.renew(&claim).await);
    assert_eq!(h.settle(&claim, &queued(&h, &looked)).await, Written::Done);
    assert!(!h.renew(&claim).await);
    assert_eq!(h.claim(2).await.token.fence, 2);
}

async fn settle_of_another_token_is_stale(h: Harness) {
    h.create(intent(&h, "k")).await;
    let first = h.claim(1).await;
    assert_eq!(h.settle(&first, &queued(&h, &first.delivery)).await, Written::Done);
    let second = h.claim(2).await;
    // Case 4: the first worker wakes up; by its rev its write would even fit.
    assert_eq!(h.settle(&first, &ended(&h, &second.delivery, State::Accepted)).await, Written::Stale);
    let guessed = Token { nonce: first.token.nonce, ..second.token };
    let next = ended(&h, &second.delivery, State::Failed);
    assert_eq!(h.store.settle(vec![Settle { next: next.clone(), token: guessed }]).await.unwrap(), [Written::Stale]);
    assert_eq!(h.stored(&next).await, second.delivery);
    assert_eq!(h.settle(&second, &next).await, Written::Done);
}

async fn settle_on_an_older_rev_is_told_the_newer_record(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let newer = next(&claim.delivery, claim.delivery.state);
    assert_eq!(h.apply(&newer).await, Written::Done);
    let decided = ended(&h, &claim.delivery, State::Accepted);
    assert_eq!(h.settle(&claim, &decided).await, Written::Moved(Box::new(newer.clone())));
    assert!(h.renew(&claim).await);
    assert_eq!(h.settle(&claim, &ended(&h, &newer, State::Accepted)).await, Written::Done);
}

async fn settle_may_change_the_lane(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let backup = Lane::new("backup", Priority::Normal);
    let next = Delivery { lane: backup.clone(), ..queued(&h, &claim.delivery) };
    assert_eq!(h.settle(&claim, &next).await, Written::Done);
    assert!(h.claims(ask(2, 1)).await.claims.is_empty());
    let mut there = ask(3, 1);
    there.lanes = vec![(backup, 1)];
    assert_eq!(h.claims(there).await.claims.len(), 1);
}

async fn apply_compares_the_rev(h: Harness) {
    let intent = intent(&h, "k");
    let first = intent.deliveries[0].clone();
    h.create(intent).await;
    let cancelled = ended(&h, &first, State::Cancelled);
    for rev in [0, 2, u64::MAX] {
        let wrong = Delivery { rev, ..cancelled.clone() };
        assert_eq!(h.apply(&wrong).await, Written::Moved(Box::new(first.clone())));
    }
    assert_eq!(h.apply(&cancelled).await, Written::Done);
    assert_eq!(h.stored(&first).await, cancelled);
    assert!(h.claims(ask(1, 1)).await.claims.is_empty());
}

async fn apply_keeps_a_claim_that_somebody_holds(h: Harness) {
    h.create(intent(&h, "k")).await;
    let claim = h.claim(1).await;
    let before = h.store.held(10).await.unwrap();
    let noted = Delivery { lapses: 1, ..next(&claim.delivery, claim.delivery.state) };
    assert_eq!(h.apply(&noted).await, Written::Done);
    assert_eq!(h.store.held(10).await.unwrap(), before);
    assert!(h.renew(&claim).await);
    assert_eq!(h.settle(&claim, &ended(&h, &noted, State::Accepted)).await, Written::Done);
}

async fn apply_never_ends_or_makes_a_claim(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 2)).await;
    let claim = h.claims(ask(1, 1)).await.claims.remove(0);
    let moved = Written::Moved(Box::new(claim.delivery.clone()));
    for state in [State::Cancelled, State::Queued, State::Sending { fence: 2 }] {
        assert_eq!(h.apply(&next(&claim.delivery, state)).await, moved);
    }
    assert!(h.renew(&claim).await);
    let record = h.record("k").await.unwrap();
    let waiting = record.deliveries.iter().find(|one| one.state.waiting()).unwrap();
    let made_up = next(waiting, State::Sending { fence: 0 });
    assert_eq!(h.apply(&made_up).await, Written::Moved(Box::new(waiting.clone())));
    assert_eq!(h.claims(ask(2, 1)).await.claims.len(), 1);
}

async fn what_is_absent_is_gone(h: Harness) {
    h.create(intent(&h, "k")).await;
    let mut claim = h.claim(1).await;
    claim.delivery.id = DeliveryId::of(claim.notification.id, "email", "nobody");
    let next = ended(&h, &claim.delivery, State::Accepted);
    assert_eq!(h.settle(&claim, &next).await, Written::Gone);
    assert_eq!(h.spend(&claim, 1).await, Written::Gone);
    assert_eq!(h.apply(&next).await, Written::Gone);
    assert!(!h.renew(&claim).await);
    assert_eq!(h.store.load(vec![next.id]).await.unwrap(), []);
    assert_eq!(h.store.read_by_delivery(&acme(), next.id).await.unwrap(), None);
}

async fn each_item_of_a_batch_stands_alone(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 4)).await;
    let claims = h.claims(ask(1, 4)).await.claims;
    let mut batch: Vec<Settle> = claims
        .iter()
        .map(|claim| Settle { next: ended(&h, &claim.delivery, State::Accepted), token: claim.token })
        .collect();
    batch[1].token.nonce += 1;
    batch[2].next.rev += 1;
    let written = h.store.settle(batch).await.unwrap();
    let moved = Written::Moved(Box::new(claims[2].delivery.clone()));
    assert_eq!(written, [Written::Done, Written::Stale, moved, Written::Done]);
    assert_eq!(h.store.held(10).await.unwrap().len(), 2);
}

async fn a_notification_is_its_least_finished_delivery(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 2)).await;
    let claims = h.claims(ask(1, 2)).await.claims;
    let search = |state| {
        let query = belfry::ports::search::Query { state: Some(state), ..crate::contract::fixture::everything(acme()) };
        let store = h.store.clone();
        async move { store.search(query).await.unwrap().records.len() }
    };
    for (claim, state, expected) in
        [(&claims[0], State::Delivered, StateName::Sending), (&claims[1], State::Failed, StateName::Failed)]
    {
        assert_eq!(h.settle(claim, &ended(&h, &claim.delivery, state)).await, Written::Done);
        assert_eq!(h.record("k").await.unwrap().state(), expected);
        assert_eq!(search(expected).await, 1);
        assert_eq!(search(StateName::Delivered).await, 0);
    }
}
