//! Entries of the search indexes: as `lua/record.lua` has them.

use belfry_domain::delivery::StateName;
use sha2::{Digest, Sha256};

use super::{six, state_code};
use crate::ports::deliveries::NewNotification;

/// Bytes of an entry: its kind and its hash.
const ENTRY: usize = 7;

/// What an index entry is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Owner,
    Reference,
    Group,
    Address,
    Recipient,
    State,
}

impl Kind {
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Owner => b'o',
            Self::Reference => b'r',
            Self::Group => b'g',
            Self::Address => b'a',
            Self::Recipient => b'p',
            Self::State => b's',
        }
    }
}

/// 48 bits: what is found by it is compared again.
#[must_use]
pub fn index_hash(kind: Kind, parts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    hash.update([kind.code()]);
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[..6].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The entry of an owner's records in one of the rare states: as `index_state` in `record.lua` has it.
#[must_use]
pub fn state_hash(owner: u64, state: StateName) -> u64 {
    (owner + (u64::from(state_code(state)) + 1) * 2_654_435_761) % (1 << 48)
}

/// An entry, as scripts write and look for it.
#[must_use]
pub fn entry(kind: Kind, hash: u64) -> [u8; ENTRY] {
    let mut entry = [kind.code(); ENTRY];
    entry[1..].copy_from_slice(&six(hash));
    entry
}

/// The owner's hash, and the entries of a new record, one after the other.
pub fn entries(item: &NewNotification) -> (u64, Vec<u8>) {
    let notification = &item.notification;
    let owner = [notification.tenant.as_str(), notification.environment.as_str()];
    let of = |kind: Kind, value: &str| entry(kind, index_hash(kind, &[owner[0], owner[1], value]));
    let all = index_hash(Kind::Owner, &owner);
    let mut entries = vec![entry(Kind::Owner, all)];
    entries.extend(notification.reference.as_deref().map(|it| of(Kind::Reference, it)));
    entries.extend(notification.group.as_deref().map(|it| of(Kind::Group, it)));
    entries.extend(item.recipient_hash.as_deref().map(|it| of(Kind::Recipient, it)));
    for delivery in &item.deliveries {
        let entry = of(Kind::Address, &delivery.address_hash);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    (all, entries.concat())
}
