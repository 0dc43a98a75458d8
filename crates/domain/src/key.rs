//! Keys are derived, never minted, and never made from content or from an address:
//! whoever repeats an intent arrives at the same key on any node, after any crash.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::time::UnixMs;

/// What a key is the key of. Kinds keep keys of different origin apart even when their parts agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// An intent that came over HTTP: tenant, environment, namespace, Idempotency-Key.
    Http,
    /// An intent that carries a business key: tenant, environment, class, `unique`.
    Unique,
    /// A delivery: notification, channel, address slot.
    Delivery,
    /// A send: delivery, send number.
    Send,
    /// A mail message: notification, send number. Shared by the To, Cc and Bcc copies of one mail.
    Message,
    /// An operator's action: tenant, environment, namespace, Idempotency-Key, delivery.
    Action,
    /// A frozen template: its files.
    Template,
    /// What collapses with what on a device: tenant, environment, the caller's collapse key.
    Collapse,
    /// A cap's ledger: tenant, environment, cap, of what kind and of which it counts.
    Cap,
    /// One call's place in such ledgers: delivery, send number, fence.
    Take,
    /// An address that something may be suppressed for: tenant, environment, channel, keyed hash of the address.
    Suppressed,
    /// One of the words about it: kind, category, sender.
    Suppression,
    /// A recipient who may have said what they want: tenant, environment, the caller's own name for them.
    Preferences,
    /// A pause: of what kind, its name, tenant.
    Pause,
    /// One time of a schedule: tenant, environment, its name, when it is due (milliseconds, big endian).
    Slot,
    /// A schedule: tenant, environment, its name.
    Schedule,
    /// What gathers together: tenant, environment, class, digest key, template, version, locale, channel, of which
    /// address or device.
    Gather,
    /// A digest: what gathers together, the end of its slot, which part of it.
    Digest,
    /// A broadcast: tenant, environment, namespace, Idempotency-Key.
    Broadcast,
    /// A row of a broadcast's audience: tenant, environment, broadcast, the row's own id.
    Row,
}

impl KeyKind {
    /// The first hashed part. Never change one: every stored id depends on it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Unique => "unique",
            Self::Delivery => "delivery",
            Self::Send => "send",
            Self::Message => "message",
            Self::Action => "action",
            Self::Template => "template",
            Self::Collapse => "collapse",
            Self::Cap => "cap",
            Self::Take => "take",
            Self::Suppressed => "suppressed",
            Self::Suppression => "suppression",
            Self::Preferences => "preferences",
            Self::Pause => "pause",
            Self::Slot => "slot",
            Self::Schedule => "schedule",
            Self::Gather => "gather",
            Self::Digest => "digest",
            Self::Broadcast => "broadcast",
            Self::Row => "row",
        }
    }
}

/// 96 bits of SHA-256, written as 24 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 12]);

/// First 24 hex digits of SHA-256 over the length-prefixed kind and parts.
///
/// The length prefix (eight bytes, big endian) keeps `("ab", "c")` and `("a", "bc")` apart.
#[must_use]
pub fn child_key(kind: KeyKind, parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in std::iter::once(&kind.name().as_bytes()).chain(parts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut key = [0; 12];
    key.copy_from_slice(&hash.finalize()[..12]);
    Key(key)
}

impl Key {
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 12] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 24];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        out.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| char::from(digit(half))).collect()
}

const fn digit(half: u8) -> u8 {
    if half < 10 { b'0' + half } else { b'a' + half - 10 }
}

/// The text is not the id it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not an id: expected a prefix and 24 lowercase hex digits")
    }
}

impl std::error::Error for NotAnId {}

impl FromStr for Key {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = text.as_bytes();
        if digits.len() != 24 || digits.iter().any(u8::is_ascii_uppercase) {
            return Err(NotAnId);
        }
        let mut key = [0; 12];
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| NotAnId)?;
            // `from_str_radix` takes a leading sign, which is no hex digit.
            if pair.starts_with('+') {
                return Err(NotAnId);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NotAnId)?;
        }
        Ok(Self(key))
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Key);

        impl $name {
            pub const PREFIX: &'static str = $prefix;
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                text.strip_prefix($prefix).ok_or(NotAnId)?.parse().map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

prefixed_id!(
    /// One intent to tell one recipient something: `ntf_` and 24 hex digits.
    NotificationId,
    "ntf_"
);
prefixed_id!(
    /// A notification on one channel to one address slot: `dlv_` and 24 hex digits.
    DeliveryId,
    "dlv_"
);

prefixed_id!(
    /// One message to an audience of many: `brc_` and 24 hex digits.
    BroadcastId,
    "brc_"
);

impl BroadcastId {
    /// Whoever asks for it again under the same Idempotency-Key has the same one.
    #[must_use]
    pub fn http(tenant: &str, environment: &str, namespace: &str, key: &str) -> Self {
        let parts = [tenant, environment, namespace, key].map(str::as_bytes);
        Self(child_key(KeyKind::Broadcast, &parts))
    }
}

impl NotificationId {
    /// The id of what a broadcast tells one row of its audience: whichever nodes walk it, from whichever upload.
    #[must_use]
    pub fn row(tenant: &str, environment: &str, broadcast: BroadcastId, row: &str) -> Self {
        let parts: [&[u8]; 4] = [tenant.as_bytes(), environment.as_bytes(), broadcast.0.as_bytes(), row.as_bytes()];
        Self(child_key(KeyKind::Row, &parts))
    }

    /// The id of an intent that came over HTTP.
    #[must_use]
    pub fn http(tenant: &str, environment: &str, namespace: &str, key: &str) -> Self {
        let parts = [tenant, environment, namespace, key].map(str::as_bytes);
        Self(child_key(KeyKind::Http, &parts))
    }

    /// The id of what a schedule sends at one of its times: whichever nodes find that due, it is one intent.
    #[must_use]
    pub fn slot(tenant: &str, environment: &str, schedule: &str, due: UnixMs) -> Self {
        let due = due.0.to_be_bytes();
        let parts: [&[u8]; 4] = [tenant.as_bytes(), environment.as_bytes(), schedule.as_bytes(), &due];
        Self(child_key(KeyKind::Slot, &parts))
    }

    /// The key of one mail: its To, Cc and Bcc copies share it, so that they share a Message-ID.
    #[must_use]
    pub fn message_key(self, send: u32) -> Key {
        child_key(KeyKind::Message, &[self.0.as_bytes(), &send.to_be_bytes()])
    }

    /// The id of an intent with a business key; whatever header key it arrives under.
    #[must_use]
    pub fn unique(tenant: &str, environment: &str, class: &str, unique: &str) -> Self {
        let parts = [tenant, environment, class, unique].map(str::as_bytes);
        Self(child_key(KeyKind::Unique, &parts))
    }
}

impl DeliveryId {
    /// `slot` names the address within the notification (`to`, `cc/0`), never the address itself. The
    /// first four digits are the notification's own, so that a store that spreads notifications knows
    /// where a delivery is from its id alone.
    #[must_use]
    pub fn of(notification: NotificationId, channel: &str, slot: &str) -> Self {
        let parts: [&[u8]; 3] = [notification.0.as_bytes(), channel.as_bytes(), slot.as_bytes()];
        let mut key = child_key(KeyKind::Delivery, &parts);
        key.0[..2].copy_from_slice(&notification.0.0[..2]);
        Self(key)
    }

    /// The key of one deliberate sending: every attempt within it carries the same one.
    #[must_use]
    pub fn send_key(self, send: u32) -> Key {
        child_key(KeyKind::Send, &[self.0.as_bytes(), &send.to_be_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vectors: a change here orphans every stored id, so it is never a refactoring.
    #[test]
    fn golden_vectors() {
        let id = NotificationId::http("default", "live", "main", "order-42/shipped");
        assert_eq!(id.to_string(), "ntf_a442d9c1608d0723a015e185");
        let unique = NotificationId::unique("default", "live", "receipt", "order-42/receipt");
        assert_eq!(unique.to_string(), "ntf_0d8958b06ade174b15403b33");
        let delivery = DeliveryId::of(id, "email", "to");
        assert_eq!(delivery.to_string(), "dlv_a442935c72d410964c9d5c2b");
        assert_eq!(delivery.send_key(1).to_string(), "bb4cb2588897dad972ffb75e");
        let slot = NotificationId::slot("default", "live", "weekly-report", UnixMs(1_772_433_000_000));
        assert_eq!(slot.to_string(), "ntf_36fadcb4ce0a59b03ca9596d");
        let broadcast = BroadcastId::http("default", "live", "main", "launch");
        assert_eq!(broadcast.to_string(), "brc_733ebb7a663aa4bf081ad4c8");
        let row = NotificationId::row("default", "live", broadcast, "customer-7");
        assert_eq!(row.to_string(), "ntf_1ff568ac7f62a4ac232e479e");
    }

    #[test]
    fn hex_is_two_digits_a_byte() {
        assert_eq!(hex(&[0, 9, 10, 0x7f, 0xff]), "00090a7fff");
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(child_key(KeyKind::Http, &[b"ab", b"c"]), child_key(KeyKind::Http, &[b"a", b"bc"]));
        assert_ne!(child_key(KeyKind::Http, &[b"a"]), child_key(KeyKind::Unique, &[b"a"]));
        assert_ne!(child_key(KeyKind::Http, &[b"a", b""]), child_key(KeyKind::Http, &[b"a"]));
    }

    #[test]
    fn ids_read_back_and_nothing_else_does() {
        let id = NotificationId::http("t", "e", "n", "k");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in [
            "",
            "ntf_",
            "ntf_00",
            "dlv_000000000000000000000000",
            "ntf_00000000000000000000000G",
            "ntf_0000000000000000000000AB",
            "ntf_+0+0+0+0+0+0+0+0+0+0+0+0",
            "ntf_0000000000000000000000000",
        ] {
            assert_eq!(bad.parse::<NotificationId>(), Err(NotAnId), "{bad}");
        }
    }
}
