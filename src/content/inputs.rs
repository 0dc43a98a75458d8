//! What is frozen at accept: where the message goes and what it is made from. Rendering reads
//! nothing else, so a repeat after any crash renders the same.

use std::collections::BTreeMap;

use belfry_domain::ChannelKind;
use belfry_domain::delivery::TO;
use belfry_domain::notification::TemplateRef;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::kept::Attaches;
use crate::ports::message::{Address, Mailbox};

/// Kept as one JSON text beside the record, and purged before it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Inputs {
    pub to: To,
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
}

/// Links to the recipient's own pages, one for each copy of a mail.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Links {
    /// The address of the installation, without a final slash.
    pub base: String,
    /// The mail is one to unsubscribe from.
    pub unsubscribe: bool,
    /// By address slot: what the link says, sealed.
    pub tokens: BTreeMap<String, String>,
}

impl Links {
    /// Where the copy's recipient unsubscribes, if they can.
    #[must_use]
    pub fn unsubscribe_url(&self, slot: &str) -> Option<String> {
        self.tokens.get(slot).filter(|_| self.unsubscribe).map(|token| format!("{}/u/{token}", self.base))
    }

    /// Where they choose what they get.
    #[must_use]
    pub fn preferences_url(&self, slot: &str) -> Option<String> {
        self.tokens.get(slot).map(|token| format!("{}/u/{token}/preferences", self.base))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct To {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Address>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Address>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// `apns`, `fcm` or `web_push`.
    pub kind: ChannelKind,
    /// The token, or for web push the subscription's JSON text.
    pub token: Address,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Of a stored recipient's device: its id. Its token here is that of the time of accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

pub use belfry_domain::device::STORED;

/// Tagged from outside: serde buffers what is tagged inside, and a `RawValue` cannot be read from a
/// buffer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Template {
        template: TemplateRef,
        /// The caller's own JSON text: numbers keep every digit.
        data: Box<RawValue>,
        /// What the request puts around the template's mail: sender, replies, headers, attachments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        envelope: Option<Box<Inline>>,
    },
    Inline(Box<Inline>),
}

impl Source {
    /// A frozen template with the caller's JSON text.
    #[must_use]
    pub const fn template(template: TemplateRef, data: Box<RawValue>) -> Self {
        Self::Template { template, data, envelope: None }
    }

    /// What the request itself gives of a message: all of it, or what goes around a template's mail.
    #[must_use]
    pub fn given(&self) -> Option<&Inline> {
        match self {
            Self::Template { envelope, .. } => envelope.as_deref(),
            Self::Inline(inline) => Some(inline),
        }
    }

    /// As [`Self::given`].
    pub fn given_mut(&mut self) -> Option<&mut Inline> {
        match self {
            Self::Template { envelope, .. } => envelope.as_deref_mut(),
            Self::Inline(inline) => Some(inline),
        }
    }

    /// The template that it is made from, where it is made from one.
    #[must_use]
    pub const fn frozen(&self) -> Option<&TemplateRef> {
        match self {
            Self::Template { template, .. } => Some(template),
            Self::Inline(_) => None,
        }
    }
}

/// Content given in the request itself.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Inline {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply_to: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attaches>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sms: Option<String>,
    /// The caller's own JSON text, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Box<RawValue>>,
}

impl Device {
    /// `at`: where it stands among the devices.
    fn slot(&self, at: usize) -> String {
        self.id.as_ref().map_or_else(|| format!("device/{at}"), |id| format!("{STORED}{id}"))
    }
}

impl To {
    /// The device of this address slot, where it is one.
    #[must_use]
    pub fn device(&self, slot: &str) -> Option<&Device> {
        self.devices.iter().enumerate().find(|(at, device)| device.slot(*at) == slot).map(|(_, device)| device)
    }

    /// Every address slot on `channel`, in order. A mail's Cc and Bcc are slots of their own: one
    /// recipient per transaction, so that each has its own outcome.
    #[must_use]
    pub fn slots(&self, channel: ChannelKind) -> Vec<(String, Address)> {
        let one = |slot: &str, address: Option<&Address>| {
            address.map(|it| (slot.to_owned(), it.clone())).into_iter().collect()
        };
        match channel {
            ChannelKind::Email => {
                let Some(to) = &self.email else { return Vec::new() };
                let numbered = |name: &'static str, boxes: &[Mailbox]| {
                    boxes
                        .iter()
                        .enumerate()
                        .map(|(at, one)| (format!("{name}/{at}"), one.email.clone()))
                        .collect::<Vec<_>>()
                };
                let mut slots = vec![(TO.to_owned(), to.email.clone())];
                slots.extend(numbered("cc", &self.cc));
                slots.extend(numbered("bcc", &self.bcc));
                slots
            }
            ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush => self
                .devices
                .iter()
                .enumerate()
                .filter(|(_, device)| device.kind == channel)
                .map(|(at, device)| (device.slot(at), device.token.clone()))
                .collect(),
            ChannelKind::Sms => one("phone", self.phone.as_ref()),
            ChannelKind::Webhook => one("webhook", self.webhook.as_ref()),
            ChannelKind::Chat => one("chat", self.chat.as_ref()),
            ChannelKind::Inbox => {
                self.recipient.iter().map(|id| ("recipient".to_owned(), Address(id.clone()))).collect()
            }
        }
    }
}
