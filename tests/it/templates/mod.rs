//! Content over its public face: the built-in templates, and folders written by the tests.

mod attached;
mod bounds;
mod escaping;
mod golden;
mod lint;
mod literals;
mod loading;
mod numbers;
mod pages;
mod preview;
mod regional;
mod versions;

use std::fs;
use std::path::Path;

use belfry::content::inputs::{Device, Inline, Inputs, Source, To};
use belfry::content::{Content, RenderProblem};
use belfry::ports::message::{Address, EmailMessage, Mailbox, Rendered};
use belfry_domain::ChannelKind;
use serde_json::value::RawValue;
use tempfile::TempDir;

pub fn mailbox(name: Option<&str>, email: &str) -> Mailbox {
    Mailbox { name: name.map(str::to_owned), email: Address(email.to_owned()) }
}

/// Somebody who can be reached on every channel.
pub fn to() -> To {
    let device =
        |kind, token: &str| Device { kind, token: Address(token.to_owned()), app: None, environment: None, id: None };
    To {
        recipient: Some("user-7".to_owned()),
        email: Some(mailbox(Some("Ada"), "ada@example.test")),
        phone: Some(Address("+46701740605".to_owned())),
        devices: vec![device(ChannelKind::Apns, "token-a"), device(ChannelKind::Fcm, "token-f")],
        webhook: Some(Address("https://hooks.example.test/7".to_owned())),
        chat: Some(Address("#orders".to_owned())),
        ..To::default()
    }
}

pub fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

pub fn filled(content: &Content, template: &str, locale: Option<&str>, json: &str) -> Inputs {
    let template = content.freeze(template, locale).unwrap();
    Inputs {
        to: to(),
        source: Source::template(template, raw(json)),
        locale: locale.map(str::to_owned),
        time_zone: None,
        links: None,
    }
}

pub fn inline(inline: Inline) -> Inputs {
    Inputs { to: to(), source: Source::Inline(Box::new(inline)), locale: None, time_zone: None, links: None }
}

pub const fn slot(channel: ChannelKind) -> &'static str {
    match channel {
        ChannelKind::Email => "to",
        ChannelKind::Apns => "device/0",
        ChannelKind::Fcm | ChannelKind::WebPush => "device/1",
        ChannelKind::Sms => "phone",
        ChannelKind::Webhook => "webhook",
        ChannelKind::Chat => "chat",
        ChannelKind::Inbox => "recipient",
    }
}

pub fn render(content: &Content, inputs: &Inputs, channel: ChannelKind) -> Result<Rendered, RenderProblem> {
    content.render(inputs, channel, slot(channel))
}

pub fn mail(content: &Content, inputs: &Inputs) -> EmailMessage {
    match render(content, inputs, ChannelKind::Email).unwrap() {
        Rendered::Email(mail) => *mail,
        other => panic!("{other:?}"),
    }
}

pub fn words(message: &Rendered) -> &str {
    match message {
        Rendered::Email(mail) => &mail.text,
        Rendered::Sms { text } | Rendered::Chat { text } => text,
        Rendered::Push { payload, .. } | Rendered::Inbox { payload } => payload,
        Rendered::Webhook { body } => body,
    }
}

pub const META: &str =
    "description = \"A test's\"\nchannels = [\"email\", \"sms\", \"push\", \"chat\", \"inbox\"]\nlocale = \"en\"\n";

/// A folder of templates with these files.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), files);
    dir
}

pub fn write(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// One template named `t`, in English.
pub fn one(files: &[(&str, &str)]) -> Content {
    let mut all = vec![("t/meta.toml".to_owned(), META)];
    all.extend(files.iter().map(|(path, text)| (format!("t/{path}"), *text)));
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    Content::load(folder(&all).path()).unwrap_or_else(|problems| panic!("{problems:?}"))
}
