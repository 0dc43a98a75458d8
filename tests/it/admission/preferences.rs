//! What recipients turn off while messages wait.

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::peers::smtp_stub::{Act, At, Script, SmtpStub};
use crate::push::live::Live;

/// A server that takes no mail for now: whatever is sent to it waits for its next turn.
fn later() -> (Live, SmtpStub) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let not_now = Script::default().always(At::Rcpt, Act::Reply("451 4.7.1 later".into()));
    let stub = runtime.block_on(SmtpStub::start(not_now));
    let sections = format!(
        "[channels.email]\nproviders = [\"main\"]\n[providers.main]\nkind = \"smtp\"\nurl = \"{}\"\n\
         from = \"Shop <no-reply@example.com>\"\n[classes.transactional.retry]\nbase = \"50ms\"\ncap = \"100ms\"\n\
         [classes.news]\norder = \"record_then_send\"\nchannels = [\"email\", \"sms\"]\ndefaults = {{ all = false, sms = true }}\n",
        stub.url()
    );
    (Live::start(runtime, &sections, &[]), stub)
}

fn mail(class: &str, to: &Value) -> Value {
    json!({"class": class, "to": to, "channels": ["email"], "content": {"subject": "Order", "text": "It is on its way."}})
}

#[test]
fn what_is_turned_off_while_it_waits_ends_at_its_next_turn() {
    let (live, _stub) = later();
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let to = json!({"recipient": name, "email": format!("{name}@example.com")});
        let id = live.send(name, &mail("transactional", &to));
        live.once(&id, "it was tried", |one| one["attempts"].as_u64() > Some(0));
        id
    });
    live.put("/v1/preferences/ann", &json!({"every": {"email": false}}));
    let ended = live.ended(&ann);
    let delivery = &ended["deliveries"][0];
    assert_eq!(delivery["state"], "suppressed");
    assert_eq!(delivery["reason"], "Suppressed: the recipient turned off messages like this on this channel.");
    // Nobody else's.
    assert_ne!(live.get(&format!("/v1/notifications/{bob}"))["state"], "suppressed");
}

#[test]
fn who_says_nothing_gets_what_the_class_has_for_everybody() {
    let (live, _stub) = later();
    let state = |key: &str, to: Value| {
        let id = live.send(key, &mail("news", &to));
        live.get(&format!("/v1/notifications/{id}"))["deliveries"][0]["state"].clone()
    };
    // Also to an address that belongs to nobody known.
    assert_eq!(state("a", json!({"email": "ann@example.com"})), "suppressed");
    assert_eq!(state("b", json!({"recipient": "ann", "email": "ann@example.com"})), "suppressed");
    live.put("/v1/preferences/ann", &json!({"categories": {"news": {"email": true}}}));
    assert_ne!(state("c", json!({"recipient": "ann", "email": "ann@example.com"})), "suppressed");
    let effective = live.get("/v1/preferences/bob")["effective"].clone();
    let news = effective.as_array().unwrap().iter().find(|one| one["category"] == "news").unwrap();
    assert_eq!(news["channels"], json!({"email": false, "sms": true}));
}

/// A copy is somebody else's.
#[test]
fn what_a_recipient_turns_off_says_nothing_about_copies_to_others() {
    let (live, _stub) = later();
    live.put("/v1/preferences/ann", &json!({"every": {"email": false}}));
    let mut body = mail("transactional", &json!({"recipient": "ann", "email": "ann@example.com"}));
    body["content"]["cc"] = json!(["cy@example.com"]);
    body["content"]["bcc"] = json!(["bo@example.com"]);
    let id = live.send("copied", &body);
    let told = live.get(&format!("/v1/notifications/{id}"));
    let states: Vec<_> =
        told["deliveries"].as_array().unwrap().iter().map(|one| (&one["slot"], &one["state"])).collect();
    assert_eq!(states[0], (&json!("to"), &json!("suppressed")), "{states:?}");
    assert_eq!(states.len(), 3);
    assert!(states[1..].iter().all(|(_, state)| **state != json!("suppressed")), "{states:?}");
}
