//! Real Redis servers for the tests (one, a Cluster, a primary that sentinels watch), and what the
//! link to them does when they falter.

mod calls;
pub mod cluster;
mod durable;
mod errors;
mod following;
mod link;
mod mend;
pub mod sentinel;
pub mod server;
pub mod shared;
pub mod valkey;

pub use shared::shared;
