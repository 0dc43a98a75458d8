//! A notification: one intent to tell one recipient something. Its state is a pure function of its
//! deliveries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::delivery::{Delivery, StateName};
use crate::device::LeftOut;
use crate::key::NotificationId;
use crate::lane::ChannelKind;
use crate::time::UnixMs;
use crate::timeline::Hop;

/// The record of an intent, without its content and without its deliveries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    pub id: NotificationId,
    pub tenant: String,
    pub environment: String,
    pub class: String,
    pub created_at: UnixMs,
    /// The record answers repeats until then (accept + the class's window).
    pub remembered_until: UnixMs,
    pub via: Hop,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse: Option<Collapse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_at: Option<UnixMs>,
    pub expires_at: UnixMs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The caller's own metadata: canonical JSON text, at most 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    pub fingerprint: Fingerprint,
    /// Class policy that outlives a change of configuration.
    pub keep_content_ms: u64,
    /// The caller's own name for the recipient, where the request had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// The recipient's stored devices that nothing was allowed to go to when it was accepted; there are no more than
    /// a recipient may have devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The caller's own key of what gathers together, in a class that gathers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Of a digest: the notifications that it is made of, the oldest first; no more than its class allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathered: Vec<NotificationId>,
}

/// A template as frozen at accept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateRef {
    pub name: String,
    /// Content-addressed: the same files give the same version.
    pub version: String,
    pub locale: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collapse {
    /// The caller's collapse key.
    pub key: String,
    /// With a version, an older unsent delivery of the same key and address ends superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// Keyed hashes of the canonical request: the whole, and parts by JSON pointer, so that a repeat
/// with another body can be told what differs, even when the content is long purged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Hex HMAC-SHA256 of the canonical JSON.
    pub whole: String,
    /// Pointer → first 8 hex digits of the part's HMAC; at most 64 pointers.
    pub parts: BTreeMap<String, String>,
}

impl Fingerprint {
    /// The first 32 of the hex digits: what a tombstone keeps. 128 bits of a keyed hash.
    #[must_use]
    pub fn short(&self) -> &str {
        self.whole.get(..32).unwrap_or(&self.whole)
    }

    /// Pointers whose parts differ, are new, or are gone.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let mut pointers: Vec<String> = self
            .parts
            .iter()
            .filter(|(pointer, print)| other.parts.get(*pointer) != Some(print))
            .map(|(pointer, _)| pointer.clone())
            .chain(other.parts.keys().filter(|pointer| !self.parts.contains_key(*pointer)).cloned())
            .collect();
        pointers.sort();
        pointers
    }
}

/// What a recognised repeat finds once the record is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    pub id: NotificationId,
    /// [`Fingerprint::short`].
    pub fingerprint: String,
    pub state: StateName,
    pub remembered_until: UnixMs,
}

/// A notification with its deliveries, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub notification: Notification,
    pub deliveries: Vec<Delivery>,
    /// Repeats recognised so far.
    pub repeats: u32,
}

impl Record {
    /// The least finished delivery's state.
    #[must_use]
    pub fn state(&self) -> StateName {
        least_finished(self.deliveries.iter().map(|one| one.state.name()))
    }

    #[must_use]
    pub fn channels(&self) -> Vec<ChannelKind> {
        let mut channels: Vec<_> = self.deliveries.iter().map(|one| one.channel).collect();
        channels.dedup();
        channels
    }
}

/// The least finished of `states`; a notification has at least one delivery.
#[must_use]
pub fn least_finished(states: impl Iterator<Item = StateName>) -> StateName {
    states.min_by_key(|state| finished_rank(*state)).unwrap_or(StateName::Failed)
}

/// Lower is less finished. Among the ends, what needs a person's eye comes first.
const fn finished_rank(state: StateName) -> u8 {
    match state {
        StateName::Scheduled => 0,
        StateName::Deferred => 1,
        StateName::Queued => 2,
        StateName::Sending => 3,
        StateName::Parked => 4,
        StateName::Unknown => 5,
        StateName::Failed => 6,
        StateName::Bounced => 7,
        StateName::Expired => 8,
        StateName::Suppressed => 9,
        StateName::Cancelled => 10,
        StateName::Superseded => 11,
        StateName::Accepted => 12,
        StateName::Delivered => 13,
    }
}
