//! The API over a real listener, with the store in memory behind it.

mod accepting;
mod access;
mod acting;
mod api_keys;
pub(crate) mod away;
mod batches;
mod bed;
mod bodies;
mod cancelling;
mod describing;
mod fields;
mod finding;
mod limits;
mod listening;
mod lists;
mod outbox;
mod pages;
mod pages_standing;
mod pauses;
mod policy;
mod preferences;
mod recipients;
mod restored;
mod seen;
mod shifted;
mod support;
mod suppressions;
