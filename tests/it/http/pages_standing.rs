//! What the recipients' pages say of an address that not everything goes to, what they make of a form that is none of
//! theirs, and where their links lead.

use reqwest::Method;
use serde_json::{Value, json};

use super::bed::*;
use super::pages::{ONE_CLICK, ann, link_of, news, state, visit};

async fn suppress(bed: &Bed, entry: Value) {
    let mut entry = entry;
    entry["channel"] = json!("email");
    entry["address"] = json!("ann@example.com");
    let told = bed.ask(Method::POST, "/v1/suppressions").json(&entry).told().await;
    assert!(told.status.is_success(), "{}", told.text);
}

/// What goes to the address, of a class that can be turned off, another, and one that cannot.
async fn sent(bed: &Bed, key: &str) -> [bool; 3] {
    let mut all = [false; 3];
    for (at, class) in ["marketing", "receipt", "code"].into_iter().enumerate() {
        let body =
            json!({"class": class, "to": ann(), "channels": ["email"], "content": {"subject": "a", "text": "b"}});
        all[at] = state(bed, &format!("{key}{class}"), &body).await == "queued";
    }
    all
}

const NOTHING: &str = "An a…@example.com wird zurzeit nichts gesendet.";
const REQUIRED_ONLY: &str = "An a…@example.com geht zurzeit nur, was immer gesendet wird.";
const NOT_THIS: &str = "„Angebote“ wird zurzeit nicht an a…@example.com gesendet.";

#[tokio::test]
async fn a_page_says_what_does_not_come_and_what_still_does() {
    for (kind, entry, goes, told) in [
        ("by hand", json!({}), [false, false, false], NOTHING),
        ("bounced", json!({"kind": "hard_bounce"}), [false, false, false], NOTHING),
        ("complained", json!({"kind": "complaint"}), [false, false, true], REQUIRED_ONLY),
        ("one by hand", json!({"category": "marketing"}), [false, true, true], NOT_THIS),
        ("of one", json!({"kind": "complaint", "category": "marketing"}), [false, true, true], NOT_THIS),
    ] {
        let bed = Bed::new().await;
        let path = link_of(&bed, "first", ann()).await;
        suppress(&bed, entry).await;
        assert_eq!(sent(&bed, "x").await, goes, "{kind}");
        for (method, form) in [(Method::GET, None), (Method::POST, Some(ONE_CLICK))] {
            let page = visit(&bed, method, &path, form).await.text;
            assert!(page.contains(told) && page.contains("den Absender") && !page.contains("<form"), "{kind}: {page}");
        }
        let page = visit(&bed, Method::GET, &format!("{path}/preferences"), None).await.text;
        // Of one category its row says it.
        assert_eq!(page.contains(told), told != NOT_THIS, "{kind}: {page}");
        assert!(page.contains("disabled>E-Mail (wird zurzeit nicht gesendet)"), "{kind}: {page}");
        assert_eq!(page.contains(">Immer<"), goes[2], "{kind}: {page}");
        assert_eq!(
            page.contains("<span class=\"quiet\">E-Mail (wird zurzeit nicht gesendet)</span>"),
            !goes[2],
            "{kind}"
        );
        assert_eq!(page.contains("Speichern"), goes[1], "there is something to choose, {kind}: {page}");
        // A form of before: it is not said to be saved what does not come.
        let form = "shown=marketing%2Femail&on=marketing%2Femail";
        let saved = visit(&bed, Method::POST, &format!("{path}/preferences"), Some(form)).await.text;
        assert!(
            !saved.contains("Gespeichert.") && saved.contains("Ein Teil davon kann zurzeit nicht"),
            "{kind}: {saved}"
        );
        assert_eq!(sent(&bed, "y").await, goes, "{kind}");
    }
}

#[tokio::test]
async fn what_is_unsubscribed_from_everything_is_theirs_to_take_back() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    suppress(&bed, json!({"kind": "unsubscribe"})).await;
    let page = visit(&bed, Method::GET, &format!("{path}/preferences"), None).await.text;
    assert!(!page.contains("zurzeit") && page.contains(">Immer<") && !page.contains("checked"), "{page}");
    assert_eq!(sent(&bed, "x").await, [false, false, true]);
}

#[tokio::test]
async fn what_somebody_else_than_the_address_gets_is_still_chosen() {
    let bed = Bed::new().await;
    let to = json!({"recipient": "ann", "email": "ann@example.com", "locale": "en"});
    let path = link_of(&bed, "first", to).await + "/preferences";
    suppress(&bed, json!({})).await;
    let page = visit(&bed, Method::GET, &path, None).await.text;
    for part in [
        "Nothing is sent to a…@example.com at present.",
        "disabled>Email (not sent at present)",
        "name=\"on\" value=\"marketing/sms\" checked>SMS",
        // The login codes still go by SMS.
        "<span class=\"quiet\">Always sent</span><span class=\"quiet\">Email (not sent at present)</span>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let saved = visit(&bed, Method::POST, &path, Some("shown=marketing%2Fsms")).await.text;
    assert!(saved.contains("Saved.") && saved.contains("Nothing is sent to a…@example.com"), "{saved}");
}

#[tokio::test]
async fn case_26_a_form_that_is_not_understood_changes_nothing() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    let post = async |kind: &'static str, body: &'static str, path: &str| {
        let request = bed.client.post(format!("http://{}{path}", bed.addr)).header("content-type", kind).body(body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (url, several) = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x");
    let back = "--x\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nresubscribe\r\n--x--\r\n";
    for (kind, body) in [
        (url, "action=resubscrib"),
        (url, r#"{"action":"resubscribe"}"#),
        (url, "utm_source=x"),
        (several, "--x\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nback\r\n--x--\r\n"),
        ("application/xml", "<unsubscribe/>"),
    ] {
        let (status, page) = post(kind, body, &path).await;
        assert_eq!(status, 400, "{kind}: {body}");
        assert!(page.contains("war nicht verständlich. Es hat sich nichts geändert."), "{page}");
    }
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
    assert_eq!(visit(&bed, Method::POST, &path, Some(ONE_CLICK)).await.status, 200);
    assert_eq!(state(&bed, "off", &news(ann())).await, "suppressed");
    // The way back in whatever form is no second way out.
    for (at, (kind, body)) in
        [(several, back), ("application/json", r#"{"action": "resubscribe"}"#)].into_iter().enumerate()
    {
        visit(&bed, Method::POST, &path, Some(ONE_CLICK)).await;
        assert_eq!(post(kind, body, &path).await.0, 200, "{kind}");
        assert_eq!(state(&bed, &format!("back{at}"), &news(ann())).await, "queued", "{kind}");
    }
    let preferences = format!("{path}/preferences");
    for (kind, body) in
        [(url, ""), (url, "shown=marketing%2Ffax"), ("application/json", "{}"), (url, "on=marketing%2Femail")]
    {
        assert_eq!(post(kind, body, &preferences).await.0, 400, "{body}");
    }
    assert_eq!(bed.get("/v1/suppressions").await.json()["data"], json!([]));
}

/// Where a page's link leads, for whoever has it open at `page` (RFC 3986, section 5.2, as far as a path needs it).
fn led(page: &str, link: &str) -> String {
    let mut steps: Vec<&str> = if link.starts_with('/') { Vec::new() } else { page.split('/').collect() };
    steps.pop();
    for step in link.trim_start_matches('/').split('/') {
        match step {
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

fn links(page: &str) -> Vec<String> {
    let of = |mark: &str| -> Vec<String> {
        page.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    };
    [of("action=\""), of("href=\"")].concat()
}

#[tokio::test]
async fn links_of_a_page_lead_on_wherever_a_proxy_has_put_it() {
    let bed = Bed::new().await;
    let path = link_of(&bed, "first", ann()).await;
    let preferences = format!("{path}/preferences");
    let own = bed.ask(Method::POST, "/v1/preferences/ann/link").told().await.json()["url"].as_str().unwrap().to_owned();
    let own = own.strip_prefix("https://notify.example.com").unwrap();
    for (page, leads) in [
        (&*path, vec![path.clone(), preferences.clone()]),
        (&*preferences, vec![preferences.clone()]),
        (own, vec![format!("{own}/preferences")]),
        (&*format!("{own}/preferences"), vec![format!("{own}/preferences")]),
    ] {
        let seen = visit(&bed, Method::GET, page, None).await;
        assert_eq!(seen.status, 200);
        for before in ["", "/notify"] {
            let found: Vec<String> =
                links(&seen.text).iter().map(|link| led(&format!("{before}{page}"), link)).collect();
            let wanted: Vec<String> = leads.iter().map(|path| format!("{before}{path}")).collect();
            assert_eq!(found, wanted, "{page}");
        }
    }
}

#[tokio::test]
async fn two_classes_of_one_title_are_told_apart_by_name() {
    let bed = Bed::new().await;
    for (locale, told) in [
        ("es", ["<legend>Ofertas (marketing)<", "<legend>Ofertas (receipt)<"]),
        ("en", ["<legend>Offers<", "<legend>Receipts<"]),
    ] {
        let to = json!({"email": "ann@example.com", "locale": locale});
        let path = link_of(&bed, locale, to).await + "/preferences";
        let page = visit(&bed, Method::GET, &path, None).await.text;
        assert!(told.iter().all(|legend| page.contains(legend)), "{page}");
    }
}
