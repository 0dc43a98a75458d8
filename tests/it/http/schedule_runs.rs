//! What becomes of the slots of schedules: sent once, refused, missed, stopped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry::facts::ScheduleNews;
use belfry::intake::instant::rfc3339;
use belfry::ports::StoreError;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{Deliveries as _, Owner};
use belfry::ports::holds::Holds as _;
use belfry::ports::schedules::{Schedule, SchedulePage, Schedules, Taken, Wrote};
use belfry::schedules::{Deps, look};
use belfry_domain::timeline::Hop;
use belfry_domain::{NotificationId, UnixMs};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;
use super::schedules::{at_a_full_minute, kept, mail, minutely, news, shown};

const MINUTE: Duration = Duration::from_secs(60);

fn deps(bed: &Bed) -> Deps {
    Deps {
        schedules: bed.store.clone(),
        holds: bed.store.clone(),
        intake: bed.intake.clone(),
        clock: bed.clock.clone(),
        facts: bed.facts.clone(),
    }
}

fn acme() -> Owner {
    Owner { tenant: "acme".into(), environment: "live".into() }
}

/// All notifications, the newest first.
async fn sent(bed: &Bed) -> Vec<Value> {
    bed.get("/v1/notifications").await.json()["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn each_slot_is_sent_once_by_whoever_looks_and_its_run_is_shown() {
    let bed = at_a_full_minute().await;
    kept(&bed, "minutely", &minutely()).await;
    let (one, other) = (deps(&bed), deps(&bed));
    let slot = UnixMs(bed.clock.now().0 + 60_000);
    assert_eq!(look(&one).await, Ok(Some(slot)));
    bed.clock.forward(MINUTE - Duration::from_millis(1));
    assert_eq!(look(&one).await, Ok(Some(slot)));
    assert_eq!(sent(&bed).await.len(), 0, "it is not yet due");
    bed.clock.forward(Duration::from_millis(1));
    let (a, b) = tokio::join!(look(&one), look(&other));
    a.unwrap();
    b.unwrap();
    assert_eq!(look(&one).await, Ok(Some(UnixMs(slot.0 + 60_000))));
    let id = NotificationId::slot("acme", "live", "minutely", slot).to_string();
    let all = sent(&bed).await;
    assert_eq!((all.len(), &all[0]["id"]), (1, &json!(id)));
    let it = bed.get(&format!("/v1/notifications/{id}")).await.json();
    assert_eq!(it["deliveries"][0]["timeline"][0]["via"], Hop::Schedule.name());
    let shown = shown(&bed, "minutely").await;
    let due = rfc3339(slot);
    let run = json!({"due_at": due, "at": due, "outcome": "accepted",
        "notification": {"id": id, "url": format!("/v1/notifications/{id}")}});
    assert_eq!(shown["last_run"], run);
    assert_eq!(shown["next_runs"][0]["at"], rfc3339(UnixMs(slot.0 + 60_000)));
    let expected = ScheduleNews::Sent { notification: id.parse().unwrap(), late: Duration::ZERO };
    assert_eq!(news(&bed)[1..], [expected]);
}

/// Dies after the accept, or is changed by somebody in that moment.
struct Between {
    bed: Arc<belfry::store::sqlite::InlineStore>,
    then: fn(&Schedule) -> Then,
}

enum Then {
    Dies,
    Writes(Option<Box<Schedule>>),
}

#[async_trait]
impl Schedules for Between {
    async fn write_schedule(
        &self,
        owner: &Owner,
        name: &str,
        before: Option<&str>,
        next: Option<&Schedule>,
    ) -> Result<Wrote, StoreError> {
        let kept = self.bed.schedule(owner, name).await?.unwrap();
        match (self.then)(&kept.schedule) {
            Then::Dies => Err(StoreError::Unavailable("gone".into())),
            Then::Writes(changed) => {
                let wrote = self.bed.write_schedule(owner, name, Some(&kept.written), changed.as_deref()).await?;
                assert_eq!(wrote, Wrote::Done);
                self.bed.write_schedule(owner, name, before, next).await
            }
        }
    }

    async fn schedule(&self, owner: &Owner, name: &str) -> Result<Option<belfry::ports::schedules::Kept>, StoreError> {
        self.bed.schedule(owner, name).await
    }

    async fn schedules(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SchedulePage, StoreError> {
        self.bed.schedules(owner, after, limit).await
    }

    async fn take_due(&self, now: UnixMs, again: UnixMs, limit: u16) -> Result<Taken, StoreError> {
        self.bed.take_due(now, again, limit).await
    }
}

async fn between(bed: &Bed, then: fn(&Schedule) -> Then) -> Result<Option<UnixMs>, StoreError> {
    let schedules = Arc::new(Between { bed: bed.store.clone(), then });
    look(&Deps { schedules, ..deps(bed) }).await
}

#[tokio::test]
async fn whoever_dies_after_the_accept_leaves_a_slot_that_is_known() {
    let bed = at_a_full_minute().await;
    kept(&bed, "minutely", &minutely()).await;
    bed.clock.forward(MINUTE);
    between(&bed, |_| Then::Dies).await.unwrap_err();
    assert_eq!(sent(&bed).await.len(), 1);
    // Another is given it after a while. Its text has been changed since.
    assert_eq!(look(&deps(&bed)).await, Ok(Some(UnixMs(bed.clock.now().0 + 5_000))));
    let mut changed = minutely();
    changed["notification"]["content"]["subject"] = "Another".into();
    kept(&bed, "minutely", &changed).await;
    look(&deps(&bed)).await.unwrap();
    let all = sent(&bed).await;
    assert_eq!(all.len(), 1);
    assert_eq!(shown(&bed, "minutely").await["last_run"]["notification"]["id"], all[0]["id"]);
    bed.clock.forward(MINUTE);
    look(&deps(&bed)).await.unwrap();
    assert_eq!(sent(&bed).await.len(), 2);
}

#[tokio::test]
async fn what_is_stopped_while_it_is_sent_does_not_go_out() {
    for (then, state) in [
        ((|_| Then::Writes(None)) as fn(&Schedule) -> Then, "cancelled"),
        (
            |it| {
                let paused = belfry::ports::schedules::Paused { since: UnixMs(1), by: "key_1".into() };
                Then::Writes(Some(Box::new(Schedule { paused: Some(paused), next: None, ..it.clone() })))
            },
            "cancelled",
        ),
        (|it| Then::Writes(Some(Box::new(Schedule { changed_at: UnixMs(1), ..it.clone() }))), "queued"),
    ] {
        let bed = at_a_full_minute().await;
        kept(&bed, "minutely", &minutely()).await;
        bed.clock.forward(MINUTE);
        between(&bed, then).await.unwrap();
        assert_eq!(sent(&bed).await[0]["state"], state);
    }
}

#[tokio::test]
async fn what_is_refused_at_its_slot_is_told_and_holds_up_nothing() {
    let bed = at_a_full_minute().await;
    let path = "/v1/recipients/ann";
    let profile = json!({"email": "ann@example.com"});
    assert!(bed.ask(Method::PUT, path).json(&profile).told().await.status.is_success());
    let mut body = minutely();
    body["notification"]["to"] = json!({"recipient": "ann"});
    kept(&bed, "to-ann", &body).await;
    kept(&bed, "to-bob", &minutely()).await;
    assert!(bed.ask(Method::DELETE, path).told().await.status.is_success());
    bed.clock.forward(MINUTE);
    look(&deps(&bed)).await.unwrap();
    assert_eq!(sent(&bed).await.len(), 1);
    let run = shown(&bed, "to-ann").await;
    assert_eq!((&run["state"], &run["last_run"]["outcome"]), (&json!("active"), &json!("refused")));
    assert_eq!(run["last_run"]["errors"][0]["pointer"], "/notification/to");
    let refused = |news: &ScheduleNews| matches!(news, ScheduleNews::Refused { pointers, .. } if pointers == &["/to"]);
    assert_eq!(news(&bed).iter().filter(|news| refused(news)).count(), 1);
    // And goes on with the next.
    assert!(bed.ask(Method::PUT, path).json(&profile).told().await.status.is_success());
    bed.clock.forward(MINUTE);
    look(&deps(&bed)).await.unwrap();
    assert_eq!(shown(&bed, "to-ann").await["last_run"]["outcome"], "accepted");
}

#[tokio::test]
async fn what_was_missed_is_skipped_or_made_up_for_within_bounds() {
    let bed = at_a_full_minute().await;
    let start = bed.clock.now();
    kept(&bed, "skips", &minutely()).await;
    let mut body = minutely();
    body["missed"] = json!({"policy": "catch_up", "most": 3});
    kept(&bed, "catches-up", &body).await;
    bed.clock.forward(MINUTE * 10 + Duration::from_secs(20));
    look(&deps(&bed)).await.unwrap();
    let slots = |name: &str, minutes: &[i64]| -> Vec<String> {
        let slot = |minute: &i64| NotificationId::slot("acme", "live", name, UnixMs(start.0 + minute * 60_000));
        minutes.iter().map(|minute| slot(minute).to_string()).collect()
    };
    let mut expected = [slots("skips", &[10]), slots("catches-up", &[8, 9, 10])].concat();
    let mut all: Vec<String> = sent(&bed).await.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    expected.sort();
    all.sort();
    assert_eq!(all, expected);
    for (name, missed) in [("skips", 9), ("catches-up", 7)] {
        let shown = shown(&bed, name).await;
        assert_eq!(
            (&shown["missed_runs"], &shown["next_runs"][0]["at"]),
            (&json!(missed), &json!(rfc3339(UnixMs(start.0 + 660_000))))
        );
        assert_eq!(shown["last_run"]["due_at"], rfc3339(UnixMs(start.0 + 600_000)));
    }
    // A day later nothing is on time.
    bed.clock.forward(MINUTE * (24 * 60));
    let mut hourly = minutely();
    hourly["cron"] = "0 0 * * *".into();
    kept(&bed, "skips", &hourly).await;
    assert_eq!(shown(&bed, "skips").await["missed_runs"], 9, "what is changed begins anew");
}

#[tokio::test]
async fn what_was_due_before_the_store_was_restored_is_let_go() {
    let bed = at_a_full_minute().await;
    let mut body = minutely();
    body["missed"] = json!({"policy": "catch_up", "most": 10});
    kept(&bed, "minutely", &body).await;
    bed.clock.forward(MINUTE * 3);
    bed.store.hold(bed.clock.now()).await.unwrap();
    bed.clock.forward(MINUTE);
    look(&deps(&bed)).await.unwrap();
    assert_eq!(sent(&bed).await.len(), 1);
    assert_eq!(shown(&bed, "minutely").await["missed_runs"], 3);
}

#[tokio::test]
async fn after_its_last_slot_it_is_over() {
    let bed = at_a_full_minute().await;
    let mut body = minutely();
    body["until"] = rfc3339(UnixMs(bed.clock.now().0 + 90_000)).into();
    body["notification"] = mail();
    kept(&bed, "twice", &body).await;
    for _ in 0..3 {
        bed.clock.forward(MINUTE);
        look(&deps(&bed)).await.unwrap();
    }
    let shown = shown(&bed, "twice").await;
    assert_eq!((&shown["state"], &shown["next_runs"]), (&json!("over"), &json!([])));
    assert_eq!(sent(&bed).await.len(), 1);
    assert_eq!(news(&bed).last(), Some(&ScheduleNews::Over));
    let id = shown["last_run"]["notification"]["id"].as_str().unwrap().parse().unwrap();
    assert!(bed.store.read(&acme(), id).await.unwrap().is_some());
}
