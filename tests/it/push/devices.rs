//! The whole way: stored devices, what providers say of them, and what is told of it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::live::Live;
use crate::peers::apns_sim::login::SimKey;
use crate::peers::apns_sim::{Act, ApnsSim, Options, START};
use crate::peers::fcm_sim::{Act as FcmAct, FcmSim};
use crate::peers::until::until;
use crate::peers::web_push_sim::{PushService, Speaks};

const TOPIC: &str = "com.example.shop";
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A server with all three platforms behind it.
struct Bed {
    live: Live,
    apns: ApnsSim,
    fcm: FcmSim,
    web: PushService,
    key: SimKey,
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The sections of all three, with this `.p8` for APNs. `short`: how long APNs may take to answer.
fn sections(apns: &ApnsSim, p8: &str, short: &str) -> String {
    let url = apns.url();
    format!(
        "[channels.apns]\nproviders = [\"ios\"]\n[channels.fcm]\nproviders = [\"android\"]\n\
         [channels.web_push]\nproviders = [\"web\"]\n\
         [providers.ios]\nkind = \"apns\"\ntopic = \"{TOPIC}\"\nteam_id = \"TEAM000001\"\nkey_id = \"KEY0000001\"\n\
         key_file = \"{{dir}}/{p8}\"\nca_file = \"{{dir}}/apns.pem\"\nurl = \"{url}\"\ntimeouts = {{ answer = \"{short}\" }}\n\
         [classes.transactional.retry]\nbase = \"50ms\"\ncap = \"100ms\"\n"
    )
}

impl Bed {
    fn new() -> Self {
        Self::with("60s")
    }

    fn with(short: &str) -> Self {
        let runtime = runtime();
        let key = SimKey::new("TEAM000001", "KEY0000001");
        let stranger = SimKey::new("TEAM000001", "KEY0000001");
        let options = Options::new(std::slice::from_ref(&key), &[TOPIC]);
        let (apns, fcm, web) = runtime.block_on(async {
            let web = PushService::start(Speaks::Http2, now_ms()).await;
            (ApnsSim::start(options).await, FcmSim::start().await, web)
        });
        let since = std::time::Duration::from_secs(u64::try_from(now_ms() / 1000 - START).unwrap());
        apns.step(since);
        fcm.step(since);
        let vapid = belfry::channel::web_push::vapid::generate();
        let vapid_pem = secrecy::ExposeSecret::expose_secret(&vapid.pem).to_owned();
        let files = [
            ("right.p8", key.pem.as_str()),
            ("wrong.p8", stranger.pem.as_str()),
            ("apns.pem", apns.tls().ca_pem.as_str()),
            ("firebase.json", &fcm.key_file()),
            ("fcm.pem", &fcm.ca),
            ("vapid.pem", &vapid_pem),
            ("web.pem", &web.ca),
        ];
        let others = Self::others(&fcm);
        let live = Live::start(runtime, &format!("{}{others}", sections(&apns, "right.p8", short)), &files);
        Self { live, apns, fcm, web, key }
    }

    fn others(fcm: &FcmSim) -> String {
        format!(
            "[providers.android]\nkind = \"fcm\"\nservice_account_file = \"{{dir}}/firebase.json\"\nurl = \"{}\"\n\
             ca_file = \"{{dir}}/fcm.pem\"\n\
             [providers.web]\nkind = \"web_push\"\nvapid_key_file = \"{{dir}}/vapid.pem\"\nsubject = \"mailto:a@b.example\"\n\
             ca_file = \"{{dir}}/web.pem\"\nallow_internal = true\n",
            fcm.url()
        )
    }

    fn public(&self) -> String {
        let pem = std::fs::read_to_string(self.live.dir.path().join("vapid.pem")).unwrap();
        belfry::channel::web_push::vapid::public_of(&pem).unwrap()
    }

    fn reload(&self, p8: &str) {
        self.live.reload(&format!("{}{}", sections(&self.apns, p8, "60s"), Self::others(&self.fcm)));
    }

    fn register(&self, recipient: &str, device: &str, token: &str) {
        let path = format!("/v1/recipients/{recipient}/devices/{device}");
        self.live.put(&path, &json!({"kind": "apns", "token": token, "app": TOPIC}));
    }

    fn device(&self, recipient: &str, device: &str) -> Value {
        self.live.get(&format!("/v1/recipients/{recipient}/devices/{device}"))
    }

    /// To a stored recipient, by push.
    fn push(&self, key: &str, recipient: &str) -> String {
        self.live.send(key, &to(&json!({ "recipient": recipient })))
    }

    /// To devices that the request brings along.
    fn push_to(&self, key: &str, devices: &Value) -> String {
        self.live.send(key, &to(&json!({ "devices": devices })))
    }

    fn tokens_called(&self) -> Vec<String> {
        self.apns.requests().into_iter().map(|seen| seen.token).collect()
    }
}

fn to(whom: &Value) -> Value {
    json!({"class": "transactional", "to": whom, "channels": ["push"],
        "content": {"push": {"title": "Shipped", "body": "Order 42", "data": {"order": "42"}}}})
}

fn hex(number: u8) -> String {
    format!("{number:02x}").repeat(32)
}

fn states(notification: &Value) -> Vec<&str> {
    notification["deliveries"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect()
}

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
    let mut sent = Vec::new();
    for number in 2..=4 {
        let id = bed.push(&format!("u{number}"), &format!("u{number}"));
        assert_eq!(states(&bed.live.ended(&id)), ["failed"]);
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
        bed.live.once(id, "it waits", |one| one["state"] == "queued" || one["state"] == "deferred");
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
