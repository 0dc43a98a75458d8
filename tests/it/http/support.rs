//! What a support agent is told: whom a notification was for, where it went, and what was left out.

use std::time::Duration;

use belfry::intake::address;
use belfry::intake::canonical::Secret;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{Deliveries as _, Owner, PurgeAsk};
use belfry::ports::recipients::{DeadToken, Recipients as _};
use belfry_domain::device::TokenFault;
use belfry_domain::{ChannelKind, DeliveryId, Event, NotificationId};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const APP: &str = "com.example.app";

/// Names may be addresses.
const ANN: &str = "ann@example.com";

fn hex(number: u8) -> String {
    format!("{number:02x}").repeat(32)
}

async fn register(bed: &Bed, device: &str, body: &Value) {
    let path = format!("/v1/recipients/{ANN}/devices/{device}");
    let told = bed.ask(Method::PUT, &path).json(body).told().await;
    assert!(told.status.is_success(), "{}", told.text);
}

/// As a provider says it of an APNs token.
async fn bury(bed: &Bed, device: &str, token: &str, fault: TokenFault) -> String {
    let (notification, at) = (NotificationId::http("acme", "live", "main", "x"), bed.clock.now());
    bed.clock.forward(Duration::from_secs(1));
    let word = DeadToken {
        kind: ChannelKind::Apns,
        app: None,
        environment: None,
        recipient: Some(ANN.into()),
        device: Some(device.into()),
        hash: address::hash(&Secret::new(&[7; 32]), ChannelKind::Apns, token),
        token_sha256: "0f".repeat(32),
        fault,
        since: Some(at),
        heard_at: at,
        notification,
        delivery: DeliveryId::of(notification, "apns", "device"),
    };
    assert!(bed.store.bury(&Owner { tenant: "acme".into(), environment: "live".into() }, &word).await.unwrap());
    belfry::intake::instant::rfc3339(at)
}

fn push(to: &Value) -> Value {
    json!({"class": "receipt", "to": to, "channels": ["push"], "content": {"push": {"title": "T"}}})
}

async fn accepted_as(bed: &Bed, key: &str, body: &Value) -> (String, Told) {
    let told = bed.send(key, body).await;
    assert_eq!(told.status, 202, "{}", told.text);
    (told.json()["id"].as_str().unwrap().to_owned(), told)
}

async fn seen(bed: &Bed, id: &str) -> Value {
    bed.get(&format!("/v1/notifications/{id}")).await.json()
}

async fn search(bed: &Bed, body: &Value) -> Value {
    let told = bed.ask(Method::POST, "/v1/notifications/search").json(body).told().await;
    assert_eq!(told.status, 200, "{}", told.text);
    told.json()
}

fn ids(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_named_a_recipient_is_found_by_it_newest_first() {
    let bed = Bed::new().await;
    register(&bed, "phone", &json!({"kind": "apns", "token": hex(1)})).await;
    let mut sent = Vec::new();
    for key in ["a", "b", "c"] {
        sent.insert(0, accepted_as(&bed, key, &push(&json!({"recipient": ANN}))).await.0);
    }
    // Named, though everything comes with the request and nothing is stored.
    let mail = json!({"class": "marketing", "to": {"recipient": "bob", "email": ANN},
        "content": {"subject": "S", "text": "T"}});
    let (to_bob, _) = accepted_as(&bed, "d", &mail).await;
    assert_eq!(ids(&search(&bed, &json!({"recipient": ANN})).await), sent);
    assert_eq!(ids(&search(&bed, &json!({"recipient": "bob"})).await), [to_bob.as_str()]);
    assert_eq!(ids(&search(&bed, &json!({"recipient": "bob", "class": "receipt"})).await), Vec::<&str>::new());
    assert_eq!(ids(&search(&bed, &json!({"recipient": "carl"})).await), Vec::<&str>::new());
    let first = search(&bed, &json!({"recipient": ANN, "limit": 2})).await;
    assert_eq!((ids(&first), &first["data"][0]["recipient"]), (vec![&*sent[0], &*sent[1]], &json!(ANN)));
    let rest = search(&bed, &json!({"recipient": ANN, "cursor": first["next_cursor"]})).await;
    assert_eq!(ids(&rest), [sent[2].as_str()]);
    // In no URL of ours.
    let told = bed.get(&format!("/v1/notifications?recipient={ANN}")).await;
    assert_eq!(told.problem(), (400, "bad_parameter".into()));
    let told = bed.ask(Method::POST, "/v1/notifications/search").json(&json!({"recipient": ""})).told().await;
    assert_eq!((told.problem().0, told.pointers()), (422, vec!["/recipient".to_owned()]));
    // What is still under way for a person is cancelled by the same filter.
    let body = json!({"filter": {"recipient": "bob"}, "why": "He asked"});
    let told = bed.ask(Method::POST, "/v1/cancellations").json(&body).told().await.json();
    assert_eq!((&told["ids"], &told["cancelled"]), (&json!([to_bob]), &json!(1)));
    let test = bed.make_key("acme", "test", "main", ALL).await;
    let test = Bed { key: test, ..bed };
    assert_eq!(ids(&search(&test, &json!({"recipient": ANN})).await), Vec::<&str>::new());
}

#[tokio::test]
async fn a_delivery_says_which_device_it_went_to_also_once_its_content_is_gone() {
    let bed = Bed::new().await;
    register(&bed, "phone", &json!({"kind": "apns", "token": hex(1), "app": APP, "environment": "sandbox"})).await;
    register(&bed, "tablet", &json!({"kind": "fcm", "token": "android-token"})).await;
    let (stored, first) = accepted_as(&bed, "stored", &push(&json!({"recipient": ANN}))).await;
    let own = json!({"devices": [{"kind": "apns", "token": hex(2), "app": APP}, {"kind": "apns", "token": hex(3)}]});
    let (own, _) = accepted_as(&bed, "own", &push(&own)).await;
    let devices = |it: &Value| -> Vec<Value> {
        it["deliveries"].as_array().unwrap().iter().map(|one| one["device"].clone()).collect()
    };
    let shown = [json!({"id": "phone", "app": APP, "environment": "sandbox"}), json!({"id": "tablet"})];
    let whole = seen(&bed, &stored).await;
    assert_eq!((&whole["recipient"], devices(&whole)), (&json!(ANN), shown.to_vec()));
    assert_eq!(whole.get("left_out"), None);
    let whole = seen(&bed, &own).await;
    assert_eq!((whole.get("recipient"), devices(&whole)), (None, vec![json!({"app": APP}), Value::Null]));
    for _ in 0..4 {
        bed.work(called(accepted)).await;
    }
    bed.clock.forward(4 * DAY);
    let ask = PurgeAsk { now: bed.clock.now(), keep_record: 15 * DAY, limit: 100 };
    assert_eq!(bed.store.purge(ask).await.unwrap().contents, 2);
    let whole = seen(&bed, &stored).await;
    assert_eq!((&whole["recipient"], devices(&whole)), (&json!(ANN), shown.to_vec()));
    assert_eq!(ids(&search(&bed, &json!({"recipient": ANN})).await), [stored.as_str()]);
    // The first answer stays what it was.
    let again = bed.send("stored", &push(&json!({"recipient": ANN}))).await;
    assert_eq!((again.replayed(), &again.text), (true, &first.text));
}

#[tokio::test]
async fn what_was_left_out_for_a_dead_token_leaves_a_trace() {
    let bed = Bed::new().await;
    register(&bed, "phone", &json!({"kind": "apns", "token": hex(1)})).await;
    register(&bed, "watch", &json!({"kind": "apns", "token": hex(2)})).await;
    register(&bed, "tablet", &json!({"kind": "fcm", "token": "android-token"})).await;
    let phone = bury(&bed, "phone", &hex(1), TokenFault::Unregistered).await;
    let body = push(&json!({"recipient": ANN}));
    let (id, first) = accepted_as(&bed, "one", &body).await;
    let dead = json!({"device": "phone", "kind": "apns", "why": "dead", "since": phone});
    let whole = seen(&bed, &id).await;
    assert_eq!((&whole["left_out"], whole["deliveries"].as_array().unwrap().len()), (&json!([dead]), 2));
    // What becomes of the device later changes neither the trace nor the first answer.
    register(&bed, "phone", &json!({"kind": "apns", "token": hex(1)})).await;
    let again = bed.send("one", &body).await;
    assert_eq!((again.replayed(), &again.text), (true, &first.text));
    assert_eq!(seen(&bed, &id).await["left_out"], json!([dead]));
    let watch = bury(&bed, "watch", &hex(2), TokenFault::BadToken).await;
    let (id, _) = accepted_as(&bed, "two", &push(&json!({"recipient": ANN}))).await;
    let refused = json!({"device": "watch", "kind": "apns", "why": "quarantined", "since": watch});
    assert_eq!(seen(&bed, &id).await["left_out"], json!([refused]));
    // Whoever brings devices along asks for none of them.
    let own = json!({"recipient": ANN, "devices": [{"kind": "apns", "token": hex(9)}]});
    let (id, _) = accepted_as(&bed, "three", &push(&own)).await;
    assert_eq!(seen(&bed, &id).await.get("left_out"), None);
}

#[tokio::test]
async fn a_class_that_goes_on_to_another_channel_says_what_it_passed_over() {
    let bed = Bed::new().await;
    register(&bed, "phone", &json!({"kind": "apns", "token": hex(1)})).await;
    // It comes after email, and would not have been asked for.
    register(&bed, "tablet", &json!({"kind": "fcm", "token": "android-token"})).await;
    let path = format!("/v1/recipients/{ANN}");
    assert!(bed.ask(Method::PUT, &path).json(&json!({"email": ANN})).told().await.status.is_success());
    let since = bury(&bed, "phone", &hex(1), TokenFault::Unregistered).await;
    let content = json!({"subject": "S", "text": "T", "push": {"title": "T"}});
    let body = json!({"class": "transactional", "to": {"recipient": ANN}, "content": content});
    let (id, _) = accepted_as(&bed, "one", &body).await;
    let whole = seen(&bed, &id).await;
    assert_eq!(whole["deliveries"][0]["channel"], "email");
    let dead = json!([{"device": "phone", "kind": "apns", "why": "dead", "since": since}]);
    assert_eq!(whole["left_out"], dead);
    // By mail alone: nothing was to go to a device.
    let mut mail = body;
    mail["channels"] = json!(["email"]);
    let (id, _) = accepted_as(&bed, "two", &mail).await;
    assert_eq!(seen(&bed, &id).await.get("left_out"), None);
}

#[tokio::test]
async fn a_newer_token_is_told_of_without_showing_one() {
    let bed = Bed::new().await;
    register(&bed, "phone", &json!({"kind": "apns", "token": hex(1)})).await;
    let (id, _) = accepted_as(&bed, "one", &push(&json!({"recipient": ANN}))).await;
    let hash = address::hash(&Secret::new(&[7; 32]), ChannelKind::Apns, &hex(2));
    bed.work(|_| Event::Readdressed { hash: hash.clone(), mask: "…0202".into() }).await;
    let told = bed.get(&format!("/v1/notifications/{id}")).await;
    let entry = told.json()["deliveries"][0]["timeline"][1].clone();
    assert_eq!((&entry["what"], entry.as_object().unwrap().len()), (&json!("readdressed"), 2), "{}", told.text);
    assert!(!told.text.contains(&hex(1)[..8]) && !told.text.contains(&hex(2)[..8]), "{}", told.text);
    // By the token that it was accepted with it is still found.
    assert_eq!(ids(&search(&bed, &json!({"address": hex(1)})).await), [id.as_str()]);
}
