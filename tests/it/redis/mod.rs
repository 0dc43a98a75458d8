//! Real Redis servers for the tests (one, a Cluster, a primary that sentinels watch), and what the
//! link to them does when they falter.

mod astray;
mod calls;
mod caps;
pub(crate) mod cluster;
mod cut;
mod durable;
mod emptied;
mod errors;
mod following;
mod full;
mod holding;
mod index;
mod link;
mod mend;
mod partial;
mod rights;
pub(crate) mod sentinel;
pub(crate) mod server;
mod shared;
mod start;
mod tombstones;
mod unreadable;
pub(crate) mod valkey;

pub use server::Server;
pub use shared::{shared, shared_cluster, shared_valkey};

/// A mark that no other node in this process has.
pub fn mark() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
