//! `POST /v1/notifications/batch`: every item for itself.

use belfry::ports::deliveries::{Accepted, Deliveries, MOST_ITEMS};
use reqwest::Method;
use serde_json::{Value, json};

use super::away::Failing;
use super::bed::*;

fn item(key: &str) -> Value {
    json!({"key": key, "class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": key, "text": "T"}})
}

async fn send(bed: &Bed, items: &[Value]) -> Told {
    bed.ask(Method::POST, "/v1/notifications/batch").json(&json!({"items": items})).told().await
}

fn statuses(told: &Told) -> Vec<(u64, bool)> {
    let results = told.json()["data"].as_array().unwrap().clone();
    results.iter().map(|one| (one["status"].as_u64().unwrap(), one["replayed"].as_bool().unwrap())).collect()
}

#[tokio::test]
async fn each_item_has_its_own_status() {
    let bed = Bed::new().await;
    let mut single = item("a");
    single.as_object_mut().unwrap().remove("key");
    let alone = bed.send("a", &single).await;
    let mut other = item("a");
    other["reference"] = json!("x");
    let mut keyless = item("c");
    keyless.as_object_mut().unwrap().remove("key");
    let items = [item("a"), item("b"), item("b"), other, json!({"key": "bad"}), keyless, json!(7), item("a b")];
    let told = send(&bed, &items).await;
    assert_eq!(told.status, 200, "{}", told.text);
    // The first came alone before; the third repeats the second within the batch.
    let expected =
        [(202, true), (202, false), (202, true), (422, false), (422, false), (422, false), (422, false), (422, false)];
    assert_eq!(statuses(&told), expected, "{}", told.text);
    let results = told.json()["data"].clone();
    assert_eq!(results[0]["notification"], alone.json());
    assert_eq!(results[1]["notification"], results[2]["notification"]);
    assert_eq!((&results[3]["problem"]["code"], &results[3]["key"]), (&json!("key_reused"), &json!("a")));
    assert_eq!(results[3]["problem"]["errors"][0]["pointer"], "/reference");
    assert_eq!(results[4]["problem"]["errors"][1]["pointer"], "/class");
    assert_eq!(results[5]["problem"]["errors"][0]["pointer"], "/key");
    assert_eq!(results[7]["problem"]["errors"][0]["pointer"], "/key");
    let list = bed.get("/v1/notifications").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_thousand_and_no_more() {
    let bed = Bed::new().await;
    let items: Vec<_> = (0..1001).map(|n| item(&format!("k{n}"))).collect();
    let told = send(&bed, &items).await;
    assert_eq!((told.problem(), told.pointers()), ((422, "invalid".into()), vec!["/items".into()]));
    let told = send(&bed, &items[..1000]).await;
    assert_eq!(statuses(&told), vec![(202, false); 1000]);
    assert_eq!(statuses(&send(&bed, &items[..1000]).await), vec![(202, true); 1000]);
    assert_eq!(send(&bed, &[]).await.pointers(), ["/items"]);
    let told = bed.ask(Method::POST, "/v1/notifications/batch").body("{}").told().await;
    assert_eq!(told.pointers(), ["/items"]);
}

#[tokio::test]
async fn case_17_a_batch_that_broke_off_is_finished_by_its_repeat() {
    let failing = Failing::new();
    let bed = Bed::planned(Plan { deliveries: Some(failing.clone()), ..Plan::default() }).await;
    failing.serve(bed.store.clone());
    // The first chunk becomes durable, then the store goes away.
    failing.fail_after(1);
    let items: Vec<_> = (0..300).map(|n| item(&format!("k{n}"))).collect();
    let told = send(&bed, &items).await;
    assert_eq!(told.problem(), (503, "store_unavailable".into()));
    assert_eq!(told.header("retry-after"), Some("1"));
    failing.heal();
    let expected: Vec<_> = (0..300).map(|n| (202, n < MOST_ITEMS)).collect();
    assert_eq!(statuses(&send(&bed, &items).await), expected);
    assert_eq!(failing.accepted(), 300);
}

#[tokio::test]
async fn a_repeat_after_a_lost_reply_is_a_repeat() {
    let failing = Failing::new();
    let bed = Bed::planned(Plan { deliveries: Some(failing.clone()), ..Plan::default() }).await;
    failing.serve(bed.store.clone());
    failing.lose_next_reply();
    let body =
        json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}});
    assert_eq!(bed.send("k", &body).await.problem(), (503, "store_unavailable".into()));
    let told = bed.send("k", &body).await;
    assert_eq!((told.status.as_u16(), told.replayed()), (202, true));
    assert_eq!(failing.accepted(), 1);
    let again = bed.store.accept(Vec::new()).await.unwrap();
    assert!(again.iter().all(|one| matches!(one, Accepted::Created)));
}
