//! Real Redis servers for the tests (one, a Cluster, a primary that sentinels watch), and what the
//! link to them does when they falter.

mod calls;
pub(crate) mod cluster;
mod durable;
mod errors;
mod following;
mod holding;
mod link;
mod mend;
mod partial;
pub(crate) mod sentinel;
pub(crate) mod server;
mod shared;
mod start;
pub(crate) mod valkey;

pub use server::Server;
pub use shared::{shared, shared_cluster};
