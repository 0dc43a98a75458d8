//! The built-in templates with their samples, exactly as they go out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use belfry::content::{Content, hash};
use belfry_domain::ChannelKind;

use super::{filled, mail, render, words};

fn templates() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("templates")
}

#[test]
fn the_built_in_templates_are_those_of_the_folder() {
    let built_in = Content::built_in().unwrap();
    let folder = Content::load(&templates()).unwrap();
    let versions = |content: &Content| -> Vec<String> {
        content.names().map(|name| content.freeze(name, None).unwrap().version).collect()
    };
    assert_eq!(built_in.names().collect::<Vec<_>>(), ["login_code", "order_shipped", "receipt", "weekly_digest"]);
    assert_eq!(versions(&built_in), versions(&folder));
}

#[test]
fn every_channel_of_every_sample_renders() {
    let content = Content::built_in().unwrap();
    let mut hashes = BTreeSet::new();
    let mut rendered = 0;
    for name in content.names() {
        for locale in [None, Some("de-AT"), Some("sv"), Some("fr")] {
            let inputs = filled(&content, name, locale, content.sample(name, locale).unwrap());
            for channel in &content.meta(name).unwrap().channels {
                if *channel == ChannelKind::WebPush {
                    continue;
                }
                let first = render(&content, &inputs, *channel).unwrap_or_else(|problem| panic!("{name}: {problem}"));
                let second = render(&content, &inputs, *channel).unwrap();
                assert_eq!(hash(&first), hash(&second));
                hashes.insert(hash(&first));
                rendered += 1;
            }
        }
    }
    assert!(rendered > 60 && hashes.len() > 20, "{rendered} {}", hashes.len());
}

#[test]
fn golden() {
    let content = Content::built_in().unwrap();
    for (text, html) in [
        ("login_code.en", "login_code.en.html"),
        ("login_code.de", "login_code.de.html"),
        ("login_code.sv", "login_code.sv.html"),
        ("order_shipped.en", "order_shipped.en.html"),
        ("order_shipped.de", "order_shipped.de.html"),
        ("order_shipped.sv", "order_shipped.sv.html"),
        ("receipt.en", "receipt.en.html"),
        ("weekly_digest.en", "weekly_digest.en.html"),
    ] {
        let (name, locale) = text.split_once('.').unwrap();
        let inputs = filled(&content, name, Some(locale), content.sample(name, Some(locale)).unwrap());
        let mail = mail(&content, &inputs);
        let mut whole = format!("Subject: {}\n", mail.subject);
        for (header, value) in &mail.headers {
            whole += &format!("{header}: {value}\n");
        }
        whole += &format!("\n{}", mail.text);
        for channel in [ChannelKind::Sms, ChannelKind::Apns] {
            if content.meta(name).unwrap().channels.contains(&channel) {
                whole += &format!("--- {channel}\n{}\n", words(&render(&content, &inputs, channel).unwrap()));
            }
        }
        insta::assert_snapshot!(text, whole);
        insta::assert_snapshot!(html, mail.html.unwrap());
    }
}

#[test]
fn the_one_field_of_the_first_example_is_enough() {
    let content = Content::built_in().unwrap();
    let inputs = filled(&content, "order_shipped", None, r#"{"order": 42}"#);
    assert_eq!(mail(&content, &inputs).subject, "Order 42 has shipped");
    assert_eq!(mail(&content, &inputs).text, "Order 42 has left our warehouse.\n\nOrder: 42\n");
    for channel in [ChannelKind::Sms, ChannelKind::Apns, ChannelKind::Chat, ChannelKind::Inbox] {
        assert!(words(&render(&content, &inputs, channel).unwrap()).contains("42"));
    }
}

#[test]
fn the_mails_are_sound_html() {
    let content = Content::built_in().unwrap();
    for name in content.names() {
        let inputs = filled(&content, name, None, content.sample(name, None).unwrap());
        let html = mail(&content, &inputs).html.unwrap();
        for needed in ["<!DOCTYPE html>", "<html lang=\"en\"", "<title>", "<h1", "<main>", "charset=\"utf-8\""] {
            assert!(html.contains(needed), "{name}: {needed}");
        }
        for tag in ["table", "tr", "td", "th", "p", "a", "div", "ul", "li", "h1", "h2", "span", "main"] {
            let opened = html.matches(&format!("<{tag} ")).count() + html.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{name}: <{tag}>");
        }
        // Gmail cuts a mail at 102 KiB; layout tables must not be read out as tables.
        assert!(html.len() < 60_000, "{name}: {}", html.len());
        assert!(!html.contains("<img"), "an image would need words for those who do not see it");
    }
    assert!(fs::read_dir(templates()).unwrap().count() > 4);
}
