//! Channels and lanes: the closed sets that keep one sick provider from delaying another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                out.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::lane::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::lane::UnknownName> {
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or($crate::lane::UnknownName)
            }
        }
    };
}
pub(crate) use named_enum;

/// The provider that is always there, under this name and no other: it keeps messages for the
/// developer to look at and sends nothing.
pub const OUTBOX: &str = "outbox";

/// No provider has this name. What waits in its lanes is for devices that no provider serves, until the
/// configuration has one that does.
pub const UNSERVED: &str = "unserved";

/// The text names no member of a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl fmt::Display for UnknownName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not a known name")
    }
}

impl std::error::Error for UnknownName {}

named_enum!(
    /// How somebody is told.
    ChannelKind {
        Email = "email",
        Apns = "apns",
        Fcm = "fcm",
        WebPush = "web_push",
        Sms = "sms",
        Webhook = "webhook",
        Chat = "chat",
        Inbox = "inbox",
    }
);

impl ChannelKind {
    /// Those that reach devices: what requests and templates call `push`.
    pub const PUSH: [Self; 3] = [Self::Apns, Self::Fcm, Self::WebPush];
}

named_enum!(
    /// Which waiting work goes first. High lanes always have workers.
    Priority {
        High = "high",
        Normal = "normal",
        Low = "low",
    }
);

/// A queue of its own: what waits in one lane never delays another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The provider's name in the configuration, or `outbox`.
    pub provider: String,
    pub priority: Priority,
}

impl Lane {
    #[must_use]
    pub fn new(provider: impl Into<String>, priority: Priority) -> Self {
        Self { provider: provider.into(), priority }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.provider, self.priority)
    }
}

impl FromStr for Lane {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let (provider, priority) = text.rsplit_once('/').ok_or(UnknownName)?;
        Ok(Self::new(provider, priority.parse()?))
    }
}

impl Serialize for Lane {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lane {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
