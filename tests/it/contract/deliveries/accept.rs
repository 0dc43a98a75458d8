use belfry::ports::deliveries::Accepted;
use belfry_domain::delivery::StateName;
use belfry_domain::notification::Record;
use belfry_domain::{NotificationId, State};

use crate::contract::fixture::{acme, ask, due_in, ended, id_of, in_group, intent, intent_of};
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    what_was_accepted_reads_back,
    a_repeat_gets_the_first_record_and_changes_only_its_count,
    of_two_with_one_id_in_a_batch_the_second_is_a_repeat,
    answers_come_in_the_order_of_the_batch,
    a_full_batch_is_kept_whole,
    case_13_two_owners_with_one_key_are_two_intents,
    deliveries_keep_the_order_of_the_request,
    a_new_intent_may_be_scheduled_or_ended_already,
    collapse_versions_are_raised_and_never_lowered,
    something_due_wakes_whoever_waits,
);

fn repeat(answer: Accepted) -> Record {
    match answer {
        Accepted::Repeat(record) => *record,
        other => panic!("no repeat: {other:?}"),
    }
}

async fn what_was_accepted_reads_back(h: Harness) {
    let intent = intent_of(&h, "k", "acme", 3);
    h.create(intent.clone()).await;
    let record = h.record("k").await.unwrap();
    assert_eq!(record.notification, intent.notification);
    assert_eq!(record.deliveries, intent.deliveries);
    assert_eq!(record.repeats, 0);
    assert_eq!(h.store.inputs(intent.notification.id).await.unwrap(), Some(intent.inputs));
}

async fn a_repeat_gets_the_first_record_and_changes_only_its_count(h: Harness) {
    let first = intent(&h, "k");
    h.create(first.clone()).await;
    h.clock.step(5_000);
    let mut other = intent_of(&h, "k", "acme", 2);
    other.notification.class = "marketing".into();
    other.inputs = "other".into();
    for count in 1..=3 {
        let record = repeat(h.accept(other.clone()).await);
        assert_eq!(record.repeats, count);
        assert_eq!((&record.notification, &record.deliveries), (&first.notification, &first.deliveries));
        assert_eq!(h.record("k").await.unwrap(), record);
    }
    assert_eq!(h.store.inputs(id_of("k")).await.unwrap(), Some(first.inputs.clone()));
    // A repeat gets what the record is by now.
    let next = h.finish(1, State::Accepted).await;
    assert_eq!(repeat(h.accept(first).await).deliveries, [next]);
}

async fn of_two_with_one_id_in_a_batch_the_second_is_a_repeat(h: Harness) {
    let answers = h.store.accept(vec![intent(&h, "k"), intent(&h, "k"), intent(&h, "k")]).await.unwrap();
    let [Accepted::Created, Accepted::Repeat(second), Accepted::Repeat(third)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((second.repeats, third.repeats), (1, 2));
    assert_eq!(h.claims(ask(1, 10)).await.claims.len(), 1);
}

async fn answers_come_in_the_order_of_the_batch(h: Harness) {
    h.create(intent(&h, "b")).await;
    let answers = h.store.accept(vec![intent(&h, "a"), intent(&h, "b"), intent(&h, "c")]).await.unwrap();
    let [Accepted::Created, Accepted::Repeat(known), Accepted::Created] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(known.notification.id, id_of("b"));
}

async fn a_full_batch_is_kept_whole(h: Harness) {
    let batch: Vec<_> = (0..128).map(|n| intent(&h, &format!("k{n}"))).collect();
    assert!(h.store.accept(batch).await.unwrap().iter().all(|answer| matches!(answer, Accepted::Created)));
    for n in 0..128 {
        assert_eq!(h.record(&format!("k{n}")).await.unwrap().notification.id, id_of(&format!("k{n}")));
    }
}

async fn case_13_two_owners_with_one_key_are_two_intents(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 1)).await;
    h.create(intent_of(&h, "k", "other", 1)).await;
    let theirs = NotificationId::http("other", "live", "keys", "k");
    assert_ne!(theirs, id_of("k"));
    assert_eq!(h.store.read(&acme(), theirs).await.unwrap(), None);
    assert_eq!(h.record("k").await.unwrap().repeats, 0);
}

async fn deliveries_keep_the_order_of_the_request(h: Harness) {
    let mut intent = intent_of(&h, "k", "acme", 50);
    intent.deliveries.reverse();
    h.create(intent.clone()).await;
    assert_eq!(h.record("k").await.unwrap().deliveries, intent.deliveries);
}

async fn a_new_intent_may_be_scheduled_or_ended_already(h: Harness) {
    h.create(due_in(intent(&h, "later"), 60_000)).await;
    let mut over = intent(&h, "over");
    over.deliveries[0] = ended(&h, &over.deliveries[0], State::Suppressed);
    h.create(over.clone()).await;
    assert_eq!(h.record("over").await.unwrap().deliveries, over.deliveries);
    assert_eq!(h.record("over").await.unwrap().state(), StateName::Suppressed);
    assert_eq!(h.record("later").await.unwrap().state(), StateName::Scheduled);
    assert!(h.claims(ask(1, 10)).await.claims.is_empty());
}

async fn collapse_versions_are_raised_and_never_lowered(h: Harness) {
    for (key, version) in [("three", 3), ("five", 5), ("four", 4)] {
        h.create(in_group(intent(&h, key), "g", version)).await;
    }
    h.create(in_group(intent(&h, "else"), "other group", -7)).await;
    h.create(intent(&h, "none")).await;
    let claims = h.claims(ask(1, 10)).await.claims;
    let newest = |key: &str| {
        let of_key = claims.iter().find(|claim| claim.notification.id == id_of(key));
        of_key.map(|claim| claim.newest_version)
    };
    assert_eq!(["three", "five", "four"].map(newest), [Some(Some(5)); 3]);
    assert_eq!(["else", "none"].map(newest), [Some(Some(-7)), Some(None)]);
    // A repeat of an accepted intent raises nothing either.
    h.accept(in_group(intent(&h, "three"), "g", 9)).await;
    h.clock.step(1);
    h.create(in_group(intent(&h, "six"), "g", 1)).await;
    assert_eq!(h.claim(2).await.newest_version, Some(5));
}

async fn something_due_wakes_whoever_waits(h: Harness) {
    // Whether somebody waits already or only afterwards.
    let waiting = h.store.due_changed();
    let accept = h.store.accept(vec![intent(&h, "k")]);
    let (_, answers) = tokio::join!(waiting, accept);
    assert_eq!(answers.unwrap().len(), 1);
    h.create(intent(&h, "l")).await;
    h.store.due_changed().await;
}
