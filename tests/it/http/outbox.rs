//! The outbox and its page.

use std::time::Duration;

use belfry::ports::admin::Can;
use belfry::ports::clock::Clock as _;
use belfry::ports::message::{EmailMessage, Mailbox, Rendered};
use belfry::ports::outbox::{Misbehaviour, OutboxMessage, OutboxMessages as _};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId};
use reqwest::Method;
use serde_json::json;

use super::bed::*;

async fn keep(bed: &Bed, tenant: &str, to: &str) -> u64 {
    let notification = NotificationId::http(tenant, "live", "main", to);
    let mail = EmailMessage {
        from: None,
        reply_to: Vec::new(),
        to: vec![Mailbox { name: Some("Ann".into()), email: belfry::ports::message::Address(to.into()) }],
        cc: Vec::new(),
        subject: "S".into(),
        text: "T".into(),
        html: Some("<script>alert(1)</script>".into()),
        headers: vec![("X-A".into(), "b".into())],
        attachments: Vec::new(),
    };
    let message = OutboxMessage {
        seq: 0,
        at: bed.clock.now(),
        tenant: tenant.into(),
        environment: "live".into(),
        channel: ChannelKind::Email,
        notification,
        delivery: DeliveryId::of(notification, "email", "to"),
        send_key: "00".into(),
        to: to.into(),
        message: Rendered::Email(Box::new(mail)),
        collapse: None,
    };
    bed.store.add(message, 1000).await.unwrap()
}

#[tokio::test]
async fn shows_what_would_have_been_sent_to_whom_it_belongs() {
    let bed = Bed::new().await;
    keep(&bed, "acme", "ann@example.com").await;
    let second = keep(&bed, "acme", "bob@example.com").await;
    keep(&bed, "other", "ann@example.com").await;
    let all = bed.get("/v1/outbox").await.json();
    let to: Vec<_> = all["messages"].as_array().unwrap().iter().map(|one| one["to"].clone()).collect();
    assert_eq!(to, ["bob@example.com", "ann@example.com"]);
    let mail = &all["messages"][0]["message"];
    assert_eq!(
        (&mail["kind"], &mail["subject"], &mail["headers"]),
        (&json!("email"), &json!("S"), &json!([["X-A", "b"]]))
    );
    let one = bed.get("/v1/outbox?to=ANN%40example.com").await.json();
    assert_eq!(one["messages"].as_array().unwrap().len(), 1);
    assert_eq!(bed.get(&format!("/v1/outbox?after={second}")).await.json(), json!({"messages": []}));
    for bad in ["wait=31", "wait=-1", "limit=0", "after=x", "to=", "from=x"] {
        assert_eq!(bed.get(&format!("/v1/outbox?{bad}")).await.problem(), (400, "bad_parameter".into()), "{bad}");
    }
    let gone = bed.ask(Method::DELETE, "/v1/outbox?to=ann%40example.com").told().await;
    assert_eq!(gone.json(), json!({"deleted": 1}));
    assert_eq!(bed.ask(Method::DELETE, "/v1/outbox").told().await.json(), json!({"deleted": 1}));
}

#[tokio::test]
async fn waits_for_a_message_that_fits() {
    let bed = Bed::new().await;
    let seen = keep(&bed, "acme", "ann@example.com").await;
    let path = format!("/v1/outbox?to=ann%40example.com&wait=30&after={seen}");
    let waiting = bed.get(&path);
    let coming = async {
        keep(&bed, "acme", "bob@example.com").await;
        keep(&bed, "acme", "ann@example.com").await
    };
    let (told, seq) = tokio::join!(waiting, coming);
    assert_eq!(told.json()["messages"][0]["seq"], seq);
}

#[tokio::test]
async fn a_wait_ends_empty_handed_when_its_time_is_up() {
    let bed = Bed::new().await;
    let before = bed.clock.boot();
    assert_eq!(bed.get("/v1/outbox?wait=1").await.json(), json!({"messages": []}));
    assert!(bed.clock.boot() - before >= Duration::from_secs(1));
}

#[tokio::test]
async fn misbehaves_as_told() {
    let bed = Bed::new().await;
    let path = "/v1/outbox/misbehaviour";
    let told = bed.ask(Method::PUT, path).json(&json!({"fail_next": 2, "crash_mid_send": 1})).told().await;
    let stands = json!({"fail_next": 2, "time_out_after_accept": 0, "crash_mid_send": 1,
        "misbehave_allowed": true, "may": ["send", "read", "admin"]});
    assert_eq!(told.json(), stands);
    assert_eq!(bed.misbehaviours.take(), Some(Misbehaviour::FailNext));
    assert_eq!(bed.get(path).await.json()["fail_next"], 1);
    let bad = bed.ask(Method::PUT, path).json(&json!({"fail_next": 1001, "explode": 1})).told().await;
    assert_eq!(bad.pointers(), ["/explode", "/fail_next"]);
    assert_eq!(bed.misbehaviours.left(Misbehaviour::FailNext), 1);
    let strict = Bed::planned(Plan { misbehave_allowed: false, ..Plan::default() }).await;
    let told = strict.ask(Method::PUT, path).json(&json!({"fail_next": 1})).told().await;
    assert_eq!(told.problem(), (403, "forbidden".into()));
    // The page says beforehand what a key cannot do here.
    let reader = Bed { key: strict.make_key("acme", "live", "main", &[Can::Read]).await, ..strict };
    let told = reader.get(path).await.json();
    assert_eq!((&told["misbehave_allowed"], &told["may"]), (&json!(false), &json!(["read"])));
}

#[tokio::test]
async fn pages_run_their_own_script_and_nothing_else() {
    let bed = Bed::new().await;
    keep(&bed, "acme", "<script>alert(1)</script>@example.com").await;
    for path in ["/admin", "/docs", "/docs/problems"] {
        let told = bed.client.get(format!("http://{}{path}", bed.addr)).send().await.unwrap();
        assert_eq!(told.status(), 200);
        let policy = told.headers()["content-security-policy"].to_str().unwrap().to_owned();
        let page = told.text().await.unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        let scripts = policy.split("script-src ").nth(1).unwrap().split(';').next().unwrap().to_owned();
        assert!(scripts == "'none'" || scripts.starts_with("'sha256-"), "{scripts}");
        assert_eq!(page.matches("<script").count(), scripts.matches("sha256").count());
        for outside in ["http://", "https://", "alert(1)", " onclick", "innerHTML"] {
            assert!(!page.contains(outside), "{path} {outside}");
        }
    }
    let problems = bed.get("/docs/problems").await.text;
    for code in belfry::http::problem::Code::ALL {
        assert!(problems.contains(&format!("id=\"{}\"", code.name())));
    }
    assert!(problems.contains("<code>Authorization: Bearer blf_…</code>") && !problems.contains('`'));
}
