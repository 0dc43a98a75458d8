//! API keys over the API: who may make which, and what is ever shown of them.

use belfry::http::keys;
use belfry::ports::admin::{ApiKey, ApiKeys as _, Can};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

async fn ask(bed: &Bed, key: &str, method: Method, path: &str, body: Option<&Value>) -> Told {
    let mut ask = bed.ask(method.clone(), path);
    ask.request = bed.client.request(method, format!("http://{}{path}", bed.addr)).bearer_auth(key);
    if let Some(body) = body {
        ask = ask.json(body);
    }
    ask.told().await
}

async fn make(bed: &Bed, key: &str, body: Value) -> Told {
    ask(bed, key, Method::POST, "/v1/keys", Some(&body)).await
}

async fn names(bed: &Bed, key: &str) -> Vec<String> {
    let told = ask(bed, key, Method::GET, "/v1/keys", None).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let all = told.json();
    all["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap_or("-").to_owned()).collect()
}

#[tokio::test]
async fn a_key_is_shown_once_and_works_at_once() {
    let bed = Bed::new().await;
    let told = make(&bed, &bed.key, json!({ "name": "night shift", "can": ["read"] })).await;
    assert_eq!(told.status, 201, "{}", told.text);
    let made = told.json();
    let secret = made["key"].as_str().unwrap();
    assert!(keys::well_formed(secret) && secret.starts_with("blf_live_"));
    assert_eq!(
        (&made["name"], &made["tenant"], &made["environment"], &made["namespace"], &made["can"]),
        (&json!("night shift"), &json!("acme"), &json!("live"), &json!("main"), &json!(["read"]))
    );
    assert_eq!(ask(&bed, secret, Method::GET, "/v1/notifications", None).await.status, 200);
    assert_eq!(ask(&bed, secret, Method::GET, "/v1/keys", None).await.problem(), (403, "forbidden".into()));

    let listed = ask(&bed, &bed.key, Method::GET, "/v1/keys", None).await;
    assert_eq!(listed.json()["data"].as_array().unwrap().len(), 2);
    assert!(!listed.text.contains(secret) && !listed.text.contains(&keys::hash(secret)), "{}", listed.text);
    assert!(listed.text.contains("night shift"));
}

#[tokio::test]
async fn a_revoked_key_lets_nobody_in_at_once_and_revoking_twice_is_a_repeat() {
    let bed = Bed::new().await;
    let made = make(&bed, &bed.key, json!({})).await.json();
    let (secret, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    // Used, so that it is remembered as valid.
    assert_eq!(ask(&bed, secret, Method::GET, "/v1/notifications", None).await.status, 200);
    let path = format!("/v1/keys/{id}");
    let first = ask(&bed, &bed.key, Method::DELETE, &path, None).await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (200, None));
    assert_eq!(ask(&bed, secret, Method::GET, "/v1/notifications", None).await.status, 401);
    let again = ask(&bed, &bed.key, Method::DELETE, &path, None).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(again.json(), first.json());
    for absent in ["key_000000000000", "key_x", "%ff"] {
        let told = ask(&bed, &bed.key, Method::DELETE, &format!("/v1/keys/{absent}"), None).await;
        assert_eq!(told.problem(), (404, "not_found".into()), "{absent}");
    }
}

#[tokio::test]
async fn a_key_reaches_its_tenant_and_one_of_test_only_its_own_environment() {
    let bootstrap = "a-bootstrap-key-of-40-visible-characters";
    let bed = Bed::planned(Plan { bootstrap: Some(bootstrap.into()), ..Plan::default() }).await;
    let trial = bed.make_key("acme", "test", "t", ALL).await;
    let foreign = bed.make_key("other", "live", "o", ALL).await;

    for (key, wanted, refused) in [
        (&bed.key, json!({ "tenant": "other" }), Some("/tenant")),
        (&bed.key, json!({ "environment": "staging" }), None),
        (&bed.key, json!({ "environment": "stagging" }), Some("/environment")),
        (&trial, json!({}), None),
        (&trial, json!({ "environment": "live" }), Some("/environment")),
        (&bootstrap.to_owned(), json!({ "tenant": "third", "environment": "test", "name": "third" }), None),
    ] {
        let told = make(&bed, key, wanted.clone()).await;
        match refused {
            None => assert_eq!(told.status, 201, "{wanted}: {}", told.text),
            Some(pointer) => assert_eq!((told.status.as_u16(), told.pointers()), (422, vec![pointer.into()])),
        }
    }
    let third = bed.store.list().await.unwrap().into_iter().find(|key| key.tenant == "third").unwrap();
    assert!(!third.operator, "speaking for the installation is not handed on");

    // acme: live, test, and the two that were made; the operator sees all seven... but its own.
    assert_eq!(names(&bed, &bed.key).await.len(), 4);
    assert_eq!(names(&bed, &trial).await.len(), 2);
    assert_eq!(names(&bed, &foreign).await.len(), 1);
    assert_eq!(names(&bed, bootstrap).await.len(), 6);

    // What is out of reach is as absent as what does not exist.
    let id_of = |key: &str| format!("/v1/keys/{}", keys::public_id(&keys::hash(key)));
    for (key, other, status) in
        [(&foreign, &bed.key, 404), (&trial, &bed.key, 404), (&bed.key, &foreign, 404), (&bed.key, &trial, 200)]
    {
        assert_eq!(ask(&bed, key, Method::DELETE, &id_of(other), None).await.status, status);
    }
}

#[tokio::test]
async fn every_bad_field_of_a_key_is_named_at_once() {
    let bed = Bed::new().await;
    let told = make(
        &bed,
        &bed.key,
        json!({ "name": "", "environment": "A B", "namespace": "", "can": ["send", "fly"], "scope": "x" }),
    )
    .await;
    assert_eq!(told.status, 422);
    let pointers = told.pointers();
    for expected in ["/can/1", "/environment", "/name", "/namespace", "/scope"] {
        assert!(pointers.iter().any(|one| one == expected), "{expected} in {pointers:?}");
    }
    let none = make(&bed, &bed.key, json!({ "can": [] })).await;
    assert_eq!(none.pointers(), ["/can"]);
}

#[tokio::test]
async fn a_key_kept_by_an_older_version_is_still_read() {
    let older = r#"{"id":"key_0","tenant":"t","environment":"live","namespace":"main","can":["admin"],"hash":"h","created_at":5}"#;
    let read: ApiKey = serde_json::from_str(older).unwrap();
    assert_eq!((read.name.as_deref(), read.operator, read.can.as_slice()), (None, false, &[Can::Admin][..]));
}
