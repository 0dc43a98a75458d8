//! The whole way: what providers refuse for what may be ours, and for what is not.

use serde_json::{Value, json};

use super::bed::{Bed, PATIENCE, hex, states};
use crate::peers::apns_sim::Act;
use crate::peers::fcm_sim::Act as FcmAct;
use crate::peers::until::until;

#[test]
fn case_11_one_bad_token_is_quarantined_and_a_wave_of_them_opens_the_circuit_and_drops_nothing() {
    let bed = Bed::new();
    bed.register("ann", "phone", &hex(1));
    let bad = Act::refusal(400, "BadDeviceToken");
    bed.apns.always(&hex(1), bad.clone());
    assert_eq!(states(&bed.live.ended(&bed.push("ann", "ann"))), ["failed"]);
    assert_eq!(bed.device("ann", "phone")["standing"], "quarantined");
    // From here on every token gets it: the gateway is the wrong one.
    for number in 2..=8 {
        bed.apns.always(&hex(number), bad.clone());
        bed.register(&format!("u{number}"), "phone", &hex(number));
    }
    let (mut sent, mut failed) = (Vec::new(), Vec::new());
    for number in 2..=4 {
        let id = bed.push(&format!("u{number}"), &format!("u{number}"));
        assert_eq!(states(&bed.live.ended(&id)), ["failed"]);
        failed.push(id);
    }
    for number in 5..=8 {
        sent.push(bed.push(&format!("u{number}"), &format!("u{number}")));
    }
    for id in &sent {
        let waits = bed
            .live
            .once(id, "it waits behind the circuit", |one| one["state"] == "queued" || one["state"] == "deferred");
        assert_eq!(states(&waits).len(), 1);
    }
    until("the circuit is open", PATIENCE, || {
        bed.live.metrics().contains("belfry_circuits_opened_total{provider=\"ios\",why=\"tokens\"} 1").then_some(())
    });
    // Also those that were put aside before it was clear.
    until("all are spared", PATIENCE, || {
        let standings =
            std::iter::once(("ann".to_owned(), 1)).chain((2..=8).map(|number| (format!("u{number}"), number)));
        standings.map(|(who, _)| bed.device(&who, "phone")["standing"].clone()).all(|it| it == "live").then_some(())
    });
    assert_eq!(bed.live.get("/v1/devices/dead")["data"], json!([]));
    for number in 1..=8 {
        bed.apns.always(&hex(number), Act::Answer { status: 200, body: String::new(), retry_after: None });
    }
    bed.reload("right.p8");
    for id in &sent {
        assert_eq!(states(&bed.live.ended(id)), ["accepted"]);
    }
    // What had failed before it was clear was put back, under the same send.
    for id in &failed {
        let ended = bed.live.once(id, "it is put back and goes out", |one| one["state"] == "accepted");
        let timeline = ended["deliveries"][0]["timeline"].as_array().unwrap();
        assert!(timeline.iter().any(|entry| entry["what"] == "redriven" && entry["by"] == "belfry"), "{ended}");
        assert_eq!(ended["deliveries"][0]["send"], 1);
    }
}

/// What another process did, before a restart or on another node, only the store knows.
#[test]
fn case_11_a_wave_also_spares_what_was_put_aside_before_a_restart() {
    let mut bed = Bed::kept();
    let bad = Act::refusal(400, "BadDeviceToken");
    for number in 1..=8 {
        bed.apns.always(&hex(number), bad.clone());
        bed.register(&format!("u{number}"), "phone", &hex(number));
    }
    let sent = |bed: &Bed, number: u8| bed.push(&format!("u{number}"), &format!("u{number}"));
    let failed: Vec<String> = (1..=3).map(|number| sent(&bed, number)).collect();
    for id in &failed {
        assert_eq!(states(&bed.live.ended(id)), ["failed"]);
    }
    bed.restart();
    assert_eq!(bed.device("u1", "phone")["standing"], "quarantined");
    let rest: Vec<String> = (4..=8).map(|number| sent(&bed, number)).collect();
    until("all are spared", PATIENCE, || {
        let standings = (1..=8).map(|number| bed.device(&format!("u{number}"), "phone")["standing"].clone());
        standings.into_iter().all(|standing| standing == "live").then_some(())
    });
    for number in 1..=8 {
        bed.apns.always(&hex(number), Act::Answer { status: 200, body: String::new(), retry_after: None });
    }
    bed.reload("right.p8");
    for id in failed.iter().chain(&rest) {
        bed.live.once(id, "it goes out", |one| one["state"] == "accepted");
    }
}

#[test]
fn case_11_a_wave_also_spares_what_was_put_aside_before_a_reload() {
    let bed = Bed::new();
    let bad = Act::refusal(400, "BadDeviceToken");
    for number in 1..=8 {
        bed.apns.always(&hex(number), bad.clone());
        bed.register(&format!("u{number}"), "phone", &hex(number));
    }
    let sent = |number: u8| bed.push(&format!("u{number}"), &format!("u{number}"));
    for number in 1..=3 {
        assert_eq!(states(&bed.live.ended(&sent(number))), ["failed"]);
        assert_eq!(bed.device(&format!("u{number}"), "phone")["standing"], "quarantined");
    }
    bed.reload("right.p8");
    for number in 4..=8 {
        sent(number);
    }
    until("all are spared", PATIENCE, || {
        let standings = (1..=8).map(|number| bed.device(&format!("u{number}"), "phone")["standing"].clone());
        standings.into_iter().all(|standing| standing == "live").then_some(())
    });
}

#[test]
fn what_is_malformed_or_gone_says_nothing_of_the_provider() {
    let bed = Bed::new();
    let malformed: Vec<Value> = (0..8).map(|at| json!({"kind": "apns", "token": format!("no token {at}")})).collect();
    assert_eq!(states(&bed.live.ended(&bed.push_to("malformed", &json!(malformed)))), ["failed"; 8]);
    let ended = bed.live.ended(&bed.push_to("good", &json!([{"kind": "apns", "token": hex(1)}])));
    assert_eq!(states(&ended), ["accepted"]);
    assert!(!bed.live.metrics().contains("belfry_circuits_opened_total{provider=\"ios\""));
}

#[test]
fn a_wrong_key_stops_the_lane_and_costs_nothing_and_the_right_one_drains_it() {
    let bed = Bed::new();
    bed.reload("wrong.p8");
    let devices: Vec<String> = (1..=6).map(hex).collect();
    let sent: Vec<String> = devices
        .iter()
        .enumerate()
        .map(|(at, token)| bed.push_to(&at.to_string(), &json!([{"kind": "apns", "token": token}])))
        .collect();
    until("the circuit is open", PATIENCE, || {
        bed.live.metrics().contains("belfry_circuit_open{provider=\"ios\"} 1").then_some(())
    });
    for id in &sent {
        let waits = bed.live.once(id, "it waits", |one| one["state"] == "queued" || one["state"] == "deferred");
        // Also of what nobody has claimed since: what it waits for is no worker.
        let reason = waits["deliveries"][0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("Waiting: nothing goes through its provider since 20"), "{reason}");
        assert!(reason.ends_with(": our login is refused: look at the key or password and at its file."), "{reason}");
    }
    assert_eq!(bed.apns.effects().len(), 0);
    bed.reload("right.p8");
    for id in &sent {
        assert_eq!(states(&bed.live.ended(id)), ["accepted"]);
    }
    let mut tokens: Vec<String> = bed.apns.effects().into_iter().map(|seen| seen.token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, devices);
    // One login for all, and the reload made none anew for the key that it had before.
    assert_eq!(bed.key.team, "TEAM000001");
}

#[test]
fn case_41_a_key_that_firebase_lacks_for_apple_costs_android_nothing() {
    let bed = Bed::new();
    for token in ["iphone", "pixel"] {
        bed.fcm.device(token);
        bed.live.put(&format!("/v1/recipients/{token}/devices/d"), &json!({"kind": "fcm", "token": token}));
    }
    bed.fcm.script("iphone", [FcmAct::error(401, "UNAUTHENTICATED", Some("THIRD_PARTY_AUTH_ERROR"), Vec::new())]);
    let id = bed.push("iphone", "iphone");
    let ended = bed.live.ended(&id);
    assert_eq!(states(&ended), ["failed"]);
    assert_eq!(
        ended["deliveries"][0]["reason"],
        "Refused for good: the project's own key for APNs or web push is refused, at the provider."
    );
    assert_eq!(states(&bed.live.ended(&bed.push("pixel", "pixel"))), ["accepted"]);
    assert_eq!(bed.fcm.seen(|seen| seen.grants), 1);
    assert_eq!(bed.device("iphone", "d")["standing"], "live");
    assert!(
        bed.live.metrics().contains("belfry_setup_refusals_total{provider=\"android\",why=\"third_party_refused\"} 1")
    );
}

#[test]
fn case_38_a_project_that_is_not_there_stops_the_lane_and_keeps_the_tokens() {
    let bed = Bed::new();
    bed.fcm.device("pixel");
    bed.live.put("/v1/recipients/ann/devices/d", &json!({"kind": "fcm", "token": "pixel"}));
    bed.fcm.script("pixel", [FcmAct::error(404, "NOT_FOUND", None, Vec::new())]);
    let id = bed.push("one", "ann");
    until("the circuit is open", PATIENCE, || {
        bed.live.metrics().contains("belfry_circuits_opened_total{provider=\"android\",why=\"setup\"} 1").then_some(())
    });
    assert_eq!(bed.device("ann", "d")["standing"], "live");
    // The trial goes through: the message that waited is sent.
    assert_eq!(states(&bed.live.ended(&id)), ["accepted"]);
    bed.fcm.script("pixel", [FcmAct::error(404, "NOT_FOUND", Some("UNREGISTERED"), Vec::new())]);
    assert_eq!(states(&bed.live.ended(&bed.push("two", "ann"))), ["bounced"]);
    assert_eq!(bed.device("ann", "d")["standing"], "dead");
}
