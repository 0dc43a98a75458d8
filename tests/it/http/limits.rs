//! How often a key may call: by a clock that stands, so that every header is exact.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use belfry::http::{document, keys};
use belfry_domain::Pace;
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const MINUTE: Duration = Duration::from_secs(60);
const LIST: &str = "/v1/notifications";

type Limit = Arc<Mutex<Option<Pace>>>;

/// One call a minute, `burst` at once.
async fn limited(burst: u32) -> (Bed, Limit) {
    let limit = Arc::new(Mutex::new(Some(Pace::new(1, MINUTE, Some(burst)).unwrap())));
    let now = limit.clone();
    let plan = Plan { limit: Arc::new(move || *now.lock().unwrap()), still: true, ..Plan::default() };
    (Bed::planned(plan).await, limit)
}

fn fields(told: &Told) -> (u16, Option<&str>, Option<&str>, Option<&str>) {
    let (policy, standing) = (told.header("ratelimit-policy"), told.header("ratelimit"));
    (told.status.as_u16(), policy, standing, told.header("retry-after"))
}

fn receipt() -> Value {
    json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}})
}

fn batch(many: usize) -> Value {
    let items = (0..many).map(|at| {
        let mut item = receipt();
        item["key"] = json!(format!("k{at}"));
        item
    });
    json!({"items": items.collect::<Vec<_>>()})
}

async fn send_batch(bed: &Bed, many: usize) -> Told {
    bed.ask(Method::POST, "/v1/notifications/batch").json(&batch(many)).told().await
}

async fn stored(bed: &Bed) -> usize {
    bed.get(LIST).await.json()["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn every_answer_says_what_is_left_and_what_is_too_much_is_told_when_it_fits() {
    let (bed, _) = limited(2).await;
    let policy = Some("\"default\";q=2;w=120");
    assert_eq!(fields(&bed.get(LIST).await), (200, policy, Some("\"default\";r=1;t=60"), None));
    let absent = bed.get("/v1/notifications/ntf_xyz").await;
    assert_eq!(fields(&absent), (404, policy, Some("\"default\";r=0;t=60"), None));
    bed.clock.forward(Duration::from_millis(12_500));
    let refused = bed.get(LIST).await;
    assert_eq!(fields(&refused), (429, policy, Some("\"default\";r=0;t=48"), Some("48")));
    assert_eq!(refused.problem(), (429, "rate_limited".into()));
    // Asking too often puts it off by nothing.
    bed.clock.forward(Duration::from_millis(47_500));
    assert_eq!(fields(&bed.get(LIST).await), (200, policy, Some("\"default\";r=0;t=60"), None));
}

#[tokio::test]
async fn what_was_refused_is_sent_again_under_its_key_as_if_for_the_first_time() {
    let (bed, _) = limited(1).await;
    assert_eq!(bed.get(LIST).await.status, 200);
    assert_eq!(bed.send("order-1", &receipt()).await.problem(), (429, "rate_limited".into()));
    bed.clock.forward(MINUTE);
    let told = bed.send("order-1", &receipt()).await;
    assert_eq!((told.status.as_u16(), told.replayed()), (202, false), "{}", told.text);
    bed.clock.forward(MINUTE);
    let again = bed.send("order-1", &receipt()).await;
    assert_eq!((again.status.as_u16(), again.replayed(), &again.text), (202, true, &told.text));
}

#[tokio::test]
async fn one_key_leaves_another_its_own_and_no_valid_key_counts_for_none() {
    let (bed, _) = limited(1).await;
    let other = bed.make_key("acme", "live", "other", ALL).await;
    let unknown = keys::mint("live", [9; keys::RANDOM_BYTES]);
    let with = async |key: &str| {
        let mut ask = bed.ask(Method::GET, LIST);
        ask.request = bed.client.get(format!("http://{}{LIST}", bed.addr)).bearer_auth(key);
        ask.told().await
    };
    for _ in 0..3 {
        assert_eq!(fields(&with(&unknown).await), (401, None, None, None));
    }
    assert_eq!((with(&bed.key).await.status.as_u16(), with(&bed.key).await.status.as_u16()), (200, 429));
    assert_eq!((with(&other).await.status.as_u16(), with(&other).await.status.as_u16()), (200, 429));
    let open = bed.client.get(format!("http://{}/livez", bed.addr)).send().await.unwrap();
    assert_eq!((open.status().as_u16(), open.headers().get("ratelimit")), (200, None));
}

#[tokio::test]
async fn a_batch_counts_its_items_and_is_taken_whole_or_not_at_all() {
    let (bed, limit) = limited(5).await;
    let policy = Some("\"default\";q=5;w=300");
    assert_eq!(fields(&send_batch(&bed, 3).await), (200, policy, Some("\"default\";r=2;t=60"), None));
    assert_eq!(fields(&send_batch(&bed, 4).await), (429, policy, Some("\"default\";r=2;t=60"), Some("120")));
    // What holds no items counts as a call, and what could never fit as none.
    assert_eq!(fields(&send_batch(&bed, 0).await), (422, policy, Some("\"default\";r=1;t=60"), None));
    let never = send_batch(&bed, 6).await;
    assert_eq!((never.problem(), never.pointers()), ((422, "invalid".into()), vec!["/items".into()]));
    assert!(never.json()["errors"][0]["detail"].as_str().unwrap().contains("at most 5 items"), "{}", never.text);
    bed.clock.forward(3 * MINUTE);
    let repeated = send_batch(&bed, 4).await;
    assert_eq!(fields(&repeated), (200, policy, Some("\"default\";r=0;t=60"), None));
    let replayed: Vec<bool> =
        repeated.json()["data"].as_array().unwrap().iter().map(|one| one["replayed"] == true).collect();
    assert_eq!(replayed, [true, true, true, false]);
    *limit.lock().unwrap() = None;
    assert_eq!(stored(&bed).await, 4);
}

#[tokio::test]
async fn another_limit_counts_from_the_next_call() {
    let (bed, limit) = limited(1).await;
    assert_eq!((bed.get(LIST).await.status.as_u16(), bed.get(LIST).await.status.as_u16()), (200, 429));
    *limit.lock().unwrap() = Some(Pace::new(10, Duration::from_secs(1), Some(30)).unwrap());
    let told = bed.get(LIST).await;
    assert_eq!(fields(&told), (200, Some("\"default\";q=30;w=3"), Some("\"default\";r=29;t=1"), None));
    *limit.lock().unwrap() = None;
    assert_eq!(fields(&bed.get(LIST).await), (200, None, None, None));
}

#[test]
fn the_document_has_the_refusal_at_every_call_that_needs_a_key() {
    let document = serde_json::to_value(document()).unwrap();
    for (path, calls) in document["paths"].as_object().unwrap() {
        for (method, call) in calls.as_object().unwrap() {
            let keyed = call["security"].as_array().is_some_and(|all| all.iter().any(|one| one.get("key").is_some()));
            let refusal = &call["responses"]["429"];
            assert_eq!(keyed, refusal["headers"]["Retry-After"].is_object(), "{method} {path}");
        }
    }
}
