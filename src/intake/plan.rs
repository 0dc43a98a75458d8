//! Planning: from a checked request to the record that accept makes durable. Pure.

use belfry_domain::delivery::NewDelivery;
use belfry_domain::device::DeviceApp;
use belfry_domain::notification::Fingerprint;
use belfry_domain::timeline::Hop;
use belfry_domain::{Delivery, Lane, Notification, NotificationId, UnixMs, hex};

use super::address;
use super::caller::Caller;
use super::canonical::Secret;
use super::submission::{Slot, Submission, of};
use crate::content::inputs::STORED;
use crate::content::stamped;
use crate::ports::deliveries::{CollapseGroup, NewNotification};
use crate::ports::policy::{Policy, UNSERVED};

/// How an intent came in.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The Idempotency-Key, or the batch item's `key`.
    pub key: String,
    pub via: Hop,
    pub traceparent: Option<String>,
}

/// What is wrong with an idempotency key, if anything.
#[must_use]
pub fn wrong_key(key: &str) -> Option<&'static str> {
    let fits = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    (!fits).then_some("must have 1 to 255 visible ASCII characters")
}

/// What planning needs besides the request.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub policy: &'a Policy,
    pub secret: &'a Secret,
    pub caller: &'a Caller,
    pub now: UnixMs,
}

/// The id: from the business key where there is one, else from the arrival's own key.
#[must_use]
pub fn identity(caller: &Caller, key: &str, business_key: Option<(&str, &str)>) -> NotificationId {
    match business_key {
        Some((class, unique)) => NotificationId::unique(&caller.tenant, &caller.environment, class, unique),
        None => NotificationId::http(&caller.tenant, &caller.environment, &caller.namespace, key),
    }
}

/// Plans `submission` under `id`.
#[must_use]
pub fn plan(
    mut submission: Submission,
    id: NotificationId,
    arrival: &Arrival,
    fingerprint: Fingerprint,
    setting: Setting<'_>,
) -> NewNotification {
    let Setting { policy, secret, caller, now } = setting;
    let class = &submission.class;
    let expires_at = submission.expires_at_latest(now);
    let hashes = submission.slots.iter().map(|slot| slot.hash(secret)).collect::<Vec<_>>();
    let deliveries = submission.slots.iter().zip(&hashes).zip(&submission.content_hashes);
    let deliveries = deliveries.map(|((slot, address_hash), content_hash)| {
        let device = submission.inputs.to.device(&slot.name).map(of).unwrap_or_default();
        let provider = policy.route(slot.channel, &caller.environment, &slot.address.0, device).unwrap_or(UNSERVED);
        Delivery::new(NewDelivery {
            notification: id,
            channel: slot.channel,
            slot: slot.name.clone(),
            class: class.name.clone(),
            lane: Lane::new(provider, class.priority),
            tenant: caller.tenant.clone(),
            via: arrival.via,
            created_at: now,
            send_at: submission.send_at,
            expires_at,
            lease: class.lease,
            content_hash: stamped(content_hash, policy.providers.get(provider).and_then(|it| it.channel.stamp())),
            address_mask: address::mask(slot.channel, &slot.address),
            address_hash: address_hash.clone(),
            device: DeviceApp::said(device.app, device.environment),
        })
    });
    let deliveries = deliveries.collect();
    let recipient = submission.inputs.to.recipient.clone();
    let attached = submission.inputs.take_contents(&caller.owner());
    NewNotification {
        attached,
        recipient_hash: recipient.as_deref().map(|name| address::recipient_hash(secret, &caller.owner(), name)),
        deliveries,
        collapse_groups: collapse_groups(&submission, &hashes, setting),
        inputs: frozen(&submission),
        notification: Notification {
            id,
            tenant: caller.tenant.clone(),
            environment: caller.environment.clone(),
            class: class.name.clone(),
            created_at: now,
            remembered_until: now.plus(class.window),
            via: arrival.via,
            template: submission.inputs.source.frozen().cloned(),
            scope: submission.scope,
            reference: submission.reference,
            group: submission.group,
            collapse: submission.collapse,
            send_at: submission.send_at,
            expires_at,
            traceparent: arrival.traceparent.clone(),
            metadata: submission.metadata,
            fingerprint,
            keep_content_ms: u64::try_from(class.keep_content.as_millis()).unwrap_or(u64::MAX),
            recipient,
            left_out: submission.left_out,
            digest: submission.digest,
            gathered: Vec::new(),
        },
    }
}

impl Submission {
    /// The class's own expiry, or what was asked for where that comes first.
    fn expires_at_latest(&self, now: UnixMs) -> UnixMs {
        let latest = self.send_at.map_or(now, |at| at.max(now)).plus(self.class.expiry);
        self.expires_at.map_or(latest, |asked| asked.min(latest))
    }
}

#[expect(clippy::expect_used, reason = "strings, lists and JSON that was parsed a moment ago: nothing here can fail")]
fn frozen(submission: &Submission) -> String {
    serde_json::to_string(&submission.inputs).expect("inputs are plain JSON")
}

/// Of each slot.
fn collapse_groups(submission: &Submission, hashes: &[String], setting: Setting<'_>) -> Vec<Option<CollapseGroup>> {
    let slots = submission.slots.iter().zip(hashes);
    slots.map(|(slot, address_hash)| collapse_group(submission, slot, address_hash, setting)).collect()
}

/// Versions are compared within one collapse key on one channel to one address, per owner.
fn collapse_group(
    submission: &Submission,
    slot: &Slot,
    address_hash: &str,
    setting: Setting<'_>,
) -> Option<CollapseGroup> {
    let collapse = submission.collapse.as_ref()?;
    let version = collapse.version?;
    let Setting { secret, caller, .. } = setting;
    // A stored device stays the same whatever its token is.
    let device = format!("{}/{}", submission.inputs.to.recipient.as_deref().unwrap_or_default(), slot.name);
    let address_hash = if slot.name.starts_with(STORED) { device.as_str() } else { address_hash };
    let parts = ["collapse", &caller.tenant, &caller.environment, &collapse.key, slot.channel.name(), address_hash];
    Some(CollapseGroup { group: hex(&secret.hash(&parts.map(str::as_bytes))[..16]), version })
}
