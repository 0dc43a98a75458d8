//! Contents of attachments: each once, for as long as something names it.

use std::time::Duration;

use belfry::ports::attachments::{Attached, AttachedId};
use belfry::ports::deliveries::{Accepted, NewNotification, Owner, PurgeAsk};
use belfry_domain::{Delivery, NotificationId, State};

use super::purge::{AFTER_CONTENT, purge};
use crate::contract::fixture::{WINDOW_MS, ask, ended, id_of, intent_of};
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    what_is_attached_reads_back_in_the_order_asked,
    one_content_of_many_takes_its_room_once,
    a_content_goes_with_the_last_that_names_it,
    a_content_goes_with_a_record_that_still_has_it,
    a_repeat_holds_nothing,
    two_owners_share_nothing,
    what_was_taken_away_is_kept_again_and_goes_once,
);

const LONG: usize = 70_000;

fn content(seed: u8) -> Vec<u8> {
    (0..LONG).map(|at| seed.wrapping_mul(31).wrapping_add((at % 251) as u8)).collect()
}

fn with(mut intent: NewNotification, contents: &[u8]) -> NewNotification {
    let owner = Owner::of(&intent.notification);
    intent.attached = contents.iter().map(|seed| Attached::of(&owner, content(*seed))).collect();
    intent
}

/// Keys whose records share a shard, however many there are (at most 16).
fn together(tenant: &str) -> impl Iterator<Item = String> {
    let keys = (0..).map(|n| format!("k{n}"));
    let shard = |id: NotificationId| id.0.as_bytes()[1] % 16;
    let tenant = tenant.to_owned();
    keys.filter(move |key| shard(NotificationId::http(&tenant, "live", "keys", key)) == 0)
}

fn id_in(intent: &NewNotification, nth: usize) -> AttachedId {
    intent.attached[nth].id
}

/// Where it can be seen.
#[track_caller]
fn keeps(h: &Harness, contents: usize) {
    assert!(h.attachments_kept().is_none_or(|kept| kept == vec![LONG; contents]), "{:?}", h.attachments_kept());
}

async fn is_kept(h: &Harness, intent: &NewNotification, nth: usize) -> bool {
    let found = h.store.attached(intent.notification.id, vec![id_in(intent, nth)]).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].as_ref().is_none_or(|found| **found == *intent.attached[nth].content));
    found[0].is_some()
}

/// Ends all that is due.
async fn finish_all(h: &Harness, nonce: u64) {
    for claim in h.claims(ask(nonce, 100)).await.claims {
        h.settle(&claim, &ended(h, &claim.delivery, State::Delivered)).await;
    }
}

async fn what_is_attached_reads_back_in_the_order_asked(h: Harness) {
    let new = with(intent_of(&h, "k", "acme", 2), &[1, 2]);
    h.create(new.clone()).await;
    let absent = AttachedId::of(&Owner::of(&new.notification), b"absent");
    let found = h.store.attached(id_of("k"), vec![id_in(&new, 1), absent, id_in(&new, 0)]).await.unwrap();
    assert_eq!(found, [Some(content(2)), None, Some(content(1))]);
    assert_eq!(h.store.attached(id_of("k"), Vec::new()).await.unwrap(), Vec::<Option<Vec<u8>>>::new());
    // The inputs are as they were given, wherever they are read.
    assert_eq!(h.store.inputs(id_of("k")).await.unwrap(), Some(new.inputs.clone()));
    let claims = h.claims(ask(1, 10)).await.claims;
    assert!(claims.len() == 2 && claims.iter().all(|claim| claim.inputs.as_ref() == Some(&new.inputs)));
    assert_eq!(h.record("k").await.unwrap().deliveries.len(), 2);
}

async fn one_content_of_many_takes_its_room_once(h: Harness) {
    let keys: Vec<String> = together("acme").take(5).collect();
    let all: Vec<_> = keys.iter().map(|key| with(intent_of(&h, key, "acme", 1), &[1])).collect();
    h.create(all[0].clone()).await;
    keeps(&h, 1);
    // In one call as well.
    h.store.accept(all[1..].to_vec()).await.unwrap();
    keeps(&h, 1);
    for new in &all {
        assert!(is_kept(&h, new, 0).await);
    }
}

async fn a_content_goes_with_the_last_that_names_it(h: Harness) {
    let mut keys = together("acme");
    let first = with(intent_of(&h, &keys.next().unwrap(), "acme", 1), &[1, 2]);
    let mut code = with(intent_of(&h, &keys.next().unwrap(), "acme", 1), &[2, 3]);
    code.notification.keep_content_ms = 0;
    let plain = intent_of(&h, &keys.next().unwrap(), "acme", 1);
    h.store.accept(vec![first.clone(), code.clone(), plain]).await.unwrap();
    keeps(&h, 3);
    finish_all(&h, 1).await;
    assert_eq!(purge(&h).await.contents, 1);
    keeps(&h, 2);
    assert!(is_kept(&h, &first, 0).await && is_kept(&h, &first, 1).await && !is_kept(&h, &code, 1).await);
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await.contents, 2);
    keeps(&h, 0);
    assert!(!is_kept(&h, &first, 0).await && !is_kept(&h, &first, 1).await);
    assert_eq!(purge(&h).await, Default::default());
}

/// Whose window has closed before its content was due.
async fn a_content_goes_with_a_record_that_still_has_it(h: Harness) {
    let mut keys = together("acme");
    let mut lasting = with(intent_of(&h, &keys.next().unwrap(), "acme", 1), &[1]);
    lasting.notification.keep_content_ms = 10 * WINDOW_MS as u64;
    let other = with(intent_of(&h, &keys.next().unwrap(), "acme", 1), &[1]);
    h.create(lasting).await;
    finish_all(&h, 1).await;
    h.create(other.clone()).await;
    h.clock.step(WINDOW_MS);
    let keep_record = Duration::from_millis(1);
    let ask = PurgeAsk { now: h.now(), keep_record, limit: 10 };
    assert_eq!(h.store.purge(ask).await.unwrap().records, 1);
    keeps(&h, 1);
    assert!(is_kept(&h, &other, 0).await);
    finish_all(&h, 2).await;
    h.clock.step(1);
    let ask = PurgeAsk { now: h.now(), keep_record, limit: 10 };
    assert_eq!(h.store.purge(ask).await.unwrap().records, 1);
    keeps(&h, 0);
    assert!(!is_kept(&h, &other, 0).await);
}

async fn a_repeat_holds_nothing(h: Harness) {
    let new = with(intent_of(&h, "k", "acme", 1), &[1]);
    let answers = h.store.accept(vec![new.clone(), new.clone()]).await.unwrap();
    assert!(matches!(&answers[..], [Accepted::Created, Accepted::Repeat(_)]), "{answers:?}");
    assert!(matches!(h.accept(new.clone()).await, Accepted::Repeat(_)));
    // Another request under the same key is refused: nothing of it stays.
    let mut other = with(new.clone(), &[1, 2]);
    other.notification.fingerprint.whole = "1e".repeat(32);
    assert!(matches!(h.accept(other.clone()).await, Accepted::Repeat(_)));
    keeps(&h, 1);
    assert!(is_kept(&h, &new, 0).await && !is_kept(&h, &other, 1).await);
    finish_all(&h, 1).await;
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await.contents, 1);
    keeps(&h, 0);
    // Neither does one of what has no content any more, nor of what is only remembered.
    assert!(matches!(h.accept(new.clone()).await, Accepted::Repeat(_)));
    h.clock.step(2 * AFTER_CONTENT);
    assert_eq!(purge(&h).await.records, 1);
    assert!(matches!(h.accept(new.clone()).await, Accepted::Remembered(_)));
    keeps(&h, 0);
    assert!(!is_kept(&h, &new, 0).await);
}

async fn two_owners_share_nothing(h: Harness) {
    let all = ["acme", "other"].map(|tenant| {
        let key = together(tenant).next().unwrap();
        with(intent_of(&h, &key, tenant, 1), &[1])
    });
    assert_ne!(id_in(&all[0], 0), id_in(&all[1], 0));
    h.store.accept(all.to_vec()).await.unwrap();
    keeps(&h, 2);
    let claims = h.claims(ask(1, 10)).await.claims;
    let acme = claims.iter().find(|claim| claim.notification.tenant == "acme").unwrap();
    let next: Delivery = ended(&h, &acme.delivery, State::Delivered);
    h.settle(acme, &next).await;
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await.contents, 1);
    keeps(&h, 1);
    assert!(!is_kept(&h, &all[0], 0).await && is_kept(&h, &all[1], 0).await);
}

/// Somebody deleted it: what is accepted from then on has it with it, and what went without it drops nothing.
async fn what_was_taken_away_is_kept_again_and_goes_once(h: Harness) {
    let mut keys = together("acme");
    let first = with(intent_of(&h, &keys.next().unwrap(), "acme", 1), &[1]);
    let second = with(intent_of(&h, &keys.next().unwrap(), "acme", 1), &[1]);
    h.create(first.clone()).await;
    if !h.take_attachments_away() {
        return;
    }
    assert!(!is_kept(&h, &first, 0).await);
    finish_all(&h, 1).await;
    h.clock.step(AFTER_CONTENT);
    h.create(second.clone()).await;
    assert!(is_kept(&h, &first, 0).await && is_kept(&h, &second, 0).await);
    assert_eq!(purge(&h).await.contents, 1);
    assert!(is_kept(&h, &second, 0).await);
    finish_all(&h, 2).await;
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await.contents, 1);
    keeps(&h, 0);
}
