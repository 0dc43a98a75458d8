use std::collections::BTreeMap;

use belfry::ports::deliveries::{Claim, Settle};
use belfry_domain::State;

use crate::contract::fixture::{ask, due_in, ended, intent_of};
use crate::contract::harness::Harness;
use crate::contract::on_every_store_of_one_shard;

on_every_store_of_one_shard!(
    tenants_take_turns_within_a_claim,
    tenants_take_turns_from_claim_to_claim,
    within_a_tenant_the_longest_due_goes_first,
    a_tenant_with_nothing_due_costs_nobody_a_turn,
    among_a_thousand_waiting_tenants_the_due_ones_are_found,
);

fn tenants(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.delivery.tenant.as_str()).collect()
}

fn counts(claims: &[Claim]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    tenants(claims).into_iter().for_each(|tenant| *counts.entry(tenant).or_default() += 1);
    counts
}

async fn tenants_take_turns_within_a_claim(h: Harness) {
    // One has a hundred waiting, since before the others.
    for n in 0..2 {
        h.create(intent_of(&h, &format!("k{n}"), "loud", 50)).await;
    }
    h.clock.step(10);
    h.create(intent_of(&h, "k", "quiet", 2)).await;
    h.create(intent_of(&h, "k", "small", 1)).await;
    let claims = h.claims(ask(1, 6)).await.claims;
    assert_eq!(counts(&claims), BTreeMap::from([("loud", 3), ("quiet", 2), ("small", 1)]));
    // The turns come one by one, not tenant by tenant.
    let order = tenants(&claims);
    assert_eq!(order[..3].iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{order:?}");
    // And nobody's share is wasted.
    assert_eq!(h.claims(ask(2, 6)).await.claims.len(), 6);
}

async fn tenants_take_turns_from_claim_to_claim(h: Harness) {
    for tenant in ["a", "b", "c"] {
        h.create(intent_of(&h, "k", tenant, 4)).await;
    }
    let mut seen = Vec::new();
    for nonce in 0..12 {
        let claims = h.claims(ask(nonce, 1)).await.claims;
        seen.extend(tenants(&claims).into_iter().map(str::to_owned));
    }
    for round in seen.chunks(3) {
        let mut round = round.to_vec();
        round.sort();
        assert_eq!(round, ["a", "b", "c"], "{seen:?}");
    }
}

async fn within_a_tenant_the_longest_due_goes_first(h: Harness) {
    let mut expected = Vec::new();
    for (key, ms) in [("c", 300), ("a", 100), ("d", 400), ("b", 200)] {
        let intent = due_in(intent_of(&h, key, "acme", 1), ms);
        expected.push((ms, intent.deliveries[0].id));
        h.create(intent).await;
    }
    expected.sort();
    h.clock.step(1_000);
    let mut got = Vec::new();
    for (nonce, most) in [(1, 1), (2, 3)] {
        got.extend(h.claims(ask(nonce, most)).await.claims.into_iter().map(|claim| claim.delivery.id));
    }
    assert_eq!(got, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
}

async fn a_tenant_with_nothing_due_costs_nobody_a_turn(h: Harness) {
    h.create(due_in(intent_of(&h, "k", "asleep", 5), 1_000)).await;
    h.create(intent_of(&h, "k", "awake", 5)).await;
    assert_eq!(counts(&h.claims(ask(1, 4)).await.claims), BTreeMap::from([("awake", 4)]));
    h.clock.step(1_000);
    assert_eq!(counts(&h.claims(ask(2, 2)).await.claims), BTreeMap::from([("asleep", 1), ("awake", 1)]));
}

async fn among_a_thousand_waiting_tenants_the_due_ones_are_found(h: Harness) {
    let all: Vec<_> = (0..1_000).map(|n| due_in(intent_of(&h, "k", &format!("t{n:04}"), 1), 100_000)).collect();
    for batch in all.chunks(128) {
        h.store.accept(batch.to_vec()).await.unwrap();
    }
    for tenant in ["t0700x", "t0900x"] {
        h.create(intent_of(&h, "k", tenant, 2)).await;
    }
    let mut found = Vec::new();
    for nonce in 0..4 {
        let claims = h.claims(ask(nonce, 1)).await.claims;
        assert_eq!(claims.len(), 1, "round {nonce}");
        let next = ended(&h, &claims[0].delivery, State::Accepted);
        h.store.settle(vec![Settle { next, token: claims[0].token }]).await.unwrap();
        found.extend(tenants(&claims).into_iter().map(str::to_owned));
    }
    found.sort();
    assert_eq!(found, ["t0700x", "t0700x", "t0900x", "t0900x"]);
}
