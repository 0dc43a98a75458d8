//! The recipients' own pages: unsubscribe by RFC 8058, and preferences.

use std::sync::Arc;

use belfry::intake::links::Linker;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{Deliveries as _, Owner};
use belfry::ports::links::{Link, LinkedAddress};
use belfry::ports::suppressions::{MOST_OF_ONE, Put, Suppressed, Suppressions as _};
use belfry_domain::suppression::SuppressionKind;
use belfry_domain::{ChannelKind, NotificationId};
use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;
use super::policy::policy;

/// A campaign's mail to somebody. `to` may name a recipient.
pub(super) fn news(to: Value) -> Value {
    json!({"class": "marketing", "to": to, "channels": ["email"], "content": {"subject": "News", "text": "Cheap."}})
}

/// What was frozen with a message, as JSON.
async fn frozen(bed: &Bed, told: &Value) -> Value {
    let id: NotificationId = told["id"].as_str().unwrap().parse().unwrap();
    serde_json::from_str(&bed.store.inputs(id).await.unwrap().unwrap()).unwrap()
}

pub(super) async fn link_of(bed: &Bed, key: &str, to: Value) -> String {
    let told = bed.send(key, &news(to)).await.json();
    let links = frozen(bed, &told).await["links"].clone();
    assert_eq!(links["base"], "https://notify.example.com");
    format!("/u/{}", links["tokens"]["to"].as_str().unwrap())
}

/// As a browser or a mail program: without any API key.
pub(super) async fn visit(bed: &Bed, method: Method, path: &str, form: Option<&str>) -> Told {
    let mut request = bed.client.request(method, format!("http://{}{path}", bed.addr));
    if let Some(form) = form {
        request = request.header("content-type", "application/x-www-form-urlencoded").body(form.to_owned());
    }
    let answer = request.header("accept-language", "fr").send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    Told { status, headers, text: answer.text().await.unwrap() }
}

pub(super) async fn state(bed: &Bed, key: &str, body: &Value) -> String {
    let told = bed.send(key, body).await;
    told.json()["deliveries"][0]["state"].as_str().unwrap_or_else(|| panic!("{}", told.text)).to_owned()
}

pub(super) fn ann() -> Value {
    json!({"email": "ann@example.com", "locale": "de-AT"})
}

pub(super) const ONE_CLICK: &str = "List-Unsubscribe=One-Click";

#[tokio::test]
async fn case_26_looking_changes_nothing_and_one_click_ends_that_category_only() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    for _ in 0..3 {
        let seen = visit(&bed, Method::GET, &path, None).await;
        assert_eq!(seen.status, 200);
        assert!(seen.text.contains("„Angebote“ nicht mehr an a…@example.com senden?"), "{}", seen.text);
        assert!(seen.text.contains("<html lang=\"de\">") && seen.text.contains("Abbestellen"));
        let head = visit(&bed, Method::HEAD, &path, None).await;
        assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
    }
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
    assert_eq!(state(&bed, "before", &news(ann())).await, "queued");
    for _ in 0..2 {
        let done = visit(&bed, Method::POST, &path, Some(ONE_CLICK)).await;
        // Not redirected, no cookie: the mail program looks at the status alone.
        assert_eq!((done.status.as_u16(), done.header("set-cookie")), (200, None));
        assert!(done.text.contains("wird nicht mehr an a…@example.com gesendet"), "{}", done.text);
    }
    let kept = bed.get("/v1/suppressions").await.json()["data"].clone();
    assert_eq!(kept.as_array().unwrap().len(), 1, "{kept}");
    assert_eq!((&kept[0]["kind"], &kept[0]["category"]), (&json!("unsubscribe"), &json!("marketing")));
    assert_eq!((&kept[0]["origin"], &kept[0]["address"]), (&json!("page"), &json!("a…@example.com")));
    assert_eq!(state(&bed, "after", &news(json!({"email": "ANN@example.com"}))).await, "suppressed");
    let of = |class: &str| json!({"class": class, "to": ann(), "content": {"subject": "a", "text": "b"}, "channels": ["email"]});
    for class in ["code", "receipt"] {
        assert_eq!(state(&bed, class, &of(class)).await, "queued", "{class}");
    }
    // Looked at, the link is as good as before, and so is the way back.
    let seen = visit(&bed, Method::GET, &path, None).await;
    assert!(seen.text.contains("Wieder bestellen"), "{}", seen.text);
    let back = visit(&bed, Method::POST, &path, Some("action=resubscribe")).await;
    assert!(back.text.contains("„Angebote“ wird an a…@example.com gesendet."), "{}", back.text);
    assert_eq!(state(&bed, "again", &news(ann())).await, "queued");
}

#[tokio::test]
async fn one_click_may_come_as_a_form_of_several_parts_or_as_nothing_at_all() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    let parts = "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n";
    let request = bed.client.post(format!("http://{}{path}", bed.addr));
    let told = request.header("content-type", "multipart/form-data; boundary=x").body(parts).send().await.unwrap();
    assert_eq!(told.status(), 200);
    assert_eq!(state(&bed, "second", &news(ann())).await, "suppressed");
    let other = link_of(&bed, "bob", json!({"email": "bob@example.com"})).await;
    assert_eq!(visit(&bed, Method::POST, &format!("{other}?utm_source=x"), None).await.status, 200);
    assert_eq!(state(&bed, "third", &news(json!({"email": "bob@example.com"}))).await, "suppressed");
}

#[tokio::test]
async fn case_26_a_link_that_is_not_ours_does_nothing_and_tells_nothing() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    let bent = format!("{}{}{}", &path[..40], if &path[40..41] == "A" { "B" } else { "A" }, &path[41..]);
    for wrong in [bent.as_str(), "/u/x", "/u/%00", "/u/sup_0", &format!("/u/{}", "A".repeat(3000))] {
        for (method, form) in [(Method::GET, None), (Method::POST, Some(ONE_CLICK))] {
            for page in [wrong.to_owned(), format!("{wrong}/preferences")] {
                let told = visit(&bed, method.clone(), &page, form).await;
                assert_eq!(told.status, 404, "{page}");
                assert!(told.text.contains("Ce lien"), "in the browser's language: {}", told.text);
            }
        }
    }
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
    // What is shown is told to nobody else.
    let seen = visit(&bed, Method::GET, &path, None).await;
    assert_eq!(seen.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(seen.header("cache-control"), Some("no-store"));
    assert!(seen.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(visit(&bed, Method::POST, &path, Some(&"a".repeat(70_000))).await.status, 400);
}

#[tokio::test]
async fn a_link_goes_with_what_there_is_to_unsubscribe_from_and_is_the_same_each_time() {
    let bed = Bed::new().await;
    let mut body = news(json!({"recipient": "ann", "email": "ann@example.com"}));
    body["content"]["cc"] = json!(["bob@example.com"]);
    let links = frozen(&bed, &bed.send("a", &body).await.json()).await["links"].clone();
    let tokens = links["tokens"].as_object().unwrap();
    assert_eq!(tokens.keys().collect::<Vec<_>>(), ["cc/0", "to"]);
    assert_ne!(tokens["cc/0"], tokens["to"]);
    // A copy speaks for its own address alone.
    let copy = format!("/u/{}/preferences", tokens["cc/0"].as_str().unwrap());
    assert!(visit(&bed, Method::GET, &copy, None).await.text.contains("b…@example.com"));
    let receipt =
        json!({"class": "receipt", "to": ann(), "content": {"subject": "a", "text": "b"}, "channels": ["email"]});
    assert_eq!(frozen(&bed, &bed.send("b", &receipt).await.json()).await.get("links"), None);
    let sms = json!({"class": "marketing", "to": {"phone": "+46701234567"}, "content": {"sms": "a"}});
    assert_eq!(frozen(&bed, &bed.send("c", &sms).await.json()).await.get("links"), None);
}

#[tokio::test]
async fn a_recipient_chooses_by_category_and_means() {
    let bed = Bed::new().await;
    let to = json!({"recipient": "ann", "email": "ann@example.com", "locale": "en"});
    let path = link_of(&bed, "first", to.clone()).await + "/preferences";
    let page = visit(&bed, Method::GET, &path, None).await.text;
    for part in [
        "name=\"on\" value=\"marketing/email\" checked>Email",
        "value=\"transactional/push\" checked>Push",
        "name=\"shown\" value=\"receipt/sms\"",
        "Messages for a…@example.com",
        "Always sent",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("code/email"), "what is required is no choice: {page}");
    let form = "shown=marketing%2Femail&shown=marketing%2Fsms&shown=transactional%2Fpush&shown=code%2Femail&on=marketing%2Fsms";
    let saved = visit(&bed, Method::POST, &path, Some(form)).await;
    assert!(
        saved.text.contains("Saved.") && !saved.text.contains("value=\"marketing/email\" checked"),
        "{}",
        saved.text
    );
    let kept = bed.get("/v1/preferences/ann").await.json();
    let off = json!({"apns": false, "fcm": false, "web_push": false});
    assert_eq!(kept["categories"], json!({"marketing": {"email": false}, "transactional": off}));
    assert_eq!(kept["changed_by"], "page");
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]), "that is kept with the person");
    assert_eq!(state(&bed, "second", &news(to.clone())).await, "suppressed");
    // Whoever unsubscribed and then says yes means it.
    visit(&bed, Method::POST, path.trim_end_matches("/preferences"), Some(ONE_CLICK)).await;
    visit(&bed, Method::POST, &path, Some("shown=marketing%2Femail&on=marketing%2Femail")).await;
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
    assert_eq!(state(&bed, "third", &news(to)).await, "queued");
}

#[tokio::test]
async fn whoever_is_only_an_address_chooses_for_that_address() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await + "/preferences";
    let page = visit(&bed, Method::GET, &path, None).await.text;
    assert!(page.contains("value=\"receipt/email\" checked") && !page.contains("/sms\""), "{page}");
    visit(&bed, Method::POST, &path, Some("shown=marketing%2Femail&shown=receipt%2Femail&on=receipt%2Femail")).await;
    let kept = bed.get("/v1/suppressions").await.json()["data"].clone();
    assert_eq!((kept.as_array().unwrap().len(), &kept[0]["category"]), (1, &json!("marketing")), "{kept}");
    assert_eq!(state(&bed, "second", &news(ann())).await, "suppressed");
    // Blocked by hand: the page says so, and changes nothing about it.
    let by_hand = json!({"channel": "email", "address": "ann@example.com"});
    bed.ask(Method::POST, "/v1/suppressions").json(&by_hand).told().await;
    let page = visit(&bed, Method::GET, &path, None).await.text;
    assert!(page.contains("disabled>E-Mail") && !page.contains("name=\"on\""), "{page}");
    visit(&bed, Method::POST, &path, Some("shown=marketing%2Femail&on=marketing%2Femail")).await;
    assert_eq!(state(&bed, "third", &news(ann())).await, "suppressed");
}

/// Whatever a page shows of what is kept: who saves it as it is has said nothing.
#[tokio::test]
async fn a_page_that_is_saved_unchanged_changes_nothing() {
    let bed = Bed::new().await;
    let wanted = json!({"categories": {"transactional": {"apns": false, "fcm": true}, "marketing": {"email": false}}});
    bed.ask(Method::PUT, "/v1/preferences/ann").json(&wanted).told().await;
    let before = bed.get("/v1/preferences/ann").await.text;
    let path = link_of(&bed, "first", json!({"recipient": "ann", "email": "ann@example.com", "locale": "en"})).await
        + "/preferences";
    let page = visit(&bed, Method::GET, &path, None).await.text;
    assert!(page.contains("value=\"transactional/push\" checked"), "{page}");
    let shown = page.split("name=\"shown\" value=\"").skip(1).map(|rest| format!("shown={}", until_quote(rest)));
    let on = page.split("name=\"on\" value=\"").skip(1).filter(|rest| {
        let tag = rest.split('>').next().unwrap_or_default();
        tag.ends_with(" checked")
    });
    let on = on.map(|rest| format!("on={}", until_quote(rest)));
    let form: Vec<String> = shown.chain(on).collect();
    assert!(form.iter().any(|it| it == "on=transactional/push"), "{form:?}");
    let saved = visit(&bed, Method::POST, &path, Some(&form.join("&").replace('/', "%2F"))).await;
    assert!(saved.text.contains("Saved."), "{}", saved.text);
    assert_eq!(bed.get("/v1/preferences/ann").await.text, before);
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
}

fn until_quote(text: &str) -> &str {
    text.split('"').next().unwrap_or_default()
}

/// Better too little mail than mail to somebody who asked for none.
#[tokio::test]
async fn where_there_is_no_room_for_one_more_category_nothing_comes_back() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    let told = bed.send("filling", &news(ann())).await.json();
    let owner = Owner { tenant: "acme".into(), environment: "live".into() };
    let record = bed.store.read(&owner, told["id"].as_str().unwrap().parse().unwrap()).await.unwrap().unwrap();
    let delivery = &record.deliveries[0];
    for number in 0..MOST_OF_ONE {
        let gone = Suppressed {
            channel: delivery.channel,
            address_hash: delivery.address_hash.clone(),
            address_mask: delivery.address_mask.clone(),
            kind: SuppressionKind::Unsubscribe,
            category: Some(format!("gone-{number}")),
            sender: None,
            since: delivery.created_at,
            until: None,
            origin: "page".into(),
            note: None,
        };
        assert!(matches!(bed.store.put(&owner, &gone).await.unwrap(), Put::Kept(_)), "{number}");
    }
    let choice = "shown=marketing%2Femail&shown=digest%2Femail&shown=receipt%2Femail&on=receipt%2Femail";
    visit(&bed, Method::POST, &format!("{path}/preferences"), Some(choice)).await;
    assert_eq!(state(&bed, "second", &news(ann())).await, "suppressed");
    // Also where one thing is asked for again afterwards.
    let one = "shown=marketing%2Femail&shown=receipt%2Femail&on=receipt%2Femail";
    visit(&bed, Method::POST, &format!("{path}/preferences"), Some(one)).await;
    assert_eq!(state(&bed, "third", &news(ann())).await, "suppressed");
}

/// A class that was made required since: what would be kept for nothing is not kept, and the page says how it is.
#[tokio::test]
async fn what_cannot_be_turned_off_any_more_is_not_turned_off_by_an_old_link() {
    let bed = Bed::new().await;
    let policy = Arc::new(policy());
    let address = LinkedAddress { channel: ChannelKind::Email, hash: "ab".repeat(12), mask: "a…@example.com".into() };
    let link = Link {
        tenant: "acme".into(),
        environment: "live".into(),
        recipient: None,
        address: Some(address),
        category: Some("code".into()),
        locale: Some("en".into()),
        until: bed.clock.now().plus(DAY),
    };
    let url = Linker::new(Arc::new(move || policy.clone()), &[7; 32]).url(&link);
    let path = url.split_once("/u/").map(|(_, token)| format!("/u/{token}")).unwrap();
    for (method, form) in [(Method::GET, None), (Method::POST, Some(ONE_CLICK)), (Method::GET, None)] {
        let page = visit(&bed, method, &path, form).await;
        assert!(page.status == 200 && page.text.contains("Always sent"), "{}", page.text);
        assert!(!page.text.contains("value=\"unsubscribe\""), "{}", page.text);
    }
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
}

#[tokio::test]
async fn back_from_everything_is_back_to_one_thing() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    let everything = json!({"channel": "email", "address": "ann@example.com", "kind": "unsubscribe"});
    bed.ask(Method::POST, "/v1/suppressions").json(&everything).told().await;
    let receipt =
        json!({"class": "receipt", "to": ann(), "content": {"subject": "a", "text": "b"}, "channels": ["email"]});
    assert_eq!(state(&bed, "a", &receipt).await, "suppressed");
    visit(&bed, Method::POST, &path, Some("action=resubscribe")).await;
    assert_eq!(state(&bed, "b", &news(ann())).await, "queued");
    assert_eq!(state(&bed, "c", &receipt).await, "suppressed");
}

#[tokio::test]
async fn preferences_end_with_the_link_and_unsubscribing_never_does() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    bed.clock.forward(181 * DAY);
    for (method, form) in [(Method::GET, None), (Method::POST, Some("shown=marketing%2Femail"))] {
        assert_eq!(visit(&bed, method, &format!("{path}/preferences"), form).await.status, 410);
    }
    let seen = visit(&bed, Method::GET, &path, None).await;
    assert!(seen.status == 200 && !seen.text.contains("/preferences"), "{}", seen.text);
    assert_eq!(visit(&bed, Method::POST, &path, Some(ONE_CLICK)).await.status, 200);
    assert_eq!(state(&bed, "second", &news(ann())).await, "suppressed");
}

#[tokio::test]
async fn an_app_links_its_user_to_their_page() {
    let bed = Bed::new().await;
    let ask = async |body: Option<Value>| {
        let ask = bed.ask(Method::POST, "/v1/preferences/ann/link");
        if let Some(body) = body { ask.json(&body) } else { ask }.told().await
    };
    let told = ask(None).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let url = told.json()["url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix("https://notify.example.com").unwrap();
    let page = visit(&bed, Method::GET, path, None).await.text;
    assert!(page.contains("Vos messages") && page.contains("value=\"transactional/push\" checked"), "{page}");
    // There is nothing to unsubscribe from: what is posted there changes nothing.
    visit(&bed, Method::POST, path, Some(ONE_CLICK)).await;
    assert_eq!(bed.get("/v1/preferences/ann").await.json()["categories"], json!({}));
    visit(&bed, Method::POST, &format!("{path}/preferences"), Some("shown=transactional%2Fpush")).await;
    let off = json!({"apns": false, "fcm": false, "web_push": false});
    assert_eq!(bed.get("/v1/preferences/ann").await.json()["categories"], json!({"transactional": off}));
    bed.clock.forward(DAY);
    assert_eq!(visit(&bed, Method::GET, path, None).await.status, 410);
    for (body, pointer) in [
        (json!({"locale": "Deutsch!"}), "/locale"),
        (json!({"until": "2020-01-01T00:00:00Z"}), "/until"),
        (json!({"until": "2999-01-01T00:00:00Z"}), "/until"),
        (json!({"language": "de"}), "/language"),
    ] {
        let told = ask(Some(body)).await;
        assert_eq!((told.status.as_u16(), &told.json()["errors"][0]["pointer"]), (422, &json!(pointer)));
    }
}
