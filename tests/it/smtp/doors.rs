//! Two doors, one rule: what the API's door takes, the mail builder can build.

use std::sync::LazyLock;

use belfry::channel::smtp::SmtpChannel;
use belfry::content::Content;
use belfry::content::inputs::{Inputs, Source, To};
use belfry::intake::address;
use belfry::intake::fields::Problems;
use belfry::intake::{inline, json};
use belfry::ports::message::Rendered;
use belfry_domain::ChannelKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::python::{check, expected};
use super::{config, mail, outgoing_of};

static CHANNEL: LazyLock<SmtpChannel> = LazyLock::new(|| SmtpChannel::new(&config("smtp://127.0.0.1")).unwrap());
static CONTENT: LazyLock<Content> = LazyLock::new(|| Content::built_in().unwrap());

/// Where the door says no, by pointer; else whether the mail can be built, and the mail.
fn through(to: &str, content: &Value) -> Result<(), Vec<String>> {
    let Ok(to) = address::mailbox(to) else { return Err(vec!["/to/email".into()]) };
    let text = content.to_string();
    let node = json::parse(text.as_bytes()).unwrap();
    let mut problems = Problems::default();
    let read = inline::read(&node, &mut problems);
    if !problems.is_empty() {
        return Err(problems.all().into_iter().map(|one| one.pointer).collect());
    }
    let address = to.email.0.clone();
    let inputs = Inputs {
        to: To { email: Some(to), cc: read.cc, bcc: read.bcc, ..To::default() },
        source: Source::Inline(Box::new(read.inline)),
        locale: None,
        time_zone: None,
        links: None,
    };
    let made = CONTENT.render(&inputs, ChannelKind::Email, "to").map_err(|problem| vec![problem.to_string()])?;
    let Rendered::Email(mail) = made else { panic!("no mail") };
    let built = CHANNEL.build(&outgoing_of("through", *mail, &address));
    let built = built.unwrap_or_else(|error| panic!("taken, and can never be sent: {error}: {text}"));
    let lines = String::from_utf8(built.bytes).unwrap();
    assert!(lines.split("\r\n").all(|line| line.len() <= 998), "a line is too long: {text}");
    Ok(())
}

fn with(fields: Value) -> Value {
    let mut content = json!({ "subject": "s", "text": "t" });
    content.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    content
}

fn attached(fields: Value) -> Value {
    let mut one = json!({ "filename": "f", "content_type": "text/plain", "base64": "YQ==" });
    one.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    with(json!({ "attachments": [one] }))
}

#[test]
fn what_smtp_can_carry_is_taken_and_the_rest_is_refused_by_name() {
    let header = |name: &str, value: &str| with(json!({ "headers": { name: value } }));
    let long_name = format!("X-{}", "a".repeat(74));
    for content in [
        header("X-A", &"a".repeat(2_000)),
        header("X-A", &"a ".repeat(999)),
        header(&long_name, &"b".repeat(900)),
        header(&long_name, &"é".repeat(900)),
        header("Content-Language", "de"),
        header("Return-Receipt-To", "b@b.example"),
        attached(json!({ "content_type": "application/pdf; name=x.pdf" })),
        attached(json!({ "content_type": "text/plain; charset=\"x\"" })),
        attached(json!({ "content_type": "text/plain ; a=b" })),
        attached(json!({ "content_type": format!("text/{}", "a".repeat(240)) })),
        attached(json!({ "filename": "é".repeat(255) })),
        attached(json!({ "cid": "a".repeat(128) })),
    ] {
        assert_eq!(through("ann@example.com", &content), Ok(()), "{content}");
    }
    let twice = json!({ "filename": "f", "content_type": "a/b", "base64": "YQ==", "cid": "a" });
    for (content, pointer) in [
        (header("X-A", ""), "/content/headers/X-A"),
        (header("X-A", " "), "/content/headers/X-A"),
        (header("Errors-To", "b@b.example"), "/content/headers/Errors-To"),
        (header("Authentication-Results", "x"), "/content/headers/Authentication-Results"),
        (header("DomainKey-Signature", "x"), "/content/headers/DomainKey-Signature"),
        (header("Received-SPF", "x"), "/content/headers/Received-SPF"),
        (attached(json!({ "content_type": "message/rfc822" })), "/content/attachments/0/content_type"),
        (attached(json!({ "content_type": "text/plain;=;" })), "/content/attachments/0/content_type"),
        (with(json!({ "attachments": [twice.clone(), twice] })), "/content/attachments/1/cid"),
    ] {
        assert_eq!(through("ann@example.com", &content), Err(vec![pointer.to_owned()]), "{content}");
    }
    for bad in ["a\u{fff0}@b.example", "a\u{fffd}@b.example", "Ann\u{202e} <a@b.example>"] {
        assert_eq!(through(bad, &with(json!({}))), Err(vec!["/to/email".to_owned()]), "{bad}");
    }
}

#[test]
fn attachments_types_read_back_with_their_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let attachment = |content_type: &str| belfry::ports::message::Attachment {
        filename: "räkning.pdf".into(),
        content_type: content_type.into(),
        base64: "YQ==".into(),
        cid: None,
    };
    let types = ["application/pdf; name=x.pdf", "text/plain ;charset=\"utf-8\"", "a/b; c=\"d; e\"; f=g"];
    let mut sent = mail();
    sent.attachments = types.iter().map(|one| attachment(one)).collect();
    let out = outgoing_of("types", sent.clone(), "ann@example.com");
    std::fs::write(folder.path().join("types.eml"), CHANNEL.build(&out).unwrap().bytes).unwrap();
    for one in &mut sent.attachments {
        let essence = one.content_type.split(';').next().unwrap().trim().to_owned();
        one.content_type = essence;
    }
    check(folder.path(), &[expected("types", out.message_key, &sent)], &[]);
}

/// Mostly what belongs there, with a taste for what is at the edge of it.
fn text(good: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(good.to_owned()),
        2 => "[ -~]{1,80}",
        1 => any::<String>(),
        1 => any::<char>().prop_map(move |c| format!("{good}{c}")),
        1 => (1_usize..1_200).prop_map(move |many| good.repeat(many)),
        1 => prop::sample::select(vec![" ", "", ";", "=", "\"", "\\", "<", "\r\n", "\t", "=?utf-8?b?YQ==?=", "é\u{301}"])
            .prop_map(move |more| format!("{good}{more}")),
    ]
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => (text("ann"), text("example.com")).prop_map(|(local, host)| format!("{local}@{host}")),
        1 => (text("Ann"), any::<char>()).prop_map(|(name, c)| format!("{name} <a{c}b@exämple.test>")),
        1 => "[a-zé用]{1,20}@[a-z用é]{1,20}\\.[a-z]{2,5}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn what_the_door_takes_can_be_built(
        to in address(),
        (subject, body, html) in (text("Your order"), text("It is on its way.\n"), prop::option::of(text("<p>x</p>"))),
        boxes in (prop::option::of(address()), prop::collection::vec(address(), 0..2), prop::collection::vec(address(), 0..2)),
        headers in prop::collection::btree_map(text("X-Order"), text("42"), 0..3),
        files in prop::collection::vec((text("a.pdf"), text("text/plain; charset=utf-8"), prop::option::of(text("logo"))), 0..3),
    ) {
        let files: Vec<Value> = files
            .into_iter()
            .map(|(filename, content_type, cid)| {
                let mut one = json!({ "filename": filename, "content_type": content_type, "base64": "YQ==" });
                one.as_object_mut().unwrap().extend(cid.map(|cid| ("cid".to_owned(), Value::from(cid))));
                one
            })
            .collect();
        let mut content = json!({
            "subject": subject, "text": body, "headers": headers, "attachments": files,
            "reply_to": boxes.1, "cc": boxes.2,
        });
        let more = [("from", boxes.0), ("html", html)];
        let more = more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
        content.as_object_mut().unwrap().extend(more);
        // Refused by one field, the others still count: each on its own, too.
        through(&to, &content).ok();
        for (name, value) in content.as_object().unwrap() {
            through("ann@example.com", &with(json!({ name: value }))).ok();
        }
        through(&to, &with(json!({}))).ok();
    }
}
