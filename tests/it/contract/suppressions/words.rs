//! What is said of an address, and whom it is about.

use belfry::ports::deliveries::Owner;
use belfry::ports::suppressions::{Addressee, MOST_OF_ONE, Put, RESERVED, Suppressed};
use belfry_domain::ChannelKind;
use belfry_domain::UnixMs;
use belfry_domain::suppression::SuppressionKind;

use super::{all_listed, email, suppressed};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;
use crate::contract::recipients::other;

on_every_store!(
    an_entry_is_kept_whole_and_found_by_its_address_alone,
    the_same_again_changes_nothing,
    a_later_word_takes_the_place_of_an_earlier_and_keeps_its_since_while_that_holds,
    words_of_other_kinds_categories_and_senders_stand_beside_each_other,
    one_look_is_for_many_addresses_of_many_owners,
    an_owner_lifts_what_is_his_and_nothing_else,
    what_is_said_of_one_address_is_bounded,
    what_is_over_makes_room,
    whatever_is_said_of_categories_a_bounce_has_room,
);

fn at(ms: i64) -> UnixMs {
    UnixMs(START.0 + ms)
}

async fn an_entry_is_kept_whole_and_found_by_its_address_alone(h: Harness) {
    let full = Suppressed {
        kind: SuppressionKind::Unsubscribe,
        category: Some("marketing".into()),
        sender: Some("+46701234567".into()),
        until: Some(at(100)),
        note: Some("\"ä\" \u{1f514}\0".into()),
        ..suppressed("ann", START)
    };
    assert_eq!(h.about(&email("ann")).await, []);
    assert_eq!(h.suppress(&acme(), &full).await, full);
    assert_eq!(h.about(&email("ann")).await, std::slice::from_ref(&full));
    let sms = Addressee { channel: ChannelKind::Sms, ..email("ann") };
    let foreign = Addressee { owner: other(), ..email("ann") };
    let elsewhere = Owner { environment: "test".into(), ..acme() };
    let elsewhere = Addressee { owner: elsewhere, ..email("ann") };
    for none in [sms, foreign, elsewhere, email("bob")] {
        assert_eq!(h.about(&none).await, []);
    }
    // What is over is for the one who asks to tell.
    h.clock.step(1_000_000);
    assert_eq!(h.about(&email("ann")).await, [full]);
}

async fn the_same_again_changes_nothing(h: Harness) {
    let entry = suppressed("ann", START);
    for _ in 0..3 {
        assert_eq!(h.suppress(&acme(), &entry).await, entry);
        assert_eq!(all_listed(&h, &acme(), 10).await, std::slice::from_ref(&entry));
    }
    h.store.lift(&acme(), entry.id(&acme())).await.unwrap();
    h.store.lift(&acme(), entry.id(&acme())).await.unwrap();
    assert_eq!((h.about(&email("ann")).await, all_listed(&h, &acme(), 10).await), (vec![], vec![]));
}

async fn a_later_word_takes_the_place_of_an_earlier_and_keeps_its_since_while_that_holds(h: Harness) {
    let first = Suppressed { until: Some(at(10)), note: Some("first".into()), ..suppressed("ann", START) };
    h.suppress(&acme(), &first).await;
    let second = Suppressed { since: at(5), until: Some(at(20)), origin: "key_2".into(), ..suppressed("ann", at(5)) };
    let kept = Suppressed { since: START, ..second.clone() };
    assert_eq!(h.suppress(&acme(), &second).await, kept);
    assert_eq!(h.about(&email("ann")).await, std::slice::from_ref(&kept));
    // At the very moment of its end it is over, and another begins.
    let third = suppressed("ann", at(20));
    assert_eq!(h.suppress(&acme(), &third).await, third);
    assert_eq!(all_listed(&h, &acme(), 10).await, std::slice::from_ref(&third));
    // One without an end is never over, and a clock that is behind takes nothing back.
    for since in [0, 1_000_000] {
        let later = Suppressed { until: Some(at(2_000_000)), ..suppressed("ann", at(since)) };
        assert_eq!(h.suppress(&acme(), &later).await, Suppressed { since: at(20), ..later });
    }
    assert_eq!(all_listed(&h, &acme(), 10).await.len(), 1);
}

async fn words_of_other_kinds_categories_and_senders_stand_beside_each_other(h: Harness) {
    let plain = suppressed("ann", START);
    let mut all = vec![
        plain.clone(),
        Suppressed { kind: SuppressionKind::HardBounce, ..plain.clone() },
        Suppressed { category: Some("news".into()), ..plain.clone() },
        Suppressed { category: Some("offers".into()), ..plain.clone() },
        Suppressed { sender: Some("news".into()), ..plain },
    ];
    for one in &all {
        h.suppress(&acme(), one).await;
    }
    all.sort_by_key(|entry| entry.id(&acme()));
    assert_eq!(h.about(&email("ann")).await, all);
    let lifted = all.remove(2);
    h.store.lift(&acme(), lifted.id(&acme())).await.unwrap();
    assert_eq!(h.about(&email("ann")).await, all);
}

async fn one_look_is_for_many_addresses_of_many_owners(h: Harness) {
    assert_eq!(h.store.find(Vec::new()).await, []);
    let mut whom = Vec::new();
    for number in 0..300 {
        let (name, owner) = (format!("ann {number}"), if number % 2 == 0 { acme() } else { other() });
        let entry = suppressed(&name, START);
        if number % 3 == 0 {
            h.suppress(&owner, &entry).await;
        }
        whom.push(entry.addressee(&owner));
    }
    // In their order, the same one asked for twice as well.
    whom.push(whom[0].clone());
    let found = h.store.find(whom).await;
    assert_eq!(found.len(), 301);
    for (number, found) in found.iter().enumerate() {
        let name = format!("ann {}", number % 300);
        let expected = if number % 3 == 0 { vec![suppressed(&name, START)] } else { vec![] };
        assert_eq!(*found, Ok(expected), "{number}");
    }
}

async fn an_owner_lifts_what_is_his_and_nothing_else(h: Harness) {
    let entry = suppressed("ann", START);
    h.suppress(&acme(), &entry).await;
    h.suppress(&other(), &entry).await;
    let test = Owner { environment: "test".into(), ..acme() };
    for stranger in [&other(), &test] {
        h.store.lift(stranger, entry.id(&acme())).await.unwrap();
    }
    assert_eq!(h.about(&email("ann")).await, std::slice::from_ref(&entry));
    h.store.lift(&acme(), entry.id(&acme())).await.unwrap();
    assert_eq!(h.about(&email("ann")).await, []);
    assert_eq!(all_listed(&h, &other(), 10).await, [entry]);
}

async fn what_is_said_of_one_address_is_bounded(h: Harness) {
    let of = |number: usize| Suppressed { category: Some(number.to_string()), ..suppressed("ann", START) };
    for number in 0..MOST_OF_ONE {
        h.suppress(&acme(), &of(number)).await;
    }
    assert_eq!(h.store.put(&acme(), &of(MOST_OF_ONE)).await.unwrap(), Put::TooMany);
    assert_eq!(h.about(&email("ann")).await.len(), MOST_OF_ONE);
    // Those that are there can be said again, and one that is lifted makes room.
    h.suppress(&acme(), &of(3)).await;
    h.suppress(&acme(), &suppressed("bob", START)).await;
    h.store.lift(&acme(), of(3).id(&acme())).await.unwrap();
    h.suppress(&acme(), &of(MOST_OF_ONE)).await;
    assert_eq!(all_listed(&h, &acme(), 500).await.len(), MOST_OF_ONE + 1);
}

/// Else 32 unsubscribes from last year's campaigns leave no room for this year's.
async fn what_is_over_makes_room(h: Harness) {
    let of = |number: usize| Suppressed {
        category: Some(number.to_string()),
        // Two of them are over at 10 ms.
        until: (number < 2).then_some(at(10)),
        ..suppressed("ann", START)
    };
    for number in 0..MOST_OF_ONE {
        h.suppress(&acme(), &of(number)).await;
    }
    let new = |ms| Suppressed { category: Some("new".into()), ..suppressed("ann", at(ms)) };
    assert_eq!(h.store.put(&acme(), &new(9)).await.unwrap(), Put::TooMany);
    assert_eq!(h.about(&email("ann")).await.len(), MOST_OF_ONE);
    assert_eq!(h.suppress(&acme(), &new(10)).await, new(10));
    let mut kept: Vec<_> = (2..MOST_OF_ONE).map(of).chain([new(10)]).collect();
    kept.sort_by_key(|entry| entry.id(&acme()));
    assert_eq!(h.about(&email("ann")).await, kept);
    assert_eq!(all_listed(&h, &acme(), 500).await.len(), kept.len());
}

async fn whatever_is_said_of_categories_a_bounce_has_room(h: Harness) {
    let of = |number: usize| Suppressed { category: Some(number.to_string()), ..suppressed("ann", START) };
    for number in 0..MOST_OF_ONE {
        h.suppress(&acme(), &of(number)).await;
    }
    for kind in [SuppressionKind::HardBounce, SuppressionKind::Complaint, SuppressionKind::Manual] {
        let entry = Suppressed { kind, ..suppressed("ann", START) };
        assert_eq!(h.suppress(&acme(), &entry).await, entry);
    }
    for number in 3..RESERVED {
        h.suppress(&acme(), &Suppressed { sender: Some(number.to_string()), ..suppressed("ann", START) }).await;
    }
    let last = Suppressed { sender: Some("x".into()), ..suppressed("ann", START) };
    assert_eq!(h.store.put(&acme(), &last).await.unwrap(), Put::TooMany);
}
