//! Real Redis servers for the tests: one, a Cluster, a primary that sentinels watch.

mod server;
mod shared;

pub use server::{Options, Server};
pub use shared::shared;
