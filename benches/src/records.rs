//! Notifications as the door would plan them, for measuring what lies behind it, and the same as
//! requests, for measuring it with the door.

use std::time::Duration;

use belfry::content::inputs::{Device, Inline, Inputs, Source, To};
use belfry::ports::deliveries::NewNotification;
use belfry::ports::message::{Address, Mailbox};
use belfry_domain::delivery::NewDelivery;
use belfry_domain::notification::Fingerprint;
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, Delivery, Lane, Notification, NotificationId, Priority, UnixMs};
use serde_json::value::RawValue;

const DAY: Duration = Duration::from_secs(86_400);

/// A webhook-like message's body.
pub(crate) const BODY_BYTES: usize = 500;

/// What is planned, besides its number.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Email, APNs or webhook.
    pub channel: ChannelKind,
    pub class: &'static str,
    pub priority: Priority,
    pub provider: &'static str,
    pub wait: Duration,
}

impl Shape {
    /// A receipt by email, due at once.
    pub(crate) const fn mail(provider: &'static str) -> Self {
        let (channel, priority) = (ChannelKind::Email, Priority::Normal);
        Self { channel, class: "receipt", priority, provider, wait: Duration::ZERO }
    }

    /// A receipt to a webhook-like place, due at once.
    pub(crate) const fn webhook(provider: &'static str) -> Self {
        Self { channel: ChannelKind::Webhook, ..Self::mail(provider) }
    }

    /// A receipt to a phone, due at once.
    pub(crate) const fn push(provider: &'static str) -> Self {
        Self { channel: ChannelKind::Apns, ..Self::mail(provider) }
    }

    /// A month later.
    pub(crate) const fn in_a_month(self) -> Self {
        Self { wait: Duration::from_secs(30 * 86_400), ..self }
    }

    /// The numbered notification, planned at `now`, with about 500 bytes of content.
    pub(crate) fn planned(&self, number: usize, now: UnixMs) -> NewNotification {
        let id = NotificationId::http("default", "live", "bench", &format!("order-{number}"));
        let due = now.plus(self.wait);
        let send_at = (!self.wait.is_zero()).then_some(due);
        let expires_at = due.plus(DAY * 3);
        let delivery = Delivery::new(NewDelivery {
            notification: id,
            channel: self.channel,
            slot: match self.channel {
                ChannelKind::Email => "to".into(),
                ChannelKind::Apns => "device/0".into(),
                _ => "webhook".into(),
            },
            class: self.class.into(),
            lane: Lane::new(self.provider, self.priority),
            tenant: "default".into(),
            created_at: now,
            send_at,
            expires_at,
            lease: Duration::from_secs(30),
            content_hash: "5f".repeat(32),
            address_mask: "c…@example.com".into(),
            address_hash: format!("{number:064x}"),
            device: None,
            via: Hop::Http,
        });
        let inputs = serde_json::to_string(&self.inputs(number)).expect("texts and nothing else");
        let notification = Notification {
            id,
            tenant: "default".into(),
            environment: "live".into(),
            class: self.class.into(),
            created_at: now,
            remembered_until: now.plus(DAY * 15),
            via: Hop::Http,
            template: None,
            scope: None,
            reference: Some(format!("order-{number}")),
            group: None,
            collapse: None,
            send_at,
            expires_at,
            traceparent: None,
            metadata: None,
            fingerprint: Fingerprint { whole: format!("{number:064x}"), parts: std::collections::BTreeMap::new() },
            keep_content_ms: 3 * 86_400_000,
            recipient: None,
            left_out: Vec::new(),
            digest: None,
            gathered: Vec::new(),
        };
        NewNotification {
            notification,
            deliveries: vec![delivery],
            inputs,
            attached: Vec::new(),
            collapse_groups: vec![None],
            recipient_hash: None,
        }
    }

    fn inputs(&self, number: usize) -> Inputs {
        let (to, inline) = match self.channel {
            ChannelKind::Email => {
                let address = Mailbox { name: None, email: Address(format!("customer{number}@example.com")) };
                let inline =
                    Inline { subject: Some(format!("Your order {number}")), text: Some(text(4)), ..Inline::default() };
                (To { email: Some(address), ..To::default() }, inline)
            }
            ChannelKind::Apns => {
                let token = Address(format!("{number:064x}"));
                let device = Device { kind: self.channel, token, app: None, environment: None, id: None };
                let push = format!("{{\"title\":\"Your order {number}\",\"body\":\"{}\"}}", text(4));
                let push = RawValue::from_string(push).expect("made as JSON");
                (To { devices: vec![device], ..To::default() }, Inline { push: Some(push), ..Inline::default() })
            }
            _ => {
                let body = RawValue::from_string(webhook_body(self.class, number)).expect("made as JSON");
                let to = To { webhook: Some(Address(PLACE.into())), ..To::default() };
                (to, Inline { webhook: Some(body), ..Inline::default() })
            }
        };
        Inputs { to, source: Source::Inline(Box::new(inline)), locale: None, time_zone: None, links: None }
    }
}

/// Nobody looks it up: the bench's provider sends to its sink whatever the address is.
const PLACE: &str = "https://hooks.example.com/orders";

fn text(times: usize) -> String {
    "Your order has left our warehouse and will be with you in two to three working days. ".repeat(times)
}

/// Exactly [`BODY_BYTES`] of JSON.
pub(crate) fn webhook_body(class: &str, number: usize) -> String {
    let head = format!("{{\"event\":\"{class}\",\"order\":\"order-{number}\",\"text\":\"");
    let room = BODY_BYTES - head.len() - 2;
    format!("{head}{}\"}}", &text(6)[..room])
}

/// The request for a webhook-like message, due at once.
pub(crate) fn webhook_request(class: &str, number: usize) -> String {
    format!(
        "{{\"class\":\"{class}\",\"to\":{{\"webhook\":\"{PLACE}\"}},\"channels\":[\"webhook\"],\
         \"content\":{{\"webhook\":{}}},\"reference\":\"order-{number}\"}}",
        webhook_body(class, number)
    )
}

/// The request for a mail; due now unless `send_at` says when.
pub(crate) fn mail_request(number: usize, send_at: Option<&str>) -> String {
    let due = send_at.map_or_else(String::new, |due| format!(",\"send_at\":\"{due}\""));
    format!(
        "{{\"class\":\"receipt\",\"to\":{{\"email\":\"customer{number}@example.com\"}},\"channels\":[\"email\"],\
         \"content\":{{\"subject\":\"Your order {number} is on its way\",\"text\":\"{}\"}},\
         \"reference\":\"order-{number}\"{due}}}",
        text(3)
    )
}
