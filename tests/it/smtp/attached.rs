//! Mails with attachments, whose contents are kept apart from them, with a server behind it all.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belfry::app::render::Templates;
use belfry::content::Content;
use belfry::engine::{Render as _, RenderFault};
use belfry::ports::attachments::Attached;
use belfry::ports::deliveries::Owner;
use belfry::ports::message::Rendered;
use belfry::store::sqlite::InlineStore;
use belfry_domain::ChannelKind;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::contract::fixture::{id_of, intent};
use crate::contract::harness::{Harness, ManualClock};
use crate::http::away::Failing;
use crate::peers::smtp_stub::{Script, SmtpStub};
use crate::push::live::Live;

const SAMPLE: &str = include_str!("../../../templates/order_shipped/sample.json");

fn pdf() -> Vec<u8> {
    (0..30_000_u32).map(|at| (at * at % 251) as u8).collect()
}

fn started() -> (Live, SmtpStub) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stub = runtime.block_on(SmtpStub::start(Script::default()));
    let sections = format!(
        "[channels.email]\nproviders = [\"main\"]\n[providers.main]\nkind = \"smtp\"\nurl = \"{}\"\n\
         from = \"Shop <no-reply@example.com>\"\n",
        stub.url()
    );
    (Live::start_kept(runtime, &sections, &[]), stub)
}

fn mail(to: &str) -> Value {
    let attachment =
        |name: &str| json!({ "filename": name, "content_type": "application/pdf", "base64": STANDARD.encode(pdf()) });
    let content = json!({
        "subject": "Your order", "text": "It is on its way.", "cc": ["eve@example.com"],
        "attachments": [attachment("order.pdf"), attachment("copy.pdf")],
    });
    json!({ "class": "receipt", "to": { "email": to }, "content": content })
}

fn number(live: &Live, sql: &str) -> i64 {
    let conn = rusqlite::Connection::open(live.dir.path().join("belfry.db")).unwrap();
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The attachments of a mail as its reader has them.
fn attached(text: &str) -> Vec<(String, Vec<u8>)> {
    let parts = text.split("\r\n--").filter(|part| part.contains("application/pdf"));
    let read = |part: &str| {
        let (head, body) = part.split_once("\r\n\r\n").unwrap();
        let name = head.split("filename=\"").nth(1).unwrap().split('"').next().unwrap();
        (name.to_owned(), STANDARD.decode(body.replace("\r\n", "")).unwrap())
    };
    parts.map(read).collect()
}

#[test]
fn mails_go_out_with_what_is_kept_once_for_all_of_them() {
    let (live, stub) = started();
    for (key, to) in [("one", "ann@example.com"), ("two", "bob@example.com")] {
        let ended = live.ended(&live.send(key, &mail(to)));
        assert!(ended["deliveries"].as_array().unwrap().iter().all(|one| one["state"] == "accepted"), "{ended}");
    }
    let mails = stub.messages();
    assert_eq!(mails.len(), 4);
    for mail in mails {
        let expected = ["order.pdf", "copy.pdf"].map(|name| (name.to_owned(), pdf()));
        assert_eq!(attached(&mail.text()), expected);
    }
    assert_eq!(number(&live, "SELECT count(*) FROM attachments"), 1);
    assert_eq!(number(&live, "SELECT sum(length(content)) FROM attachments"), 30_000);
    assert!(number(&live, "SELECT sum(length(body)) FROM inputs") < 3_000);
    // The same under the same key is a repeat, another attachment a mistake.
    assert_eq!(live.asked("POST", "/v1/notifications", Some("one"), Some(&mail("ann@example.com"))).0, 202);
    let mut other = mail("ann@example.com");
    other["content"]["attachments"][1]["base64"] = STANDARD.encode([1; 2_000]).into();
    let (status, told) = live.asked("POST", "/v1/notifications", Some("one"), Some(&other));
    assert_eq!((status, told["code"].as_str()), (422, Some("key_reused")), "{told}");
    assert_eq!(number(&live, "SELECT count(*) FROM attachments"), 1);
}

/// A receipt from a template, with its bill: what goes around a template's mail comes with the request.
#[test]
fn a_template_s_mail_has_what_the_request_puts_around_it() {
    let (live, stub) = started();
    let sample: Value = serde_json::from_str(SAMPLE).unwrap();
    let bill = json!({ "filename": "bill.pdf", "content_type": "application/pdf", "base64": STANDARD.encode(pdf()) });
    let around = json!({
        "from": "Billing <billing@example.com>", "reply_to": ["help@example.com"], "cc": ["eve@example.com"],
        "headers": { "X-Order": "42" }, "attachments": [bill],
    });
    let body = json!({ "class": "receipt", "to": { "email": "ann@example.com" }, "template": "order_shipped",
        "data": sample, "content": around });
    let ended = live.ended(&live.send("bill", &body));
    let slots: Vec<_> =
        ended["deliveries"].as_array().unwrap().iter().map(|one| (&one["slot"], &one["state"])).collect();
    assert_eq!(slots, [(&json!("to"), &json!("accepted")), (&json!("cc/0"), &json!("accepted"))]);
    let mails = stub.messages();
    assert_eq!(mails.len(), 2);
    for mail in mails {
        let text = mail.text();
        for line in
            ["From: Billing <billing@example.com>", "Reply-To: help@example.com", "Cc: eve@example.com", "X-Order: 42"]
        {
            assert!(text.contains(&format!("{line}\r\n")), "{line} in {text}");
        }
        assert_eq!(attached(&text), [("bill.pdf".to_owned(), pdf())]);
    }
    assert_eq!(number(&live, "SELECT count(*) FROM attachments"), 1);
}

#[test]
fn no_mail_goes_out_without_its_attachment() {
    let (live, stub) = started();
    let (status, told) = live.asked("POST", "/v1/pauses", None, Some(&json!({ "what": "all" })));
    assert_eq!(status, 201, "{told}");
    let id = live.send("one", &mail("ann@example.com"));
    let conn = rusqlite::Connection::open(live.dir.path().join("belfry.db")).unwrap();
    conn.execute_batch("PRAGMA busy_timeout = 2000; DELETE FROM attachments").unwrap();
    let pause = format!("/v1/pauses/{}", told["id"].as_str().unwrap());
    assert_eq!(live.asked("DELETE", &pause, None, None).0, 204);
    let ended = live.ended(&id);
    for delivery in ended["deliveries"].as_array().unwrap() {
        assert_eq!(delivery["state"], "failed", "{ended}");
        assert!(delivery["reason"].as_str().unwrap().contains("the message could not be made"), "{ended}");
    }
    assert_eq!(stub.messages(), []);
}

/// Then the delivery waits, as for a frozen template.
#[tokio::test]
async fn a_store_that_is_away_is_not_an_attachment_that_is_gone() {
    let clock = ManualClock::new();
    let (store, failing) = (InlineStore::open(clock.clone()), Failing::new());
    failing.serve(store.clone());
    let h = Harness::over(store.clone(), &clock);
    let mut new = intent(&h, "k");
    let kept = Attached::of(&Owner::of(&new.notification), pdf());
    let file = json!({ "filename": "order.pdf", "content_type": "application/pdf", "kept": kept.id });
    let inline = json!({ "subject": "s", "text": "t", "sms": "t", "attachments": [file] });
    let to = json!({ "email": { "email": "ann@example.com" }, "phone": "+46700000000" });
    new.inputs = json!({ "to": to, "source": { "inline": inline } }).to_string();
    new.attached = vec![kept];
    let inputs = new.inputs.clone();
    h.create(new).await;
    let (_current, content) = watch::channel(Arc::new(Content::built_in().unwrap()));
    let templates = Templates::new(content, store, failing.clone());
    failing.fail_after(0);
    let made = templates.render(id_of("k"), &inputs, ChannelKind::Email, "to").await;
    assert!(matches!(made, Err(RenderFault::Store(_))));
    // What has no attachments asks for none.
    assert!(templates.render(id_of("k"), &inputs, ChannelKind::Sms, "phone").await.is_ok());
    failing.heal();
    let made = templates.render(id_of("k"), &inputs, ChannelKind::Email, "to").await.ok().unwrap();
    let Rendered::Email(mail) = made.message else { panic!("no mail") };
    assert_eq!(mail.attachments[0].base64, STANDARD.encode(pdf()));
}
