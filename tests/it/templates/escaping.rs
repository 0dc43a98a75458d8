//! One rule per part, and no other.

use belfry::content::RenderFault;
use belfry::content::inputs::Inline;
use belfry::content::text::one_line;
use belfry::ports::message::Rendered;
use belfry_domain::ChannelKind;
use proptest::prelude::*;

use super::{filled, inline, mail, one, raw, render, words};

const NAME: &str = r#"Tom & "O'Neil" <b>"#;

fn greeting() -> belfry::content::Content {
    one(&[
        ("subject.txt", "Hi {{ name }}\n"),
        ("text.txt", "Hi {{ name }}\n"),
        ("html.html", "<p title=\"{{ name }}\">{{ name }}</p>\n"),
        ("sms.txt", "Hi {{ name }}\n"),
        (
            "push.json",
            "{\"title\": \"{{ name }}\", \"body\": \"Hi {{ name }}\", \"data\": {{ {'n': name}|tojson }} }\n",
        ),
    ])
}

fn named(name: &str) -> String {
    serde_json::json!({ "name": name }).to_string()
}

#[test]
fn case_22_subject_and_text_are_raw() {
    let content = greeting();
    let mail = mail(&content, &filled(&content, "t", None, &named(NAME)));
    assert_eq!(mail.subject, format!("Hi {NAME}"));
    assert_eq!(mail.text, format!("Hi {NAME}\n"));
}

#[test]
fn case_22_html_is_escaped_once() {
    let content = greeting();
    let html = mail(&content, &filled(&content, "t", None, &named(NAME))).html.unwrap();
    let escaped = "Tom &amp; &quot;O&#39;Neil&quot; &lt;b&gt;";
    assert_eq!(html, format!("<p title=\"{escaped}\">{escaped}</p>\n"));
}

#[test]
fn case_22_sms_and_chat_are_raw() {
    let content = greeting();
    let inputs = filled(&content, "t", None, &named(NAME));
    for channel in [ChannelKind::Sms, ChannelKind::Chat] {
        assert_eq!(words(&render(&content, &inputs, channel).unwrap()), format!("Hi {NAME}"));
    }
}

#[test]
fn case_22_push_and_inbox_are_escaped_once_as_json() {
    let content = greeting();
    let inputs = filled(&content, "t", None, &named(NAME));
    for channel in [ChannelKind::Apns, ChannelKind::Fcm, ChannelKind::Inbox] {
        let message = render(&content, &inputs, channel).unwrap();
        let read: serde_json::Value = serde_json::from_str(words(&message)).unwrap();
        let shown = serde_json::json!({"title": NAME, "body": format!("Hi {NAME}")});
        let expected = match channel {
            ChannelKind::Apns => serde_json::json!({"aps": {"alert": shown}, "n": NAME}),
            ChannelKind::Fcm => serde_json::json!({"notification": shown, "data": {"n": NAME}}),
            _ => serde_json::json!({"title": NAME, "body": format!("Hi {NAME}"), "data": {"n": NAME}}),
        };
        assert_eq!(read, expected);
    }
}

#[test]
fn case_22_webhook_carries_the_values_as_they_came() {
    let content = greeting();
    let inputs = filled(&content, "t", None, &named(NAME));
    let body = render(&content, &inputs, ChannelKind::Webhook).unwrap();
    assert_eq!(words(&body), format!("{{\"template\":\"t\",\"data\":{}}}", named(NAME)));
}

#[test]
fn case_110_push_bytes_are_utf8() {
    let content = greeting();
    let name = "مرحبا 你好 😀 naïve";
    let payload =
        words(&render(&content, &filled(&content, "t", None, &named(name)), ChannelKind::Apns).unwrap()).to_owned();
    assert!(payload.contains(name) && !payload.contains("\\u"), "{payload}");
    let escaped = Inline {
        push: Some(raw(r#"{"title": "\u4f60\u597d", "body": "\ud83d\ude00 a\u0001b"}"#)),
        ..Inline::default()
    };
    let payload = render(&content, &inline(escaped), ChannelKind::Fcm).unwrap();
    assert_eq!(words(&payload), "{\"notification\":{\"title\":\"你好\",\"body\":\"😀 a\\u0001b\"}}");
}

#[test]
fn a_value_cannot_add_a_key_to_the_payload() {
    let content = one(&[("push.json", "{\"title\": \"t\", \"body\": {{ name }} }")]);
    for name in [r#"x", "link": "evil"#, r#""x", "link": "evil""#] {
        let inputs = filled(&content, "t", None, &named(name));
        assert_eq!(render(&content, &inputs, ChannelKind::Apns).unwrap_err().fault, RenderFault::Failed);
    }
}

#[test]
fn case_14_an_inline_webhook_body_is_the_callers_bytes() {
    let body = "{\"é\":1.0,\n \"a\": 1e21, \"b\":\"\\u00e9\", \"z\":[ ], \"n\":9007199254740993}";
    let content = greeting();
    let inputs = inline(Inline { webhook: Some(raw(body)), ..Inline::default() });
    assert_eq!(words(&render(&content, &inputs, ChannelKind::Webhook).unwrap()), body);
    let kept: belfry::content::inputs::Inputs = serde_json::from_str(&serde_json::to_string(&inputs).unwrap()).unwrap();
    assert_eq!(words(&render(&content, &kept, ChannelKind::Webhook).unwrap()), body);
}

#[test]
fn case_59_an_html_mail_gets_a_text() {
    let content = one(&[
        ("subject.txt", "Hi"),
        (
            "html.html",
            "<html><head><style>p{color:red}</style></head><body><h1>Order {{ order }}</h1>\
             <p>Your parcel &amp; more: <a href=\"https://x.example/?a=1&amp;b=2\">track it</a>.</p>\
             <ul><li>mug</li><li>blanket</li></ul></body></html>",
        ),
    ]);
    let mail = mail(&content, &filled(&content, "t", None, r#"{"order": "A<1>"}"#));
    assert_eq!(
        mail.text,
        "Order A<1>\n\nYour parcel & more: track it <https://x.example/?a=1&b=2>.\n- mug\n- blanket\n"
    );
    let only_html =
        Inline { subject: Some("s".into()), html: Some("<p>One</p><p>Two</p>".into()), ..Inline::default() };
    let Rendered::Email(mail) = render(&content, &inline(only_html), ChannelKind::Email).unwrap() else { panic!() };
    assert_eq!(mail.text, "One\n\nTwo\n");
}

#[test]
fn case_37_long_lines_dots_and_odd_line_ends_reach_the_message_as_they_are() {
    let content = greeting();
    let body = format!("{}\n.\n..dots\ntrailing  \nbare\rreturn\r\nend", "x".repeat(5_000));
    let given =
        Inline { subject: Some("s".into()), text: Some(body.clone()), html: Some(body.clone()), ..Inline::default() };
    let Rendered::Email(mail) = render(&content, &inline(given), ChannelKind::Email).unwrap() else { panic!() };
    assert_eq!((mail.text, mail.html), (body.clone(), Some(body)));
}

#[test]
fn case_109_a_header_stays_one_header() {
    let meta = "description = \"d\"\nchannels = [\"email\"]\nlocale = \"en\"\n[headers]\nX-Order = \"{{ order }}\"\n";
    let content = super::folder(&[("h/meta.toml", meta), ("h/subject.txt", "{{ order }}"), ("h/text.txt", "x")]);
    let content = belfry::content::Content::load(content.path()).unwrap();
    let good = mail(&content, &filled(&content, "h", None, r#"{"order": "A-1"}"#));
    assert_eq!(good.headers, [("X-Order".to_owned(), "A-1".to_owned())]);
    let evil = filled(&content, "h", None, r#"{"order": "A\r\nBcc: x@example.test"}"#);
    let problem = render(&content, &evil, ChannelKind::Email).unwrap_err();
    assert_eq!(problem.fault, RenderFault::Failed);
    assert!(!problem.to_string().contains("Bcc"));
    let inlined = Inline {
        subject: Some("a\r\nBcc: x@example.test".into()),
        text: Some("t".into()),
        headers: vec![("X-A".into(), "1".into())],
        ..Inline::default()
    };
    let Rendered::Email(mail) = render(&content, &inline(inlined.clone()), ChannelKind::Email).unwrap() else {
        panic!()
    };
    assert_eq!(mail.subject, "a Bcc: x@example.test");
    for (name, value) in [("X-A", "1\nBcc: x"), ("X-A\r\nBcc", "x"), ("To", "x@example.test"), ("X A", "1")] {
        let bad = Inline { headers: vec![(name.into(), value.into())], ..inlined.clone() };
        assert_eq!(render(&content, &inline(bad), ChannelKind::Email).unwrap_err().fault, RenderFault::Failed);
    }
}

#[test]
fn a_link_is_no_script() {
    let content = one(&[("sms.txt", "{{ url|link }}")]);
    for bad in ["javascript:alert(1)", "data:text/html,x", "/path", "https://x.example/ y", "vbscript:x", ""] {
        let inputs = filled(&content, "t", None, &serde_json::json!({ "url": bad }).to_string());
        let problem = render(&content, &inputs, ChannelKind::Sms).unwrap_err();
        assert_eq!((problem.fault, problem.pointer.as_deref()), (RenderFault::Failed, Some("/url")), "{bad}");
    }
    let inputs = filled(&content, "t", None, r#"{"url": "https://x.example/?a=1&b=2"}"#);
    assert_eq!(words(&render(&content, &inputs, ChannelKind::Sms).unwrap()), "https://x.example/?a=1&b=2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_name_survives_every_part(name in "\\PC{1,40}") {
        thread_local!(static CONTENT: belfry::content::Content = greeting());
        CONTENT.with(|content| {
            let inputs = filled(content, "t", None, &named(&name));
            let mail = mail(content, &inputs);
            let greeted = format!("Hi {name}");
            prop_assert_eq!(mail.subject, one_line(&greeted));
            prop_assert_eq!(mail.text.trim_end(), greeted.trim_end());
            let html = mail.html.unwrap();
            prop_assert_eq!(html.matches('<').count(), 2);
            prop_assert_eq!(html.matches('"').count(), 2);
            let payload = render(content, &inputs, ChannelKind::Apns).unwrap();
            let read: serde_json::Value = serde_json::from_str(words(&payload)).unwrap();
            prop_assert_eq!(read["aps"]["alert"]["title"].as_str(), Some(name.as_str()));
            prop_assert_eq!(read["n"].as_str(), Some(name.as_str()));
            Ok(())
        })?;
    }
}
