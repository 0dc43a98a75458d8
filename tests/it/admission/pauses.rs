//! Pauses: what they hold, what they let through, and that they let go; each on either store.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::peers::until::{pass, until};
use crate::push::live::Live;
use crate::redis::Server;
use crate::redis::server::Options;

/// A provider of mail that is no outbox for others: its lanes hold mail and nothing else.
const MAIL: &str = "[channels.email]\nproviders = [\"pretend\"]\n[providers.pretend]\nkind = \"outbox\"\n";
const SAMPLE: &str = include_str!("../../../templates/order_shipped/sample.json");
const LONG: Duration = Duration::from_secs(60);
/// Longer than a node takes to see what another one's API was told: it reads every second.
const SEEN: Duration = Duration::from_millis(2_500);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn redis(server: &Server) -> String {
    format!("store.kind = \"redis\"\nstore.redis.url = \"{}\"\n", server.url())
}

fn on_a_file(test: impl Fn(Live)) {
    test(Live::start_kept(runtime(), MAIL, &[]));
}

fn on_redis(test: impl Fn(Live)) {
    let server = Server::start(Options::default());
    test(Live::start_over(runtime(), &redis(&server), MAIL));
}

/// Each on a fresh one of either store.
macro_rules! on_either_store {
    ($($name:ident),+ $(,)?) => {
        mod in_a_file {
            $(#[test] fn $name() { super::on_a_file(super::$name); })+
        }

        mod in_redis {
            $(#[test] fn $name() { super::on_redis(super::$name); })+
        }
    };
}

on_either_store!(
    a_paused_channel_costs_no_claims_and_goes_on_at_once,
    a_paused_class_waits_and_says_so_and_goes_on_when_it_is_resumed,
    what_is_paused_stays_so_over_a_restart,
    a_pause_ends_by_itself,
    codes_go_out_unless_the_pause_is_forced,
    a_tenant_s_pause_holds_that_tenant_and_nobody_else,
    templates_and_groups_are_held_by_name,
);

fn mail(class: &str) -> Value {
    json!({"class": class, "to": {"email": "ann@example.com"}, "content": {"subject": "Shipped", "text": "Order 42"}})
}

fn pause(live: &Live, body: &Value) -> Value {
    let (status, told) = live.asked("POST", "/v1/pauses", None, Some(body));
    assert!(status == 201 || status == 200, "{status} {told}");
    told
}

fn resume(live: &Live, pause: &Value) {
    let path = format!("/v1/pauses/{}", pause["id"].as_str().unwrap());
    assert_eq!(live.asked("DELETE", &path, None, None).0, 204);
}

fn pauses(live: &Live) -> Vec<Value> {
    live.get("/v1/pauses")["data"].as_array().unwrap().clone()
}

fn state(live: &Live, id: &str) -> String {
    live.get(&format!("/v1/notifications/{id}"))["state"].as_str().unwrap().to_owned()
}

/// Waiting for the pause, by its record.
fn is_put_off(live: &Live, id: &str) -> Value {
    live.once(id, "it is put off", |one| one["state"] == "deferred")["deliveries"][0].clone()
}

fn in_time(seconds: i64) -> String {
    (Timestamp::now() + SignedDuration::from_secs(seconds)).to_string()
}

/// A claim of what is held puts it off: what is still queued was never claimed.
fn a_paused_channel_costs_no_claims_and_goes_on_at_once(live: Live) {
    const MANY: usize = 1_000;
    let made = pause(&live, &json!({"what": "channel", "name": "email", "why": "the relay is being moved"}));
    assert_eq!(made["lets_through"], json!(["code", "security"]));
    let items: Vec<Value> = (0..MANY)
        .map(|number| {
            let mut item = mail("receipt");
            item["key"] = format!("order-{number}").into();
            item
        })
        .collect();
    let (status, told) = live.asked("POST", "/v1/notifications/batch", None, Some(&json!({ "items": items })));
    assert_eq!(status, 200);
    let id_of = |item: &Value| item["notification"]["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = told["data"].as_array().unwrap().iter().map(id_of).collect();
    pass(SEEN);
    // Claims go by what has been due the longest, and each would put off as many as may be in hand.
    assert!(ids.iter().step_by(20).all(|id| state(&live, id) == "queued"));
    let standing = pauses(&live);
    assert_eq!((&standing[0]["held"], &standing[0]["held_at_least"]), (&json!(MANY), &json!(false)), "{standing:?}");
    let reason = live.get(&format!("/v1/notifications/{}", ids[0]))["deliveries"][0]["reason"].clone();
    assert_eq!(
        reason,
        format!(
            "Held: the channel email is paused since {}: the relay is being moved.",
            made["since"].as_str().unwrap()
        )
    );
    // What it lets through goes through the very provider.
    assert_eq!(live.ended(&live.send("a-code", &mail("code")))["state"], "accepted");
    resume(&live, &made);
    for id in &ids {
        assert_eq!(live.ended(id)["state"], "accepted");
    }
    assert_eq!(pauses(&live), Vec::<Value>::new());
}

fn a_paused_class_waits_and_says_so_and_goes_on_when_it_is_resumed(live: Live) {
    let asked = json!({"what": "class", "name": "transactional", "why": "wrong prices"});
    let made = pause(&live, &asked);
    assert_eq!(pause(&live, &asked), made, "the same again is the same pause");
    let id = live.send("one", &mail("transactional"));
    let held = is_put_off(&live, &id);
    assert_eq!(
        held["reason"],
        format!("Held: the class transactional is paused since {}: wrong prices.", made["since"].as_str().unwrap())
    );
    assert_eq!(held["attempts"], 0);
    assert_eq!(live.ended(&live.send("two", &mail("receipt")))["state"], "accepted");
    assert_eq!(pauses(&live)[0]["held"], 1);
    assert!(live.metrics().contains("pauses 1"));
    let checks = live.get("/readyz?verbose");
    let told = format!("the class transactional is paused since {}", made["since"].as_str().unwrap());
    let said = checks["checks"].as_array().unwrap().iter().any(|one| one["name"] == "pause" && one["detail"] == told);
    assert!(checks["ready"] == true && said, "{checks}");
    // Nothing of it is broken off or lost: it goes when it asks again.
    resume(&live, &made);
    resume(&live, &made);
    assert_eq!(live.ended(&id)["state"], "accepted");
}

fn what_is_paused_stays_so_over_a_restart(mut live: Live) {
    let made = pause(&live, &json!({"what": "all", "forced": true}));
    let id = live.send("one", &mail("code"));
    live.restart(MAIL);
    pass(SEEN);
    assert_eq!(state(&live, &id), "queued");
    assert_eq!(pauses(&live)[0]["held"], 1);
    resume(&live, &made);
    assert_eq!(live.ended(&id)["state"], "accepted");
}

fn a_pause_ends_by_itself(live: Live) {
    let until_then = in_time(3);
    pause(&live, &json!({"what": "class", "name": "receipt", "until": until_then}));
    pause(&live, &json!({"what": "provider", "name": "pretend", "until": until_then}));
    let id = live.send("one", &mail("receipt"));
    assert_eq!(pauses(&live).len(), 2);
    let sent = live.ended(&id);
    let at: Timestamp = sent["deliveries"][0]["ended_at"].as_str().unwrap().parse().unwrap();
    assert!(at >= until_then.parse::<Timestamp>().unwrap(), "{sent}");
    assert_eq!(pauses(&live), Vec::<Value>::new());
    // Dropped by whoever sees it.
    until("none stands", LONG, || live.metrics().contains("\nbelfry_pauses 0").then_some(()));
}

fn codes_go_out_unless_the_pause_is_forced(live: Live) {
    let mut asked = json!({"what": "class", "name": "code"});
    let (status, told) = live.asked("POST", "/v1/pauses", None, Some(&asked));
    assert_eq!((status, &told["errors"][0]["pointer"]), (422, &json!("/name")), "{told}");
    let lax = pause(&live, &json!({"what": "all"}));
    assert_eq!(live.ended(&live.send("one", &mail("code")))["state"], "accepted");
    asked["forced"] = true.into();
    let forced = pause(&live, &asked);
    let id = live.send("two", &mail("code"));
    pass(SEEN);
    assert!(["queued", "deferred"].contains(&state(&live, &id).as_str()));
    resume(&live, &lax);
    resume(&live, &forced);
    assert_eq!(live.ended(&id)["state"], "accepted");
}

fn a_tenant_s_pause_holds_that_tenant_and_nobody_else(live: Live) {
    let key = |tenant: &str| {
        let body = json!({"tenant": tenant, "environment": "live", "can": ["send", "read", "admin"]});
        let (status, told) = live.asked("POST", "/v1/keys", None, Some(&body));
        assert_eq!(status, 201, "{told}");
        told["key"].as_str().unwrap().to_owned()
    };
    let (acme, other) = (key("acme"), key("other"));
    let told = |key: &str, method: &str, path: &str, body: Option<&Value>| {
        let (status, told) = live.asked_by(key, method, path, (Some("one"), body));
        assert!(status < 300, "{status} {told}");
        told
    };
    let made = told(&acme, "POST", "/v1/pauses", Some(&json!({"what": "class", "name": "receipt"})));
    assert_eq!(made["tenant"], "acme");
    let sent =
        |key: &str| told(key, "POST", "/v1/notifications", Some(&mail("receipt")))["id"].as_str().unwrap().to_owned();
    let (held, goes) = (sent(&acme), sent(&other));
    let now = |key: &str, id: &str| told(key, "GET", &format!("/v1/notifications/{id}"), None)["state"].clone();
    until("the other's goes out", LONG, || (now(&other, &goes) == "accepted").then_some(()));
    until("theirs is put off", LONG, || (now(&acme, &held) == "deferred").then_some(()));
    // Nobody else sees or lifts it.
    assert_eq!(told(&other, "GET", "/v1/pauses", None)["data"], json!([]));
    let path = format!("/v1/pauses/{}", made["id"].as_str().unwrap());
    told(&other, "DELETE", &path, None);
    assert_eq!(told(&acme, "GET", "/v1/pauses", None)["data"][0]["held"], 1);
    told(&acme, "DELETE", &path, None);
    until("it goes on", LONG, || (now(&acme, &held) == "accepted").then_some(()));
}

fn templates_and_groups_are_held_by_name(live: Live) {
    let of_group = |group: &str| {
        let mut body = mail("receipt");
        body["group"] = group.into();
        body
    };
    pause(&live, &json!({"what": "group", "name": "launch"}));
    pause(&live, &json!({"what": "template", "name": "order_shipped"}));
    let held = live.send("held", &of_group("launch"));
    assert!(is_put_off(&live, &held)["reason"].as_str().unwrap().starts_with("Held: the group launch is paused"));
    assert_eq!(live.ended(&live.send("goes", &of_group("other")))["state"], "accepted");
    let sample: Value = serde_json::from_str(SAMPLE).unwrap();
    let shipped = json!({"class": "receipt", "to": {"email": "ann@example.com"}, "template": "order_shipped",
        "data": sample});
    let reason = is_put_off(&live, &live.send("shipped", &shipped))["reason"].clone();
    assert!(reason.as_str().unwrap().starts_with("Held: the template order_shipped is paused"), "{reason}");
    let held: Vec<Value> = pauses(&live).iter().map(|one| one["held"].clone()).collect();
    assert_eq!(held, [json!(1), json!(1)]);
}

#[test]
fn every_node_goes_by_what_one_of_them_was_told() {
    let server = Server::start(Options::default());
    let (one, other) = (redis(&server), redis(&server));
    let one = Live::start_over(runtime(), &one, MAIL);
    let other = Live::start_over(runtime(), &other, MAIL);
    let made = pause(&one, &json!({"what": "all", "forced": true}));
    until("the other has read it", LONG, || other.metrics().contains("\nbelfry_pauses 1").then_some(()));
    let id = other.send("one", &mail("code"));
    pass(SEEN);
    assert_eq!(state(&one, &id), "queued");
    // Either may resume.
    resume(&other, &made);
    assert_eq!(one.ended(&id)["state"], "accepted");
}
