//! What recipients want, over HTTP, and what it does to what is accepted.

use belfry::intake::instant::rfc3339;
use belfry::ports::admin::Can;
use belfry::ports::clock::Clock as _;
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;

const ANN: &str = "/v1/preferences/ann";

async fn put(bed: &Bed, path: &str, body: &Value) -> Told {
    bed.ask(Method::PUT, path).json(body).told().await
}

/// On one channel.
fn message(class: &str, recipient: &str) -> Value {
    json!({"class": class, "to": {"recipient": recipient, "email": "ann@example.com"}, "channels": ["email"],
        "content": {"subject": "Offers", "text": "Cheap."}})
}

async fn sent(bed: &Bed, key: &str, body: &Value) -> Vec<String> {
    let told = bed.send(key, body).await;
    assert_eq!(told.status, 202, "{}", told.text);
    let deliveries = told.json()["deliveries"].as_array().unwrap().clone();
    deliveries.iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn preferences_are_put_read_and_forgotten() {
    let mut bed = Bed::new().await;
    let nothing = bed.get(ANN).await.json();
    assert_eq!(
        (&nothing["recipient"], &nothing["every"], &nothing["categories"]),
        (&json!("ann"), &json!({}), &json!({}))
    );
    assert_eq!((nothing.get("changed_at"), nothing.get("changed_by")), (None, None));
    let asked =
        json!({"every": {"sms": false}, "categories": {"marketing": {"all": false, "push": true, "fcm": false}}});
    let told = put(&bed, ANN, &asked).await;
    assert_eq!(told.status, 201, "{}", told.text);
    let first = told.json();
    let at = rfc3339(bed.clock.now());
    assert_eq!(first["categories"], json!({"marketing": {"all": false, "apns": true, "fcm": false, "web_push": true}}));
    assert_eq!((&first["every"], &first["changed_at"].as_str().unwrap()[..16]), (&json!({"sms": false}), &at[..16]));
    assert!(first["changed_by"].as_str().unwrap().starts_with("key_"));
    let of = |category: &str| {
        let all = first["effective"].as_array().unwrap();
        all.iter().find(|one| one["category"] == category).unwrap().clone()
    };
    let marketing = json!({"email": false, "sms": false});
    assert_eq!((&of("marketing")["channels"], &of("marketing")["required"]), (&marketing, &json!(false)));
    let (code, transactional) =
        (json!({"email": true, "sms": true}), json!({"apns": true, "email": true, "fcm": true}));
    assert_eq!((&of("code")["channels"], &of("code")["required"]), (&code, &json!(true)));
    assert_eq!(of("transactional")["channels"], transactional);
    // The same again changes nothing, also not when.
    bed.clock.forward(std::time::Duration::from_secs(60));
    let told = put(&bed, ANN, &asked).await;
    assert_eq!((told.status.as_u16(), told.json()), (200, first.clone()));
    assert_eq!(bed.get(ANN).await.json(), first);
    // Another tenant's recipient of the same name is somebody else.
    let own = bed.key.clone();
    bed.key = bed.make_key("other", "live", "main", &[Can::Read]).await;
    assert_eq!(bed.get(ANN).await.json()["categories"], json!({}));
    assert_eq!(put(&bed, ANN, &asked).await.status, 403, "it may only read");
    bed.key = own;
    for _ in 0..2 {
        assert_eq!(bed.ask(Method::DELETE, ANN).told().await.status, 204);
        assert_eq!(bed.get(ANN).await.json(), nothing);
    }
}

#[tokio::test]
async fn what_is_turned_off_ends_at_the_accept_and_everything_else_goes_on() {
    let bed = Bed::new().await;
    put(&bed, ANN, &json!({"categories": {"marketing": {"email": false}}})).await;
    let turned_off = bed.send("a", &message("marketing", "ann")).await.json();
    assert_eq!(turned_off["deliveries"][0]["state"], "suppressed");
    assert_eq!(
        turned_off["deliveries"][0]["reason"],
        "Suppressed: the recipient turned off messages like this on this channel."
    );
    for (key, body) in [
        ("b", message("marketing", "bob")),
        ("c", message("receipt", "ann")),
        ("d", message("code", "ann")),
        // Nobody is named: there is only an address.
        (
            "e",
            json!({"class": "marketing", "to": {"email": "ann@example.com"}, "content": {"subject": "a", "text": "b"}}),
        ),
    ] {
        assert_eq!(sent(&bed, key, &body).await, ["queued"], "{key}");
    }
    // A repeat hears what the first heard.
    put(&bed, ANN, &json!({})).await;
    assert_eq!(bed.send("a", &message("marketing", "ann")).await.json(), turned_off);
    assert_eq!(sent(&bed, "f", &message("marketing", "ann")).await, ["queued"]);
}

/// A copy goes to somebody else, of whose wishes nothing is known here.
#[tokio::test]
async fn copies_do_not_go_by_the_preferences_of_whom_the_message_is_for() {
    let bed = Bed::new().await;
    put(&bed, ANN, &json!({"categories": {"marketing": {"email": false}}})).await;
    let mut body = message("marketing", "ann");
    body["to"]["email"] = json!("ann@example.com");
    body["content"]["cc"] = json!(["bob@example.com"]);
    body["content"]["bcc"] = json!(["carl@example.com"]);
    assert_eq!(sent(&bed, "a", &body).await, ["suppressed", "queued", "queued"]);
}

#[tokio::test]
async fn what_is_required_cannot_be_turned_off_and_every_bad_field_is_named() {
    let bed = Bed::new().await;
    let wrong = [
        (json!([]), "", "must be an object"),
        (json!({"all": false}), "/all", "unknown field; known are every, categories"),
        (json!({"every": true}), "/every", "must be an object"),
        (json!({"every": {"letter": false}}), "/every/letter", "unknown field; known are all, push, email"),
        (json!({"every": {"sms": "no"}}), "/every/sms", "must be true or false"),
        (
            json!({"categories": {"news": {"all": false}}}),
            "/categories/news",
            "is not a configured class; configured are",
        ),
        (json!({"categories": {"code": {"sms": false}}}), "/categories/code", "cannot be turned off"),
        (json!({"categories": {"marketing": null}}), "/categories/marketing", "must be an object"),
    ];
    for (body, pointer, what) in wrong {
        let told = put(&bed, ANN, &body).await;
        assert_eq!(told.status, 422, "{body}");
        let errors = told.json()["errors"].clone();
        assert_eq!(errors[0]["pointer"], pointer, "{body}");
        assert!(errors[0]["detail"].as_str().unwrap().contains(what), "{body}: {errors}");
    }
    // Everything at once turns off what can be: a code still comes.
    assert_eq!(put(&bed, ANN, &json!({"every": {"all": false}})).await.status, 201);
    assert_eq!(sent(&bed, "a", &message("code", "ann")).await, ["queued"]);
    assert_eq!(sent(&bed, "b", &message("receipt", "ann")).await, ["suppressed"]);
    assert_eq!(put(&bed, "/v1/preferences/a%2Fb", &json!({})).await.status, 422);
}
