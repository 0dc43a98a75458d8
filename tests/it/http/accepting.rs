//! `POST /v1/notifications`: durable once, the same answer ever after.

use std::time::Duration;

use belfry::facts::Fact;
use belfry::http::keys;
use belfry::intake::instant::rfc3339;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{Deliveries as _, PurgeAsk};
use belfry_domain::timeline::Hop;
use belfry_domain::{NotificationId, UnixMs};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

fn mail() -> Value {
    json!({
        "class": "receipt",
        "to": {"email": "Ann Lee <ann@example.com>"},
        "content": {"subject": "Your order", "text": "It is on its way."}
    })
}

fn id(told: &Told) -> NotificationId {
    told.json()["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn accepts_and_says_where() {
    let bed = Bed::new().await;
    let told = bed.send("order-42/shipped", &mail()).await;
    assert_eq!(told.status, 202, "{}", told.text);
    let body = told.json();
    let id = NotificationId::http("acme", "live", "main", "order-42/shipped");
    assert_eq!(body["id"], id.to_string());
    assert_eq!((&body["class"], &body["state"]), (&json!("receipt"), &json!("queued")));
    assert_eq!(body["deliveries"][0]["channel"], "email");
    assert_eq!(body["deliveries"][0]["reason"], "Waiting for a worker.");
    assert_eq!(told.header("location"), Some(format!("/v1/notifications/{id}").as_str()));
    assert!(!told.replayed());
    let read = bed.get(&format!("/v1/notifications/{id}")).await.json();
    assert_eq!(read["deliveries"][0]["address"], "a…@example.com");
    assert_eq!(read["deliveries"][0]["timeline"][0]["what"], "received");
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_byte_for_byte() {
    let bed = Bed::new().await;
    let first = bed.send("k", &mail()).await;
    // Whatever happened since, and however the same request is written this time.
    bed.clock.forward(Duration::from_secs(3600));
    bed.work(called(accepted)).await;
    let spelled = r#"{ "content": {"text":"It is on its way.", "subject":"Your \u006frder"},
        "to": {"email":"Ann Lee <ann@example.com>"}, "class":"receipt" }"#;
    let again = bed.ask(Method::POST, "/v1/notifications").key("\"k\"").body(spelled).told().await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_eq!(again.header("location"), first.header("location"));
    assert!(again.replayed());
    let read = bed.get(again.header("location").unwrap()).await.json();
    assert_eq!((&read["state"], &read["repeats"]), (&json!("accepted"), &json!(1)));
    let caught = bed.told_facts().into_iter().find_map(|fact| match fact {
        Fact::RepeatCaught { hop, age, window, .. } => Some((hop, age, window)),
        _ => None,
    });
    let (hop, age, window) = caught.unwrap();
    assert_eq!((hop, window), (Hop::Http, 15 * DAY));
    assert!(age >= Duration::from_secs(3600) && age < Duration::from_secs(3700), "{age:?}");
}

#[tokio::test]
async fn a_scheduled_one_is_answered_as_scheduled_for_ever() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["send_at"] = json!(rfc3339(bed.clock.now().plus(Duration::from_secs(600))));
    let first = bed.send("k", &body).await;
    assert_eq!(first.json()["state"], "scheduled");
    assert_eq!(first.json()["deliveries"][0]["reason"], "Waiting for its time.");
    bed.clock.forward(Duration::from_secs(700));
    let again = bed.send("k", &body).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused_by_name() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["metadata"] = json!({"a": 1, "b": 2});
    let first = bed.send("k", &body).await;
    body["to"]["email"] = json!("bob@example.com");
    body["metadata"] = json!({"a": 1, "b": 3});
    body["reference"] = json!("new");
    let told = bed.send("k", &body).await;
    assert_eq!(told.problem(), (422, "key_reused".into()));
    assert_eq!(told.pointers(), ["/metadata/b", "/reference", "/to/email"]);
    assert!(!told.text.contains("bob@") && !told.text.contains("ann@"));
    let expected = Fact::FingerprintMismatch { notification: id(&first), hop: Hop::Http };
    assert!(bed.told_facts().contains(&expected));
}

#[tokio::test]
async fn unique_recognises_a_fresh_header_key() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["unique"] = json!("order-42/receipt");
    let first = bed.send("tap-1", &body).await;
    let second = bed.send("tap-2", &body).await;
    assert_eq!((second.status, &second.text), (first.status, &first.text));
    assert!(second.replayed());
    assert_eq!(id(&first), NotificationId::unique("acme", "live", "receipt", "order-42/receipt"));
    assert!(bed.told_facts().iter().any(|fact| matches!(fact, Fact::RepeatCaught { hop: Hop::Unique, .. })));
    // It is `unique` that names the intent: the fresh header key is not to blame.
    let mut other = body.clone();
    other["content"]["text"] = json!("U");
    let told = bed.send("tap-4", &other).await;
    assert_eq!((told.problem(), told.pointers()), ((422, "key_reused".into()), vec!["/content/text".into()]));
    assert!(told.json()["detail"].as_str().unwrap().starts_with("`unique`"), "{}", told.text);
    body["class"] = json!("code");
    assert!(!bed.send("tap-3", &body).await.replayed());
}

#[tokio::test]
async fn keys_are_needed_and_have_a_form() {
    let bed = Bed::new().await;
    let told = bed.ask(Method::POST, "/v1/notifications").json(&mail()).told().await;
    assert_eq!(told.problem(), (400, "missing_idempotency_key".into()));
    for bad in ["\"open", "a b", "\"\"", &"k".repeat(256)] {
        let told = bed.send(bad, &mail()).await;
        assert_eq!(told.problem(), (400, "bad_idempotency_key".into()), "{bad}");
    }
    assert_eq!(bed.send(&"k".repeat(255), &mail()).await.status, 202);
}

#[tokio::test]
async fn two_first_ones_at_once_are_one() {
    let bed = Bed::new().await;
    let body = mail();
    let all = futures::future::join_all((0..16).map(|_| bed.send("k", &body))).await;
    assert!(all.iter().all(|told| told.status == 202 && told.text == all[0].text));
    assert_eq!(all.iter().filter(|told| !told.replayed()).count(), 1);
    let list = bed.get("/v1/notifications").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(list["data"][0]["repeats"], 15);
}

#[tokio::test]
async fn case_13_the_same_key_of_two_callers_is_two_intents() {
    let bed = Bed::new().await;
    let first = bed.send("k", &mail()).await;
    let mut ids = vec![id(&first)];
    let everybody = [("other", "live", "main"), ("acme", "staging", "main"), ("acme", "live", "second")];
    for (tenant, environment, namespace) in everybody {
        let key = bed.make_key(tenant, environment, namespace, ALL).await;
        let ask = bed.client.post(format!("http://{}/v1/notifications", bed.addr)).bearer_auth(&key);
        let ask = ask.header("idempotency-key", "k").header("content-type", "application/json");
        let answer = ask.body(mail().to_string()).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers().get("idempotency-replayed")), (202, None));
        let text = answer.text().await.unwrap();
        for other in &ids {
            assert!(!text.contains(&other.to_string()));
        }
        ids.push(serde_json::from_str::<Value>(&text).unwrap()["id"].as_str().unwrap().parse().unwrap());
        // What is another owner's is answered like what is nobody's.
        let foreign = bed.client.get(format!("http://{}/v1/notifications/{}", bed.addr, ids[0])).bearer_auth(&key);
        let absent = bed.client.get(format!("http://{}/v1/notifications/ntf_{}", bed.addr, "0".repeat(24)));
        let foreign = foreign.send().await.unwrap();
        let absent = absent.bearer_auth(&key).send().await.unwrap();
        let same_owner = (tenant, environment) == ("acme", "live");
        assert_eq!(foreign.status().as_u16(), if same_owner { 200 } else { 404 });
        if !same_owner {
            let foreign: Value = foreign.json().await.unwrap();
            let absent: Value = absent.json().await.unwrap();
            assert_eq!((&foreign["code"], &foreign["detail"]), (&absent["code"], &absent["detail"]));
        }
    }
    assert!(keys::well_formed(&bed.key));
}

#[tokio::test]
async fn case_68_numbers_reach_the_store_as_written() {
    let bed = Bed::new().await;
    let numbers = r#"{"a":9007199254740993,"b":18446744073709551615,"c":-0.0,"d":1e400,"e":1.0,"f":1e21}"#;
    let body = format!(
        r#"{{"class":"receipt","to":{{"email":"a@b.example","webhook":"https://hooks.example.com/x"}},"metadata":{numbers},
            "channels":["webhook"],"content":{{"webhook":{{"é":"\u00e9","z":1, "a":{numbers}}}}}}}"#
    );
    let told = bed.ask(Method::POST, "/v1/notifications").key("k").body(body.clone()).told().await;
    assert_eq!(told.status, 202, "{}", told.text);
    let inputs = bed.store.inputs(id(&told)).await.unwrap().unwrap();
    // Byte for byte, spaces and escapes too: what is signed later is what was written.
    assert!(inputs.contains(&format!(r#"{{"é":"\u00e9","z":1, "a":{numbers}}}"#)), "{inputs}");
    let read = bed.get(told.header("location").unwrap()).await;
    assert!(read.text.contains(numbers), "{}", read.text);
    // One digit more is another request: no float has rounded the two into one.
    let other = body.replace("9007199254740993", "9007199254740992");
    let told = bed.ask(Method::POST, "/v1/notifications").key("k").body(other).told().await;
    assert_eq!(told.problem(), (422, "key_reused".into()));
    assert_eq!(told.pointers(), ["/content/webhook", "/metadata/a"]);
}

#[tokio::test]
async fn case_68_what_is_no_json_is_refused_with_its_place() {
    let bed = Bed::new().await;
    let deep = format!(r#"{{"class":"receipt","data":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
    for (body, pointers) in [
        (r#"{"class":"receipt","class":"code"}"#, vec!["/class".to_owned()]),
        (r#"{"data":{"x":{"a":1,"\u0061":2}}}"#, vec!["/data/x/a".into()]),
        (r#"{"data":NaN}"#, vec![]),
        (r#"{"data":-Infinity}"#, vec![]),
        ("", vec![]),
        ("[1,2", vec![]),
        (&deep, vec![format!("/data{}", "/0".repeat(31))]),
    ] {
        let told = bed.ask(Method::POST, "/v1/notifications").key("k").body(body.to_owned()).told().await;
        assert_eq!(told.problem(), (400, "invalid_json".into()), "{body}");
        assert_eq!(told.pointers(), pointers, "{body}");
    }
}

#[tokio::test]
async fn an_intent_older_than_memory_is_not_taken_for_new() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["intent_at"] = json!(rfc3339(bed.clock.now().minus(14 * DAY)));
    let first = bed.send("k", &body).await;
    assert_eq!(first.status, 202);
    bed.clock.forward(2 * DAY);
    // Too old by now, but known: a repeat like any other.
    let again = bed.send("k", &body).await;
    assert_eq!((again.status, again.replayed(), &again.text), (first.status, true, &first.text));
    let told = bed.send("another", &body).await;
    assert_eq!(told.problem(), (422, "too_old_to_know".into()));
    assert_eq!(told.pointers(), ["/intent_at"]);
    // With more wrong than its age it is an invalid request.
    body["class"] = json!("nobody");
    assert_eq!(bed.send("another", &body).await.problem(), (422, "invalid".into()));
}

#[tokio::test]
async fn a_repeat_is_known_after_its_template_and_time_are_past() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["expires_at"] = json!(rfc3339(bed.clock.now().plus(Duration::from_secs(60))));
    let first = bed.send("k", &body).await;
    bed.clock.forward(Duration::from_secs(120));
    let again = bed.send("k", &body).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    let fresh = bed.send("other", &body).await;
    assert_eq!((fresh.problem(), fresh.pointers()), ((422, "invalid".into()), vec!["/expires_at".into()]));
}

#[tokio::test]
async fn what_is_remembered_after_the_record_is_its_end() {
    let bed = Bed::new().await;
    let mut other = mail();
    other["reference"] = json!("x");
    let second = bed.send("k2", &other).await;
    bed.work(called(accepted)).await;
    bed.clock.forward(4 * DAY);
    let ask = PurgeAsk { now: bed.clock.now(), keep_record: Duration::ZERO, limit: 100 };
    let purged = bed.store.purge(ask).await.unwrap();
    assert_eq!(purged.records, 1);
    let again = bed.send("k2", &other).await;
    assert_eq!((again.status.as_u16(), again.replayed()), (202, true));
    let body = again.json();
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    assert_eq!((&body["id"], &body["remembered_until"]), (&second.json()["id"], &second.json()["remembered_until"]));
    let told = bed.send("k2", &mail()).await;
    assert_eq!((told.problem(), told.pointers().len()), ((422, "key_reused".into()), 0));
}

#[tokio::test]
async fn a_repeat_that_could_no_longer_be_asked_for_is_known_after_its_record_is_gone() {
    let bed = Bed::new().await;
    let mut body = mail();
    body["expires_at"] = json!(rfc3339(bed.clock.now().plus(Duration::from_secs(60))));
    let first = bed.send("k", &body).await;
    bed.work(called(accepted)).await;
    bed.clock.forward(4 * DAY);
    let ask = PurgeAsk { now: bed.clock.now(), keep_record: Duration::ZERO, limit: 100 };
    assert_eq!(bed.store.purge(ask).await.unwrap().records, 1);
    let again = bed.send("k", &body).await;
    assert_eq!((again.status.as_u16(), again.replayed()), (202, true));
    assert_eq!(again.json()["id"], first.json()["id"]);
    body["reference"] = json!("another");
    assert_eq!(bed.send("k", &body).await.problem(), (422, "invalid".into()));
}

#[tokio::test]
async fn a_trace_is_kept_where_it_is_one() {
    let bed = Bed::new().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (key, sent, kept) in [("a", trace, json!(trace)), ("b", "00-nonsense", Value::Null)] {
        let ask = bed.ask(Method::POST, "/v1/notifications").key(key).header("traceparent", sent);
        let told = ask.json(&mail()).told().await;
        assert_eq!(told.status, 202);
        assert_eq!(bed.get(told.header("location").unwrap()).await.json()["traceparent"], kept);
    }
}

#[tokio::test]
async fn expiry_is_the_earlier_of_the_callers_and_the_classs() {
    let bed = Bed::new().await;
    let in_ = |days: u32| rfc3339(bed.clock.now().plus(days * DAY));
    let mut body = mail();
    body["send_at"] = json!(in_(2));
    body["expires_at"] = json!(in_(9));
    let read = bed.get(bed.send("k", &body).await.header("location").unwrap()).await.json();
    let at: UnixMs = belfry::intake::instant::read(read["expires_at"].as_str().unwrap()).unwrap();
    let send: UnixMs = belfry::intake::instant::read(read["send_at"].as_str().unwrap()).unwrap();
    assert_eq!(at.since(send), DAY);
}

/// What a template makes comes from nowhere else.
#[tokio::test]
async fn beside_a_template_there_is_only_what_goes_around_its_mail() {
    let bed = Bed::new().await;
    let body = json!({"class": "receipt", "to": {"email": "ann@example.com"}, "template": "order_shipped", "data": {},
        "content": {"cc": ["eve@example.com"], "subject": "Mine", "sms": "Mine too", "colour": "red"}});
    let told = bed.send("a", &body).await;
    assert_eq!(told.status, 422);
    let detail = |pointer: &str| {
        let errors = told.json()["errors"].clone();
        let of = errors.as_array().unwrap().iter().find(|one| one["pointer"] == pointer).cloned();
        of.unwrap_or_else(|| panic!("{pointer}: {errors}"))["detail"].as_str().unwrap().to_owned()
    };
    let expected = "comes from the template; beside one there may be from, reply_to, cc, bcc, headers, attachments";
    assert_eq!((detail("/content/subject"), detail("/content/sms")), (expected.to_owned(), expected.to_owned()));
    assert!(detail("/content/colour").contains("unknown field"), "{}", detail("/content/colour"));
}
