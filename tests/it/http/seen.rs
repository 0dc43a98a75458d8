//! The recipient's own device tells that it showed a message.

use belfry::ports::clock::Clock as _;
use belfry::ports::message::Rendered;
use belfry::ports::outbox::{OutboxMessage, OutboxMessages as _};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

/// A sent notification's id, its delivery's, and the token that stands in its payload.
async fn sent(bed: &Bed, key: &str) -> (String, String, String) {
    let body =
        json!({"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}});
    let told = bed.send(key, &body).await.json();
    let (id, delivery) = (told["id"].as_str().unwrap(), told["deliveries"][0]["id"].as_str().unwrap());
    let message = OutboxMessage {
        seq: 0,
        at: bed.clock.now(),
        tenant: "acme".into(),
        environment: "live".into(),
        channel: ChannelKind::Email,
        notification: id.parse::<NotificationId>().unwrap(),
        delivery: delivery.parse::<DeliveryId>().unwrap(),
        send_key: "00".into(),
        to: format!("{key}@example.com"),
        message: Rendered::Push { payload: "{}".into(), settings: belfry::ports::message::PushSettings::default() },
        collapse: None,
    };
    bed.store.add(message, 1000).await.unwrap();
    let kept = bed.get(&format!("/v1/outbox?to={key}%40example.com")).await.json();
    (id.into(), delivery.into(), kept["messages"][0]["seen_token"].as_str().unwrap().into())
}

/// As a device asks: without an API key.
async fn tell(bed: &Bed, delivery: &str, body: &Value) -> Told {
    let mut ask = bed.ask(Method::POST, &format!("/v1/deliveries/{delivery}/seen"));
    let request = ask.request.try_clone().unwrap().build().unwrap();
    ask.request = reqwest::Client::new().post(request.url().clone());
    ask.json(body).told().await
}

#[tokio::test]
async fn seen_is_noted_once_for_whoever_has_the_token() {
    let bed = Bed::new().await;
    let (id, delivery, token) = sent(&bed, "k").await;
    let (_, other, others) = sent(&bed, "l").await;
    assert_ne!(token, others);
    let right = json!({ "token": token });
    // Before its call is on record, and so perhaps before it went out.
    assert_eq!(tell(&bed, &delivery, &right).await.problem(), (409, "not_in_this_state".into()));
    bed.work(called(accepted)).await;
    bed.work(called(accepted)).await;
    for (whose, token) in [(&delivery, others.as_str()), (&other, &token), (&delivery, ""), (&delivery, &token[1..])] {
        let told = tell(&bed, whose, &json!({ "token": token })).await;
        assert!(matches!(told.status.as_u16(), 404 | 422), "{told:?}");
    }
    assert_eq!(tell(&bed, "dlv_000000000000000000000000", &right).await.problem(), (404, "not_found".into()));
    for _ in 0..3 {
        let told = tell(&bed, &delivery, &right).await;
        assert_eq!((told.status.as_u16(), told.text.as_str()), (204, ""));
    }
    let now = bed.get(&format!("/v1/notifications/{id}")).await.json()["deliveries"][0].clone();
    assert_eq!(now["state"], "accepted");
    let timeline = now["timeline"].as_array().unwrap();
    assert_eq!(timeline.iter().filter(|entry| entry["receipt"] == "seen").count(), 1, "{now}");
}

#[tokio::test]
async fn seen_needs_a_token_and_something_to_see() {
    let bed = Bed::new().await;
    let (_, delivery, token) = sent(&bed, "k").await;
    for body in [json!({}), json!({"token": 7}), json!({"token": "x", "more": 1})] {
        assert_eq!(tell(&bed, &delivery, &body).await.problem(), (422, "invalid".into()));
    }
    bed.work(called(refused)).await;
    assert_eq!(tell(&bed, &delivery, &json!({ "token": token })).await.problem(), (409, "not_in_this_state".into()));
}
