//! The traits between the rooms: one per concern, each with a contract suite under
//! `tests/it/contract`. [`mail`] has the rules that
//! two of them share, [`reminders`] how often rooms tell of what goes on, [`near`] what a mistyped name was meant to
//! be. Knows the domain and nothing else of Belfry.

pub mod admin;
pub mod attachments;
pub mod broadcasts;
pub mod caps;
pub mod certificate;
pub mod channel;
pub mod circuits;
pub mod clock;
pub mod deliveries;
pub mod gatherings;
pub mod holds;
pub mod links;
pub mod locale;
pub mod mail;
pub mod message;
pub mod moment;
pub mod near;
pub mod outbox;
pub mod paces;
pub mod pauses;
pub mod policy;
pub mod preferences;
pub mod recipients;
pub mod reminders;
pub mod schedules;
pub mod search;
pub mod span;
pub mod store_news;
pub mod suppressions;
pub mod wishes;

use thiserror::Error;

/// What a store cannot do, by what the caller does about it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// Nothing is known to have happened; the same call may be made again. HTTP answers 503.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Stored bytes cannot be read; an operator has to look.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}
