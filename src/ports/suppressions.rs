//! Suppressions: whom nothing of a kind may go to any more. What each of them holds back is
//! [`belfry_domain::suppression`]'s; here they are kept, by the keyed hash of the address alone.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use belfry_domain::key::{KeyKind, NotAnId, child_key};
use belfry_domain::suppression::{Suppression, SuppressionKind};
use belfry_domain::{ChannelKind, Key, UnixMs};
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::deliveries::Owner;

/// Most entries about one address,
pub const MOST_OF_ONE: usize = 32;
/// and so many more of those without a category: whatever is said of categories, a bounce or a complaint has room.
pub const RESERVED: usize = 8;

/// How many entries there may be about an address before one of a `category`, or of none, has no room beside them.
#[must_use]
pub const fn room(category: Option<&String>) -> usize {
    if category.is_some() { MOST_OF_ONE } else { MOST_OF_ONE + RESERVED }
}
/// Most entries in one page.
pub const MOST_LISTED: u16 = 500;

/// Whether anything is suppressed on a channel. Not where the address is a device's token: of those their providers'
/// word is kept with the device.
#[must_use]
pub const fn takes(channel: ChannelKind) -> bool {
    match channel {
        ChannelKind::Email | ChannelKind::Sms | ChannelKind::Webhook | ChannelKind::Chat => true,
        ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush | ChannelKind::Inbox => false,
    }
}

/// An address on a channel, as one owner writes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressee {
    pub owner: Owner,
    pub channel: ChannelKind,
    /// Keyed hash of the normalised address, as in `Delivery::address_hash`.
    pub address_hash: String,
}

impl Addressee {
    #[must_use]
    pub fn key(&self) -> Key {
        let Owner { tenant, environment } = &self.owner;
        let parts = [tenant, environment, self.channel.name(), &self.address_hash];
        child_key(KeyKind::Suppressed, &parts.map(str::as_bytes))
    }
}

/// One entry. Printing it prints no address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    pub channel: ChannelKind,
    pub address_hash: String,
    pub address_mask: String,
    pub kind: SuppressionKind,
    /// Of [`Suppression::category`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Of [`Suppression::sender`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    pub since: UnixMs,
    /// Over from then on; absent: once it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMs>,
    /// Where it came from: the public name of a key, or the id of the delivery whose outcome said so.
    pub origin: String,
    /// Whatever an operator wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Suppressed {
    #[must_use]
    pub fn addressee(&self, owner: &Owner) -> Addressee {
        Addressee { owner: owner.clone(), channel: self.channel, address_hash: self.address_hash.clone() }
    }

    /// The same for every word of one kind about one address: a later one takes the place of an earlier.
    #[must_use]
    pub fn id(&self, owner: &Owner) -> SuppressionId {
        let parts = [self.kind.name(), self.category.as_deref().unwrap_or(""), self.sender.as_deref().unwrap_or("")];
        let word = child_key(KeyKind::Suppression, &parts.map(str::as_bytes));
        SuppressionId { address: self.addressee(owner).key(), word }
    }

    /// As what is asked before a call.
    #[must_use]
    pub fn rule(&self) -> Suppression {
        Suppression {
            kind: self.kind,
            category: self.category.clone(),
            channel: Some(self.channel),
            sender: self.sender.clone(),
            since: self.since,
            until: self.until,
        }
    }

    #[must_use]
    pub fn is_over(&self, now: UnixMs) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// `sup_` and 48 hex digits: those of the address, so that a store knows from an id alone where its entry is, and
/// those of the word about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuppressionId {
    pub address: Key,
    pub word: Key,
}

impl SuppressionId {
    pub const PREFIX: &'static str = "sup_";
}

impl fmt::Display for SuppressionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}{}", Self::PREFIX, self.address, self.word)
    }
}

impl FromStr for SuppressionId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(NotAnId)?;
        let (address, word) = digits.split_at_checked(24).ok_or(NotAnId)?;
        Ok(Self { address: address.parse()?, word: word.parse()? })
    }
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is kept like this.
    Kept(Box<Suppressed>),
    /// There are as many others about the address as there is [`room`] for, and none of them is over.
    TooMany,
}

/// Some of an owner's entries, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuppressedPage {
    pub entries: Vec<Suppressed>,
    /// The store's own place after which to go on; opaque. Nothing: these were the last.
    pub next: Option<String>,
}

/// Whether a store can have given it out: since when in 15 digits, then the 48 of an id.
#[must_use]
pub fn is_place(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let parts = text.split_at_checked(15).filter(|(_, id)| id.len() == 48);
    parts.is_some_and(|(time, id)| time.bytes().all(|byte| byte.is_ascii_digit()) && id.bytes().all(is_hex))
}

/// What is kept about an address.
pub type Found = Result<Vec<Suppressed>, StoreError>;

#[async_trait]
pub trait Suppressions: Send + Sync + 'static {
    /// Keeps an entry, in place of one with the same id. As long as that is not over by the new one's `since`, its own
    /// `since` stays. Where there is no [`room`] for one more, those of the address go that are over by then. Durable before
    /// it returns; the same call again changes nothing.
    async fn put(&self, owner: &Owner, entry: &Suppressed) -> Result<Put, StoreError>;

    /// Removes an entry, if this owner has one under the id. Durable before it returns.
    async fn lift(&self, owner: &Owner, id: SuppressionId) -> Result<(), StoreError>;

    /// What is kept about each address, in their order; what is over as well. Sees all that was acknowledged before
    /// the call. Each for itself: where a part of the store is away, the rest is told.
    async fn find(&self, whom: Vec<Addressee>) -> Vec<Found>;

    /// Up to `limit` (at most [`MOST_LISTED`]) entries of this owner, each once where nothing moves meanwhile. A place
    /// that the store did not give out is the beginning.
    async fn listed(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SuppressedPage, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_derived_and_read_back() {
        let owner = Owner { tenant: "acme".into(), environment: "live".into() };
        let entry = Suppressed {
            channel: ChannelKind::Email,
            address_hash: "ab".repeat(16),
            address_mask: "a…@example.com".into(),
            kind: SuppressionKind::Unsubscribe,
            category: Some("marketing".into()),
            sender: None,
            since: UnixMs(1),
            until: None,
            origin: "key_1".into(),
            note: None,
        };
        let id = entry.id(&owner);
        // Golden: a change here orphans every stored entry.
        assert_eq!(id.to_string(), "sup_593848f5ead8ac86c5d6406acd1e1d895e8a179c39fc6d55");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "sup_", "sup_00", &id.to_string()[4..], &format!("{id}0"), &id.to_string().to_uppercase()] {
            assert_eq!(bad.parse::<SuppressionId>(), Err(NotAnId), "{bad}");
        }
        let same = Suppressed { since: UnixMs(9), until: Some(UnixMs(10)), note: Some("x".into()), ..entry.clone() };
        assert_eq!(same.id(&owner), id);
        let others = [
            Suppressed { kind: SuppressionKind::Manual, ..entry.clone() },
            Suppressed { category: None, ..entry.clone() },
            Suppressed { category: None, sender: entry.category.clone(), ..entry.clone() },
        ];
        for other in others {
            let other = other.id(&owner);
            assert_eq!((other.address == id.address, other.word == id.word), (true, false));
        }
        let elsewhere = Owner { environment: "test".into(), ..owner };
        assert_ne!(entry.id(&elsewhere).address, id.address);
    }
}
