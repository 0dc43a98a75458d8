//! Gathering: what a class tells somebody too often to tell it one by one goes out together, as a digest. Until then each
//! item is a notification of its own, that waits; it ends when the digest is kept that it is part of, and never before.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::key::{Key, KeyKind, NotificationId, child_key};
use crate::time::UnixMs;

/// How a class gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// From a slot's first item to its end.
    pub span: Duration,
    /// Most items of a digest: with the last of them its slot ends at once.
    pub most: u16,
}

/// An item that nobody has folded so long after its slot's end is claimed like any other delivery, and put back into its
/// slot: whatever lost that, the item is not lost with it.
pub const LATE: Duration = Duration::from_secs(60);

/// What goes out together: the items of one group until one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// Of owner, class, template, digest key, channel and address: [`group`].
    pub group: Key,
    pub until: UnixMs,
}

impl Slot {
    /// The id of its digest. `part` counts from 0: what did not fit, or came when the digest was kept already, goes into
    /// the next.
    #[must_use]
    pub fn digest(&self, part: u32) -> NotificationId {
        let parts: [&[u8]; 3] = [self.group.as_bytes(), &self.until.0.to_be_bytes(), &part.to_be_bytes()];
        NotificationId(child_key(KeyKind::Digest, &parts))
    }
}

/// What stands in an item's delivery while it gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathering {
    #[serde(flatten)]
    pub slot: Slot,
    /// The digest that it is about to be part of. A wish to cancel it comes too late from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<NotificationId>,
}

impl Gathering {
    #[must_use]
    pub const fn new(slot: Slot) -> Self {
        Self { slot, into: None }
    }
}

/// Whose items go out together. `parts` in this order: tenant, environment, class, the caller's digest key, template,
/// its version and locale, channel, and a keyed hash of the address or the stored device's own name.
#[must_use]
pub fn group(parts: [&str; 9]) -> Key {
    child_key(KeyKind::Gather, &parts.map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vectors: under another id a digest that was kept before a crash would go out a second time.
    #[test]
    fn golden_vectors() {
        let group = group(["default", "live", "digest", "comments", "activity", "v1", "en", "email", "0c0c"]);
        assert_eq!(group.to_string(), "56bc26c6bb0d4709cddd05f0");
        let slot = Slot { group, until: UnixMs(1_700_000_000_000) };
        assert_eq!(slot.digest(0).to_string(), "ntf_43fbbe06e845c590f48808d9");
        assert_ne!(slot.digest(0), slot.digest(1));
        assert_ne!(slot.digest(0), Slot { until: UnixMs(1_700_000_000_001), ..slot }.digest(0));
    }
}
