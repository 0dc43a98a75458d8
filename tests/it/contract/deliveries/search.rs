use belfry::ports::deliveries::{Owner, Query, Written};
use belfry_domain::delivery::StateName;
use belfry_domain::{ChannelKind, NotificationId, State};

use crate::contract::fixture::{
    acme, ask, ended, everything, id_of, intent, intent_of, next, of_recipient, to_recipient,
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
