//! Who may do what, and how refusals look.

use std::time::Duration;

use belfry::facts::Fact;
use belfry::http::{ApiLimits, keys};
use belfry::ports::admin::{ApiKeys as _, Can};
use belfry::ports::clock::Clock as _;
use reqwest::Method;
use serde_json::json;

use super::bed::*;

async fn with(bed: &Bed, key: &str, method: Method, path: &str) -> Told {
    let mut ask = bed.ask(method, path);
    ask.request = bed.client.request(Method::GET, format!("http://{}{path}", bed.addr)).bearer_auth(key);
    ask.told().await
}

#[tokio::test]
async fn only_valid_keys_get_in() {
    let bed = Bed::new().await;
    let unknown = keys::mint("live", [9; keys::RANDOM_BYTES]);
    let mut mistyped = bed.key.clone();
    mistyped.replace_range(20..21, if &mistyped[20..21] == "0" { "1" } else { "0" });
    for key in [unknown.as_str(), &mistyped, "x", "blf_live_"] {
        let told = with(&bed, key, Method::GET, "/v1/notifications").await;
        assert_eq!(told.problem(), (401, "unauthenticated".into()), "{key}");
        assert!(told.header("www-authenticate").unwrap().starts_with("Bearer"));
        assert!(key == "x" || !told.text.contains(key));
    }
    let url = format!("http://{}/v1/notifications", bed.addr);
    for (name, value) in [("x-nothing", "x"), ("authorization", "Basic YTpi"), ("authorization", "Bearer")] {
        let answer = bed.client.get(&url).header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{value}");
    }
    assert_eq!(bed.get("/v1/notifications").await.status, 200);
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let bed = Bed::new().await;
    let reader = bed.make_key("acme", "live", "r", &[Can::Read]).await;
    let sender = bed.make_key("acme", "live", "s", &[Can::Send]).await;
    assert_eq!(with(&bed, &reader, Method::GET, "/v1/notifications").await.status, 200);
    let told = with(&bed, &sender, Method::GET, "/v1/notifications").await;
    assert_eq!(told.problem(), (403, "forbidden".into()));
    assert!(told.json()["detail"].as_str().unwrap().contains("`read`"));
    let redrive = format!("http://{}/v1/deliveries/dlv_{}/redrive", bed.addr, "0".repeat(24));
    let answer = bed.client.post(redrive).bearer_auth(&sender).send().await.unwrap();
    assert_eq!(answer.status(), 403);
    assert!(answer.text().await.unwrap().contains("`admin`"));
}

#[tokio::test]
async fn a_revoked_key_stops_within_the_stated_time() {
    let limits = ApiLimits { key_cache: Duration::from_secs(3), store_deadline: SOON, ..ApiLimits::default() };
    let bed = Bed::planned(Plan { limits, ..Plan::default() }).await;
    assert_eq!(bed.get("/v1/notifications").await.status, 200);
    let id = keys::public_id(&keys::hash(&bed.key));
    assert!(bed.store.revoke(&id, bed.clock.now()).await.unwrap());
    bed.clock.forward(Duration::from_secs(3));
    assert_eq!(bed.get("/v1/notifications").await.problem(), (401, "unauthenticated".into()));
}

#[tokio::test]
async fn the_bootstrap_key_works_without_being_stored() {
    let bootstrap = "a-bootstrap-key-of-40-visible-characters";
    let bed = Bed::planned(Plan { bootstrap: Some(bootstrap.into()), ..Plan::default() }).await;
    assert_eq!(with(&bed, bootstrap, Method::GET, "/v1/notifications").await.status, 200);
    assert_eq!(
        with(&bed, "a-bootstrap-key-of-40-visible-charactert", Method::GET, "/v1/notifications").await.status,
        401
    );
    assert_eq!(bed.store.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_does_not_exist_is_told_in_json() {
    let bed = Bed::new().await;
    for (method, path, expected) in [
        (Method::GET, "/nothing", (404, "not_found")),
        (Method::GET, "/v1/nothing", (404, "not_found")),
        (Method::GET, "/v1/notifications/ntf_xyz", (404, "not_found")),
        (Method::GET, "/v1/notifications/%ff", (404, "not_found")),
        (Method::DELETE, "/v1/notifications", (405, "method_not_allowed")),
        (Method::GET, "/v1/notifications/batch", (405, "method_not_allowed")),
        (Method::PATCH, "/livez", (405, "method_not_allowed")),
    ] {
        let told = bed.ask(method, path).told().await;
        assert_eq!(told.problem(), (expected.0, expected.1.into()), "{path}");
        assert_eq!(told.header("allow").is_some(), expected.0 == 405, "{path}");
    }
    let told = bed.ask(Method::GET, "/v1/notifications").header("accept", "text/html").told().await;
    assert_eq!(told.problem(), (406, "not_acceptable".into()));
    let told = bed.ask(Method::GET, "/nothing/ann@example.com?to=bob@example.com").told().await;
    assert!(!told.text.contains("bob@"));
}

#[tokio::test]
async fn answers_are_counted_by_route_template() {
    let bed = Bed::new().await;
    let id = "0".repeat(24);
    for path in [format!("/v1/notifications/ntf_{id}"), "/livez".into(), "/x/ann@example.com".into()] {
        bed.get(&path).await;
    }
    let told: Vec<_> = bed
        .told_facts()
        .into_iter()
        .filter_map(|fact| match fact {
            Fact::HttpAnswered { route, method, status, .. } => Some((route, method, status)),
            _ => None,
        })
        .collect();
    let expected = [("/v1/notifications/{id}", "GET", 404), ("/livez", "GET", 200), ("other", "GET", 404)];
    assert_eq!(told, expected);
    assert_eq!(bed.get("/v1/notifications?state=queued&colour=red").await.pointers(), ["/query/colour"]);
    assert_eq!(json!(bed.get("/metrics").await.text), "# EOF\n");
}
