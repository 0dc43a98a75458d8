//! Stored recipients, their devices, and what was said of their tokens.

use std::time::Duration;

use belfry::intake::address;
use belfry::intake::canonical::Secret;
use belfry::ports::admin::Can;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::Owner;
use belfry::ports::recipients::{DeadToken, DeviceRef, MOST_DEVICES, Recipients};
use belfry_domain::device::TokenFault;
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, UnixMs};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const TOKEN: &str = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad";
const ANN: &str = "/v1/recipients/ann";
const PHONE: &str = "/v1/recipients/ann/devices/phone";

fn apns() -> Value {
    json!({"kind": "apns", "token": TOKEN, "app": "com.example.app"})
}

fn acme() -> Owner {
    Owner { tenant: "acme".into(), environment: "live".into() }
}

async fn put(bed: &Bed, path: &str, body: &Value) -> Told {
    bed.ask(Method::PUT, path).json(body).told().await
}

async fn delete(bed: &Bed, path: &str) -> Told {
    bed.ask(Method::DELETE, path).told().await
}

fn word(token: &str, fault: TokenFault, heard_at: UnixMs) -> DeadToken {
    let notification = NotificationId::http("acme", "live", "main", "k");
    DeadToken {
        kind: ChannelKind::Apns,
        app: Some("com.example.app".into()),
        environment: None,
        recipient: Some("ann".into()),
        device: Some("phone".into()),
        hash: address::hash(&Secret::new(&[7; 32]), ChannelKind::Apns, token),
        token_sha256: "0f".repeat(32),
        fault,
        since: None,
        heard_at,
        notification,
        delivery: DeliveryId::of(notification, "apns", "device"),
    }
}

#[tokio::test]
async fn a_recipient_is_kept_replaced_and_forgotten() {
    let bed = Bed::new().await;
    assert_eq!(bed.get(ANN).await.problem(), (404, "not_found".into()));
    let full = json!({"email": "Ann Lee <ann@example.com>", "phone": "+46701234567", "locale": "pt-BR",
        "time_zone": "Europe/Stockholm"});
    let told = put(&bed, ANN, &full).await;
    let shown = json!({"id": "ann", "email": "a…@example.com", "phone": "+46…67", "locale": "pt-BR",
        "time_zone": "Europe/Stockholm", "devices": []});
    assert_eq!((told.status.as_u16(), told.json()), (201, shown.clone()));
    assert_eq!(bed.get(ANN).await.json(), shown);
    // The same again, and then less: what is left out is gone.
    let told = put(&bed, ANN, &full).await;
    assert_eq!((told.status.as_u16(), told.json()), (200, shown));
    assert_eq!(put(&bed, PHONE, &apns()).await.status, 201);
    let told = put(&bed, ANN, &json!({"locale": "sv"})).await.json();
    assert_eq!((told.get("email"), &told["locale"], &told["devices"][0]["id"]), (None, &json!("sv"), &json!("phone")));
    for _ in 0..2 {
        let told = delete(&bed, ANN).await;
        assert_eq!((told.status.as_u16(), told.text.as_str()), (204, ""));
        assert_eq!(bed.get(ANN).await.status, 404);
        assert_eq!(bed.get(PHONE).await.status, 404);
    }
}

#[tokio::test]
async fn a_profile_is_read_as_in_a_request() {
    let bed = Bed::new().await;
    let bad =
        json!({"email": "ann", "phone": "070", "locale": "not a tag", "time_zone": "Nowhere/City", "devices": []});
    let told = put(&bed, ANN, &bad).await;
    assert_eq!(told.problem(), (422, "invalid".into()));
    assert_eq!(told.pointers(), ["/devices", "/email", "/locale", "/phone", "/time_zone"]);
    for part in ["070", "not a tag", "Nowhere"] {
        assert!(!told.text.contains(part), "{}", told.text);
    }
    assert_eq!(put(&bed, ANN, &json!([])).await.pointers(), [""]);
    assert_eq!(bed.ask(Method::PUT, ANN).body("{").told().await.problem(), (400, "invalid_json".into()));
    assert_eq!(bed.ask(Method::PUT, ANN).told().await.problem(), (415, "unsupported_media_type".into()));
    assert_eq!(bed.get(ANN).await.status, 404);
    assert_eq!(put(&bed, ANN, &json!({})).await.json(), json!({"id": "ann", "devices": []}));
}

#[tokio::test]
async fn a_device_is_registered_and_its_token_shown_to_nobody() {
    let bed = Bed::new().await;
    let told = put(&bed, PHONE, &apns()).await;
    assert_eq!(told.status, 201, "{}", told.text);
    let first = told.json();
    let at = first["registered_at"].as_str().unwrap().to_owned();
    let shown = json!({"id": "phone", "kind": "apns", "app": "com.example.app", "token": "…78ad", "standing": "live",
        "registered_at": at});
    assert_eq!(first, shown);
    assert_eq!(bed.get(PHONE).await.json(), shown);
    assert_eq!(bed.get(ANN).await.json(), json!({"id": "ann", "devices": [shown]}));
    // Under the same hash as a delivery to it.
    let of = DeviceRef { recipient: "ann".into(), device: "phone".into() };
    let kept = Recipients::device(&*bed.store, &acme(), &of).await.unwrap().unwrap();
    assert_eq!(
        (kept.token.token.0.as_str(), kept.token.hash),
        (TOKEN, word(TOKEN, TokenFault::BadToken, UnixMs(0)).hash)
    );
    bed.clock.forward(Duration::from_secs(1));
    let again = put(&bed, PHONE, &apns()).await;
    assert_eq!(again.status, 200);
    assert!(again.json()["registered_at"].as_str().unwrap() > at.as_str());
    let (auth, point) = ("secret-secret-secretAA", format!("BAsecret{}", "A".repeat(79)));
    let subscription = json!({"kind": "web_push", "app": "e", "subscription":
        {"endpoint": "https://push.example/v2/secret-1", "keys": {"auth": auth, "p256dh": point}}});
    let told = put(&bed, "/v1/recipients/ann/devices/browser", &subscription).await;
    assert_eq!((&told.json()["token"], &told.json()["app"]), (&json!("push.example/…"), &json!("e")));
    for answer in [told, bed.get(ANN).await] {
        assert!(!answer.text.contains("secret") && !answer.text.contains(&TOKEN[..8]), "{}", answer.text);
    }
    assert!(!format!("{:?}", bed.told_facts()).contains(&TOKEN[..8]));
    assert_eq!(delete(&bed, PHONE).await.status, 204);
    assert_eq!(delete(&bed, PHONE).await.status, 204);
    assert_eq!(bed.get(PHONE).await.problem(), (404, "not_found".into()));
    assert_eq!(bed.get(ANN).await.json()["devices"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_device_is_read_as_in_a_request() {
    let bed = Bed::new().await;
    for (body, pointers) in [
        (json!({}), &["", "/kind"][..]),
        (json!({"kind": "sms", "token": "t"}), &["/kind"]),
        (json!({"kind": "apns", "token": "", "id": "x"}), &["/id", "/token"]),
        (json!({"kind": "apns", "token": "t", "subscription": {}}), &[""]),
        (json!({"kind": "apns", "subscription": {}}), &["/subscription"]),
        (json!({"kind": "fcm", "token": "t".repeat(4097), "app": "a".repeat(256)}), &["/app", "/token"]),
        (json!({"kind": "fcm", "token": "t", "environment": ""}), &["/environment"]),
        (json!({"kind": "fcm", "token": "t", "environment": "sandbox"}), &["/environment"]),
        (json!({"kind": "apns", "token": TOKEN, "environment": "development"}), &["/environment"]),
        (json!({"kind": "apns", "token": "<740f4707 bebcf74f>"}), &["/token"]),
        (json!({"kind": "apns", "token": "abcdef"}), &["/token"]),
        (json!({"kind": "fcm", "token": "a b"}), &["/token"]),
        (json!({"kind": "web_push", "token": "abcd"}), &["/token"]),
        (json!({"kind": "web_push", "subscription": {}}), &["/subscription/endpoint"]),
        (json!({"kind": "web_push", "subscription": {"endpoint": "http://x.example/y"}}), &["/subscription/endpoint"]),
        (
            json!({"kind": "web_push", "subscription": {"endpoint": "https://x.example/y", "keys": {"p256dh": "AAAA"}}}),
            &["/subscription/keys/p256dh"],
        ),
        (json!("t"), &[""]),
    ] {
        let told = put(&bed, PHONE, &body).await;
        assert_eq!(told.problem(), (422, "invalid".into()), "{body}");
        assert_eq!(told.pointers(), pointers, "{body}");
    }
    assert_eq!(bed.get(ANN).await.status, 404);
}

#[tokio::test]
async fn a_token_has_one_device_and_a_recipient_not_too_many() {
    let bed = Bed::new().await;
    put(&bed, PHONE, &apns()).await;
    assert_eq!(put(&bed, "/v1/recipients/bob/devices/phone", &apns()).await.status, 201);
    assert_eq!(bed.get(PHONE).await.status, 404);
    for at in 0..MOST_DEVICES {
        let told = put(&bed, &format!("{ANN}/devices/{at}"), &json!({"kind": "fcm", "token": format!("t{at}")})).await;
        assert_eq!(told.status, 201);
    }
    let told = put(&bed, PHONE, &apns()).await;
    assert_eq!(told.problem(), (409, "too_many_devices".into()));
    assert_eq!(put(&bed, &format!("{ANN}/devices/7"), &apns()).await.status, 200);
    assert_eq!(bed.get("/v1/recipients/bob").await.status, 404);
}

#[tokio::test]
async fn names_in_paths_are_of_a_small_alphabet() {
    let bed = Bed::new().await;
    let long = "n".repeat(255);
    for name in ["a", "A-z.0_~:@9", "ann%40example.com", &long] {
        let path = format!("/v1/recipients/{name}/devices/{name}");
        assert_eq!(put(&bed, &path, &json!({"kind": "fcm", "token": "t"})).await.status, 201, "{name}");
        assert_eq!(bed.get(&path).await.json()["id"], name.replace("%40", "@"));
        assert_eq!(delete(&bed, &format!("/v1/recipients/{name}")).await.status, 204);
    }
    let longer = "n".repeat(256);
    for name in ["a%20b", "a%2Fb", "%C3%A4", "%FF", "a+b", "a%00", "a*", &longer] {
        for method in [Method::PUT, Method::GET, Method::DELETE] {
            for (path, pointer) in [
                (format!("/v1/recipients/{name}"), "/path/id"),
                (format!("/v1/recipients/ann/devices/{name}"), "/path/device"),
                (format!("/v1/recipients/{name}/devices/phone"), "/path/id"),
            ] {
                let told = bed.ask(method.clone(), &path).json(&json!({})).told().await;
                assert_eq!(told.problem(), (422, "invalid".into()), "{path}");
                assert!(told.pointers().iter().any(|found| found == pointer), "{path}: {}", told.text);
                assert!(told.text.contains("A-Z a-z 0-9"), "{}", told.text);
            }
        }
    }
}

#[tokio::test]
async fn the_standing_of_a_device_is_shown_and_lifted() {
    let bed = Bed::new().await;
    put(&bed, PHONE, &apns()).await;
    let at = bed.clock.now();
    bed.clock.forward(Duration::from_secs(1));
    let since = belfry::intake::instant::rfc3339(at);
    let heard = |fault| word(TOKEN, fault, at);
    assert!(bed.store.bury(&acme(), &heard(TokenFault::BadToken)).await.unwrap());
    let told = bed.get(PHONE).await.json();
    assert_eq!(
        (&told["standing"], &told["fault"], &told["since"]),
        (&json!("quarantined"), &json!("bad_token"), &json!(since))
    );
    assert!(bed.store.bury(&acme(), &heard(TokenFault::Unregistered)).await.unwrap());
    let told = bed.get(PHONE).await.json();
    assert_eq!((&told["standing"], told.get("fault"), &told["since"]), (&json!("dead"), None, &json!(since)));
    let told = put(&bed, PHONE, &apns()).await.json();
    assert_eq!((&told["standing"], told.get("since")), (&json!("live"), None));
}

#[tokio::test]
async fn the_dead_are_listed_by_pages() {
    let bed = Bed::new().await;
    let path = "/v1/devices/dead";
    assert_eq!(bed.get(path).await.json(), json!({"data": [], "has_more": false}));
    let whole = DeadToken {
        environment: Some("production".into()),
        since: Some(UnixMs(1_700_000_000_000)),
        ..word("a", TokenFault::Unregistered, UnixMs(1_800_000_000_000))
    };
    let bare = DeadToken {
        app: None,
        recipient: None,
        device: None,
        ..word("b", TokenFault::WrongApp, UnixMs(1_800_000_000_001))
    };
    for word in [&whole, &bare] {
        bed.store.bury(&acme(), word).await.unwrap();
    }
    let first = json!({"kind": "apns", "app": "com.example.app", "environment": "production", "recipient": "ann",
        "device": "phone", "token_sha256": "0f".repeat(32), "fault": "unregistered",
        "since": "2023-11-14T22:13:20.000Z", "heard_at": "2027-01-15T08:00:00.000Z",
        "notification": whole.notification.to_string(), "delivery": whole.delivery.to_string()});
    let second = json!({"kind": "apns", "token_sha256": "0f".repeat(32), "fault": "wrong_app",
        "heard_at": "2027-01-15T08:00:00.001Z", "notification": whole.notification.to_string(),
        "delivery": whole.delivery.to_string()});
    assert_eq!(bed.get(path).await.json(), json!({"data": [first, second], "has_more": false}));
    let page = bed.get(&format!("{path}?limit=1")).await.json();
    assert_eq!((&page["data"], &page["has_more"]), (&json!([first]), &json!(true)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = json!({"data": [second], "has_more": false});
    assert_eq!(bed.get(&format!("{path}?limit=1&cursor={cursor}")).await.json(), rest);
    assert_eq!(bed.get(&format!("{path}?since=2027-01-15T09:00:00.001%2B01:00")).await.json(), rest);
    let told = bed.get(&format!("{path}?since=yesterday&limit=501&cursor=&kind=apns")).await;
    assert_eq!(told.problem(), (400, "bad_parameter".into()));
    assert_eq!(
        bed.get("/v1/recipients/dead?since=2027-01-15T08:00:00Z").await.problem(),
        (400, "bad_parameter".into())
    );
}

#[tokio::test]
async fn each_call_takes_its_permission_and_sees_its_own_only() {
    let bed = Bed::new().await;
    put(&bed, PHONE, &apns()).await;
    bed.store.bury(&acme(), &word("a", TokenFault::Unregistered, UnixMs(1))).await.unwrap();
    let (read, send) = (&[Can::Read, Can::Admin][..], &[Can::Send, Can::Admin][..]);
    let (mut stranger, own) = (bed.make_key("acme", "test", "main", ALL).await, bed.key.clone());
    let (reader, sender) =
        (bed.make_key("acme", "live", "main", read).await, bed.make_key("acme", "live", "other", send).await);
    let operator = bed.make_key("acme", "live", "main", &[Can::Admin]).await;
    let mut bed = Bed { key: reader, ..bed };
    for path in [ANN, PHONE] {
        for method in [Method::PUT, Method::DELETE] {
            let told = bed.ask(method, path).json(&json!({})).told().await;
            assert_eq!(told.problem(), (403, "forbidden".into()));
        }
        let seen = bed.get(path).await;
        assert!(seen.status == 200 && !seen.text.contains(TOKEN), "{}", seen.text);
    }
    assert_eq!(bed.get("/v1/devices/dead").await.json()["data"].as_array().unwrap().len(), 1);
    bed.key = sender;
    assert_eq!(bed.get("/v1/devices/dead").await.problem(), (403, "forbidden".into()));
    // Namespaces are of keys, not of people.
    assert_eq!(bed.get(PHONE).await.status, 200);
    bed.key = operator;
    let told = bed.get(ANN).await;
    assert_eq!(told.problem(), (403, "forbidden".into()));
    assert!(told.text.contains("`read` or `send`"), "{}", told.text);
    std::mem::swap(&mut bed.key, &mut stranger);
    for path in [ANN, PHONE] {
        assert_eq!(bed.get(path).await.problem(), (404, "not_found".into()));
        assert_eq!(delete(&bed, path).await.status, 204);
    }
    assert_eq!(put(&bed, PHONE, &apns()).await.status, 201);
    assert_eq!(bed.get("/v1/devices/dead").await.json()["data"], json!([]));
    bed.key = own;
    assert_eq!(bed.get(PHONE).await.status, 200);
}
