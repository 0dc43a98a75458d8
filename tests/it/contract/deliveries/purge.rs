use std::time::Duration;

use belfry::ports::deliveries::{Accepted, PurgeAsk, Purged, Written};
use belfry_domain::delivery::StateName;
use belfry_domain::notification::Tombstone;
use belfry_domain::{Delivery, State, UnixMs, WhyCode};

use crate::contract::fixture::{
    KEEP_CONTENT_MS, PARKED, WINDOW_MS, acme, ask, ended, id_of, in_group, intent, intent_of, next, queued,
};
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    content_goes_when_all_ended_and_its_age_has_come,
    content_without_an_age_goes_at_once,
    what_ended_with_its_accept_ages_as_all_else_does,
    content_is_kept_while_one_is_failed_or_parked,
    content_reopened_is_kept_again,
    a_record_goes_by_its_end_and_leaves_a_tombstone,
    a_record_whose_window_has_closed_leaves_none,
    what_a_record_left_is_read_while_its_window_is_open,
    what_is_said_to_end_in_the_future_holds_up_nothing,
    parked_and_failed_records_stay_while_their_window_is_open,
    a_record_that_has_not_ended_is_never_purged,
    a_tombstone_goes_when_its_window_closes,
    each_call_is_bounded_per_age,
    a_collapse_group_is_kept_while_its_intents_are_remembered,
);

/// Content is due exactly so long after the end.
pub const AFTER_CONTENT: i64 = KEEP_CONTENT_MS as i64;
const KEEP_RECORD_MS: i64 = 5 * 86_400_000;
const CONTENTS: Purged = Purged { contents: 1, records: 0, tombstones: 0 };
const RECORDS: Purged = Purged { contents: 0, records: 1, tombstones: 0 };
const TOMBSTONES: Purged = Purged { contents: 0, records: 0, tombstones: 1 };
const NOTHING: Purged = Purged { contents: 0, records: 0, tombstones: 0 };

pub async fn purge(h: &Harness) -> Purged {
    purge_up_to(h, 100).await
}

async fn purge_up_to(h: &Harness, limit: u16) -> Purged {
    let keep_record = Duration::from_millis(KEEP_RECORD_MS as u64);
    h.store.purge(PurgeAsk { now: h.now(), keep_record, limit }).await.unwrap()
}

async fn content_goes_when_all_ended_and_its_age_has_come(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 2)).await;
    let claims = h.claims(ask(1, 2)).await.claims;
    assert_eq!(h.settle(&claims[0], &ended(&h, &claims[0].delivery, State::Accepted)).await, Written::Done);
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await, NOTHING);
    assert_eq!(h.settle(&claims[1], &ended(&h, &claims[1].delivery, State::Delivered)).await, Written::Done);
    h.clock.step(AFTER_CONTENT - 1);
    assert_eq!(purge(&h).await, NOTHING);
    assert!(h.store.inputs(id_of("k")).await.unwrap().is_some());
    h.clock.step(1);
    let before = h.record("k").await.unwrap();
    assert_eq!(purge(&h).await, CONTENTS);
    assert_eq!(h.store.inputs(id_of("k")).await.unwrap(), None);
    assert_eq!(h.record("k").await.unwrap(), before);
    assert_eq!(purge(&h).await, NOTHING);
}

async fn what_a_record_left_is_read_while_its_window_is_open(h: Harness) {
    h.create(intent(&h, "k")).await;
    h.finish(1, State::Delivered).await;
    // While there is a record, that is the answer.
    assert_eq!(h.store.remembered(id_of("k")).await.unwrap(), None);
    let record = h.record("k").await.unwrap();
    h.clock.step(KEEP_RECORD_MS);
    assert_eq!(purge(&h).await.records, 1);
    let expected = Tombstone {
        id: id_of("k"),
        fingerprint: record.notification.fingerprint.short().to_owned(),
        state: StateName::Delivered,
        remembered_until: record.notification.remembered_until,
    };
    assert_eq!(h.store.remembered(id_of("k")).await.unwrap(), Some(expected));
    assert_eq!(h.store.remembered(id_of("absent")).await.unwrap(), None);
}

/// A node whose clock was years ahead.
async fn what_is_said_to_end_in_the_future_holds_up_nothing(h: Harness) {
    for key in ["ahead", "k"] {
        h.create(intent(&h, key)).await;
        let claim = h.claims(ask(1, 1)).await.claims.remove(0);
        let mut ended = ended(&h, &claim.delivery, State::Accepted);
        if claim.delivery.notification == id_of("ahead") {
            ended.ended_at = Some(UnixMs(h.now().0 + 10 * WINDOW_MS));
        }
        assert_eq!(h.settle(&claim, &ended).await, Written::Done);
    }
    h.clock.step(KEEP_RECORD_MS);
    assert_eq!(purge(&h).await, Purged { contents: 1, records: 1, tombstones: 0 });
    assert!(h.record("ahead").await.is_some() && h.record("k").await.is_none());
    h.clock.step(10 * WINDOW_MS);
    assert_eq!(purge(&h).await.records, 1);
}

async fn content_without_an_age_goes_at_once(h: Harness) {
    let mut code = intent(&h, "k");
    code.notification.keep_content_ms = 0;
    h.create(code).await;
    assert_eq!(purge(&h).await, NOTHING);
    h.finish(1, State::Accepted).await;
    assert_eq!(purge(&h).await, CONTENTS);
}

/// Suppressed: no claim, no settle.
async fn what_ended_with_its_accept_ages_as_all_else_does(h: Harness) {
    let mut new = intent_of(&h, "k", "acme", 2);
    for one in &mut new.deliveries {
        *one = Delivery { suppressed_at_accept: Some(WhyCode::BouncedBefore), ..ended(&h, one, State::Suppressed) };
    }
    h.create(new.clone()).await;
    assert_eq!(h.record("k").await.unwrap().deliveries, new.deliveries);
    assert!(h.claims(ask(1, 2)).await.claims.is_empty());
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await, CONTENTS);
    h.clock.step(KEEP_RECORD_MS - AFTER_CONTENT);
    assert_eq!(purge(&h).await, RECORDS);
    assert_eq!(h.store.remembered(id_of("k")).await.unwrap().unwrap().state, StateName::Suppressed);
}

async fn content_is_kept_while_one_is_failed_or_parked(h: Harness) {
    for (nonce, state) in [(1, State::Failed), (2, PARKED)] {
        let key = format!("k{nonce}");
        h.create(intent(&h, &key)).await;
        h.finish(nonce, state).await;
    }
    h.clock.step(AFTER_CONTENT + KEEP_RECORD_MS);
    assert_eq!(purge(&h).await, NOTHING);
    // A person resolves one: from now on it ages like any other.
    let parked = h.record("k2").await.unwrap().deliveries.remove(0);
    assert_eq!(h.apply(&ended(&h, &parked, State::Delivered)).await, Written::Done);
    assert_eq!(purge(&h).await, NOTHING);
    h.clock.step(AFTER_CONTENT);
    assert_eq!(purge(&h).await, CONTENTS);
    assert!(h.store.inputs(id_of("k1")).await.unwrap().is_some());
}

async fn content_reopened_is_kept_again(h: Harness) {
    h.create(intent(&h, "k")).await;
    let done = h.finish(1, State::Accepted).await;
    assert_eq!(h.apply(&queued(&h, &done)).await, Written::Done);
    h.clock.step(AFTER_CONTENT + KEEP_RECORD_MS);
    assert_eq!(purge(&h).await, NOTHING);
    assert!(h.claim(2).await.inputs.is_some());
}

async fn a_record_goes_by_its_end_and_leaves_a_tombstone(h: Harness) {
    let first = intent(&h, "k");
    h.create(first.clone()).await;
    h.clock.step(1_000);
    let done = h.finish(1, State::Delivered).await;
    h.clock.step(KEEP_RECORD_MS - 1);
    assert_eq!(purge(&h).await, CONTENTS);
    assert_eq!(purge(&h).await, NOTHING);
    assert!(h.record("k").await.is_some());
    h.clock.step(1);
    assert_eq!(purge(&h).await, RECORDS);
    assert_eq!(h.record("k").await, None);
    assert_eq!(h.store.load(vec![done.id]).await.unwrap(), []);
    assert_eq!(h.store.read_by_delivery(&acme(), done.id).await.unwrap(), None);
    assert_eq!(h.apply(&next(&done, State::Bounced)).await, Written::Gone);
    let expected = Tombstone {
        id: id_of("k"),
        fingerprint: first.notification.fingerprint.short().to_owned(),
        state: StateName::Delivered,
        remembered_until: UnixMs(START.0 + WINDOW_MS),
    };
    for _ in 0..2 {
        match h.accept(first.clone()).await {
            Accepted::Remembered(tombstone) => assert_eq!(tombstone, expected),
            other => panic!("{other:?}"),
        }
    }
    assert!(h.claims(ask(2, 10)).await.claims.is_empty());
}

async fn a_record_whose_window_has_closed_leaves_none(h: Harness) {
    h.create(intent(&h, "k")).await;
    h.clock.step(WINDOW_MS);
    h.finish(1, State::Accepted).await;
    h.clock.step(KEEP_RECORD_MS);
    // Its content was still there, and goes with it or before it.
    assert_eq!(purge(&h).await, Purged { contents: 1, records: 1, tombstones: 0 });
    assert_eq!(purge(&h).await, NOTHING);
    h.create(intent(&h, "k")).await;
}

async fn parked_and_failed_records_stay_while_their_window_is_open(h: Harness) {
    for (nonce, state) in [(1, State::Failed), (2, PARKED)] {
        h.create(intent(&h, &format!("k{nonce}"))).await;
        h.finish(nonce, state).await;
    }
    assert_eq!(h.store.depths().await.unwrap().parked, 1);
    h.clock.step(WINDOW_MS - 1);
    assert_eq!(purge(&h).await, NOTHING);
    h.clock.step(1);
    // With all of their content, and no tombstone.
    assert_eq!(purge(&h).await.records, 2);
    assert_eq!(h.store.inputs(id_of("k1")).await.unwrap(), None);
    assert_eq!(h.store.depths().await.unwrap().parked, 0);
    assert_eq!(purge(&h).await, NOTHING);
}

async fn a_record_that_has_not_ended_is_never_purged(h: Harness) {
    for n in 0..3 {
        h.create(intent(&h, &format!("k{n}"))).await;
        h.clock.step(1);
    }
    let claims = h.claims(ask(1, 2)).await.claims;
    let open = belfry_domain::Delivery {
        receipt_until: Some(UnixMs(h.now().0 + 1_000)),
        ..next(&claims[0].delivery, State::Accepted)
    };
    assert_eq!(h.settle(&claims[0], &open).await, Written::Done);
    h.clock.step(2 * (WINDOW_MS + KEEP_RECORD_MS));
    assert_eq!(purge(&h).await, NOTHING);
    for n in 0..3 {
        assert!(h.record(&format!("k{n}")).await.is_some());
    }
}

async fn a_tombstone_goes_when_its_window_closes(h: Harness) {
    h.create(intent(&h, "k")).await;
    h.finish(1, State::Accepted).await;
    h.clock.step(KEEP_RECORD_MS);
    purge(&h).await;
    h.clock.step(WINDOW_MS - KEEP_RECORD_MS - 1);
    assert_eq!(purge(&h).await, NOTHING);
    assert!(matches!(h.accept(intent(&h, "k")).await, Accepted::Remembered(_)));
    h.clock.step(1);
    assert_eq!(purge(&h).await, TOMBSTONES);
    h.create(intent(&h, "k")).await;
}

async fn each_call_is_bounded_per_age(h: Harness) {
    for n in 0..5 {
        h.create(intent(&h, &format!("k{n}"))).await;
        h.finish(n, State::Accepted).await;
    }
    h.clock.step(AFTER_CONTENT);
    for contents in [2, 2, 1, 0] {
        assert_eq!(purge_up_to(&h, 2).await, Purged { contents, ..NOTHING });
    }
    h.clock.step(KEEP_RECORD_MS);
    for records in [2, 2, 1, 0] {
        assert_eq!(purge_up_to(&h, 2).await, Purged { records, ..NOTHING });
    }
    h.clock.step(WINDOW_MS);
    for tombstones in [2, 2, 1, 0] {
        assert_eq!(purge_up_to(&h, 2).await, Purged { tombstones, ..NOTHING });
    }
}

async fn a_collapse_group_is_kept_while_its_intents_are_remembered(h: Harness) {
    h.create(in_group(intent(&h, "new"), "g", 9)).await;
    h.finish(1, State::Accepted).await;
    h.clock.step(WINDOW_MS - 1);
    purge(&h).await;
    // An older version that arrives late is superseded still.
    h.create(in_group(intent(&h, "old"), "g", 3)).await;
    let claim = h.claim(2).await;
    assert_eq!(claim.newest_version, Some(9));
    h.settle(&claim, &ended(&h, &claim.delivery, State::Superseded)).await;
    // The old one is remembered now, so the group is too.
    h.clock.step(1);
    purge(&h).await;
    h.create(in_group(intent(&h, "older"), "g", 1)).await;
    assert_eq!(h.claim(3).await.newest_version, Some(9));
}
