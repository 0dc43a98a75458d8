//! The embedded store: SQLite, no server, one node.
//!
//! `core` and what extends it (`accept`, `claim`, `write`, `read`, `search`, `purge`, `keys`,
//! `outbox`, `hold`, `recipients`, `preferences`, `caps`, `pauses`, `attachments`, `schedules`, `gatherings`, `broadcasts`)
//! is synchronous and is told the time. Two shells run it: `threads` in a file, with group commit, and `inline` in memory.
//! `store` puts the ports over either.

mod accept;
mod attachments;
mod broadcasts;
mod caps;
mod claim;
mod core;

mod errors;
mod file;
mod gatherings;
mod hold;
mod inline;
mod keys;
#[cfg(test)]
mod layouts;
mod outbox;
mod pauses;
mod preferences;
mod purge;
mod read;
mod reader;
mod recipients;
mod rows;
mod schedules;
mod schema;
mod search;
mod sql;
mod store;
mod suppressions;
mod syncer;
mod tables;
#[cfg(test)]
mod tests;
mod threads;
mod write;
mod writer;

pub use inline::InlineStore;
pub use schema::OpenError;
pub use threads::SqliteStore;
