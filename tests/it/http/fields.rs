//! Every bad field, named at once.

use std::time::Duration;

use belfry::intake::instant::rfc3339;
use belfry::ports::clock::Clock as _;
use serde_json::{Value, json};

use super::bed::*;

fn mail() -> Value {
    json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

/// The pointers that `body` is refused for.
async fn wrong(bed: &Bed, body: &Value) -> Vec<String> {
    let told = bed.send("k", body).await;
    assert_eq!(told.problem(), (422, "invalid".into()), "{body} {}", told.text);
    told.pointers()
}

#[tokio::test]
async fn all_bad_fields_are_named_at_once() {
    let bed = Bed::new().await;
    let body = json!({
        "class": "nobody", "colour": "red",
        "to": {"email": "ann@@example", "phone": "070-1234", "locale": "klingon language", "time_zone": "Mars/Olympus",
            "webhook": "ftp://x", "devices": [{"kind": "pager", "token": "t"}, {"kind": "fcm"}]},
        "template": "order_shipped", "content": {"subject": "a\nb"},
        "channels": ["email", "owl"], "scope": "", "reference": "a\u{1}b", "group": 7, "unique": "u".repeat(256),
        "version": 1.5, "send_at": "tomorrow", "expires_at": "2026-01-01", "intent_at": 5,
        "metadata": []
    });
    assert_eq!(
        wrong(&bed, &body).await,
        [
            "/channels/1",
            "/class",
            "/colour",
            "/content/subject",
            "/expires_at",
            "/group",
            "/intent_at",
            "/metadata",
            "/reference",
            "/scope",
            "/send_at",
            "/to/devices/0/kind",
            "/to/devices/1",
            "/to/email",
            "/to/locale",
            "/to/phone",
            "/to/time_zone",
            "/to/webhook",
            "/unique",
            "/version",
            "/version"
        ]
    );
    assert_eq!(wrong(&bed, &json!({})).await, ["", "/class", "/to"]);
    assert_eq!(wrong(&bed, &json!([])).await, [""]);
}

#[tokio::test]
async fn channels_need_addresses_and_something_to_render() {
    let bed = Bed::new().await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = mail();
        change(&mut body);
        body
    };
    for (body, expected) in [
        (with(&|b| b["channels"] = json!(["sms"])), vec!["/channels/0", "/content/sms"]),
        (with(&|b| b["channels"] = json!([])), vec!["/channels"]),
        (with(&|b| b["channels"] = json!(["email", "email"])), vec!["/channels/1"]),
        (with(&|b| b["channels"] = json!("email")), vec!["/channels"]),
        (with(&|b| b["to"] = json!({})), vec!["/to"]),
        (with(&|b| b["to"] = json!({"webhook": "https://x.example"})), vec!["/to"]),
        (with(&|b| b["to"] = json!({"phone": "+46701234567"})), vec!["/content/sms"]),
        (with(&|b| b["content"] = json!({"text": "T"})), vec!["/content/subject"]),
        (with(&|b| b["content"] = json!({"subject": "S"})), vec!["/content"]),
        (with(&|b| b["template"] = json!("order_shipped")), vec!["/content/subject", "/content/text"]),
        (
            json!({"class": "receipt", "to": {"email": "a@b.example"}, "template": "order_shipped",
                "data": {}, "content": {"text": 7, "texts": "T"}}),
            vec!["/content/text", "/content/texts"],
        ),
        (with(&|b| b["data"] = json!({})), vec!["/data"]),
        (json!({"class": "receipt", "to": {"email": "a@b.example"}}), vec![""]),
        (json!({"class": "receipt", "to": {"email": "a@b.example"}, "template": "nothing"}), vec!["/template"]),
        (
            json!({"class": "receipt", "to": {"email": "a@b.example"}, "template": "order_shipped", "data": 7}),
            vec!["/data"],
        ),
        (with(&|b| b["version"] = json!(3)), vec!["/version"]),
        (with(&|b| b["content"]["cc"] = json!(["Ann@Example.com"])), vec!["/content/cc/0"]),
        (with(&|b| b["content"]["cc"] = json!(["x"])), vec!["/content/cc/0"]),
    ] {
        assert_eq!(wrong(&bed, &body).await, expected, "{body}");
    }
}

#[tokio::test]
async fn headers_cannot_break_out() {
    let bed = Bed::new().await;
    for (name, value) in [
        ("X-A", "a\r\nBcc: x@example.com"),
        ("X-A", "a\0"),
        ("X A", "a"),
        ("X:A", "a"),
        ("", "a"),
        ("X-Å", "a"),
        ("Bcc", "x@example.com"),
        ("message-id", "<1@x>"),
        ("Content-Type", "text/html"),
        ("DKIM-Signature", "v=1"),
        ("From", "x@example.com"),
        ("Date", "now"),
    ] {
        let mut body = mail();
        body["content"]["headers"] = json!({(name): value});
        assert_eq!(wrong(&bed, &body).await, [format!("/content/headers/{name}")], "{name}");
    }
    for (member, value) in [
        ("subject", json!("a\r\nBcc: x@example.com")),
        ("from", json!("A\n <a@b.example>")),
        ("reply_to", json!(["a@b.example\r\nX: y"])),
        ("cc", json!(["a@b.example,c@d.example"])),
    ] {
        let mut body = mail();
        body["content"][member] = value;
        let pointers = wrong(&bed, &body).await;
        assert!(pointers.iter().all(|pointer| pointer.starts_with(&format!("/content/{member}"))), "{pointers:?}");
    }
    let mut body = mail();
    body["content"]["headers"] = json!({"X-Order": "42", "List-Unsubscribe": "<https://x.example/u>"});
    assert_eq!(bed.send("good", &body).await.status, 202);
}

#[tokio::test]
async fn attachments_are_checked() {
    let bed = Bed::new().await;
    let good = json!({"filename": "a.pdf", "content_type": "application/pdf", "base64": "AAEC", "cid": "logo@x"});
    for (member, value, pointer) in [
        ("base64", json!("AAE"), "base64"),
        ("base64", json!("A A="), "base64"),
        ("base64", json!(7), "base64"),
        ("content_type", json!("pdf"), "content_type"),
        ("content_type", json!("multipart/mixed"), "content_type"),
        ("content_type", json!("text/plain\r\nX: y"), "content_type"),
        ("filename", json!("a\nb"), "filename"),
        ("filename", json!(""), "filename"),
        ("cid", json!("<x>"), "cid"),
        ("cid", json!("logo@x"), "cid"),
        ("size", json!(3), "size"),
    ] {
        let mut body = mail();
        let mut one = good.clone();
        one["cid"] = json!("other@x");
        one[member] = value;
        body["content"]["attachments"] = json!([good, one]);
        assert_eq!(wrong(&bed, &body).await, [format!("/content/attachments/1/{pointer}")]);
    }
    let mut body = mail();
    body["content"]["attachments"] = json!([{}]);
    let missing = ["base64", "content_type", "filename"].map(|name| format!("/content/attachments/0/{name}"));
    assert_eq!(wrong(&bed, &body).await, missing);
    body["content"]["attachments"] = json!([good]);
    assert_eq!(bed.send("good", &body).await.status, 202);
}

#[tokio::test]
async fn limits_hold_at_their_edge() {
    let bed = Bed::new().await;
    let metadata = |bytes: usize| json!({"m": "x".repeat(bytes - r#"{"m":""}"#.len())});
    let ahead = |by: Duration| json!(rfc3339(bed.clock.now().plus(by)));
    let copies = |many: usize| json!((0..many).map(|n| format!("c{n}@example.com")).collect::<Vec<_>>());
    let minute = Duration::from_secs(60);
    for (pointer, member, good, bad) in [
        ("/metadata", "metadata", metadata(4096), metadata(4097)),
        ("/send_at", "send_at", ahead(90 * DAY - minute), ahead(90 * DAY + minute)),
        ("/group", "group", json!("é".repeat(255)), json!("é".repeat(256))),
        ("/scope", "scope", json!("s"), json!("")),
        (
            "/to",
            "content",
            json!({"subject": "S", "text": "T", "cc": copies(49)}),
            json!({"subject": "S", "text": "T", "cc": copies(50)}),
        ),
    ] {
        let mut body = mail();
        body[member] = good;
        let told = bed.send(&format!("good-{member}"), &body).await;
        assert_eq!(told.status, 202, "{member}: {}", told.text);
        body[member] = bad;
        assert_eq!(wrong(&bed, &body).await, [pointer], "{member}");
    }
    let mut body = mail();
    body["send_at"] = ahead(minute);
    body["expires_at"] = body["send_at"].clone();
    assert_eq!(wrong(&bed, &body).await, ["/expires_at"]);
}

#[tokio::test]
async fn push_holds_strings_under_names_of_its_own() {
    let bed = Bed::new().await;
    let mut body = json!({"class": "receipt", "channels": ["push"],
        "to": {"devices": [{"kind": "fcm", "token": "t1"}]}, "content": {"push": {}}});
    for (push, pointers) in [
        (json!({}), vec!["/content/push"]),
        (json!({"data": {"a": 1}}), vec!["/content/push/data/a"]),
        (
            json!({"data": {"from": "x", "google.x": "y"}}),
            vec!["/content/push/data/from", "/content/push/data/google.x"],
        ),
        (json!({"title": "T", "badge": -1}), vec!["/content/push/badge"]),
        (json!({"title": "T", "colour": "red"}), vec!["/content/push/colour"]),
        (json!({"title": "a\u{1}b"}), vec!["/content/push/title"]),
    ] {
        body["content"]["push"] = push;
        assert_eq!(wrong(&bed, &body).await, pointers);
    }
}

#[tokio::test]
async fn case_46_one_malformed_token_costs_only_its_own_delivery() {
    let bed = Bed::new().await;
    let body = json!({"class": "receipt", "channels": ["push"], "content": {"push": {"title": "T"}},
        "to": {"devices": [{"kind": "apns", "token": "a".repeat(64)}, {"kind": "apns", "token": "not a token!"},
            {"kind": "web_push", "subscription": {"endpoint": "https://push.example/x", "keys": {"auth": "a", "p256dh": "b"}}}]}});
    let told = bed.send("k", &body).await;
    assert_eq!(told.status, 202, "{}", told.text);
    let read = bed.get(told.header("location").unwrap()).await.json();
    let slots: Vec<_> =
        read["deliveries"].as_array().unwrap().iter().map(|one| one["slot"].as_str().unwrap()).collect();
    assert_eq!(slots, ["device/0", "device/1", "device/2"]);
    // One is refused for good, and the two others go on: a result each.
    let first = bed.work(called(accepted)).await;
    let second = bed.work(called(refused)).await;
    let third = bed.work(called(accepted)).await;
    let ids: std::collections::BTreeSet<_> = [first.id, second.id, third.id].into();
    assert_eq!(ids.len(), 3);
    let read = bed.get(told.header("location").unwrap()).await.json();
    let mut states: Vec<_> = read["deliveries"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    states.sort_by_key(ToString::to_string);
    assert_eq!(states, [json!("accepted"), json!("accepted"), json!("failed")]);
}

#[tokio::test]
async fn case_17_every_recipient_of_a_mail_is_a_delivery_of_its_own() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["content"]["cc"] = json!(["bob@example.com"]);
    body["content"]["bcc"] = json!(["Eve <eve@example.com>"]);
    let told = bed.send("k", &body).await;
    let read = bed.get(told.header("location").unwrap()).await.json();
    let addresses: Vec<_> = read["deliveries"].as_array().unwrap().iter().map(|one| one["address"].clone()).collect();
    assert_eq!(addresses, ["a…@example.com", "b…@example.com", "e…@example.com"]);
    // The job is asked for again after the second recipient failed: nobody gets a second one.
    bed.work(called(accepted)).await;
    bed.work(called(refused)).await;
    let again = bed.send("k", &body).await;
    assert!(again.replayed());
    let read = bed.get(told.header("location").unwrap()).await.json();
    assert_eq!(read["deliveries"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_language_that_is_none_is_refused_and_one_that_nobody_has_is_not() {
    let bed = Bed::new().await;
    let body = |locale: &str| json!({"class": "receipt", "to": {"email": "ann@example.com", "locale": locale}, "content": {"subject": "a", "text": "b"}});
    for locale in ["german", "Deutsch", "d", "12", "xx-bad!", "en_"] {
        assert_eq!(wrong(&bed, &body(locale)).await, ["/to/locale"], "{locale}");
    }
    for locale in ["xx", "pt_BR", "zh-Hant-TW", "en-u-ca-gregory"] {
        assert_eq!(bed.send(locale, &body(locale)).await.status, 202, "{locale}");
    }
}

#[tokio::test]
async fn a_member_in_another_s_place_is_told_its_own() {
    let bed = Bed::new().await;
    let body = json!({"class": "receipt", "to": {"email": "ann@example.com", "cc": ["bob@example.com"]}, "bcc": [],
        "content": {"subject": "a", "text": "b", "data": {}}});
    let told = bed.send("k", &body).await.json();
    let told: Vec<_> =
        told["errors"].as_array().unwrap().iter().map(|one| (one["pointer"].clone(), one["detail"].clone())).collect();
    let belongs = |at: &str, right: &str| (json!(at), json!(format!("unknown field; it belongs at {right}")));
    assert_eq!(
        told,
        [belongs("/bcc", "/content/bcc"), belongs("/content/data", "/data"), belongs("/to/cc", "/content/cc")]
    );
}

#[tokio::test]
async fn a_template_is_frozen_and_filled_at_accept() {
    let bed = Bed::new().await;
    let sample = include_str!("../../../templates/order_shipped/sample.json");
    let mut body =
        json!({"class": "receipt", "to": {"email": "ann@example.com", "locale": "sv-SE"}, "template": "order_shipped"});
    let missing = wrong(&bed, &body).await;
    assert!(!missing.is_empty() && missing.iter().all(|pointer| pointer.starts_with("/data")), "{missing:?}");
    body["data"] = serde_json::from_str(sample).unwrap();
    let told = bed.send("k", &body).await;
    assert_eq!(told.status, 202, "{}", told.text);
    let read = bed.get(told.header("location").unwrap()).await.json();
    assert_eq!((&read["template"]["name"], &read["template"]["locale"]), (&json!("order_shipped"), &json!("sv")));
    assert!(!read["template"]["version"].as_str().unwrap().is_empty());
}
