//! Pauses over HTTP: who may set which, what is refused, and what is counted.

use std::time::Duration;

use belfry::facts::{Fact, PauseNews};
use belfry::intake::instant::rfc3339;
use belfry::ports::clock::Clock as _;
use belfry::ports::pauses::{MOST_PAUSES, Pauses as _};
use belfry_domain::UnixMs;
use belfry_domain::pause::Paused;
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;
use crate::contract::pauses::pause_of;

const ALL_OF_THEM: &str = "/v1/pauses";
const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";

/// Asked with the operator's key, and a tenant's.
async fn bed() -> (Bed, String) {
    let bed = Bed::planned(Plan { bootstrap: Some(OPERATOR.into()), ..Plan::default() }).await;
    let tenants = bed.key.clone();
    (Bed { key: OPERATOR.into(), ..bed }, tenants)
}

async fn post(bed: &Bed, body: &Value) -> Told {
    bed.ask(Method::POST, ALL_OF_THEM).json(body).told().await
}

async fn paused(bed: &Bed, body: &Value) -> Value {
    let told = post(bed, body).await;
    assert!(told.status.is_success(), "{}", told.text);
    told.json()
}

async fn listed(bed: &Bed) -> Vec<Value> {
    let told = bed.get(ALL_OF_THEM).await;
    assert_eq!(told.status, 200, "{}", told.text);
    told.json()["data"].as_array().unwrap().clone()
}

async fn by(bed: &Bed, key: &str, method: Method, body: Option<Value>) -> Told {
    let mut ask = bed.ask(method.clone(), ALL_OF_THEM);
    ask.request = bed.client.request(method, format!("http://{}{ALL_OF_THEM}", bed.addr)).bearer_auth(key);
    match body {
        Some(body) => ask.json(&body).told().await,
        None => ask.told().await,
    }
}

async fn lift(bed: &Bed, id: &Value) {
    let told = bed.ask(Method::DELETE, &format!("{ALL_OF_THEM}/{}", id.as_str().unwrap())).told().await;
    assert_eq!((told.status.as_u16(), told.text.as_str()), (204, ""));
}

fn mail(class: &str) -> Value {
    json!({"class": class, "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

fn at(bed: &Bed, seconds: i64) -> String {
    rfc3339(UnixMs(bed.clock.now().0 + seconds * 1_000))
}

#[tokio::test]
async fn a_pause_is_set_changed_listed_and_lifted() {
    let (bed, _) = bed().await;
    let until = at(&bed, 60);
    let asked = json!({"what": "channel", "name": "email", "tenant": "acme", "until": until, "why": "relay moves"});
    let told = post(&bed, &asked).await;
    let first = told.json();
    assert_eq!(told.status, 201, "{first}");
    let (id, since) = (first["id"].as_str().unwrap(), &first["since"]);
    assert!(id.len() == 28 && id.starts_with("pau_"), "{id}");
    let mut shown = json!({"id": id, "what": "channel", "name": "email", "tenant": "acme", "since": since,
        "until": until, "forced": false, "lets_through": ["code"], "by": first["by"], "why": "relay moves"});
    assert_eq!(first, shown);
    assert!(first["by"].as_str().unwrap().starts_with("key_"));
    let again = post(&bed, &asked).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, shown.clone()));
    // The latest request says how long, and how much.
    bed.clock.forward(Duration::from_secs(1));
    let forced = paused(&bed, &json!({"what": "channel", "name": "email", "tenant": "acme", "forced": true})).await;
    let expected = json!({"id": id, "what": "channel", "name": "email", "tenant": "acme", "since": since,
        "forced": true, "by": first["by"]});
    assert_eq!(forced, expected);
    shown = expected;
    shown["held"] = 0.into();
    shown["held_at_least"] = false.into();
    assert_eq!(listed(&bed).await, [shown]);
    for _ in 0..2 {
        lift(&bed, &first["id"]).await;
        assert_eq!(listed(&bed).await, Vec::<Value>::new());
    }
    let news: Vec<PauseNews> = bed
        .told_facts()
        .into_iter()
        .filter_map(|fact| if let Fact::Pause { news, .. } = fact { Some(news) } else { None })
        .collect();
    let by = first["by"].as_str().unwrap().to_owned();
    let set = PauseNews::Set { by: by.clone() };
    assert_eq!(news, [set.clone(), set.clone(), set, PauseNews::Lifted { by }]);
}

#[tokio::test]
async fn what_is_wrong_is_named_with_what_would_be_right() {
    let (bed, _) = bed().await;
    for (body, pointer, words) in [
        (json!({}), "/what", "is required: all, channel, provider, class, template, group"),
        (json!({"what": "lane"}), "/what", "must be one of all, channel"),
        (json!({"what": "all", "name": "email"}), "/name", "must be left out"),
        (json!({"what": "class"}), "/name", "is required: which class"),
        (json!({"what": "class", "name": "recept"}), "/name", "there are code, marketing, receipt, transactional"),
        (json!({"what": "channel", "name": "push"}), "/name", "is not a channel; there are email, apns"),
        (json!({"what": "provider", "name": "main"}), "/name", "is not a configured provider"),
        (json!({"what": "template", "name": "ann@example.com"}), "/name", "is no template's name"),
        (json!({"what": "class", "name": "code"}), "/name", "only a forced one holds it"),
        (json!({"what": "all", "forced": "yes"}), "/forced", "must be true or false"),
        (json!({"what": "all", "tenant": "Acme Inc"}), "/tenant", "must be a tenant's name"),
        (json!({"what": "all", "until": at(&bed, 0)}), "/until", "must lie ahead"),
        (json!({"what": "all", "until": at(&bed, 366 * 86_400)}), "/until", "by a year at most"),
        (json!({"what": "all", "until": "tomorrow"}), "/until", "RFC 3339"),
        (json!({"what": "all", "why": ""}), "/why", "must not be empty"),
        (json!({"what": "all", "for": "1h"}), "/for", "unknown field"),
    ] {
        let told = post(&bed, &body).await;
        assert_eq!(told.problem(), (422, "invalid".into()), "{body}");
        assert_eq!(told.pointers(), [pointer], "{body}");
        let detail = told.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(words), "{body}: {detail}");
    }
    assert_eq!(listed(&bed).await, Vec::<Value>::new());
    let forced = paused(&bed, &json!({"what": "class", "name": "code", "forced": true})).await;
    assert_eq!((&forced["forced"], forced.get("lets_through")), (&json!(true), None));
    // Nothing of it is configured, and it is there.
    paused(&bed, &json!({"what": "provider", "name": "outbox"})).await;
    let odd = bed.ask(Method::DELETE, "/v1/pauses/pau_12").told().await;
    assert_eq!((odd.problem(), odd.pointers()), ((422, "invalid".into()), vec!["/path/id".to_owned()]));
}

#[tokio::test]
async fn a_key_pauses_its_own_tenant_s_alone() {
    let (bed, tenants) = bed().await;
    let everybody = paused(&bed, &json!({"what": "class", "name": "receipt"})).await;
    assert_eq!(everybody.get("tenant"), None);
    let test = bed.make_key("acme", "test", "main", ALL).await;
    let sends = bed.make_key("acme", "live", "main", &ALL[..2]).await;
    let acme = Bed { key: tenants, ..bed };
    let own = paused(&acme, &json!({"what": "class", "name": "receipt"})).await;
    assert_eq!(own["tenant"], "acme");
    assert_ne!(own["id"], everybody["id"]);
    let foreign = post(&acme, &json!({"what": "all", "tenant": "other"})).await;
    assert_eq!((foreign.problem(), foreign.pointers()), ((422, "invalid".into()), vec!["/tenant".to_owned()]));
    assert_eq!(listed(&acme).await.iter().map(|one| one["id"].clone()).collect::<Vec<_>>(), [own["id"].clone()]);
    // As if there were none.
    lift(&acme, &everybody["id"]).await;
    // Tenants' keys leave room for the operator's.
    for number in 0..15 {
        paused(&acme, &json!({"what": "group", "name": format!("group {number}")})).await;
    }
    let full = post(&acme, &json!({"what": "group", "name": "one more"})).await;
    assert_eq!(full.problem(), (409, "too_many_pauses".into()));
    assert_eq!(post(&acme, &json!({"what": "class", "name": "receipt", "forced": true})).await.status, 200);
    for key in [&test, &sends] {
        for (method, body) in [(Method::POST, Some(json!({"what": "all"}))), (Method::GET, None)] {
            assert_eq!(by(&acme, key, method, body).await.problem(), (403, "forbidden".into()));
        }
    }
    let all = by(&acme, OPERATOR, Method::GET, None).await.json();
    assert_eq!(all["data"].as_array().unwrap().len(), 17, "the operator sees all of them");
}

#[tokio::test]
async fn there_are_so_many_and_no_more() {
    let (bed, _) = bed().await;
    for number in 0..MOST_PAUSES {
        bed.store.pause(&pause_of(Paused::Group(format!("group {number}")))).await.unwrap();
    }
    let told = post(&bed, &json!({"what": "all"})).await;
    assert_eq!(told.problem(), (409, "too_many_pauses".into()));
    lift(&bed, &json!(pause_of(Paused::Group("group 7".into())).id().to_string())).await;
    assert_eq!(post(&bed, &json!({"what": "all"})).await.status, 201);
    let checks = bed.get("/readyz?verbose").await.json();
    let pauses: Vec<&Value> =
        checks["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "pause").collect();
    assert_eq!((pauses.len(), &pauses[8]["detail"]), (9, &json!("248 more pauses stand: see belfry pauses list")));
    assert!(!checks.to_string().contains("group 1"), "whoever asks is not asked who they are");
}

#[tokio::test]
async fn what_is_due_is_counted_and_told_and_nothing_else() {
    let (bed, tenants) = bed().await;
    let acme = Bed { key: tenants, ..bed };
    let mut marked = mail("receipt");
    marked["group"] = "launch".into();
    let shown = acme.send("one", &marked).await.json();
    acme.send("two", &mail("marketing")).await;
    acme.send("three", &mail("code")).await;
    let mut later = mail("receipt");
    later["send_at"] = at(&acme, 3_600).into();
    acme.send("four", &later).await;
    for body in [
        json!({"what": "all"}),
        json!({"what": "all", "forced": true, "tenant": "acme", "until": at(&acme, 9_000)}),
        json!({"what": "class", "name": "marketing"}),
        json!({"what": "channel", "name": "sms"}),
        json!({"what": "group", "name": "launch"}),
        json!({"what": "provider", "name": "outbox"}),
    ] {
        paused(&acme, &body).await;
        acme.clock.forward(Duration::from_millis(2));
    }
    let held = async || listed(&acme).await.iter().map(|one| one["held"].as_u64().unwrap()).collect::<Vec<_>>();
    // The second one is the first one, changed.
    assert_eq!(held().await, [3, 1, 0, 1, 2]);
    acme.clock.forward(Duration::from_secs(3_600));
    assert_eq!(held().await, [4, 1, 0, 1, 3]);
    let read = acme.get(&format!("/v1/notifications/{}", shown["id"].as_str().unwrap())).await.json();
    let reason = read["deliveries"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Held: everything is paused since 20") && reason.contains(" until 20"), "{reason}");
    let own = listed(&acme).await;
    for one in &own[..1] {
        lift(&acme, &one["id"]).await;
    }
    let read = acme.get(&format!("/v1/notifications/{}", shown["id"].as_str().unwrap())).await.json();
    let reason = read["deliveries"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Held: the group launch is paused since 20"), "{reason}");
}
