use belfry::ports::deliveries::{Owner, Written};
use belfry::ports::search::Query;
use belfry_domain::delivery::StateName;
use belfry_domain::{ChannelKind, NotificationId, State, UnixMs};

use crate::contract::fixture::{
    acme, ask, ended, everything, id_of, intent, intent_of, next, of_recipient, to_recipient, with_template,
};
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    newest_first_page_by_page,
    all_filters_must_hold,
    an_address_finds_each_record_once,
    a_recipient_finds_what_named_them,
    an_address_finds_what_was_accepted_with_it_wherever_it_went,
    states_are_the_notifications_own,
    nobody_finds_anothers,
    a_page_never_exceeds_its_limit_and_paging_ends,
    a_rare_match_is_found_behind_many_others,
    templates_versions_and_moments_are_filters,
    named_ones_are_found_in_their_order,
    a_page_looks_at_a_bounded_number_and_ends_long_before_what_is_asked_for,
);

fn ids(records: &[belfry_domain::notification::Record]) -> Vec<NotificationId> {
    records.iter().map(|record| record.notification.id).collect()
}

/// All pages, each within its limit.
async fn all(h: &Harness, mut query: Query) -> Vec<NotificationId> {
    let mut found = Vec::new();
    for _ in 0..1_000 {
        let page = h.store.search(query.clone()).await.unwrap();
        assert!(page.records.len() <= usize::from(query.limit));
        found.extend(ids(&page.records));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return found,
        }
    }
    panic!("paging does not end");
}

async fn newest_first_page_by_page(h: Harness) {
    let mut keys = Vec::new();
    for n in 0..7 {
        h.create(intent(&h, &format!("k{n}"))).await;
        keys.insert(0, id_of(&format!("k{n}")));
        // Whatever the clock does: newest is what came last.
        h.clock.step(if n % 2 == 0 { 10 } else { -50 });
    }
    let page = h.store.search(Query { limit: 3, ..everything(acme()) }).await.unwrap();
    assert_eq!(ids(&page.records), keys[..3]);
    // What comes in meanwhile shifts nothing.
    h.create(intent(&h, "late")).await;
    let rest = all(&h, Query { limit: 3, after: page.next, ..everything(acme()) }).await;
    assert_eq!(rest, keys[3..]);
}

async fn all_filters_must_hold(h: Harness) {
    let marks =
        [("a", "crm-1", "launch", "receipt"), ("b", "crm-1", "other", "receipt"), ("c", "crm-2", "launch", "digest")];
    for (key, reference, group, class) in marks {
        let mut intent = intent(&h, key);
        intent.notification.reference = Some(reference.into());
        intent.notification.group = Some(group.into());
        intent.notification.class = class.into();
        h.create(intent).await;
    }
    h.create(intent(&h, "d")).await;
    let [a, b, c, d] = ["a", "b", "c", "d"].map(id_of);
    let query = || everything(acme());
    let reference = Some("crm-1".to_owned());
    let group = Some("launch".to_owned());
    assert_eq!(all(&h, Query { reference: reference.clone(), ..query() }).await, [b, a]);
    assert_eq!(all(&h, Query { group: group.clone(), ..query() }).await, [c, a]);
    assert_eq!(all(&h, Query { reference, group: group.clone(), ..query() }).await, [a]);
    assert_eq!(all(&h, Query { class: Some("digest".into()), ..query() }).await, [c]);
    assert_eq!(all(&h, Query { class: Some("receipt".into()), ..query() }).await, [d, b, a]);
    assert_eq!(all(&h, Query { group, class: Some("nothing".into()), ..query() }).await, []);
    assert_eq!(all(&h, Query { channel: Some(ChannelKind::Email), ..query() }).await, [d, c, b, a]);
    assert_eq!(all(&h, Query { channel: Some(ChannelKind::Sms), ..query() }).await, []);
}

async fn an_address_finds_each_record_once(h: Harness) {
    for key in ["a", "b"] {
        let mut intent = intent_of(&h, key, "acme", 3);
        intent.deliveries.iter_mut().for_each(|one| one.address_hash = "ab".repeat(32));
        h.create(intent).await;
    }
    // The same beginning, another address.
    let mut near = intent(&h, "near");
    near.deliveries[0].address_hash = format!("{}{}", "ab".repeat(16), "cd".repeat(16));
    h.create(near).await;
    let query = Query { address_hash: Some("ab".repeat(32)), ..everything(acme()) };
    assert_eq!(all(&h, query.clone()).await, [id_of("b"), id_of("a")]);
    assert_eq!(all(&h, Query { limit: 1, ..query.clone() }).await, [id_of("b"), id_of("a")]);
    let absent = Query { address_hash: Some("absent".into()), ..query };
    assert_eq!(all(&h, absent).await, []);
}

async fn a_recipient_finds_what_named_them(h: Harness) {
    for (n, name) in ["user-42", "user-42", "user-7", "user-42"].into_iter().enumerate() {
        // Several deliveries are one record.
        let mut intent = to_recipient(intent_of(&h, &format!("k{n}"), "acme", 2), name);
        intent.notification.class = if n == 1 { "digest".into() } else { "receipt".into() };
        h.create(intent).await;
        // In between are those that name nobody.
        h.create(intent_of(&h, &format!("other{n}"), "acme", 1)).await;
    }
    let [k0, k1, k2, k3] = ["k0", "k1", "k2", "k3"].map(id_of);
    assert_eq!(all(&h, of_recipient("user-42")).await, [k3, k1, k0]);
    // Found by the same hash, and another one.
    assert_eq!(all(&h, of_recipient("user-7")).await, [k2]);
    assert_eq!(all(&h, of_recipient("user-9")).await, []);
    assert_eq!(all(&h, of_recipient("nobody")).await, []);
    assert_eq!(all(&h, Query { limit: 1, ..of_recipient("user-42") }).await, [k3, k1, k0]);
    assert_eq!(all(&h, Query { class: Some("receipt".into()), ..of_recipient("user-42") }).await, [k3, k0]);
    let address_hash = Some(format!("{:064x}", 2));
    assert_eq!(all(&h, Query { address_hash, ..of_recipient("user-42") }).await, [k3, k1, k0]);
    let page = h.store.search(Query { limit: 2, ..of_recipient("user-42") }).await.unwrap();
    assert_eq!(page.records[0].notification.recipient.as_deref(), Some("user-42"));
    assert_eq!(all(&h, Query { after: page.next, ..of_recipient("user-42") }).await, [k0]);
    let owner = Owner { environment: "test".into(), ..acme() };
    assert_eq!(all(&h, Query { owner, ..of_recipient("user-42") }).await, []);
}

async fn an_address_finds_what_was_accepted_with_it_wherever_it_went(h: Harness) {
    let first = format!("{:064x}", 1);
    h.create(intent(&h, "k")).await;
    let claim = h.claims(ask(1, 1)).await.claims.remove(0);
    let mut moved = next(&claim.delivery, claim.delivery.state);
    moved.first_hash = Some(std::mem::replace(&mut moved.address_hash, "ab".repeat(32)));
    assert_eq!(h.settle(&claim, &moved).await, Written::Done);
    assert_eq!(h.stored(&moved).await, moved);
    let by = |hash: &str| Query { address_hash: Some(hash.into()), ..everything(acme()) };
    assert_eq!(all(&h, by(&first)).await, [id_of("k")]);
    // No index has the later one: what finds it is its first, or the recipient.
    assert_eq!(all(&h, by(&moved.address_hash)).await, []);
}

async fn states_are_the_notifications_own(h: Harness) {
    for key in ["a", "b", "c"] {
        h.create(intent(&h, key)).await;
        h.clock.step(1);
    }
    let claims = h.claims(ask(1, 2)).await.claims;
    let ended = ended(&h, &claims[0].delivery, State::Bounced);
    h.settle(&claims[0], &ended).await;
    // A store of several shards has an order of its own.
    let [bounced, sending] = [0, 1].map(|at: usize| claims[at].notification.id);
    let left = ["a", "b", "c"].map(id_of).into_iter().filter(|id| ![bounced, sending].contains(id));
    for (state, expected) in [
        (StateName::Bounced, vec![bounced]),
        (StateName::Sending, vec![sending]),
        (StateName::Queued, left.collect()),
        (StateName::Parked, vec![]),
    ] {
        assert_eq!(all(&h, Query { state: Some(state), ..everything(acme()) }).await, expected, "{state}");
    }
}

async fn nobody_finds_anothers(h: Harness) {
    let mut intent = intent(&h, "k");
    intent.notification.reference = Some("crm".into());
    h.create(intent).await;
    for (tenant, environment) in [("acme", "test"), ("other", "live")] {
        let owner = Owner { tenant: tenant.into(), environment: environment.into() };
        let address_hash = Some(format!("{:064x}", 1));
        assert_eq!(all(&h, Query { address_hash, ..everything(owner.clone()) }).await, []);
        assert_eq!(all(&h, Query { reference: Some("crm".into()), ..everything(owner.clone()) }).await, []);
        assert_eq!(all(&h, everything(owner)).await, []);
    }
}

async fn a_page_never_exceeds_its_limit_and_paging_ends(h: Harness) {
    let batch: Vec<_> = (0..120).map(|n| intent(&h, &format!("k{n}"))).collect();
    h.store.accept(batch).await.unwrap();
    for limit in [1, 40, 60, 100] {
        let found = all(&h, Query { limit, ..everything(acme()) }).await;
        assert_eq!(found.len(), 120);
        assert_eq!((found[0], found[119]), (id_of("k119"), id_of("k0")));
    }
    // Exactly full, and nothing after it.
    let page = h.store.search(Query { limit: 100, after: Some(0), ..everything(acme()) }).await.unwrap();
    assert_eq!((page.records.len(), page.next), (0, None));
}

async fn a_rare_match_is_found_behind_many_others(h: Harness) {
    let mut rare = intent(&h, "rare");
    rare.notification.class = "rare".into();
    h.create(rare).await;
    let batch: Vec<_> = (0..2_500).map(|n| intent(&h, &format!("k{n}"))).collect();
    for part in batch.chunks(128) {
        h.store.accept(part.to_vec()).await.unwrap();
    }
    assert_eq!(all(&h, Query { class: Some("rare".into()), ..everything(acme()) }).await, [id_of("rare")]);
}

async fn templates_versions_and_moments_are_filters(h: Harness) {
    let start = h.now();
    for (key, version) in [("a", Some("v1")), ("b", None), ("c", Some("v2")), ("d", Some("v2"))] {
        let intent = intent(&h, key);
        let mut intent = version.map_or(intent.clone(), |version| with_template(intent, version));
        if key == "d" {
            intent.notification.template.as_mut().unwrap().name = "other".into();
        }
        h.create(intent).await;
        h.clock.step(10);
    }
    let [a, b, c, d] = ["a", "b", "c", "d"].map(id_of);
    let query = || everything(acme());
    let hello = || Query { template: Some("hello".into()), ..query() };
    assert_eq!(all(&h, hello()).await, [c, a]);
    assert_eq!(all(&h, Query { limit: 1, ..hello() }).await, [c, a]);
    assert_eq!(all(&h, Query { template: Some("none".into()), ..query() }).await, []);
    let second = || Query { template_version: Some("v2".into()), ..query() };
    assert_eq!(all(&h, second()).await, [d, c]);
    assert_eq!(all(&h, Query { template: Some("hello".into()), ..second() }).await, [c]);
    let at = |ms: i64| Some(UnixMs(start.0 + ms));
    for (from, until, expected) in [
        (at(10), None, vec![d, c, b]),
        (at(11), None, vec![d, c]),
        (None, at(10), vec![a]),
        (None, at(11), vec![b, a]),
        (at(10), at(30), vec![c, b]),
        (at(31), None, vec![]),
    ] {
        let query = Query { accepted_from: from, accepted_until: until, ..query() };
        assert_eq!(all(&h, query).await, expected, "{from:?} {until:?}");
    }
}

async fn named_ones_are_found_in_their_order(h: Harness) {
    for n in 0..40 {
        let mut intent = intent(&h, &format!("k{n}"));
        intent.notification.class = if n % 2 == 0 { "receipt".into() } else { "digest".into() };
        h.create(intent).await;
    }
    h.create(intent_of(&h, "k1", "other", 1)).await;
    let foreign = NotificationId::http("other", "live", "keys", "k1");
    let [one, two, three, absent] = ["k3", "k17", "k2", "absent"].map(id_of);
    let query = || Query { ids: Some(vec![one, absent, foreign, two, three]), ..everything(acme()) };
    assert_eq!(all(&h, query()).await, [one, two, three]);
    // A page looks at no more of them than its limit, found or not.
    let first = h.store.search(Query { limit: 3, ..query() }).await.unwrap();
    assert_eq!((ids(&first.records), first.next), (vec![one], Some(3)));
    for limit in [1, 2, 4, 5] {
        assert_eq!(all(&h, Query { limit, ..query() }).await, [one, two, three], "{limit}");
    }
    assert_eq!(all(&h, Query { class: Some("receipt".into()), ..query() }).await, [three]);
    let beyond = h.store.search(Query { after: Some(u64::MAX), ..query() }).await.unwrap();
    assert_eq!((beyond.records.len(), beyond.next), (0, None));
    assert_eq!(all(&h, Query { ids: Some(Vec::new()), ..query() }).await, []);
    // Many, over all shards.
    let named: Vec<_> = (0..40).rev().map(|n| id_of(&format!("k{n}"))).collect();
    assert_eq!(all(&h, Query { ids: Some(named.clone()), ..everything(acme()) }).await, named);
}

async fn a_page_looks_at_a_bounded_number_and_ends_long_before_what_is_asked_for(h: Harness) {
    const DAY_MS: i64 = 86_400_000;
    let start = h.now();
    let mut first = intent(&h, "first");
    first.notification.class = "rare".into();
    h.create(first).await;
    for part in 0..20 {
        let batch = (0..128).map(|n| intent(&h, &format!("k{}", part * 128 + n))).collect();
        h.store.accept(batch).await.unwrap();
    }
    let rare = Query { class: Some("rare".into()), ..everything(acme()) };
    let page = h.store.search(rare.clone()).await.unwrap();
    assert!(page.records.is_empty() && page.next.is_some(), "{:?}", page.next);
    assert_eq!(all(&h, rare).await, [id_of("first")]);
    // Somebody's clock may have been behind; by a day it was not.
    let from = |ms: i64| Query { accepted_from: Some(UnixMs(start.0 + ms)), ..everything(acme()) };
    let near = h.store.search(from(DAY_MS)).await.unwrap();
    assert!(near.records.is_empty() && near.next.is_some(), "{:?}", near.next);
    let far = h.store.search(from(DAY_MS + 1)).await.unwrap();
    assert!(far.records.is_empty() && far.next.is_none(), "{:?}", far.next);
    assert_eq!(all(&h, from(DAY_MS)).await, []);
    // What is younger is found however much of the old lies behind it.
    h.clock.step(2 * DAY_MS);
    h.create(intent(&h, "young")).await;
    assert_eq!(all(&h, from(2 * DAY_MS)).await, [id_of("young")]);
}
