//! Reading `content`: a message given in the request itself. Whatever could break out of its place
//! in a message (line breaks in a header, a header of ours) is refused here, by name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belfry_domain::ChannelKind;
use serde_json::value::RawValue;

use super::fields::{Object, Problems, body, line};
use super::json::Node;
use super::recipient::mailbox;
use crate::content;
use crate::content::inputs::Inline;
use crate::content::json::Json;
use crate::content::kept::Attaches;
use crate::ports::mail::{
    LONGEST_CID, LONGEST_CONTENT_TYPE, LONGEST_FILENAME, MOST_ATTACHED_BYTES, MOST_ATTACHMENTS, MOST_HEADERS,
    wrong_attachment, wrong_header,
};
use crate::ports::message::{Attachment, Mailbox};

pub const CONTENT: &[&str] =
    &["from", "reply_to", "cc", "bcc", "subject", "text", "html", "headers", "attachments", "sms", "push", "webhook"];
/// Of these what goes around a template's mail.
const ENVELOPE: &[&str] = &["from", "reply_to", "cc", "bcc", "headers", "attachments"];
pub const ATTACHMENT: &[&str] = &["filename", "content_type", "base64", "cid"];
pub const PUSH: &[&str] = content::push::MEMBERS;

/// Cc and Bcc together with To stay within the deliveries of one notification.
pub const MOST_COPIES: usize = 50;
const MOST_TEXT: usize = 1024 * 1024;
/// Longest line that a mail may carry (RFC 5322, 2.1.1).
const MOST_LINE: usize = 998;

/// `content` as read, with the copies that become slots of their own.
#[derive(Debug, Default)]
pub struct Content {
    pub inline: Inline,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
}

pub fn read(node: &Node<'_>, problems: &mut Problems) -> Content {
    let Some(object) = Object::open(node, "/content", CONTENT, problems) else { return Content::default() };
    let inline = Inline {
        from: object.get("from").and_then(|node| mailbox(node, "/content/from", problems)),
        reply_to: mailboxes(&object, "reply_to", 10, problems),
        subject: object.text("subject", line(MOST_LINE), problems),
        text: object.text("text", body(MOST_TEXT), problems),
        html: object.text("html", body(MOST_TEXT), problems),
        headers: headers(&object, problems),
        attachments: attachments(&object, problems).into_iter().map(Attaches::Whole).collect(),
        sms: object.text("sms", body(1600), problems),
        push: object.get("push").and_then(|node| push(node, problems)),
        webhook: object.get("webhook").and_then(raw),
    };
    Content {
        inline,
        cc: mailboxes(&object, "cc", MOST_COPIES, problems),
        bcc: mailboxes(&object, "bcc", MOST_COPIES, problems),
    }
}

/// What a request may put around a template's mail, with the copies that become slots of their own; nothing in
/// `inline` where it puts nothing.
pub fn read_envelope(node: &Node<'_>, problems: &mut Problems) -> Content {
    let known = ENVELOPE.join(", ");
    let strangers = CONTENT.iter().filter(|name| !ENVELOPE.contains(name) && node.member(name).is_some());
    let strangers: Vec<String> = strangers.map(|name| format!("/content/{name}")).collect();
    let mut found = Problems::default();
    let content = read(node, &mut found);
    // What must not be there need not be right.
    let under = |pointer: &str, place: &str| {
        pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    found.lasting.retain(|one| !strangers.iter().any(|place| under(&one.pointer, place)));
    problems.lasting.extend(found.lasting);
    problems.passing.extend(found.passing);
    for place in strangers {
        problems.add(place, format!("comes from the template; beside one there may be {known}"));
    }
    content
}

/// What `channel` needs of inline content and does not find: pointer and detail.
#[must_use]
pub fn missing(content: &Inline, channel: ChannelKind) -> Option<(&'static str, &'static str)> {
    let (there, pointer, detail) = match channel {
        ChannelKind::Email if content.subject.is_none() => (false, "/content/subject", "is required for email"),
        ChannelKind::Email => {
            (content.text.is_some() || content.html.is_some(), "/content", "must have text or html for email")
        }
        ChannelKind::Sms => (content.sms.is_some(), "/content/sms", "is required for sms"),
        ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush => {
            (content.push.is_some(), "/content/push", "is required for push")
        }
        ChannelKind::Inbox => (content.push.is_some(), "/content/push", "is required for inbox"),
        ChannelKind::Webhook => (content.webhook.is_some(), "/content/webhook", "is required for webhook"),
        ChannelKind::Chat => (content.text.is_some(), "/content/text", "is required for chat"),
    };
    (!there).then_some((pointer, detail))
}

/// The caller's own text, byte for byte: what is signed later is what was written.
fn raw(node: &Node<'_>) -> Option<Box<RawValue>> {
    RawValue::from_string(node.raw.to_owned()).ok()
}

fn mailboxes(object: &Object<'_, '_>, name: &str, most: usize, problems: &mut Problems) -> Vec<Mailbox> {
    let items = object.list(name, most, problems);
    items.into_iter().filter_map(|(pointer, node)| mailbox(node, &pointer, problems)).collect()
}

fn headers(object: &Object<'_, '_>, problems: &mut Problems) -> Vec<(String, String)> {
    let Some(node) = object.get("headers") else { return Vec::new() };
    let Some(headers) = Object::any(node, &object.at("headers"), problems) else { return Vec::new() };
    if headers.members().count() > MOST_HEADERS {
        problems.add(&headers.pointer, format!("must hold at most {MOST_HEADERS} headers"));
        return Vec::new();
    }
    let mut read: Vec<(String, String)> = Vec::new();
    for (name, value) in headers.members() {
        let pointer = headers.at(name);
        let Some(value) = value.text() else {
            problems.add(&pointer, "must be a string");
            continue;
        };
        match wrong_header(name, value, &read) {
            Some(why) => problems.add(&pointer, why),
            None => read.push((name.to_owned(), value.to_owned())),
        }
    }
    read
}

fn attachments(object: &Object<'_, '_>, problems: &mut Problems) -> Vec<Attachment> {
    let mut total = 0;
    let mut read = Vec::new();
    for (pointer, node) in object.list("attachments", MOST_ATTACHMENTS, problems) {
        let Some(one) = Object::open(node, &pointer, ATTACHMENT, problems) else { continue };
        for name in ["filename", "content_type", "base64"] {
            if !one.has(name) {
                problems.add(one.at(name), "is required");
            }
        }
        let filename = one.text("filename", line(LONGEST_FILENAME), problems);
        let content_type = one.text("content_type", line(LONGEST_CONTENT_TYPE), problems);
        let cid = one.text("cid", line(LONGEST_CID), problems);
        let base64 = one.get("base64").and_then(|node| decodes(node, &one.at("base64"), &mut total, problems));
        if let (Some(filename), Some(content_type), Some(base64)) = (filename, content_type, base64) {
            let attachment = Attachment { filename, content_type, base64, cid };
            for (field, why) in wrong_attachment(&attachment, &read) {
                problems.add(one.at(field), why);
            }
            read.push(attachment);
        }
    }
    if total > MOST_ATTACHED_BYTES {
        problems.add(
            object.at("attachments"),
            format!("must have at most {MOST_ATTACHED_BYTES} bytes when decoded, have {total}"),
        );
    }
    read
}

fn decodes(node: &Node<'_>, pointer: &str, total: &mut usize, problems: &mut Problems) -> Option<String> {
    let Some(text) = node.text() else {
        problems.add(pointer, "must be a string");
        return None;
    };
    match STANDARD.decode(text) {
        Ok(bytes) => {
            *total += bytes.len();
            Some(text.to_owned())
        }
        Err(_) => {
            problems.add(pointer, "must be standard base64 with padding, without line breaks");
            None
        }
    }
}

/// The rules are the content room's, for what templates make goes by the same.
fn push(node: &Node<'_>, problems: &mut Problems) -> Option<Box<RawValue>> {
    let push = Json::parse(node.raw).ok()?;
    for wrong in content::push::check_written(&push) {
        problems.add(format!("/content/push{}", wrong.pointer), wrong.detail);
    }
    raw(node)
}
