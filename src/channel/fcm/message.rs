//! The request's body: the message as it was rendered, with what only the call knows.
//!
//! What the caller set stays as it is. Collapsing is by what the device shows (the tag, APNs'
//! collapse id, web push's topic) and never by `collapse_key`: of those a device keeps four, and
//! which four is anybody's guess (Google, "About FCM messages").

use std::time::Duration;

use belfry_domain::UnixMs;
use bytes::Bytes;
use serde::Serialize;
use thiserror::Error;

use super::fields::Fields;
use crate::ports::message::{Outgoing, PushSettings, Urgency};

/// Largest notification and data, keys and values, in bytes (Google, "FCM error codes").
pub const LARGEST: usize = 4096;
/// Longest that FCM keeps a message.
const LONGEST_KEPT: Duration = Duration::from_secs(28 * 24 * 3600);

/// Where else a message can be aimed; the device's token is ours to set.
const TARGETS: [&str; 5] = ["token", "fid", "topic", "condition", "name"];
const ANDROID: [&str; 1] = ["android"];
/// FCM refuses a message with both.
const ANDROID_V2: [&str; 2] = ["android_v2", "androidV2"];
const REMOTE: [&str; 2] = ["remote_notification", "remoteNotification"];
const NOTIFICATION: [&str; 1] = ["notification"];
const PAIRS: [&str; 1] = ["data"];

/// Why there is no body. Holds nothing of the message.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MessageError {
    #[error("the payload is no FCM message")]
    NotAMessage,
    #[error("the payload names its own target")]
    Aimed,
    #[error("{bytes} bytes of notification and data, of at most {LARGEST}")]
    TooLarge { bytes: usize },
}

impl From<serde_json::Error> for MessageError {
    /// The text may quote the message.
    fn from(_: serde_json::Error) -> Self {
        Self::NotAMessage
    }
}

#[derive(Serialize)]
struct Request<'a> {
    message: &'a Fields,
}

/// The body that sends `payload` to the address of `out`. The same for the same instant.
///
/// # Errors
/// [`MessageError`]: it can never be sent.
pub fn body(payload: &str, settings: PushSettings, out: &Outgoing, now: UnixMs) -> Result<Bytes, MessageError> {
    let mut message = Fields::parse(payload)?;
    if TARGETS.iter().any(|target| message.has(&[target])) {
        return Err(MessageError::Aimed);
    }
    let added = Added::new(settings.urgency, out, now);
    let mut pairs = message.object(&PAIRS)?;
    added.name_delivery(&mut pairs)?;
    let bytes = message.object(&NOTIFICATION)?.weight() + pairs.weight();
    if bytes > LARGEST {
        return Err(MessageError::TooLarge { bytes });
    }
    message.put(&PAIRS, &pairs)?;
    added.android(&mut message)?;
    added.apns(&mut message)?;
    added.webpush(&mut message)?;
    message.put(&["token"], &out.address.0)?;
    Ok(Bytes::from(serde_json::to_vec(&Request { message: &message })?))
}

/// What the call adds.
struct Added<'a> {
    urgency: Urgency,
    delivery: String,
    seen: Option<&'a str>,
    /// What a second copy replaces the first by.
    collapse: String,
    expires_at: UnixMs,
    /// Seconds that it is worth keeping.
    ttl: u64,
}

impl<'a> Added<'a> {
    fn new(urgency: Urgency, out: &'a Outgoing, now: UnixMs) -> Self {
        Self {
            urgency,
            delivery: out.delivery.to_string(),
            seen: out.seen_token.as_deref(),
            collapse: out.collapse_id().to_string(),
            expires_at: out.expires_at,
            ttl: out.expires_at.since(now).min(LONGEST_KEPT).as_secs(),
        }
    }

    /// By which the app can tell a second copy, and say that it showed this one.
    fn name_delivery(&self, pairs: &mut Fields) -> Result<(), MessageError> {
        pairs.put(&["belfry_id"], &self.delivery)?;
        if let Some(seen) = self.seen {
            pairs.put(&["belfry_seen"], seen)?;
        }
        Ok(())
    }

    /// A platform's own pairs replace the common ones.
    fn name_delivery_in(&self, block: &mut Fields) -> Result<(), MessageError> {
        if block.has(&PAIRS) {
            let mut pairs = block.object(&PAIRS)?;
            self.name_delivery(&mut pairs)?;
            block.put(&PAIRS, &pairs)?;
        }
        Ok(())
    }

    fn android(&self, message: &mut Fields) -> Result<(), MessageError> {
        if message.has(&ANDROID_V2) {
            return self.android_v2(message);
        }
        let mut android = message.object(&ANDROID)?;
        self.name_delivery_in(&mut android)?;
        if !android.has(&["ttl"]) {
            android.put(&["ttl"], &format!("{}s", self.ttl))?;
        }
        if !android.has(&["priority"]) {
            let priority = match self.urgency {
                Urgency::High => "HIGH",
                Urgency::Normal | Urgency::Low => "NORMAL",
            };
            android.put(&["priority"], priority)?;
        }
        if shows(message)? || shows(&android)? {
            self.tag(&mut android)?;
        }
        Ok(message.put(&ANDROID, &android)?)
    }

    /// Which has no priority, and shows what its own block holds.
    fn android_v2(&self, message: &mut Fields) -> Result<(), MessageError> {
        let mut android = message.object(&ANDROID_V2)?;
        self.name_delivery_in(&mut android)?;
        if !android.has(&["ttl"]) {
            android.put(&["ttl"], &format!("{}s", self.ttl))?;
        }
        let mut remote = android.object(&REMOTE)?;
        if shows(&remote)? {
            self.tag(&mut remote)?;
            android.put(&REMOTE, &remote)?;
        }
        Ok(message.put(&ANDROID_V2, &android)?)
    }

    fn tag(&self, block: &mut Fields) -> Result<(), MessageError> {
        let mut notification = block.object(&NOTIFICATION)?;
        if !notification.has(&["tag"]) {
            notification.put(&["tag"], &self.collapse)?;
        }
        Ok(block.put(&NOTIFICATION, &notification)?)
    }

    fn apns(&self, message: &mut Fields) -> Result<(), MessageError> {
        let expiration = (self.expires_at.0.max(0) / 1000).to_string();
        let mut apns = message.object(&["apns"])?;
        set_headers(&mut apns, &[("apns-collapse-id", &self.collapse), ("apns-expiration", &expiration)])?;
        Ok(message.put(&["apns"], &apns)?)
    }

    fn webpush(&self, message: &mut Fields) -> Result<(), MessageError> {
        let urgency = match self.urgency {
            Urgency::High => "high",
            Urgency::Normal => "normal",
            Urgency::Low => "low",
        };
        let mut webpush = message.object(&["webpush"])?;
        self.name_delivery_in(&mut webpush)?;
        let ttl = self.ttl.to_string();
        set_headers(&mut webpush, &[("TTL", &ttl), ("Urgency", urgency), ("Topic", &self.collapse)])?;
        // The topic only replaces what has not reached the browser yet.
        if shows(message)? || shows(&webpush)? {
            self.tag(&mut webpush)?;
        }
        Ok(message.put(&["webpush"], &webpush)?)
    }
}

fn shows(block: &Fields) -> Result<bool, MessageError> {
    Ok(!block.object(&NOTIFICATION)?.is_empty())
}

fn set_headers(block: &mut Fields, wanted: &[(&str, &str)]) -> Result<(), MessageError> {
    let mut headers = block.object(&["headers"])?;
    for (name, value) in wanted {
        if !headers.has_header(name) {
            headers.put(&[name], value)?;
        }
    }
    Ok(block.put(&["headers"], &headers)?)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
