//! What a channel is given: one message, rendered, to one address.

use std::fmt;

use belfry_domain::{ChannelKind, DeliveryId, Key, KeyKind, NotificationId, UnixMs, child_key};
use serde::{Deserialize, Serialize};

/// An address, number, token or endpoint. Printing it prints nothing: it must never reach a log,
/// a label, an error or a URL of ours.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub String);

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Address(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub email: Address,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub filename: String,
    pub content_type: String,
    /// Standard base64, as it came in.
    pub base64: String,
    /// Content-ID of an inline image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cid: Option<String>,
}

impl fmt::Debug for Attachment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Attachment({}, {} base64 bytes)", self.content_type, self.base64.len())
    }
}

/// A mail. `to` and `cc` are what its headers show; who gets this copy stands in [`Outgoing`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailMessage {
    /// Absent: the provider's own `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply_to: Vec<Mailbox>,
    pub to: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Mailbox>,
    pub subject: String,
    /// Always present: made from the HTML where the caller gave none.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// Checked names and values, in the caller's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// The message as it is before signing and encryption; its JSON is what the content hash is of.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rendered {
    Email(Box<EmailMessage>),
    Sms {
        text: String,
    },
    /// JSON text: for APNs the whole body, for FCM the message without its token, for web push what is
    /// encrypted; each but for what [`Outgoing`] adds at the call.
    Push {
        payload: String,
        #[serde(default, skip_serializing_if = "PushSettings::is_usual")]
        settings: PushSettings,
    },
    /// The exact bytes to send, as text.
    Webhook {
        body: String,
    },
    Chat {
        text: String,
    },
    Inbox {
        payload: String,
    },
}

/// How urgent a push is. APNs: priority 10, 5, 1; web push: Urgency `high`, `normal`, `low`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    #[default]
    High,
    Normal,
    Low,
}

/// `apns-push-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushType {
    #[default]
    Alert,
    Background,
    Voip,
    Complication,
    FileProvider,
    LiveActivity,
    Location,
    PushToTalk,
}

/// What of a push is no part of its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushSettings {
    pub urgency: Urgency,
    /// APNs only.
    pub push_type: PushType,
}

impl PushSettings {
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Rendered(…)")
    }
}

/// One call's worth: the same on every attempt of one send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub channel: ChannelKind,
    pub tenant: String,
    pub environment: String,
    pub notification: NotificationId,
    pub delivery: DeliveryId,
    pub send: u32,
    /// Of this send: provider keys, apns-id and webhook-id derive from it.
    pub send_key: Key,
    /// Of this mail, shared by its To, Cc and Bcc copies: Message-ID and boundaries derive from it.
    pub message_key: Key,
    /// When the intent was accepted: Date and DKIM's `t=` are this, so that a repeat has them too.
    pub created_at: UnixMs,
    pub expires_at: UnixMs,
    pub address: Address,
    pub message: Rendered,
    /// Only where the caller asked for collapsing.
    pub collapse: Option<String>,
    /// By which the device itself may say that it showed this delivery; stands in the payload of a push.
    pub seen_token: Option<String>,
}

impl Outgoing {
    /// What replaces what on the device: of the caller's own key, where there is one, hashed (providers
    /// take 32 to 64 bytes of a narrow alphabet, and a key cut to fit would collapse with others); else
    /// of this send, so that a repeat of it replaces the first copy and nothing else does.
    #[must_use]
    pub fn collapse_id(&self) -> Key {
        match &self.collapse {
            Some(key) => {
                child_key(KeyKind::Collapse, &[&self.tenant, &self.environment, key].map(|part| part.as_bytes()))
            }
            None => self.send_key,
        }
    }

    /// The send key as a lowercase UUID (version 8, RFC 9562): the same on every attempt.
    #[must_use]
    pub fn uuid(&self) -> String {
        let key = self.send_key.as_bytes();
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(key);
        // What version and variant take the place of goes to the end.
        bytes[12..14].copy_from_slice(&[key[6], key[8]]);
        bytes[6] = 0x80 | (key[6] & 0x0f);
        bytes[8] = 0x80 | (key[8] & 0x3f);
        let hex = belfry_domain::hex(&bytes);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}
