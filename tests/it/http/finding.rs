//! Finding one's way: by a delivery's id, from the bare address, with a parameter mistyped.

use std::collections::BTreeSet;

use belfry::facts::Fact;
use belfry::http::{document, observe};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

fn mail() -> Value {
    json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

#[tokio::test]
async fn a_delivery_leads_to_its_notification() {
    let bed = Bed::new().await;
    let told = bed.send("k", &mail()).await.json();
    let (id, delivery) = (told["id"].as_str().unwrap(), told["deliveries"][0]["id"].as_str().unwrap());
    let by_delivery = bed.get(&format!("/v1/deliveries/{delivery}")).await;
    let whole = bed.get(&format!("/v1/notifications/{id}")).await;
    assert_eq!((by_delivery.status.as_u16(), &by_delivery.text), (200, &whole.text));
    assert_eq!(whole.json()["deliveries"][0]["provider"], "outbox");
    // Foreign, absent and no id at all: the same.
    let foreign = Bed { key: bed.make_key("other", "live", "main", ALL).await, ..bed };
    let path = format!("/v1/deliveries/{delivery}");
    let absent = foreign.get("/v1/deliveries/dlv_000000000000000000000000").await;
    for other in [foreign.get(&path).await, foreign.get("/v1/deliveries/x").await] {
        assert_eq!(other.problem(), (404, "not_found".into()));
        assert_eq!(other.json()["detail"], absent.json()["detail"]);
    }
    let reader = foreign.make_key("acme", "live", "main", &[belfry::ports::admin::Can::Send]).await;
    let told = Bed { key: reader, ..foreign }.get(&path).await;
    assert_eq!(told.problem(), (403, "forbidden".into()));
}

#[tokio::test]
async fn what_is_told_of_a_delivery_names_its_notification() {
    let bed = Bed::new().await;
    let told = bed.send("k", &mail()).await.json();
    let path = format!("/v1/notifications/{}/cancel", told["id"].as_str().unwrap());
    assert_eq!(bed.ask(Method::POST, &path).told().await.status, 200);
    let named = bed.told_facts().into_iter().find_map(|fact| match fact {
        Fact::Stepped { notification, .. } => Some(notification.to_string()),
        _ => None,
    });
    assert_eq!(named.as_deref(), told["id"].as_str());
}

#[tokio::test]
async fn the_bare_address_says_where_to_go() {
    let bed = Bed::new().await;
    let told = bed.client.get(format!("http://{}/", bed.addr)).send().await.unwrap();
    let index: Value = told.json().await.unwrap();
    for (name, path) in index.as_object().unwrap().iter().filter(|(name, _)| *name != "name") {
        let path = path.as_str().unwrap();
        assert_eq!(bed.client.get(format!("http://{}{path}", bed.addr)).send().await.unwrap().status(), 200, "{name}");
    }
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_wherever_it_comes() {
    let bed = Bed::new().await;
    let told = bed.send("k", &mail()).await.json();
    let id = told["id"].as_str().unwrap();
    let document = serde_json::to_value(document()).unwrap();
    let mut asked = 0;
    // What a mail program adds to a recipient's link is nobody's filter.
    let calls = document["paths"].as_object().unwrap().iter().filter(|(path, _)| !path.starts_with("/u/"));
    for (path, item) in calls {
        for method in item.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let path = path.replace("{id}", id);
            let told = bed.ask(method.clone(), &format!("{path}?colour=red")).told().await;
            assert_eq!(told.problem(), (400, "bad_parameter".into()), "{method} {path}");
            assert_eq!(told.pointers(), ["/query/colour"]);
            asked += 1;
        }
    }
    assert!(asked >= 18);
    assert_eq!(bed.get("/readyz?verbos").await.pointers(), ["/query/verbos"]);
    assert_eq!(bed.get("/readyz?verbose").await.status, 200);
    assert_eq!(bed.get("/docs?from=mail").await.status, 200);
    assert_eq!(bed.get(&format!("/v1/notifications/{id}?")).await.status, 200);
}

#[test]
fn the_parameters_that_are_taken_are_those_of_the_document() {
    let document = serde_json::to_value(document()).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, it) in item.as_object().unwrap() {
            for one in it["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query") {
                described.insert(format!("{} {path} {}", method.to_uppercase(), one["name"].as_str().unwrap()));
            }
        }
    }
    let taken = observe::QUERIES
        .iter()
        .flat_map(|(method, path, names)| names.iter().map(move |name| format!("{method} {path} {name}")));
    assert_eq!(taken.collect::<BTreeSet<_>>(), described);
}

#[tokio::test]
async fn a_wrong_word_is_told_the_right_ones() {
    let bed = Bed::new().await;
    let detail = |told: Told| told.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    for path in ["/v1/notifications?state=fail", "/v1/notifications?channel=owl"] {
        let said = detail(bed.get(path).await);
        assert!(said.starts_with("must be one of ") && said.contains(", "), "{said}");
    }
    let search = bed.ask(Method::POST, "/v1/notifications/search").json(&json!({"state": "fail"})).told().await;
    assert!(detail(search).contains("failed, expired"));
    let body = json!({"class": "receipt", "to": {"email": "ann@example.com"}, "template": "reciept"});
    let said = detail(bed.send("k", &body).await);
    assert!(said.contains("there are login_code, order_shipped, receipt"), "{said}");
}
