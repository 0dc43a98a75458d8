//! The whole way: stored devices, what becomes of messages to them, and what is told of it.

use serde_json::{Value, json};

use super::bed::{Bed, hex, now_ms, states, to};
use crate::peers::apns_sim::Act;

#[test]
fn one_push_to_a_recipient_is_one_delivery_for_each_device() {
    let bed = Bed::new();
    bed.register("ann", "phone", &hex(1));
    bed.fcm.device("android-token-1");
    bed.live.put("/v1/recipients/ann/devices/tablet", &json!({"kind": "fcm", "token": "android-token-1"}));
    let subscription: Value = serde_json::from_str(&bed.web.subscribe(&bed.public())).unwrap();
    bed.live.put("/v1/recipients/ann/devices/browser", &json!({"kind": "web_push", "subscription": subscription}));
    let id = bed.push("one", "ann");
    let ended = bed.live.ended(&id);
    assert_eq!(states(&ended), ["accepted"; 3], "{ended}");
    // Case 50: the provider has it, and nobody says more.
    for delivery in ended["deliveries"].as_array().unwrap() {
        assert_eq!(delivery["reason"], "The provider accepted it; whether it arrived is not known.");
    }
    let shown = bed.apns.effects();
    let body: Value = serde_json::from_str(&shown[0].text()).unwrap();
    assert_eq!((shown.len(), &body["aps"]["alert"]["title"], &body["order"]), (1, &json!("Shipped"), &json!("42")));
    assert_eq!(bed.fcm.seen(|seen| seen.effects[0].message["notification"]["body"].clone()), "Order 42");
    assert_eq!(bed.web.taken()[0].json()["data"]["order"], "42");
    // What a device shows to say that it saw it is taken.
    let belfry = &bed.web.taken()[0].json()["belfry"];
    let path = format!("/v1/deliveries/{}/seen", belfry["id"].as_str().unwrap());
    assert_eq!(bed.live.asked("POST", &path, None, Some(&json!({"token": belfry["seen"]}))).0, 204);
    // The same request again is the same intent, whatever has become of the devices.
    assert_eq!(bed.live.asked("DELETE", "/v1/recipients/ann", None, None).0, 204);
    assert_eq!(bed.push("one", "ann"), id);
    assert_eq!(bed.apns.requests().len(), 1);
}

#[test]
fn case_46_one_malformed_token_costs_its_own_delivery_only() {
    let bed = Bed::new();
    let devices = json!([
        {"kind": "apns", "token": hex(1)},
        {"kind": "apns", "token": "not hex at all"},
        {"kind": "apns", "token": hex(3)},
    ]);
    let ended = bed.live.ended(&bed.push_to("three", &devices));
    assert_eq!(states(&ended), ["accepted", "failed", "accepted"]);
    assert_eq!(
        ended["deliveries"][1]["reason"],
        "Refused for good: the device's token has not the form of one, so that the provider was not asked."
    );
    assert_eq!(bed.tokens_called().len(), 2);
}

#[test]
fn a_token_that_is_rotated_before_the_call_is_used_and_never_after_an_unknown() {
    let bed = Bed::with("300ms");
    bed.register("ann", "phone", &hex(1));
    let mut body = to(&json!({"recipient": "ann"}));
    body["send_at"] = json!(belfry::intake::instant::rfc3339(belfry_domain::UnixMs(now_ms() + 1500)));
    let id = bed.live.send("later", &body);
    bed.register("ann", "phone", &hex(2));
    // It takes the push and says nothing; the class sends again.
    bed.apns.next(1, &Act::Silence);
    bed.live.once(&id, "it is unknown", |one| one["state"] == "deferred" || one["attempts"].as_u64() > Some(0));
    bed.register("ann", "phone", &hex(3));
    let ended = bed.live.ended(&id);
    assert_eq!(states(&ended), ["accepted"]);
    assert_eq!(bed.tokens_called(), [hex(2), hex(2)]);
    // The one change of the token is told, before the calls that go to the new one.
    let timeline = ended["deliveries"][0]["timeline"].as_array().unwrap();
    let told: Vec<&str> = timeline.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(told, ["received", "readdressed", "attempt", "deferred", "attempt", "ended"], "{ended}");
    assert_eq!(ended["deliveries"][0]["device"], json!({"id": "phone", "app": "com.example.shop"}));
    let ids: Vec<String> = bed.apns.effects().iter().map(|seen| seen.header("apns-collapse-id").to_owned()).collect();
    assert!(ids[0] == ids[1] && ids[0].len() == 24, "{ids:?}");
}

#[test]
fn case_49_a_dead_device_is_told_of_and_lives_again_when_it_registers() {
    let bed = Bed::new();
    bed.register("ann", "phone", &hex(1));
    bed.apns.always(&hex(1), Act::gone("Unregistered", now_ms() + 60_000));
    let id = bed.push("one", "ann");
    let ended = bed.live.ended(&id);
    assert_eq!(states(&ended), ["bounced"]);
    assert_eq!(bed.device("ann", "phone")["standing"], "dead");
    let dead = bed.live.get("/v1/devices/dead");
    assert_eq!((&dead["data"][0]["recipient"], &dead["data"][0]["device"]), (&json!("ann"), &json!("phone")));
    assert_eq!((&dead["data"][0]["fault"], &dead["data"][0]["notification"]), (&json!("unregistered"), &json!(id)));
    assert!(!dead.to_string().contains(&hex(1)) && !bed.device("ann", "phone").to_string().contains(&hex(1)));
    let (status, told) =
        bed.live.asked("POST", "/v1/notifications", Some("two"), Some(&to(&json!({"recipient": "ann"}))));
    assert_eq!((status, &told["errors"][0]["pointer"]), (422, &json!("/channels/0")), "{told}");
    // The app was installed again.
    bed.register("ann", "phone", &hex(1));
    assert_eq!(bed.device("ann", "phone")["standing"], "live");
    // A word from before that: the message is tried again, and the device stays.
    bed.apns.always(&hex(1), Act::gone("Unregistered", now_ms() - 60_000));
    let id = bed.push("three", "ann");
    bed.live.once(&id, "it waits to be tried again", |one| one["attempts"].as_u64() > Some(0));
    assert_eq!(bed.device("ann", "phone")["standing"], "live");
    bed.apns.always(&hex(1), Act::Answer { status: 200, body: String::new(), retry_after: None });
    assert_eq!(states(&bed.live.ended(&id)), ["accepted"]);
}

#[test]
fn what_dies_between_accept_and_call_is_suppressed_and_says_so() {
    let bed = Bed::new();
    bed.register("ann", "phone", &hex(1));
    bed.register("ann", "old", &hex(2));
    let mut body = to(&json!({"recipient": "ann"}));
    body["send_at"] = json!(belfry::intake::instant::rfc3339(belfry_domain::UnixMs(now_ms() + 1000)));
    let id = bed.live.send("later", &body);
    assert_eq!(bed.live.asked("DELETE", "/v1/recipients/ann/devices/old", None, None).0, 204);
    let ended = bed.live.ended(&id);
    let mut told: Vec<(&str, &str)> = ended["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["state"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    assert_eq!(told[0].0, "accepted");
    assert_eq!(told[1], ("suppressed", "Suppressed: the device is no longer registered."));
    assert_eq!(bed.tokens_called(), [hex(1)]);
}

#[test]
fn a_retry_is_recognised_whatever_has_become_of_the_recipient() {
    let bed = Bed::new();
    bed.live.put("/v1/recipients/ann", &json!({"email": "ann@example.com"}));
    bed.register("ann", "phone", &hex(1));
    let mail = json!({"class": "security", "to": {"recipient": "ann"}, "channels": ["email", "push"],
        "content": {"subject": "S", "text": "T", "push": {"title": "T"}}});
    let id = bed.live.send("one", &mail);
    // No email any more, and the token under another app as well.
    bed.live.put("/v1/recipients/ann", &json!({"locale": "sv"}));
    bed.live.put("/v1/recipients/ann/devices/twin", &json!({"kind": "apns", "token": hex(1)}));
    assert_eq!(bed.live.send("one", &mail), id);
    // And what is new goes out once to the device that is there twice.
    let ended = bed.live.ended(&bed.push("two", "ann"));
    assert_eq!(states(&ended), ["accepted"], "{ended}");
}

#[test]
fn a_newer_version_takes_the_place_of_an_older_whatever_the_token_is_by_then() {
    let bed = Bed::new();
    bed.register("ann", "phone", &hex(1));
    let version = |number: i64, ahead: i64| {
        let mut body = to(&json!({"recipient": "ann"}));
        body["collapse"] = json!("order-42");
        body["version"] = json!(number);
        body["send_at"] = json!(belfry::intake::instant::rfc3339(belfry_domain::UnixMs(now_ms() + ahead)));
        body
    };
    let first = bed.live.send("v1", &version(1, 1_500));
    bed.register("ann", "phone", &hex(2));
    let second = bed.live.send("v2", &version(2, 0));
    assert_eq!(states(&bed.live.ended(&second)), ["accepted"]);
    assert_eq!(states(&bed.live.ended(&first)), ["superseded"]);
}

#[test]
fn a_browser_is_one_device_whatever_else_its_subscription_says() {
    let bed = Bed::new();
    let subscription: Value = serde_json::from_str(&bed.web.subscribe(&bed.public())).unwrap();
    let mut bare = subscription.clone();
    bare.as_object_mut().unwrap().remove("expirationTime");
    bed.live.put("/v1/recipients/ann/devices/browser", &json!({"kind": "web_push", "subscription": bare}));
    bed.live.put("/v1/recipients/bob/devices/browser", &json!({"kind": "web_push", "subscription": subscription}));
    assert_eq!(bed.live.asked("GET", "/v1/recipients/ann/devices/browser", None, None).0, 404);
    assert_eq!(states(&bed.live.ended(&bed.push("one", "bob"))), ["accepted"]);
    assert_eq!(bed.web.taken().len(), 1);
}

#[test]
fn case_53_two_intents_to_one_device_are_two_notifications() {
    let bed = Bed::new();
    bed.register("ann", "phone", &hex(1));
    for key in ["one", "two"] {
        bed.live.ended(&bed.push(key, "ann"));
    }
    let seen = bed.apns.effects();
    assert_ne!(seen[0].header("apns-collapse-id"), seen[1].header("apns-collapse-id"));
    assert_ne!(seen[0].header("apns-id"), seen[1].header("apns-id"));
}

#[test]
fn a_device_of_an_app_that_nobody_serves_is_refused_at_the_door() {
    let bed = Bed::new();
    let body = to(&json!({"devices": [{"kind": "apns", "token": hex(1), "app": "com.example.other"}]}));
    let (status, told) = bed.live.asked("POST", "/v1/notifications", Some("x"), Some(&body));
    assert_eq!((status, &told["errors"][0]["pointer"]), (422, &json!("/to/devices/0")), "{told}");
    let large = json!({"class": "transactional", "to": {"devices": [{"kind": "apns", "token": hex(1)}]},
        "channels": ["push"], "content": {"push": {"title": "T", "body": "x".repeat(4000)}}});
    let (status, told) = bed.live.asked("POST", "/v1/notifications", Some("y"), Some(&large));
    assert_eq!((status, &told["errors"][0]["pointer"]), (422, &json!("/content/push")), "{told}");
    assert!(told["errors"][0]["detail"].as_str().unwrap().contains("bytes for apns; at most 4096"), "{told}");
}
