//! Lists and search.

use std::collections::BTreeSet;

use belfry::ports::deliveries::Deliveries as _;
use belfry_domain::admission::Verdict;
use belfry_domain::{Event, Outcome, Why, WhyCode};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

fn mail(to: &str) -> Value {
    json!({"class": "receipt", "to": {"email": to}, "content": {"subject": "S", "text": "T"}})
}

fn ids(told: &Told) -> Vec<String> {
    told.json()["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_hold_everything_once_newest_first() {
    let bed = Bed::new().await;
    let mut sent = Vec::new();
    for n in 0..7 {
        let told = bed.send(&format!("k{n}"), &mail("ann@example.com")).await;
        sent.insert(0, told.json()["id"].as_str().unwrap().to_owned());
    }
    let mut seen = Vec::new();
    let mut path = "/v1/notifications?limit=3".to_owned();
    loop {
        let page = bed.get(&path).await;
        seen.extend(ids(&page));
        let body = page.json();
        let Some(next) = body["next_cursor"].as_str() else {
            assert_eq!(body["has_more"], false);
            break;
        };
        assert_eq!(body["has_more"], true);
        path = format!("/v1/notifications?limit=3&cursor={next}");
    }
    assert_eq!(seen, sent);
    for bad in [
        "limit=0",
        "limit=101",
        "limit=x",
        "cursor=x",
        "cursor=",
        "state=x",
        "channel=owl",
        "class=",
        "q=1",
        "limit=1&limit=1",
    ] {
        let told = bed.get(&format!("/v1/notifications?{bad}")).await;
        assert_eq!(told.problem(), (400, "bad_parameter".into()), "{bad}");
        assert_eq!(told.pointers(), [format!("/query/{}", bad.split('=').next().unwrap())]);
    }
}

#[tokio::test]
async fn filters_all_hold() {
    let bed = Bed::new().await;
    let mut first = mail("ann@example.com");
    first["reference"] = json!("crm 7");
    first["group"] = json!("launch");
    let mut second = mail("bob@example.com");
    second["group"] = json!("launch");
    second["class"] = json!("code");
    let (a, b) = (bed.send("a", &first).await, bed.send("b", &second).await);
    let (a, b) = (a.json()["id"].as_str().unwrap().to_owned(), b.json()["id"].as_str().unwrap().to_owned());
    for (query, expected) in [
        ("reference=crm%207", vec![&a]),
        ("group=launch", vec![&b, &a]),
        ("group=launch&class=code", vec![&b]),
        ("channel=email", vec![&b, &a]),
        ("channel=sms", vec![]),
        ("state=queued", vec![&b, &a]),
        ("state=failed", vec![]),
    ] {
        let told = bed.get(&format!("/v1/notifications?{query}")).await;
        assert_eq!(ids(&told).iter().collect::<Vec<_>>(), expected, "{query}");
        assert!(
            told.json()["data"].as_array().unwrap().iter().all(|one| one["deliveries"][0].get("timeline").is_none())
        );
    }
}

#[tokio::test]
async fn addresses_are_searched_in_a_body() {
    let bed = Bed::new().await;
    let told = bed.send("a", &mail("Ann <Ann@EXÄMPLE.test>")).await;
    bed.send("b", &mail("bob@example.com")).await;
    let ask = |body: Value| bed.ask(Method::POST, "/v1/notifications/search").json(&body).told();
    for spelling in ["ann@exämple.test", "ANN@xn--exmple-cua.test"] {
        assert_eq!(ids(&ask(json!({"address": spelling})).await), [told.json()["id"].as_str().unwrap()]);
    }
    assert_eq!(ids(&ask(json!({"address": "ann@exämple.test", "state": "failed"})).await), [""; 0]);
    assert_eq!(ids(&ask(json!({})).await).len(), 2);
    let bad = ask(json!({"address": "", "state": "x", "channel": 7, "limit": 101, "cursor": "x", "colour": 1})).await;
    assert_eq!(bad.pointers(), ["/address", "/channel", "/colour", "/cursor", "/limit", "/state"]);
    let page = ask(json!({"limit": 1})).await.json();
    let next = ask(json!({"limit": 1, "cursor": page["next_cursor"]})).await;
    assert_eq!(
        (ids(&next), next.json()["has_more"].clone()),
        (vec![told.json()["id"].as_str().unwrap().into()], json!(false))
    );
}

#[tokio::test]
async fn case_50_accepted_is_called_accepted_by_the_provider() {
    let bed = Bed::new().await;
    let told = bed.send("k", &mail("ann@example.com")).await;
    bed.work(called(accepted)).await;
    let read = bed.get(told.header("location").unwrap()).await.json();
    let delivery = &read["deliveries"][0];
    assert_eq!(delivery["state"], "accepted");
    let reason = delivery["reason"].as_str().unwrap();
    assert_eq!(reason, "Kept in the outbox; nothing was sent to anybody.");
}

#[tokio::test]
async fn case_92_every_intent_ends_once_and_is_listed() {
    let bed = Bed::new().await;
    let unknown = || Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) };
    let gone = || Outcome::RecipientGone { since: None, why: Why::new(WhyCode::NoSuchRecipient) };
    let mut marketing = mail("ann@example.com");
    marketing["class"] = json!("marketing");
    let mut expected = BTreeSet::new();
    for state in ["accepted", "failed", "bounced", "unknown", "expired", "failed", "cancelled"] {
        let body = if state == "unknown" { marketing.clone() } else { mail("ann@example.com") };
        let told = bed.send(&format!("{state}-{}", expected.len()), &body).await.json();
        let id = told["id"].as_str().unwrap().to_owned();
        match state {
            "accepted" => bed.work(called(accepted)).await,
            "failed" if expected.len() == 1 => bed.work(called(refused)).await,
            "failed" => bed.work(|_| Event::Uncallable(Why::new(WhyCode::RenderFailed))).await,
            "bounced" => bed.work(called(gone)).await,
            "unknown" => bed.work(called(unknown)).await,
            "expired" => bed.work(|_| Event::Admitted(Verdict::Expire)).await,
            _ => {
                bed.ask(Method::POST, &format!("/v1/notifications/{id}/cancel")).told().await;
                let delivery = told["deliveries"][0]["id"].as_str().unwrap().parse().unwrap();
                bed.store.load(vec![delivery]).await.unwrap().remove(0)
            }
        };
        expected.insert((state.to_owned(), id));
    }
    let mut listed = BTreeSet::new();
    for state in ["accepted", "failed", "bounced", "unknown", "expired", "cancelled"] {
        for one in bed.get(&format!("/v1/notifications?state={state}")).await.json()["data"].as_array().unwrap() {
            let delivery = &one["deliveries"][0];
            assert_eq!((&delivery["ended"], &delivery["state"]), (&json!(true), &json!(state)));
            assert!(delivery["reason"].as_str().unwrap().ends_with('.'));
            listed.insert((state.to_owned(), one["id"].as_str().unwrap().to_owned()));
        }
    }
    assert_eq!(listed, expected);
    for (_, id) in expected {
        let read = bed.get(&format!("/v1/notifications/{id}")).await.json();
        let timeline = read["deliveries"][0]["timeline"].clone();
        let ends = timeline.as_array().unwrap().iter().filter(|entry| entry["what"] == "ended").count();
        assert_eq!(ends, 1, "{timeline}");
    }
}
