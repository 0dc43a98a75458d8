//! Notifications as the door would plan them, for measuring what lies behind it.

use std::time::Duration;

use belfry::content::inputs::{Inline, Inputs, Source, To};
use belfry::ports::deliveries::NewNotification;
use belfry::ports::message::{Address, Mailbox};
use belfry_domain::delivery::NewDelivery;
use belfry_domain::notification::Fingerprint;
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, Delivery, Lane, Notification, NotificationId, Priority, UnixMs};

const DAY: Duration = Duration::from_secs(86_400);

/// The numbered notification, planned at `now` to go out through `provider` after `wait`, with
/// about 500 bytes of content.
pub(crate) fn planned(number: usize, now: UnixMs, wait: Duration, provider: &str) -> NewNotification {
    let id = NotificationId::http("default", "live", "bench", &format!("order-{number}"));
    let due = now.plus(wait);
    let expires_at = due.plus(DAY * 3);
    let delivery = Delivery::new(NewDelivery {
        notification: id,
        channel: ChannelKind::Email,
        slot: "to".into(),
        class: "receipt".into(),
        lane: Lane::new(provider, Priority::Normal),
        tenant: "default".into(),
        created_at: now,
        send_at: (!wait.is_zero()).then_some(due),
        expires_at,
        lease: Duration::from_secs(30),
        content_hash: "5f".repeat(32),
        address_mask: "c…@example.com".into(),
        address_hash: format!("{number:064x}"),
        via: Hop::Http,
    });
    let text = "Your order has left our warehouse and will be with you in two to three working days. ".repeat(4);
    let address = Mailbox { name: None, email: Address(format!("customer{number}@example.com")) };
    let inline = Inline { subject: Some(format!("Your order {number}")), text: Some(text), ..Inline::default() };
    let inputs = Inputs {
        to: To { email: Some(address), ..To::default() },
        source: Source::Inline(Box::new(inline)),
        locale: None,
        time_zone: None,
    };
    let inputs = serde_json::to_string(&inputs).expect("texts and nothing else");
    let notification = Notification {
        id,
        tenant: "default".into(),
        environment: "live".into(),
        class: "receipt".into(),
        created_at: now,
        remembered_until: now.plus(DAY * 15),
        via: Hop::Http,
        template: None,
        scope: None,
        reference: Some(format!("order-{number}")),
        group: None,
        collapse: None,
        send_at: (!wait.is_zero()).then_some(due),
        expires_at,
        traceparent: None,
        metadata: None,
        fingerprint: Fingerprint { whole: format!("{number:064x}"), parts: std::collections::BTreeMap::new() },
        keep_content_ms: 3 * 86_400_000,
    };
    NewNotification { notification, deliveries: vec![delivery], inputs, collapse_groups: vec![None] }
}
