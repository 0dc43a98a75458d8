//! Cancel, redrive, send again, resolve.

use belfry::facts::Fact;
use belfry::intake::instant::rfc3339;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{ClaimAsk, Deliveries as _, PurgeAsk};
use belfry::ports::policy::OUTBOX;
use belfry_domain::step::StepFact;
use belfry_domain::timeline::Hop;
use belfry_domain::{Lane, Outcome, Priority, Why, WhyCode};
use reqwest::Method;
use serde_json::{Value, json};

use super::away::Failing;
use super::bed::*;

fn mail(class: &str) -> Value {
    json!({"class": class, "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

fn unknown() -> Outcome {
    Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::TimedOutAfter) }
}

async fn act(bed: &Bed, delivery: &str, verb: &str, key: &str, body: Value) -> Told {
    bed.ask(Method::POST, &format!("/v1/deliveries/{delivery}/{verb}")).key(key).json(&body).told().await
}

async fn sent(bed: &Bed, class: &str) -> (String, String) {
    let told = bed.send("k", &mail(class)).await.json();
    (told["id"].as_str().unwrap().into(), told["deliveries"][0]["id"].as_str().unwrap().into())
}

async fn state(bed: &Bed, id: &str) -> Value {
    bed.get(&format!("/v1/notifications/{id}")).await.json()["deliveries"][0].clone()
}

#[tokio::test]
async fn case_23_a_replay_of_what_is_in_flight_changes_nothing() {
    let bed = Bed::new().await;
    let (id, delivery) = sent(&bed, "receipt").await;
    for (n, verb) in ["redrive", "send-again", "redrive", "send-again", "redrive"].into_iter().enumerate() {
        let told = act(&bed, &delivery, verb, &format!("press-{n}"), json!({"after_send": 1})).await;
        assert_eq!(told.problem(), (409, "not_in_this_state".into()));
        assert!(told.json()["detail"].as_str().unwrap().contains("already in flight"));
    }
    assert_eq!(state(&bed, &id).await["timeline"].as_array().unwrap().len(), 1);
    bed.work(called(accepted)).await;
    let lanes = vec![(Lane::new(OUTBOX, Priority::Normal), 5)];
    let ask = ClaimAsk { worker: "w2".into(), nonce: 1, lanes, alone: false };
    assert!(bed.store.claim(ask).await.unwrap().claims.is_empty());
}

#[tokio::test]
async fn redrive_puts_back_once() {
    let bed = Bed::new().await;
    let (id, delivery) = sent(&bed, "receipt").await;
    bed.work(called(refused)).await;
    assert_eq!(state(&bed, &id).await["state"], "failed");
    let first = act(&bed, &delivery, "redrive", "r1", json!({"after_send": 1})).await;
    assert_eq!((first.status.as_u16(), first.replayed()), (200, false), "{}", first.text);
    assert_eq!((&first.json()["state"], &first.json()["send"]), (&json!("queued"), &json!(1)));
    let again = act(&bed, &delivery, "redrive", "r1", json!({"after_send": 1})).await;
    assert_eq!((again.status.as_u16(), again.replayed()), (200, true));
    assert!(bed.told_facts().iter().any(|fact| matches!(fact, Fact::RepeatCaught { hop: Hop::Action, .. })));
    let timeline = state(&bed, &id).await["timeline"].clone();
    let redriven: Vec<_> = timeline.as_array().unwrap().iter().filter(|entry| entry["what"] == "redriven").collect();
    assert_eq!(redriven.len(), 1);
    assert!(redriven[0]["by"].as_str().unwrap().starts_with("key_"));
}

#[tokio::test]
async fn send_again_opens_the_next_send_for_who_saw_the_last() {
    let bed = Bed::new().await;
    let (_, delivery) = sent(&bed, "receipt").await;
    bed.work(called(accepted)).await;
    let told = act(&bed, &delivery, "send-again", "s1", json!({"after_send": 1})).await;
    assert_eq!((told.status.as_u16(), &told.json()["send"]), (200, &json!(2)));
    bed.work(called(accepted)).await;
    let told = act(&bed, &delivery, "send-again", "s2", json!({"after_send": 1})).await;
    assert_eq!(told.problem(), (409, "send_moved".into()));
    assert!(told.json()["detail"].as_str().unwrap().contains("send 2"));
    for bad in [json!({}), json!({"after_send": 0}), json!({"after_send": "1"}), json!({"after_send": 1, "x": 2})] {
        assert_eq!(act(&bed, &delivery, "send-again", "s3", bad).await.problem(), (422, "invalid".into()));
    }
    let url = format!("/v1/deliveries/{delivery}/send-again");
    let keyless = bed.ask(Method::POST, &url).json(&json!({"after_send": 2})).told().await;
    assert_eq!(keyless.problem(), (400, "missing_idempotency_key".into()));
}

/// A repeat is read, and what is read may be ahead of the disk: its answer waits like the first one.
#[tokio::test]
async fn a_repeat_is_not_acknowledged_before_what_it_repeats_is_durable() {
    let failing = Failing::new();
    let bed = Bed::planned(Plan { deliveries: Some(failing.clone()), ..Plan::default() }).await;
    failing.serve(bed.store.clone());
    let mut body = mail("receipt");
    body["expires_at"] = json!(rfc3339(bed.clock.now().plus(DAY)));
    let first = bed.send("k", &body).await;
    let delivery = first.json()["deliveries"][0]["id"].as_str().unwrap().to_owned();
    bed.work(called(refused)).await;
    let press = || act(&bed, &delivery, "redrive", "press", json!({"after_send": 1}));
    assert_eq!(press().await.status, 200);
    // The look goes through, what makes its answer safe does not.
    failing.fail_after(1);
    assert_eq!(press().await.problem(), (503, "store_unavailable".into()));
    failing.heal();
    let again = press().await;
    assert_eq!((again.status.as_u16(), again.replayed()), (200, true));

    bed.clock.forward(2 * DAY);
    failing.fail_after(1);
    assert_eq!(bed.send("k", &body).await.problem(), (503, "store_unavailable".into()));
    failing.heal();
    let again = bed.send("k", &body).await;
    assert_eq!((again.status, again.replayed(), &again.text), (first.status, true, &first.text));
}

#[tokio::test]
async fn what_is_no_longer_kept_is_not_sent_again() {
    let bed = Bed::new().await;
    let (id, delivery) = sent(&bed, "receipt").await;
    bed.work(called(accepted)).await;
    bed.clock.forward(4 * DAY);
    let ask = PurgeAsk { now: bed.clock.now(), keep_record: 15 * DAY, limit: 100 };
    assert_eq!(bed.store.purge(ask).await.unwrap().contents, 1);
    let told = act(&bed, &delivery, "send-again", "s1", json!({"after_send": 1})).await;
    assert_eq!(told.problem(), (409, "content_purged".into()));
    assert_eq!(state(&bed, &id).await["send"], 1);
}

#[tokio::test]
async fn an_unknown_is_resolved_by_a_person() {
    let bed = Bed::new().await;
    let (id, delivery) = sent(&bed, "marketing").await;
    let told = act(&bed, &delivery, "resolve", "x", json!({"to": "delivered"})).await;
    assert_eq!(told.problem(), (409, "not_in_this_state".into()));
    bed.work(called(unknown)).await;
    let shown = state(&bed, &id).await;
    assert_eq!((&shown["state"], &shown["may_have_arrived"]), (&json!("unknown"), &json!(true)));
    assert_eq!(act(&bed, &delivery, "resolve", "x", json!({"to": "maybe"})).await.pointers(), ["/to"]);
    let told = act(&bed, &delivery, "resolve", "x", json!({"to": "delivered", "why": "She called."})).await;
    assert_eq!((told.status.as_u16(), &told.json()["state"]), (200, &json!("delivered")));
    assert!(act(&bed, &delivery, "resolve", "x", json!({"to": "delivered", "why": "She called."})).await.replayed());
    let timeline = state(&bed, &id).await["timeline"].clone();
    assert!(timeline.as_array().unwrap().iter().any(|entry| entry["text"] == "She called."), "{timeline}");
}

#[tokio::test]
async fn another_action_under_a_used_key_is_refused_not_swallowed() {
    let bed = Bed::new().await;
    let (id, delivery) = sent(&bed, "marketing").await;
    bed.work(called(unknown)).await;
    let delivered = json!({"to": "delivered"});
    assert_eq!(act(&bed, &delivery, "resolve", "k1", delivered.clone()).await.status, 200);
    let resolved = state(&bed, &id).await;
    for (verb, body, pointers) in [
        ("resolve", json!({"to": "failed"}), vec!["/to"]),
        ("resolve", json!({"to": "delivered", "why": "She called."}), vec!["/why"]),
        ("send-again", json!({"after_send": 1}), vec![""]),
        ("redrive", json!({"after_send": 1}), vec![""]),
    ] {
        let told = act(&bed, &delivery, verb, "k1", body).await;
        assert_eq!(told.problem(), (422, "key_reused".into()), "{verb}");
        assert_eq!((told.pointers(), told.replayed()), (pointers.iter().map(|&it| it.to_owned()).collect(), false));
        assert!(told.json()["detail"].as_str().unwrap().contains("`resolve` of this delivery"), "{}", told.text);
    }
    assert_eq!(state(&bed, &id).await, resolved);
    assert!(act(&bed, &delivery, "resolve", "k1", delivered).await.replayed());
    // Under a key of its own it is done; the same with another number is another request.
    assert_eq!(act(&bed, &delivery, "send-again", "k2", json!({"after_send": 1})).await.json()["send"], 2);
    let told = act(&bed, &delivery, "send-again", "k2", json!({"after_send": 2})).await;
    assert_eq!((told.problem(), told.pointers()), ((422, "key_reused".into()), vec!["/after_send".into()]));
    let again = act(&bed, &delivery, "send-again", "k2", json!({"after_send": 1})).await;
    assert_eq!((again.replayed(), &again.json()["send"]), (true, &json!(2)));
    let mismatch = |fact: &&Fact| matches!(fact, Fact::FingerprintMismatch { hop: Hop::Action, .. });
    assert_eq!(bed.told_facts().iter().filter(mismatch).count(), 5);
}

#[tokio::test]
async fn cancel_says_what_is_cancelled_in_flight_and_over() {
    let bed = Bed::new().await;
    let mut body = mail("receipt");
    body["content"]["cc"] = json!(["bob@example.com", "eve@example.com"]);
    let told = bed.send("k", &body).await.json();
    let id = told["id"].as_str().unwrap();
    let done = bed.work(called(accepted)).await;
    let lanes = vec![(Lane::new(OUTBOX, Priority::Normal), 1)];
    let ask = ClaimAsk { worker: "w2".into(), nonce: 1, lanes, alone: false };
    let claim = bed.store.claim(ask).await.unwrap().claims.pop().unwrap();
    let path = format!("/v1/notifications/{id}/cancel");
    let told = bed.ask(Method::POST, &path).json(&json!({"why": "Wrong order"})).told().await;
    assert_eq!(told.status, 200, "{}", told.text);
    let body = told.json();
    assert_eq!(body["ended"], json!([done.id.to_string()]));
    assert_eq!(body["in_flight"], json!([claim.delivery.id.to_string()]));
    assert_eq!(body["cancelled"].as_array().unwrap().len(), 1);
    let facts = bed.told_facts();
    let ended = |fact: &&Fact| matches!(fact, Fact::Stepped { fact: StepFact::Ended { .. }, .. });
    assert_eq!(facts.iter().filter(ended).count(), 1);
    // A repeat finds it so, without a body too.
    let again = bed.ask(Method::POST, &path).told().await;
    assert_eq!((again.status.as_u16(), &again.json()["cancelled"]), (200, &body["cancelled"]));
    let reasons = body["notification"]["deliveries"].to_string();
    assert!(reasons.contains("Cancelled: Wrong order."), "{reasons}");
    let other = bed.make_key("other", "live", "main", ALL).await;
    let foreign = bed.client.post(format!("http://{}{path}", bed.addr)).bearer_auth(other).send().await.unwrap();
    assert_eq!(foreign.status(), 404);
    assert_eq!(bed.ask(Method::POST, &path).json(&json!({"why": ""})).told().await.pointers(), ["/why"]);
}

#[tokio::test]
async fn cancellations_by_filter_go_on_by_cursor() {
    let bed = Bed::new().await;
    for n in 0..5 {
        let mut body = mail("receipt");
        body["group"] = json!(if n < 3 { "launch" } else { "other" });
        assert_eq!(bed.send(&format!("k{n}"), &body).await.status, 202);
    }
    let ask = |body: Value| bed.ask(Method::POST, "/v1/cancellations").json(&body).told();
    for (bad, pointer) in [
        (json!({}), "/filter"),
        (json!({"filter": {}}), "/filter"),
        (json!({"filter": {"colour": "red"}}), "/filter/colour"),
        (json!({"filter": {"group": "launch"}, "dry_run": "yes"}), "/dry_run"),
        (json!({"filter": {"group": "launch"}}), "/why"),
        (json!({"filter": {"group": "launch"}, "why": ""}), "/why"),
    ] {
        let pointers = ask(bad).await.pointers();
        assert!(pointers.contains(&pointer.to_owned()), "{pointers:?}");
    }
    let dry = ask(json!({"filter": {"group": "launch"}, "dry_run": true})).await.json();
    let ids = dry["ids"].as_array().unwrap();
    assert!(ids.iter().all(|id| id.as_str().unwrap().starts_with("ntf_")), "{dry}");
    let tally = json!({"dry_run": true, "notifications": 3, "ids": ids, "cancelled": 3,
        "cancelled_before": 0, "in_flight": 0, "ended": 0, "out": 0, "corrected_run": dry["corrected_run"],
        "has_more": false});
    assert_eq!(dry["corrected_run"]["code"], "needs_new_keys");
    assert_eq!(dry, tally);
    assert_eq!(bed.get("/v1/notifications?state=cancelled").await.json()["data"], json!([]));
    let done = ask(json!({"filter": {"group": "launch"}, "why": "Called off"})).await.json();
    assert_eq!((&done["dry_run"], &done["cancelled"], &done["ids"]), (&json!(false), &json!(3), &dry["ids"]));
    let cancelled = bed.get("/v1/notifications?state=cancelled").await.json();
    assert_eq!(cancelled["data"].as_array().unwrap().len(), 3);
    assert_eq!(bed.get("/v1/notifications?state=queued").await.json()["data"].as_array().unwrap().len(), 2);
    let again = ask(json!({"filter": {"group": "launch"}, "why": "Once more"})).await.json();
    assert_eq!((&again["cancelled"], &again["cancelled_before"]), (&json!(3), &json!(3)));
}
