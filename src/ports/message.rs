//! What a channel is given: one message, rendered, to one address.

use std::fmt;

use belfry_domain::{ChannelKind, DeliveryId, Key, NotificationId, UnixMs};
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
    /// Canonical JSON text of the payload.
    Push {
        payload: String,
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
}
