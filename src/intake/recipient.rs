//! Reading `to`: who is told, and where.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belfry_domain::ChannelKind;
use belfry_domain::zone::Zone;

use super::address;
use super::canonical::canonical;
use super::fields::{Object, Problems, line};
use super::json::{Node, Value};
use crate::content::inputs::{Device, To};
use crate::ports::locale::{NO_TAG, is_tag};
use crate::ports::message::{Address, Mailbox};
use crate::ports::recipients::Profile;

pub const TO: &[&str] = &["recipient", "email", "phone", "devices", "webhook", "chat", "locale", "time_zone"];
pub const DEVICE: &[&str] = &["kind", "token", "subscription", "app", "environment"];
/// What is stored of a recipient besides devices.
pub const PROFILE: &[&str] = &["email", "phone", "locale", "time_zone"];
/// Most devices of one recipient.
pub const MOST_DEVICES: usize = 50;
/// Longest device token and web-push subscription, in characters.
pub const MOST_TOKEN: usize = 4096;

/// `to` as read.
#[derive(Debug, Default)]
pub struct Recipient {
    pub to: To,
    pub locale: Option<String>,
    pub time_zone: Option<String>,
}

pub fn read(node: Option<&Node<'_>>, problems: &mut Problems) -> Recipient {
    let Some(node) = node else {
        problems.add("/to", "is required");
        return Recipient::default();
    };
    let Some(object) = Object::open(node, "/to", TO, problems) else { return Recipient::default() };
    let to = To {
        recipient: object.text("recipient", line(255), problems),
        email: object.get("email").and_then(|node| mailbox(node, "/to/email", problems)),
        cc: Vec::new(),
        bcc: Vec::new(),
        phone: checked(&object, "phone", address::phone, problems),
        devices: object
            .list("devices", MOST_DEVICES, problems)
            .into_iter()
            .filter_map(|(pointer, node)| device(node, &pointer, problems))
            .collect(),
        webhook: checked(&object, "webhook", address::webhook, problems),
        chat: object.text("chat", line(2048), problems).map(Address),
    };
    Recipient { to, locale: locale(&object, problems), time_zone: time_zone(&object, problems) }
}

/// What is to be stored of a recipient.
pub fn profile(node: &Node<'_>, problems: &mut Problems) -> Profile {
    let Some(object) = Object::open(node, "", PROFILE, problems) else { return Profile::default() };
    Profile {
        email: object.get("email").and_then(|node| mailbox(node, "/email", problems)),
        phone: checked(&object, "phone", address::phone, problems),
        locale: locale(&object, problems),
        time_zone: time_zone(&object, problems),
    }
}

/// A mailbox at `pointer`.
pub fn mailbox(node: &Node<'_>, pointer: &str, problems: &mut Problems) -> Option<Mailbox> {
    let Some(text) = node.text() else {
        problems.add(pointer, "must be a string");
        return None;
    };
    address::mailbox(text).map_err(|wrong| problems.add(pointer, wrong)).ok()
}

fn checked(
    object: &Object<'_, '_>,
    name: &str,
    check: fn(&str) -> Result<Address, &'static str>,
    problems: &mut Problems,
) -> Option<Address> {
    let Some(text) = object.get(name)?.text() else {
        problems.add(object.at(name), "must be a string");
        return None;
    };
    check(text).map_err(|wrong| problems.add(object.at(name), wrong)).ok()
}

/// A device at `pointer`. A token's own syntax is its provider's business: a malformed one costs its own
/// delivery, never the request and its other recipients.
pub fn device(node: &Node<'_>, pointer: &str, problems: &mut Problems) -> Option<Device> {
    let object = Object::open(node, pointer, DEVICE, problems)?;
    let kind = object.text("kind", line(16), problems).and_then(|name| match name.parse() {
        Ok(kind @ (ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush)) => Some(kind),
        _ => {
            problems.add(object.at("kind"), "must be apns, fcm or web_push");
            None
        }
    });
    if !object.has("kind") {
        problems.add(object.at("kind"), "is required");
    }
    let token = match (object.get("token"), object.get("subscription")) {
        (Some(_), Some(_)) => {
            problems.add(pointer, "must have token or subscription, not both");
            None
        }
        (Some(_), None) => object.text("token", line(MOST_TOKEN), problems).map(Address),
        (None, Some(subscription)) => self::subscription(subscription, kind, &object.at("subscription"), problems),
        (None, None) => {
            problems.add(pointer, "must have a token, or for web_push a subscription");
            None
        }
    };
    let app = object.text("app", line(255), problems);
    let environment = object.text("environment", line(64), problems);
    if let (Some(environment), Some(kind)) = (&environment, kind) {
        let wrong = match (kind, environment.as_str()) {
            (ChannelKind::Apns, "production" | "sandbox") => None,
            (ChannelKind::Apns, _) => Some("must be production or sandbox"),
            _ => Some("belongs to apns only"),
        };
        wrong.into_iter().for_each(|wrong| problems.add(object.at("environment"), wrong));
    }
    Some(Device { kind: kind?, token: token?, app, environment, id: None })
}

/// What is wrong with the form of a token, and in which member. Asked where a device is registered: there it is all
/// that the caller asks for, and nobody else waits for it.
#[must_use]
pub fn wrong_form(device: &Device) -> Option<(&'static str, &'static str)> {
    let text = &device.token.0;
    match device.kind {
        ChannelKind::Apns => {
            let fits = text.len().is_multiple_of(2) && (16..=200).contains(&text.len());
            let fits = fits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            (!fits).then_some(("/token", "must be the token in hexadecimal, 16 to 200 digits, without spaces or <>"))
        }
        ChannelKind::WebPush => wrong_subscription(text),
        _ => text.contains(char::is_whitespace).then_some(("/token", "must not contain white space")),
    }
}

fn wrong_subscription(text: &str) -> Option<(&'static str, &'static str)> {
    let json = serde_json::from_str::<serde_json::Value>(text).ok().filter(serde_json::Value::is_object);
    let Some(json) = json else {
        return Some(("/token", "must be a subscription, in `subscription`, as PushSubscription.toJSON() gives it"));
    };
    let endpoint = json["endpoint"].as_str().and_then(|endpoint| endpoint.parse::<http::Uri>().ok());
    if !endpoint.is_some_and(|endpoint| endpoint.scheme_str() == Some("https") && endpoint.host().is_some()) {
        return Some(("/subscription/endpoint", "must be an https address"));
    }
    let bytes = |name: &str| {
        let text = json["keys"][name].as_str()?.trim_end_matches('=').replace('+', "-").replace('/', "_");
        URL_SAFE_NO_PAD.decode(text).ok()
    };
    if !bytes("p256dh").is_some_and(|key| key.len() == 65 && key[0] == 4) {
        return Some(("/subscription/keys/p256dh", "must be an uncompressed P-256 point: 65 bytes in base64url"));
    }
    if bytes("auth").is_none_or(|auth| auth.len() != 16) {
        return Some(("/subscription/keys/auth", "must be 16 bytes in base64url"));
    }
    None
}

fn subscription(node: &Node<'_>, kind: Option<ChannelKind>, pointer: &str, problems: &mut Problems) -> Option<Address> {
    if !matches!(node.value, Value::Object(_)) {
        problems.add(pointer, "must be an object");
        return None;
    }
    if kind.is_some_and(|kind| kind != ChannelKind::WebPush) {
        problems.add(pointer, "belongs to web_push only");
        return None;
    }
    // By its endpoint and keys alone: what else a browser adds differs from one time to the next, and the same
    // browser must not be two devices.
    let text = match (node.member("endpoint").and_then(Node::text), node.member("keys")) {
        (Some(endpoint), Some(keys)) => {
            let endpoint = serde_json::Value::from(endpoint);
            format!("{{\"endpoint\":{endpoint},\"keys\":{}}}", canonical(keys))
        }
        _ => canonical(node),
    };
    if text.len() > MOST_TOKEN {
        problems.add(pointer, format!("must have at most {MOST_TOKEN} bytes"));
        return None;
    }
    Some(Address(text))
}

fn locale(object: &Object<'_, '_>, problems: &mut Problems) -> Option<String> {
    let locale = object.text("locale", line(35), problems)?;
    if is_tag(&locale) {
        return Some(locale);
    }
    problems.add(object.at("locale"), NO_TAG);
    None
}

fn time_zone(object: &Object<'_, '_>, problems: &mut Problems) -> Option<String> {
    let zone = object.text("time_zone", line(64), problems)?;
    // By the database that quiet hours are decided with: what passes here is known there.
    if zone.parse::<Zone>().is_ok() {
        return Some(zone);
    }
    problems.add(object.at("time_zone"), "must be an IANA time zone such as Europe/Stockholm");
    None
}
