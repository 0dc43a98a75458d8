//! Suppressions over HTTP, and what they do to what is accepted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry::facts::Fact;
use belfry::intake::instant::rfc3339;
use belfry::ports::StoreError;
use belfry::ports::admin::Can;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::Owner;
use belfry::ports::suppressions::{Addressee, Found, Put, Suppressed, SuppressedPage, SuppressionId, Suppressions};
use belfry_domain::UnixMs;
use belfry_domain::delivery::StateName;
use belfry_domain::step::StepFact;
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const ALL_OF_THEM: &str = "/v1/suppressions";
const CHECK: &str = "/v1/suppressions/check";

async fn post(bed: &Bed, path: &str, body: &Value) -> Told {
    bed.ask(Method::POST, path).json(body).told().await
}

async fn suppress(bed: &Bed, body: &Value) -> Value {
    let told = post(bed, ALL_OF_THEM, body).await;
    assert!(told.status.is_success(), "{}", told.text);
    told.json()
}

async fn lift(bed: &Bed, id: &Value) {
    let told = bed.ask(Method::DELETE, &format!("{ALL_OF_THEM}/{}", id.as_str().unwrap())).told().await;
    assert_eq!((told.status.as_u16(), told.text.as_str()), (204, ""));
}

fn ann() -> Value {
    json!({"channel": "email", "address": "ann@example.com"})
}

fn mail(class: &str, to: &str) -> Value {
    json!({"class": class, "to": {"email": to}, "content": {"subject": "Your order", "text": "It is on its way."}})
}

fn states(told: &Value) -> Vec<&str> {
    told["deliveries"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_address_is_suppressed_checked_listed_and_lifted() {
    let bed = Bed::new().await;
    assert_eq!(post(&bed, CHECK, &ann()).await.json(), json!({"data": []}));
    let until = rfc3339(UnixMs(bed.clock.now().0 + 60_000));
    let asked = json!({"channel": "email", "address": "Ann@Exämple.test", "kind": "unsubscribe",
        "category": "marketing", "until": until, "note": "by letter"});
    let told = post(&bed, ALL_OF_THEM, &asked).await;
    let first = told.json();
    assert_eq!(told.status, 201, "{first}");
    let (id, since) = (first["id"].as_str().unwrap(), &first["since"]);
    assert!(id.len() == 52 && id.starts_with("sup_"), "{id}");
    assert!(first["origin"].as_str().unwrap().starts_with("key_"));
    let shown = json!({"id": id, "channel": "email", "address": "A…@Exämple.test", "kind": "unsubscribe",
        "category": "marketing", "since": since, "until": until, "origin": first["origin"], "note": "by letter"});
    assert_eq!(first, shown);
    let told = post(&bed, ALL_OF_THEM, &asked).await;
    assert_eq!((told.status.as_u16(), told.json()), (200, shown.clone()));
    // Another spelling of the address is the same address.
    let same = json!({"channel": "email", "address": "ann@xn--exmple-cua.test"});
    assert_eq!(post(&bed, CHECK, &same).await.json(), json!({"data": [shown]}));
    assert_eq!(bed.get(ALL_OF_THEM).await.json(), json!({"data": [shown], "has_more": false}));
    // What is over is on the list, and holds back nothing.
    bed.clock.forward(Duration::from_secs(60));
    assert_eq!(post(&bed, CHECK, &same).await.json(), json!({"data": []}));
    assert_eq!(bed.get(ALL_OF_THEM).await.json()["data"], json!([shown]));
    for _ in 0..2 {
        lift(&bed, &first["id"]).await;
        assert_eq!(bed.get(ALL_OF_THEM).await.json(), json!({"data": [], "has_more": false}));
    }
    assert!(!format!("{:?}", bed.told_facts()).to_lowercase().contains("ann@"));
}

#[tokio::test]
async fn a_list_is_read_page_by_page_newest_first() {
    let bed = Bed::new().await;
    let mut ids = Vec::new();
    for name in ["ann", "bob", "eve"] {
        let body = json!({"channel": "email", "address": format!("{name}@example.com")});
        ids.insert(0, suppress(&bed, &body).await["id"].clone());
        bed.clock.forward(Duration::from_millis(1));
    }
    let page = bed.get("/v1/suppressions?limit=2").await.json();
    let of = |page: &Value| page["data"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    assert_eq!((of(&page), &page["has_more"]), (ids[..2].to_vec(), &json!(true)));
    let next = page["next_cursor"].as_str().unwrap();
    let rest = bed.get(&format!("/v1/suppressions?limit=2&cursor={next}")).await.json();
    assert_eq!((of(&rest), rest.get("next_cursor")), (ids[2..].to_vec(), None));
    // Beginning anew would show the first page as the next.
    let zeros = format!("cursor={}", "0".repeat(64));
    for bad in ["limit=0", "limit=501", "cursor=", "cursor=x", &zeros, "address=ann%40example.com"] {
        assert_eq!(bed.get(&format!("/v1/suppressions?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn every_bad_field_is_named_and_no_address_quoted() {
    let bed = Bed::new().await;
    let past = rfc3339(UnixMs(bed.clock.now().0 - 1));
    for (body, pointers) in [
        (json!({}), &["/address", "/channel"][..]),
        (json!({"channel": "email", "address": "secret"}), &["/address"]),
        (json!({"channel": "email", "address": "Ann <secret@example.com>"}), &["/address"]),
        (json!({"channel": "sms", "address": "070-secret"}), &["/address"]),
        (json!({"channel": "apns", "address": "secret"}), &["/channel"]),
        (json!({"channel": "inbox", "address": "secret"}), &["/channel"]),
        (json!({"channel": "post", "address": "secret"}), &["/channel"]),
        (json!({"channel": "chat", "address": ""}), &["/address"]),
        (json!({"channel": "email", "address": "a…@secret.example"}), &["/address"]),
        (json!({"channel": "email", "address": "*@secret.example"}), &["/address"]),
        (json!({"channel": "email", "address": "a@b.example", "kind": "stop"}), &["/kind"]),
        (json!({"channel": "email", "address": "a@b.example", "category": "secret"}), &["/category"]),
        (
            json!({"channel": "email", "address": "a@b.example", "kind": "hard_bounce", "category": "receipt"}),
            &["/category"],
        ),
        (
            json!({"channel": "email", "address": "a@b.example", "kind": "unsubscribe", "category": "code"}),
            &["/category"],
        ),
        (json!({"channel": "email", "address": "a@b.example", "until": past}), &["/until"]),
        (json!({"channel": "email", "address": "a@b.example", "until": "soon"}), &["/until"]),
        (json!({"channel": "email", "address": "a@b.example", "note": "x".repeat(256), "x": 1}), &["/note", "/x"]),
    ] {
        let told = post(&bed, ALL_OF_THEM, &body).await;
        assert_eq!(told.problem(), (422, "invalid".into()), "{body}");
        assert_eq!(told.pointers(), pointers, "{body}");
        assert!(!told.text.contains("secret"), "{}", told.text);
    }
    assert_eq!(
        post(&bed, CHECK, &json!({"channel": "email", "kind": "manual"})).await.pointers(),
        ["/address", "/kind"]
    );
    for bad in ["sup_1", "ntf_000000000000000000000000", "ann@example.com"] {
        let told = bed.ask(Method::DELETE, &format!("{ALL_OF_THEM}/{bad}")).told().await;
        assert_eq!((told.problem(), told.pointers()), ((422, "invalid".into()), vec!["/path/id".to_owned()]), "{bad}");
    }
    assert_eq!(bed.get(ALL_OF_THEM).await.json()["data"], json!([]));
}

#[tokio::test]
async fn who_may_send_writes_and_who_may_read_looks_each_in_its_own_environment() {
    let mut bed = Bed::new().await;
    let entry = suppress(&bed, &ann()).await;
    let path = format!("{ALL_OF_THEM}/{}", entry["id"].as_str().unwrap());
    let full = bed.key.clone();
    for (can, writes, sees) in [(Can::Send, true, true), (Can::Read, false, true), (Can::Admin, false, false)] {
        bed.key = bed.make_key("acme", "live", "main", &[can]).await;
        let may = |told: &Told| told.status != 403;
        assert_eq!(may(&post(&bed, ALL_OF_THEM, &ann()).await), writes, "{can:?}");
        assert_eq!(may(&bed.get(ALL_OF_THEM).await), sees, "{can:?}");
        assert_eq!(may(&post(&bed, CHECK, &ann()).await), sees, "{can:?}");
        if !writes {
            assert_eq!(bed.ask(Method::DELETE, &path).told().await.problem(), (403, "forbidden".into()));
        }
    }
    for (tenant, environment) in [("other", "live"), ("acme", "test")] {
        bed.key = bed.make_key(tenant, environment, "main", ALL).await;
        assert_eq!(bed.get(ALL_OF_THEM).await.json()["data"], json!([]));
        assert_eq!(post(&bed, CHECK, &ann()).await.json()["data"], json!([]));
        // It tells nobody whether there is one, and lifts none.
        lift(&bed, &entry["id"]).await;
        assert_eq!(bed.send("k", &mail("receipt", "ann@example.com")).await.json()["state"], "queued");
    }
    bed.key = full;
    assert_eq!(post(&bed, CHECK, &ann()).await.json()["data"][0]["id"], entry["id"]);
}

#[tokio::test]
async fn what_is_accepted_for_it_ends_at_once_and_a_repeat_is_told_the_same_whatever_came_since() {
    let bed = Bed::new().await;
    let entry = suppress(&bed, &json!({"channel": "email", "address": "ann@example.com", "kind": "hard_bounce"})).await;
    let first = bed.send("order-42", &mail("receipt", "Ann Lee <ANN@example.com>")).await;
    let body = first.json();
    assert_eq!((first.status.as_u16(), &body["state"]), (202, &json!("suppressed")), "{body}");
    assert_eq!(states(&body), ["suppressed"]);
    assert_eq!(body["deliveries"][0]["reason"], "Suppressed: an earlier message to the address bounced for good.");
    let path = format!("/v1/notifications/{}", body["id"].as_str().unwrap());
    let whole = bed.get(&path).await.json();
    let what: Vec<_> =
        whole["deliveries"][0]["timeline"].as_array().unwrap().iter().map(|one| one["what"].clone()).collect();
    assert_eq!((states(&whole), what), (vec!["suppressed"], vec![json!("received"), json!("ended")]));
    let ended =
        |fact: &Fact| matches!(fact, Fact::Stepped { fact: StepFact::Ended { state: StateName::Suppressed, .. }, .. });
    lift(&bed, &entry["id"]).await;
    for again in [first.clone(), bed.send("order-42", &mail("receipt", "Ann Lee <ANN@example.com>")).await] {
        assert_eq!((again.status, again.text.as_str()), (first.status, first.text.as_str()));
    }
    assert_eq!(bed.told_facts().iter().filter(|fact| ended(fact)).count(), 1);
    // A person sends it all the same: the repeat is told what it was told.
    let delivery = body["deliveries"][0]["id"].as_str().unwrap();
    let act = bed.ask(Method::POST, &format!("/v1/deliveries/{delivery}/send-again")).key("again");
    assert_eq!(act.json(&json!({"after_send": 1})).told().await.status, 200);
    bed.work(called(accepted)).await;
    assert_eq!(states(&bed.get(&path).await.json()), ["accepted"]);
    let again = bed.send("order-42", &mail("receipt", "Ann Lee <ANN@example.com>")).await;
    assert_eq!((again.replayed(), again.text.as_str()), (true, first.text.as_str()));
    // And the other way round: what was accepted before the address was suppressed.
    let before = bed.send("order-43", &mail("receipt", "ann@example.com")).await;
    assert_eq!(before.json()["state"], "queued");
    suppress(&bed, &ann()).await;
    let again = bed.send("order-43", &mail("receipt", "ann@example.com")).await;
    assert_eq!((again.replayed(), again.text.as_str()), (true, before.text.as_str()));
}

/// Says nothing of whom it is asked for: of some at once, of others never.
struct Silent {
    for_ever: bool,
}

#[async_trait]
impl Suppressions for Silent {
    async fn put(&self, _: &Owner, _: &Suppressed) -> Result<Put, StoreError> {
        Err(StoreError::Unavailable("on purpose".into()))
    }

    async fn lift(&self, _: &Owner, _: SuppressionId) -> Result<(), StoreError> {
        Err(StoreError::Unavailable("on purpose".into()))
    }

    async fn find(&self, whom: Vec<Addressee>) -> Vec<Found> {
        if self.for_ever {
            std::future::pending::<()>().await;
        }
        vec![Err(StoreError::Unavailable("on purpose".into())); whom.len()]
    }

    async fn listed(&self, _: &Owner, _: Option<&str>, _: u16) -> Result<SuppressedPage, StoreError> {
        Err(StoreError::Unavailable("on purpose".into()))
    }
}

/// Before the call it is asked anyway.
#[tokio::test]
async fn a_look_that_is_not_answered_holds_up_no_accept_for_long() {
    for for_ever in [false, true] {
        let bed = Bed::planned(Plan { suppressions: Some(Arc::new(Silent { for_ever })), ..Plan::default() }).await;
        let told = bed.send("k", &mail("receipt", "ann@example.com")).await;
        assert_eq!((told.status.as_u16(), &told.json()["state"]), (202, &json!("queued")));
        let away = |fact: &Fact| matches!(fact, Fact::StoreUnavailable { verb: "wishes", .. });
        assert_eq!(bed.told_facts().iter().filter(|fact| away(fact)).count(), 1);
    }
}

/// An address of its own each.
#[tokio::test]
async fn copies_obey_as_well() {
    let bed = Bed::new().await;
    suppress(&bed, &json!({"channel": "email", "address": "bob@example.com", "kind": "complaint"})).await;
    suppress(&bed, &json!({"channel": "email", "address": "eve@example.com"})).await;
    let mut body = mail("receipt", "ann@example.com");
    body["content"]["cc"] = json!(["bob@example.com", "joe@example.com"]);
    body["content"]["bcc"] = json!(["eve@example.com"]);
    let told = bed.send("k", &body).await.json();
    assert_eq!(
        (states(&told), &told["state"]),
        (vec!["queued", "suppressed", "queued", "suppressed"], &json!("queued"))
    );
    let reasons: Vec<_> = [1, 3].iter().map(|at| told["deliveries"][*at]["reason"].clone()).collect();
    assert_eq!(
        reasons,
        ["Suppressed: the recipient complained of an earlier message.", "Suppressed: the address was blocked by hand."]
    );
}

#[tokio::test]
async fn an_unsubscribe_is_of_its_category_alone_and_a_login_code_is_still_sent() {
    let bed = Bed::new().await;
    let body =
        json!({"channel": "email", "address": "ann@example.com", "kind": "unsubscribe", "category": "marketing"});
    let entry = suppress(&bed, &body).await;
    let state = async |key: &str, class: &str| {
        bed.send(key, &mail(class, "ann@example.com")).await.json()["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("1", "marketing").await, "suppressed");
    assert_eq!((state("2", "receipt").await, state("3", "code").await), ("queued".into(), "queued".into()));
    lift(&bed, &entry["id"]).await;
    // From everything that can be turned off.
    suppress(&bed, &json!({"channel": "email", "address": "ann@example.com", "kind": "unsubscribe"})).await;
    assert_eq!((state("4", "receipt").await, state("5", "code").await), ("suppressed".into(), "queued".into()));
    suppress(&bed, &ann()).await;
    assert_eq!(state("6", "code").await, "suppressed");
    // Nobody said anything of the telephone.
    let sms = json!({"class": "receipt", "to": {"phone": "+46701234567"}, "content": {"sms": "Hello"}});
    assert_eq!(bed.send("7", &sms).await.json()["state"], "queued");
}

#[tokio::test]
async fn a_batch_is_looked_up_at_once_and_each_item_stands_for_itself() {
    let bed = Bed::new().await;
    suppress(&bed, &json!({"channel": "email", "address": "ann-7@example.com"})).await;
    let item = |number: usize| {
        let mut item = mail("receipt", &format!("ann-{number}@example.com"));
        item["key"] = json!(number.to_string());
        item
    };
    let body = json!({"items": (0..20).map(item).collect::<Vec<_>>()});
    let told = post(&bed, "/v1/notifications/batch", &body).await.json();
    for (number, one) in told["data"].as_array().unwrap().iter().enumerate() {
        let expected = if number == 7 { "suppressed" } else { "queued" };
        assert_eq!(one["notification"]["state"], expected, "{number}");
    }
    let again = post(&bed, "/v1/notifications/batch", &body).await.json();
    assert_eq!(again["data"][7]["notification"], told["data"][7]["notification"]);
}

#[tokio::test]
async fn as_many_words_about_one_address_as_it_may_have() {
    let bed = Bed::new().await;
    // One of each kind and category: fewer than the bound.
    for category in ["receipt", "marketing", "transactional"] {
        for kind in ["manual", "complaint", "unsubscribe"] {
            let mut body = ann();
            (body["kind"], body["category"]) = (json!(kind), json!(category));
            suppress(&bed, &body).await;
        }
    }
    let found = post(&bed, CHECK, &ann()).await.json();
    assert_eq!(found["data"].as_array().unwrap().len(), 9);
    let since: Vec<_> = found["data"].as_array().unwrap().iter().map(|one| one["since"].as_str().unwrap()).collect();
    assert!(since.is_sorted());
}

/// What is over by the time that a message is due holds it back no more, and is asked again before the call.
#[tokio::test]
async fn what_is_accepted_for_later_is_judged_by_what_holds_then() {
    let bed = Bed::new().await;
    let at = |seconds: i64| rfc3339(UnixMs(bed.clock.now().0 + seconds * 1_000));
    let mut body = ann();
    body["until"] = at(60).into();
    suppress(&bed, &body).await;
    for (seconds, state) in [(59, "suppressed"), (60, "scheduled"), (600, "scheduled")] {
        let mut later = mail("receipt", "ann@example.com");
        later["send_at"] = at(seconds).into();
        let told = bed.send(&format!("in-{seconds}"), &later).await.json();
        assert_eq!(states(&told), [state], "{seconds}");
    }
}
