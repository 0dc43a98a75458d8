//! Schedules over HTTP: what is kept, what is refused, and what their next runs are.

use std::time::Duration;

use belfry::facts::{Fact, ScheduleNews};
use belfry::intake::instant::{read, rfc3339};
use belfry::ports::admin::Can;
use belfry::ports::clock::Clock as _;
use belfry_domain::UnixMs;
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const ALL_OF_THEM: &str = "/v1/schedules";

pub(super) async fn put(bed: &Bed, name: &str, body: &Value) -> Told {
    bed.ask(Method::PUT, &format!("{ALL_OF_THEM}/{name}")).json(body).told().await
}

pub(super) async fn kept(bed: &Bed, name: &str, body: &Value) -> Value {
    let told = put(bed, name, body).await;
    assert!(told.status.is_success(), "{}", told.text);
    told.json()
}

pub(super) async fn shown(bed: &Bed, name: &str) -> Value {
    let told = bed.get(&format!("{ALL_OF_THEM}/{name}")).await;
    assert_eq!(told.status, 200, "{}", told.text);
    told.json()
}

async fn ask(bed: &Bed, verb: &str, name: &str) -> Told {
    bed.ask(Method::POST, &format!("{ALL_OF_THEM}/{name}/{verb}")).told().await
}

pub(super) fn mail() -> Value {
    json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

/// Every minute.
pub(super) fn minutely() -> Value {
    json!({"cron": "* * * * *", "time_zone": "UTC", "notification": mail()})
}

pub(super) fn news(bed: &Bed) -> Vec<ScheduleNews> {
    let of_schedules = |fact| if let Fact::Schedule { news, .. } = fact { Some(news) } else { None };
    bed.told_facts().into_iter().filter_map(of_schedules).collect()
}

/// A clock that stands at the beginning of a minute.
pub(super) async fn at_a_full_minute() -> Bed {
    let bed = Bed::planned(Plan { still: true, ..Plan::default() }).await;
    let into = bed.clock.now().0.rem_euclid(60_000);
    bed.clock.forward(Duration::from_millis(u64::try_from(60_000 - into).unwrap()));
    bed
}

#[tokio::test]
async fn a_schedule_is_kept_changed_paused_and_removed() {
    let bed = at_a_full_minute().await;
    let now = bed.clock.now();
    let at = |minutes: i64| rfc3339(UnixMs(now.0 + minutes * 60_000));
    let local = |minutes: i64| at(minutes)[..19].to_owned();
    let mut body = minutely();
    body["notification"]["reference"] = "weekly".into();
    let told = put(&bed, "every-minute", &body).await;
    let first = told.json();
    assert_eq!(told.status, 201, "{first}");
    let runs: Vec<Value> = (1..=5).map(|nth| json!({"at": at(nth), "local": local(nth)})).collect();
    let by = &first["changed_by"];
    let expected = json!({"name": "every-minute", "state": "active", "cron": "* * * * *", "time_zone": "UTC",
        "missed": {"policy": "skip"}, "notification": {"class": "receipt", "reference": "weekly"}, "next_runs": runs,
        "missed_runs": 0, "created_at": at(0), "changed_at": at(0), "changed_by": by});
    assert_eq!(first, expected);
    assert!(by.as_str().unwrap().starts_with("key_"));
    // Again, and read.
    bed.clock.forward(Duration::from_secs(1));
    let again = put(&bed, "every-minute", &body).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first.clone()));
    assert_eq!(shown(&bed, "every-minute").await, first);

    let paused = ask(&bed, "pause", "every-minute").await.json();
    let since = rfc3339(bed.clock.now());
    assert_eq!((&paused["state"], &paused["next_runs"]), (&json!("paused"), &json!([])));
    assert_eq!((&paused["paused_since"], &paused["paused_by"]), (&json!(since), by));
    bed.clock.forward(Duration::from_secs(1));
    assert_eq!(ask(&bed, "pause", "every-minute").await.json(), paused);
    // A put that says nothing of it leaves it so.
    assert_eq!(kept(&bed, "every-minute", &body).await["state"], "paused");
    bed.clock.forward(Duration::from_secs(150));
    let resumed = ask(&bed, "resume", "every-minute").await.json();
    assert_eq!((&resumed["state"], &resumed["next_runs"][0]["at"]), (&json!("active"), &json!(at(3))));
    body["enabled"] = false.into();
    assert_eq!(kept(&bed, "every-minute", &body).await["state"], "paused");
    body["enabled"] = true.into();
    body["cron"] = "0 0 1 1 *".into();
    body["until"] = "9998-01-01T00:00:00Z".into();
    body["missed"] = json!({"policy": "catch_up", "most": 3});
    let changed = kept(&bed, "every-minute", &body).await;
    assert_eq!((&changed["state"], &changed["missed"]), (&json!("active"), &body["missed"]));
    assert!(changed["next_runs"][0]["local"].as_str().unwrap().ends_with("-01-01T00:00:00"), "{changed}");
    assert_eq!((&changed["created_at"], &changed["until"]), (&json!(at(0)), &json!("9998-01-01T00:00:00.000Z")));

    for _ in 0..2 {
        let gone = bed.ask(Method::DELETE, &format!("{ALL_OF_THEM}/every-minute")).told().await;
        assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    }
    for told in [bed.get(&format!("{ALL_OF_THEM}/every-minute")).await, ask(&bed, "pause", "every-minute").await] {
        assert_eq!(told.problem(), (404, "not_found".into()));
    }
    let by = || by.as_str().unwrap().to_owned();
    let set = || ScheduleNews::Set { by: by() };
    let expected = [
        set(),
        ScheduleNews::Paused { by: by() },
        ScheduleNews::Resumed { by: by() },
        set(),
        set(),
        ScheduleNews::Removed { by: by() },
    ];
    assert_eq!(news(&bed), expected);
}

#[tokio::test]
async fn case_79_next_runs_say_when_and_what_clocks_show_there() {
    let bed = Bed::new().await;
    let put = json!({"cron": "30 2 8 3 *", "time_zone": "America/New_York", "notification": mail()});
    // The second Sunday of March 2026, 2037 and 2043 is the 8th: clocks jump over 02:30.
    let runs = kept(&bed, "yearly", &put).await["next_runs"].clone();
    for run in runs.as_array().unwrap() {
        let (at, shown) = (run["at"].as_str().unwrap(), run["local"].as_str().unwrap());
        let jumps = ["2026", "2037", "2043"].iter().any(|year| at.starts_with(year));
        let (hour, local) =
            if jumps { ("T07:00:00.000Z", "-03-08T03:00:00") } else { ("T07:30:00.000Z", "-03-08T02:30:00") };
        assert!(at.ends_with(hour) && shown.ends_with(local), "{run}");
    }
    assert_eq!(runs.as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn what_would_be_refused_at_a_run_is_refused_now_and_a_dry_run_keeps_nothing() {
    let bed = Bed::new().await;
    let wrong = json!({"cron": "61 * * * *", "time_zone": "Mars/Olympus", "missed": {"policy": "later", "most": 0},
        "until": "soon", "enabled": "yes", "colour": "red",
        "notification": {"class": "advert", "to": {"email": "nobody"}, "template": "no_such", "unique": "u",
            "send_at": "2026-01-01T00:00:00Z", "expires_at": "2100-01-01T00:00:00Z", "intent_at": "2026-01-01T00:00:00Z"}});
    for path in ["bad", "bad?dry_run=true"] {
        let told = put(&bed, path, &wrong).await;
        assert_eq!(told.problem(), (422, "invalid".into()));
        let pointers = told.pointers();
        let expected = [
            "/colour",
            "/cron",
            "/enabled",
            "/missed/policy",
            "/notification/class",
            "/notification/expires_at",
            "/notification/intent_at",
            "/notification/send_at",
            "/notification/template",
            "/notification/to/email",
            "/notification/unique",
            "/time_zone",
            "/until",
        ];
        assert_eq!(pointers, expected, "{}", told.text);
    }
    let told = put(&bed, "bad", &json!({})).await;
    assert_eq!(told.pointers(), ["/cron", "/notification", "/time_zone"]);
    for (member, value, pointer) in [
        ("until", json!("2020-01-01T00:00:00Z"), "/until"),
        ("missed", json!({"policy": "catch_up"}), "/missed/most"),
        ("missed", json!({"policy": "catch_up", "most": 101}), "/missed/most"),
        ("missed", json!({"policy": "skip", "most": 1}), "/missed/most"),
        ("cron", json!("0 0 30 2 *"), "/cron"),
        (
            "notification",
            json!({"class": "receipt", "to": {"recipient": "nobody"}, "content": {"text": "T"}}),
            "/notification/to",
        ),
    ] {
        let mut body = minutely();
        body[member] = value;
        let told = put(&bed, "bad", &body).await;
        assert_eq!(told.problem(), (422, "invalid".into()), "{body}");
        assert!(told.pointers().iter().any(|one| one == pointer), "{}", told.text);
    }
    let mut large = minutely();
    large["notification"]["content"]["text"] = "x".repeat(32 * 1024).into();
    assert_eq!(put(&bed, "bad", &large).await.pointers(), ["/notification"]);
    for name in ["Bad", "a%20b", "-a", &"a".repeat(65)] {
        let told = put(&bed, name, &minutely()).await;
        assert_eq!((told.problem().0, told.pointers()), (422, vec!["/path/name".to_owned()]), "{name}");
    }
    assert_eq!(put(&bed, "bad?dry_run=perhaps", &minutely()).await.problem(), (400, "bad_parameter".into()));

    let dry = put(&bed, "dry?dry_run=true", &minutely()).await;
    assert_eq!((dry.status.as_u16(), dry.json()["next_runs"].as_array().unwrap().len()), (200, 5), "{}", dry.text);
    assert_eq!(bed.get(ALL_OF_THEM).await.json(), json!({"data": [], "has_more": false}));
    assert_eq!(news(&bed), []);
}

#[tokio::test]
async fn schedules_are_listed_by_name_and_are_their_owner_s_alone() {
    let bed = Bed::new().await;
    for name in ["b", "a", "c"] {
        kept(&bed, name, &minutely()).await;
    }
    let names = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let page = bed.get(&format!("{ALL_OF_THEM}?limit=2")).await.json();
    assert_eq!((names(&page), &page["next_cursor"]), (vec!["a".to_owned(), "b".to_owned()], &json!("b")));
    let rest = bed.get(&format!("{ALL_OF_THEM}?limit=2&cursor=b")).await.json();
    assert_eq!((names(&rest), &rest["has_more"]), (vec!["c".to_owned()], &json!(false)));
    for bad in ["limit=0", "limit=101", "cursor=%21", "order=desc"] {
        assert_eq!(bed.get(&format!("{ALL_OF_THEM}?{bad}")).await.problem(), (400, "bad_parameter".into()), "{bad}");
    }
    let theirs = bed.make_key("other", "live", "main", super::bed::ALL).await;
    let staging = bed.make_key("acme", "staging", "main", super::bed::ALL).await;
    let reads = bed.make_key("acme", "live", "main", &[Can::Read]).await;
    let bed = Bed { key: theirs, ..bed };
    assert_eq!(bed.get(ALL_OF_THEM).await.json()["data"], json!([]));
    assert_eq!(bed.get(&format!("{ALL_OF_THEM}/a")).await.problem(), (404, "not_found".into()));
    let bed = Bed { key: staging, ..bed };
    assert_eq!(bed.get(&format!("{ALL_OF_THEM}/a")).await.problem(), (404, "not_found".into()));
    let bed = Bed { key: reads, ..bed };
    assert_eq!(shown(&bed, "a").await["state"], "active");
    assert_eq!(put(&bed, "a", &minutely()).await.problem(), (403, "forbidden".into()));
    assert_eq!(ask(&bed, "pause", "a").await.problem(), (403, "forbidden".into()));
}

#[tokio::test]
async fn case_79_send_at_may_be_a_time_of_the_recipient_s_own_day() {
    let bed = Bed::new().await;
    let path = "/v1/recipients/ann";
    let profile = json!({"email": "ann@example.com", "time_zone": "Asia/Kathmandu"});
    assert!(bed.ask(Method::PUT, path).json(&profile).told().await.status.is_success());
    let day = rfc3339(UnixMs(bed.clock.now().0 + 10 * 86_400_000))[..10].to_owned();
    let local = |day: &str| json!({"local": format!("{day}T09:00:00")});
    let sent_at = async |key: &str, to: Value, send_at: Value| {
        let mut body = mail();
        (body["to"], body["send_at"]) = (to, send_at);
        let told = bed.send(key, &body).await;
        assert_eq!(told.status, 202, "{}", told.text);
        let id = told.json()["id"].as_str().unwrap().to_owned();
        bed.get(&format!("/v1/notifications/{id}")).await.json()["send_at"].as_str().unwrap().to_owned()
    };
    // Stored, given, and neither.
    assert_eq!(sent_at("1", json!({"recipient": "ann"}), local(&day)).await, format!("{day}T03:15:00.000Z"));
    let given = json!({"recipient": "ann", "time_zone": "Asia/Tokyo"});
    assert_eq!(sent_at("2", given, local(&day)).await, format!("{day}T00:00:00.000Z"));
    let mut fallback = local(&day);
    fallback["fallback_zone"] = "Asia/Kolkata".into();
    assert_eq!(
        sent_at("3", json!({"email": "bob@example.com"}), fallback.clone()).await,
        format!("{day}T03:30:00.000Z")
    );
    assert_eq!(sent_at("4", json!({"recipient": "ann"}), fallback).await, format!("{day}T03:15:00.000Z"));
    // The same again is a repeat, wherever they have moved since.
    let moved = json!({"email": "ann@example.com", "time_zone": "America/New_York"});
    assert!(bed.ask(Method::PUT, path).json(&moved).told().await.status.is_success());
    let mut body = mail();
    (body["to"], body["send_at"]) = (json!({"recipient": "ann"}), local(&day));
    assert!(bed.send("1", &body).await.replayed());
    let far = rfc3339(UnixMs(bed.clock.now().0 + 92 * 86_400_000))[..10].to_owned();
    for (send_at, pointers) in [
        (local(&day), &["/send_at/local"][..]),
        (json!({"local": "tomorrow", "fallback_zone": "UTC"}), &["/send_at/local"]),
        (json!({"local": "2026-02-30T09:00:00", "fallback_zone": "UTC"}), &["/send_at/local"]),
        (json!({"local": "2026-02-20T09:00:00Z", "fallback_zone": "UTC"}), &["/send_at/local"]),
        (json!({"local": format!("{far}T09:00:00"), "fallback_zone": "UTC"}), &["/send_at/local"]),
        (json!({"local": format!("{day}T09:00:00"), "fallback_zone": "Here"}), &["/send_at/fallback_zone"]),
        (json!({"time": "09:00"}), &["/send_at/local", "/send_at/time"]),
        (json!(9), &["/send_at"]),
    ] {
        let mut body = mail();
        body["send_at"] = send_at;
        let told = bed.send("5", &body).await;
        assert_eq!(
            (told.problem().0, told.pointers()),
            (422, pointers.iter().map(|&it| it.to_owned()).collect()),
            "{body}"
        );
    }
    assert!(read(&format!("{day}T00:00:00Z")).is_some());
}
