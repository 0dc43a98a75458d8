//! The list of what was heard of tokens.

use belfry::ports::recipients::{DEAD_KEPT_MS, DeadToken, MOST_DEAD, Recipients};
use belfry_domain::device::TokenFault;
use belfry_domain::{ChannelKind, UnixMs};

use super::{all_dead, of, other, word};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    what_was_heard_is_listed_whole_oldest_first,
    pages_hold_each_once_and_end,
    a_token_is_listed_once_for_each_fault_and_a_later_word_stands_in_its_place,
    kind_and_app_make_another_token,
    old_ones_go_as_new_ones_come,
    a_place_that_is_none_is_the_beginning,
);

fn heard(token: &str, at: i64) -> DeadToken {
    word(&of("ann", "phone"), token, TokenFault::Unregistered, UnixMs(START.0 + at))
}

async fn what_was_heard_is_listed_whole_oldest_first(h: Harness) {
    assert_eq!(h.store.dead(&acme(), UnixMs(0), None, 10).await.unwrap(), Default::default());
    let full = DeadToken { since: Some(UnixMs(7)), environment: Some("sandbox".into()), ..heard("c", 3) };
    let bare = DeadToken { app: None, recipient: None, device: None, ..heard("b", 2) };
    let first = heard("a", 1);
    for one in [&full, &first, &bare] {
        h.bury(one).await;
    }
    let all = [first, bare, full];
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, all);
    // At or after.
    for (since, from) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)] {
        assert_eq!(all_dead(&h, &acme(), UnixMs(START.0 + since), 10).await, all[from..], "{since}");
        assert_eq!(all_dead(&h, &acme(), UnixMs(START.0 + since), 1).await, all[from..], "{since}");
    }
    assert_eq!(all_dead(&h, &acme(), UnixMs(i64::MIN), 10).await, all);
    assert_eq!(all_dead(&h, &acme(), UnixMs(i64::MAX), 10).await, []);
    assert_eq!(all_dead(&h, &other(), UnixMs(0), 10).await, []);
}

async fn pages_hold_each_once_and_end(h: Harness) {
    // Many of one moment, as when an app is closed down.
    for at in 0..20 {
        h.bury(&heard(&at.to_string(), i64::from(at) / 10)).await;
        Recipients::bury(&*h.store, &other(), &heard(&at.to_string(), 0)).await.unwrap();
    }
    let all = all_dead(&h, &acme(), UnixMs(0), MOST_DEAD).await;
    let mut tokens: Vec<_> = all.iter().map(|one| one.hash.clone()).collect();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 20);
    assert!(all.windows(2).all(|pair| pair[0].heard_at <= pair[1].heard_at));
    for limit in [1, 3, 10, 20, 21] {
        assert_eq!(all_dead(&h, &acme(), UnixMs(0), limit).await, all, "{limit}");
    }
    // The last page says that it is the last, also where it is full.
    let whole = h.store.dead(&acme(), UnixMs(0), None, 20).await.unwrap();
    assert_eq!((whole.tokens.len(), whole.next), (20, None));
    let part = h.store.dead(&acme(), UnixMs(0), None, 19).await.unwrap();
    assert_eq!(part.tokens, all[..19]);
    let rest = h.store.dead(&acme(), UnixMs(0), part.next.as_deref(), 19).await.unwrap();
    assert_eq!((rest.tokens.as_slice(), rest.next), (&all[19..], None));
    // No fewer than one, no more than the most.
    assert_eq!(h.store.dead(&acme(), UnixMs(0), None, 0).await.unwrap().tokens, all[..1]);
    assert_eq!(h.store.dead(&acme(), UnixMs(0), None, u16::MAX).await.unwrap().tokens, all);
    // `since` holds behind a place as well.
    let later = h.store.dead(&acme(), UnixMs(START.0 + 1), whole_place(&h).await.as_deref(), 100).await.unwrap();
    assert_eq!(later.tokens, all[10..]);
}

async fn whole_place(h: &Harness) -> Option<String> {
    h.store.dead(&acme(), UnixMs(0), None, 1).await.unwrap().next
}

async fn a_token_is_listed_once_for_each_fault_and_a_later_word_stands_in_its_place(h: Harness) {
    let first = heard("a", 5);
    let later = DeadToken { since: Some(START), recipient: None, device: None, ..heard("a", 9) };
    let bad = DeadToken { fault: TokenFault::BadToken, ..heard("a", 7) };
    for one in [&first, &bad, &later, &first, &bad] {
        h.bury(one).await;
    }
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, [bad, later.clone()]);
    assert_eq!(all_dead(&h, &acme(), UnixMs(START.0 + 8), 10).await, std::slice::from_ref(&later));
    // Of two words of one moment the first stays.
    h.bury(&DeadToken { since: None, ..later.clone() }).await;
    assert_eq!(all_dead(&h, &acme(), UnixMs(START.0 + 8), 10).await, [later]);
}

async fn kind_and_app_make_another_token(h: Harness) {
    let one = heard("a", 1);
    let all = [
        one.clone(),
        DeadToken { kind: ChannelKind::Fcm, heard_at: UnixMs(START.0 + 2), ..one.clone() },
        DeadToken { app: None, heard_at: UnixMs(START.0 + 3), ..one.clone() },
        DeadToken { app: Some(String::new()), heard_at: UnixMs(START.0 + 4), ..one },
    ];
    for one in &all {
        h.bury(one).await;
    }
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, all);
}

async fn old_ones_go_as_new_ones_come(h: Harness) {
    // By the store's own clock: a node that is ahead makes nobody forget.
    for at in 0..3 {
        h.bury(&heard("old", at)).await;
        h.bury(&heard("far ahead", at + 2 * DEAD_KEPT_MS)).await;
    }
    h.clock.step(DEAD_KEPT_MS + 2);
    h.bury(&heard("new", DEAD_KEPT_MS)).await;
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await.len(), 3, "not a moment too early");
    h.clock.step(1);
    // Whatever shard it comes to, each drops its own.
    for at in 0..60 {
        h.bury(&heard(&format!("new {at}"), DEAD_KEPT_MS + 1)).await;
    }
    let left = all_dead(&h, &acme(), UnixMs(0), MOST_DEAD).await;
    assert!(left.iter().all(|one| one.hash != "hash old"));
    assert_eq!(left.len(), 62);
}

async fn a_place_that_is_none_is_the_beginning(h: Harness) {
    let all = [heard("a", 1), heard("b", 2)];
    for one in &all {
        h.bury(one).await;
    }
    for place in ["", "x", "17", "\u{0}", "999999999999999", "ääääääääääääääää", "-", "+", "["] {
        let page = h.store.dead(&acme(), UnixMs(0), Some(place), 10).await.unwrap();
        assert_eq!(page.tokens, all, "{place:?}");
    }
}
