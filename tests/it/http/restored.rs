//! What is held since the store was restored from a backup.

use std::time::Duration;

use belfry::facts::Fact;
use belfry::intake::instant::rfc3339;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{ClaimAsk, Deliveries as _};
use belfry::ports::holds::Holds as _;
use belfry::ports::policy::OUTBOX;
use belfry_domain::{Lane, Priority};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";

fn mail(class: &str) -> Value {
    json!({"class": class, "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

/// Asked with the operator's key.
async fn bed() -> Bed {
    let bed = Bed::planned(Plan { bootstrap: Some(OPERATOR.into()), ..Plan::default() }).await;
    Bed { key: OPERATOR.into(), ..bed }
}

/// Accepts `receipts` and one of marketing, and holds them. Returns that moment.
async fn held(bed: &Bed, receipts: usize) -> String {
    for number in 0..receipts {
        bed.send(&format!("r{number}"), &mail("receipt")).await;
    }
    bed.send("m", &mail("marketing")).await;
    let at = bed.store.hold(bed.clock.now()).await.unwrap();
    // What was seen of holds before is old by now.
    bed.clock.forward(Duration::from_secs(2));
    rfc3339(at)
}

async fn post(bed: &Bed, path: &str, body: Value) -> Told {
    bed.ask(Method::POST, path).json(&body).told().await
}

async fn claimable(bed: &Bed) -> usize {
    let lanes = [Priority::High, Priority::Normal, Priority::Low].map(|priority| (Lane::new(OUTBOX, priority), 50));
    let nonce = getrandom::u64().unwrap();
    let ask = ClaimAsk { worker: "w1".into(), nonce, lanes: lanes.to_vec(), alone: false };
    bed.store.claim(ask).await.unwrap().claims.len()
}

#[tokio::test]
async fn what_is_held_is_counted_by_class_and_says_why_it_waits() {
    let bed = bed().await;
    let nothing = bed.get("/v1/restore").await.json();
    assert_eq!((&nothing["held"], nothing.get("restored_at")), (&json!(0), None));
    let at = held(&bed, 2).await;
    let told = bed.get("/v1/restore").await.json();
    assert_eq!(told["restored_at"], at);
    assert_eq!((&told["held"], &told["has_more"]), (&json!(3), &json!(false)));
    let count = |class: &str, held: u64| json!({"class": class, "channel": "email", "held": held, "expired": 0});
    assert_eq!(told["counted"], json!([count("marketing", 1), count("receipt", 2)]));
    let sample = told["sample"].as_array().unwrap();
    assert_eq!(sample.len(), 3);
    assert!(!told.to_string().contains("example.com"), "no address: {told}");
    let id = sample[0]["id"].as_str().unwrap();
    let delivery = bed.get(&format!("/v1/deliveries/{id}")).await.json()["deliveries"][0].clone();
    let reason = delivery["reason"].as_str().unwrap();
    assert!(reason.contains(&at) && reason.contains("belfry restored"), "{reason}");
    let listed = bed.get("/v1/notifications").await.json()["data"][0]["deliveries"][0]["reason"].clone();
    assert_eq!(listed, delivery["reason"]);
    let ready = bed.get("/readyz?verbose").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["checks"][2]["name"]), (200, &json!("restore")));
    // A repeat gets the first answer, whatever has become of it since.
    let again = bed.send("m", &mail("marketing")).await;
    assert!(again.replayed() && again.text.contains("Waiting for a worker."), "{again:?}");
    // Past its expiry it will not go out when it is released.
    bed.clock.forward(2 * DAY);
    assert_eq!(bed.get("/v1/restore").await.json()["counted"][1]["expired"], 2);
}

#[tokio::test]
async fn a_release_lets_everything_go_once() {
    let bed = bed().await;
    let at = held(&bed, 2).await;
    assert_eq!(claimable(&bed).await, 0);
    let stale = post(&bed, "/v1/restore/release", json!({"restored_at": "2026-01-01T00:00:00Z"})).await;
    assert_eq!(stale.problem(), (409, "hold_moved".into()));
    let done = post(&bed, "/v1/restore/release", json!({"restored_at": at})).await;
    assert_eq!((done.json(), done.replayed()), (json!({"restored_at": at, "released": true}), false));
    let again = post(&bed, "/v1/restore/release", json!({"restored_at": at})).await;
    assert_eq!((again.json(), again.replayed()), (done.json(), true));
    assert_eq!(claimable(&bed).await, 3);
    let told: Vec<Fact> =
        bed.told_facts().into_iter().filter(|fact| matches!(fact, Fact::HoldReleased { .. })).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn a_cancellation_ends_what_it_names_and_can_be_repeated() {
    let bed = bed().await;
    let at = held(&bed, 2).await;
    let body = json!({"restored_at": at, "classes": ["marketing"], "why": "They have it."});
    for cancelled in [1, 0] {
        let told = post(&bed, "/v1/restore/cancel", body.clone()).await.json();
        assert_eq!(told, json!({"cancelled": cancelled, "left": 2, "has_more": false}));
    }
    let notification = bed.send("m", &mail("marketing")).await.json()["id"].as_str().unwrap().to_owned();
    let ended = bed.ask(Method::GET, &format!("/v1/notifications/{notification}")).told().await.json();
    let delivery = &ended["deliveries"][0];
    assert_eq!(delivery["state"], "cancelled");
    let reason = delivery["reason"].as_str().unwrap();
    assert_eq!(reason, format!("Cancelled: held since the store was restored from a backup at {at}: They have it."));
    let asked = &delivery["timeline"][1];
    assert_eq!((&asked["what"], asked["by"].is_string()), (&json!("stop_asked"), true), "{asked}");
    post(&bed, "/v1/restore/release", json!({"restored_at": at})).await;
    assert_eq!(claimable(&bed).await, 2);
}

#[tokio::test]
async fn it_takes_an_operators_key_and_the_hold_as_it_was_seen() {
    let bed = bed().await;
    let at = held(&bed, 1).await;
    let tenants = bed.make_key("acme", "live", "main", ALL).await;
    let mine = Bed { key: tenants, ..bed };
    assert_eq!(mine.get("/v1/restore").await.problem(), (403, "forbidden".into()));
    for path in ["/v1/restore/release", "/v1/restore/cancel"] {
        assert_eq!(post(&mine, path, json!({"restored_at": at})).await.problem(), (403, "forbidden".into()));
    }
    let bed = Bed { key: OPERATOR.into(), ..mine };
    for (path, body, pointer) in [
        ("/v1/restore/release", json!({}), "/restored_at"),
        ("/v1/restore/release", json!({"restored_at": "soon"}), "/restored_at"),
        ("/v1/restore/release", json!({"restored_at": at, "classes": ["x"]}), "/classes"),
        ("/v1/restore/cancel", json!({"restored_at": at, "classes": []}), "/classes"),
        ("/v1/restore/cancel", json!({"restored_at": at, "classes": [7]}), "/classes/0"),
    ] {
        let told = post(&bed, path, body.clone()).await;
        assert_eq!((told.problem().0, told.pointers()), (422, vec![pointer.to_owned()]), "{body}");
    }
    assert_eq!(claimable(&bed).await, 0);
}

#[tokio::test]
async fn much_is_counted_and_cancelled_call_by_call() {
    const MANY: usize = 1_100;
    let bed = bed().await;
    let items: Vec<Value> = (0..MANY)
        .map(|number| {
            let mut item = mail("receipt");
            item["key"] = format!("b{number}").into();
            item
        })
        .collect();
    for batch in items.chunks(550) {
        let told = bed.ask(Method::POST, "/v1/notifications/batch").json(&json!({"items": batch})).told().await;
        assert_eq!(told.status.as_u16(), 200);
    }
    let at = held(&bed, 0).await;
    let (mut counted, mut cursor, mut calls) = (0, String::new(), 0);
    loop {
        let page = bed.get(&format!("/v1/restore{cursor}")).await.json();
        assert_eq!(page["held"], MANY + 1);
        counted += page["counted"].as_array().unwrap().iter().map(|one| one["held"].as_u64().unwrap()).sum::<u64>();
        calls += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("?cursor={next}");
    }
    assert_eq!((counted, calls), (MANY as u64 + 1, 2));
    let (mut cancelled, mut calls, mut body) = (0, 0, json!({"restored_at": at}));
    loop {
        let page = post(&bed, "/v1/restore/cancel", body.clone()).await.json();
        cancelled += page["cancelled"].as_u64().unwrap();
        calls += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        body["cursor"] = next.into();
    }
    assert_eq!((cancelled, calls), (MANY as u64 + 1, 3));
    assert_eq!(bed.get("/v1/restore").await.json()["held"], 0);
}
