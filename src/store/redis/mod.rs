//! The store on Redis: one machine, Sentinel or Cluster, shared by several nodes.
//!
//! A notification's record, its deliveries, their place in the due index and its tombstone share a
//! shard, and a shard has one slot, so that every verb is one script on one slot. Scripts compare and
//! write; what a record says is read by Belfry alone.

mod accept;
mod admin;
mod answers;
mod broadcasts;
mod caps;
mod claim;
mod codec;
mod collapse;
mod dead;
mod gatherings;
mod health;
mod hold;
pub mod keys;
pub mod link;
mod memory;
mod mend;
mod outbox;
mod paces;
mod pauses;
mod ports;
mod preferences;
mod presence;
mod purge;
mod read;
mod recipients;
mod schedules;
pub mod script;
mod scripts;
mod search;
mod shard;
mod spread;
mod standing;
mod store;
mod suppressions;
mod tokens;
mod wipe;
mod write;

pub use store::{Clocks, PrepareError, RedisStore, StoreClock};
pub use wipe::wipe;
