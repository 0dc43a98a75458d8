//! The storms.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use belfry::intake::answer::Answer;
use belfry::intake::json;
use belfry::intake::plan::Arrival;
use belfry::intake::stored::{Asker, Stored};
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::MOST_ITEMS;
use belfry::ports::schedules::{Schedule, Wrote};
use belfry_domain::timeline::Hop;
use belfry_domain::{NotificationId, UnixMs};
use futures::future::join_all;

use super::field::{Field, caller, until_all_went_out};
use crate::contract::fixture::acme;
use crate::contract::schedules::schedule;

const ITEMS: usize = 10_000;
/// Added while the others come due.
const MORE: usize = 1_000;
/// Every so many of them is taken back.
const TAKEN_BACK: usize = 7;
/// From where on the two happen, and until when.
const BEFORE: Duration = Duration::from_millis(1_500);

/// What became of a wish to take something back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    /// Answered before it was due: it must not go out.
    InTime,
    /// Answered later, as done: it must not go out either.
    Done,
    /// It may have gone out.
    TooLate,
}

type Backs = Mutex<BTreeMap<NotificationId, Back>>;

async fn accept(field: &Field, due: UnixMs, numbers: std::ops::Range<usize>) -> Vec<NotificationId> {
    let at = belfry::intake::instant::rfc3339(due);
    let body = format!(
        r#"{{"class":"receipt","send_at":"{at}","to":{{"email":"ann@example.com"}},"content":{{"subject":"S","text":"T"}}}}"#
    );
    let (intake, caller) = (&field.node(numbers.start).intake, caller());
    let candidates = {
        let (node, stored) = (json::parse(body.as_bytes()).unwrap(), Stored::default());
        let one = |number: usize| {
            let arrival = Arrival { key: format!("item-{number}"), via: Hop::Batch, traceparent: None };
            intake.prepare(Asker { caller: &caller, stored: &stored }, &arrival, &node, None)
        };
        numbers.map(one).collect()
    };
    let answers = intake.accept(&caller, candidates).await.unwrap();
    let id = |answer: Answer| match answer {
        Answer::Created(receipt) => receipt.id.parse().unwrap(),
        other => panic!("{other:?}"),
    };
    answers.into_iter().map(id).collect()
}

/// In batches, some at a time.
async fn accept_all(field: &Field, due: UnixMs, numbers: std::ops::Range<usize>) -> Vec<NotificationId> {
    let mut ids = Vec::new();
    let starts: Vec<usize> = numbers.clone().step_by(MOST_ITEMS).collect();
    for some in starts.chunks(8) {
        let batches = some.iter().map(|start| accept(field, due, *start..numbers.end.min(start + MOST_ITEMS)));
        ids.extend(join_all(batches).await.into_iter().flatten());
    }
    ids
}

/// Takes them back one after the other: the first before they are due, the last after.
async fn cancel_all(field: &Field, due: UnixMs, ids: &[NotificationId], backs: &Backs) {
    for (number, id) in ids.iter().enumerate() {
        let (cancelled, _) = field.node(number).intake.cancel(&caller(), *id, "no more").await.unwrap().unwrap();
        let back = match (field.clock.now() < due, cancelled.cancelled.len()) {
            (true, _) => Back::InTime,
            (false, 1) => Back::Done,
            (false, _) => Back::TooLate,
        };
        backs.lock().unwrap().insert(*id, back);
    }
}

fn not_in(all: &[NotificationId], backs: &Backs) -> Vec<NotificationId> {
    let backs = backs.lock().unwrap();
    all.iter().copied().filter(|id| !backs.contains_key(id)).collect()
}

/// Each once, none early, what was taken back never.
fn check(field: &Field, due: UnixMs, all: &[NotificationId], backs: &Backs) {
    let (seen, backs) = (field.sink.seen(), backs.lock().unwrap());
    for id in all {
        let times = seen.get(id).map_or(0, |(times, _)| *times);
        match backs.get(id) {
            None => assert_eq!(times, 1, "{id}"),
            Some(Back::InTime | Back::Done) => assert_eq!(times, 0, "{id} was taken back"),
            Some(Back::TooLate) => assert!(times <= 1, "{id}"),
        }
    }
    for (id, (_, at)) in &seen {
        assert!(*at >= due, "{id} went out {:?} early", due.since(*at));
        assert!(all.contains(id), "{id} was never asked for");
    }
    let in_time = backs.values().filter(|back| **back == Back::InTime).count();
    assert!(in_time > 0, "nothing was taken back in time");
}

async fn items(field: Field) {
    let due = field.full_minute();
    let ids = accept_all(&field, due, 0..ITEMS).await;
    let backs = Backs::default();
    let taken_back: Vec<_> = ids.iter().copied().step_by(TAKEN_BACK).collect();
    field.go_to(BEFORE, due);
    let ((), more) = tokio::join!(cancel_all(&field, due, &taken_back, &backs), accept_slowly(&field, due));
    let all = [ids, more].concat();
    until_all_went_out(&field, &not_in(&all, &backs));
    check(&field, due, &all, &backs);
}

async fn accept_slowly(field: &Field, due: UnixMs) -> Vec<NotificationId> {
    let mut ids = Vec::new();
    for start in (ITEMS..ITEMS + MORE).step_by(10) {
        ids.extend(accept(field, due, start..start + 10).await);
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_16_ten_thousand_items_of_one_millisecond_in_sqlite() {
    items(Field::over_a_file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_16_ten_thousand_items_of_one_millisecond_in_redis() {
    items(Field::over_redis().await).await;
}

/// One run each, at `due`.
fn once(number: usize, due: UnixMs) -> Schedule {
    Schedule {
        cron: "* * * * *".into(),
        time_zone: "UTC".into(),
        until: Some(due),
        next: Some(due),
        notification: r#"{"class":"marketing","to":{"email":"ann@example.com"},"content":{"subject":"S","text":"T"}}"#
            .into(),
        ..schedule(&format!("s{number}"), 0)
    }
}

async fn keep(field: &Field, due: UnixMs, number: usize) -> NotificationId {
    let new = once(number, due);
    let store = &field.node(number).store;
    assert_eq!(store.write_schedule(&acme(), &new.name, None, Some(&new)).await, Ok(Wrote::Done));
    new.notification_id(due)
}

/// Removes some and pauses others, the first before they are due.
async fn stop_all(field: &Field, due: UnixMs, numbers: &[usize], backs: &Backs) {
    for (nth, number) in numbers.iter().enumerate() {
        let (desk, name) = (&field.node(nth).desk, format!("s{number}"));
        if nth % 2 == 0 {
            desk.remove(&caller(), &name).await.unwrap();
        } else {
            desk.pause(&caller(), &name).await.unwrap().unwrap();
        }
        let back = if field.clock.now() < due { Back::InTime } else { Back::TooLate };
        backs.lock().unwrap().insert(once(*number, due).notification_id(due), back);
    }
}

async fn schedules(field: Field) {
    let due = field.full_minute();
    let mut ids = Vec::new();
    for start in (0..ITEMS - MORE).step_by(200) {
        ids.extend(join_all((start..(start + 200).min(ITEMS - MORE)).map(|number| keep(&field, due, number))).await);
    }
    let backs = Backs::default();
    let stopped: Vec<usize> = (0..ids.len()).step_by(TAKEN_BACK).collect();
    field.go_to(BEFORE, due);
    let (mut more, mut stops) = (Vec::new(), stopped.chunks(8));
    for start in (ITEMS - MORE..ITEMS).step_by(8) {
        let some = stops.next().unwrap_or_default();
        let ((), kept) = tokio::join!(
            stop_all(&field, due, some, &backs),
            join_all((start..(start + 8).min(ITEMS)).map(|number| keep(&field, due, number)))
        );
        more.extend(kept);
    }
    for some in stops {
        stop_all(&field, due, some, &backs).await;
    }
    let all = [ids, more].concat();
    until_all_went_out(&field, &not_in(&all, &backs));
    check(&field, due, &all, &backs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_16_ten_thousand_schedules_of_one_millisecond_in_sqlite() {
    schedules(Field::over_a_file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_16_ten_thousand_schedules_of_one_millisecond_in_redis() {
    schedules(Field::over_redis().await).await;
}
