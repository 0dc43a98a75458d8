//! The list.

use belfry::ports::suppressions::{MOST_LISTED, Suppressed, Suppressions};
use belfry_domain::UnixMs;

use super::{all_listed, suppressed};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;
use crate::contract::recipients::other;

on_every_store!(
    the_newest_comes_first_and_pages_hold_each_once,
    a_place_that_is_none_is_the_beginning,
    what_is_gone_leaves_no_gap,
);

/// Many of one moment, as after an import.
async fn twenty(h: &Harness) -> Vec<Suppressed> {
    let mut all = Vec::new();
    for number in 0..20 {
        let entry = suppressed(&format!("ann {number}"), UnixMs(START.0 + i64::from(number / 10)));
        h.suppress(&acme(), &entry).await;
        h.suppress(&other(), &entry).await;
        all.push(entry);
    }
    all.sort_by_key(|entry| std::cmp::Reverse((entry.since, entry.id(&acme()))));
    all
}

async fn the_newest_comes_first_and_pages_hold_each_once(h: Harness) {
    assert_eq!(h.store.listed(&acme(), None, 10).await.unwrap(), Default::default());
    let all = twenty(&h).await;
    for limit in [1, 3, 10, 20, 21, MOST_LISTED] {
        assert_eq!(all_listed(&h, &acme(), limit).await, all, "{limit}");
    }
    // The last page says that it is the last, also where it is full.
    let whole = h.store.listed(&acme(), None, 20).await.unwrap();
    assert_eq!((whole.entries.len(), whole.next), (20, None));
    // No fewer than one, no more than the most.
    assert_eq!(h.store.listed(&acme(), None, 0).await.unwrap().entries, all[..1]);
    assert_eq!(h.store.listed(&acme(), None, u16::MAX).await.unwrap().entries, all);
    let empty = belfry::ports::deliveries::Owner { environment: "test".into(), ..acme() };
    assert_eq!(h.store.listed(&empty, None, 10).await.unwrap(), Default::default());
}

async fn a_place_that_is_none_is_the_beginning(h: Harness) {
    let all = twenty(&h).await;
    let bad = ["", "x", "17", "\u{0}", "999999999999999", "ääääääääääääääää", "-", "+", "[", "~"];
    for place in bad.map(str::to_owned).into_iter().chain(["0".repeat(64), "F".repeat(63)]) {
        assert_eq!(h.store.listed(&acme(), Some(&place), 100).await.unwrap().entries, all, "{place:?}");
    }
    // Behind the last.
    assert_eq!(h.store.listed(&acme(), Some(&"0".repeat(63)), 100).await.unwrap().entries, []);
}

async fn what_is_gone_leaves_no_gap(h: Harness) {
    let mut all = twenty(&h).await;
    let page = h.store.listed(&acme(), None, 5).await.unwrap();
    // The very entry that the place is of, and one behind it.
    for at in [4, 6] {
        h.store.lift(&acme(), all[at].id(&acme())).await.unwrap();
    }
    let rest = Suppressions::listed(&*h.store, &acme(), page.next.as_deref(), 100).await.unwrap().entries;
    all.drain(..5);
    all.remove(1);
    assert_eq!(rest, all);
}
