//! Real Redis servers for the tests (one, a Cluster, a primary that sentinels watch), and what the
//! link to them does when they falter.

mod calls;
mod cluster;
mod durable;
mod errors;
mod following;
mod link;
mod mend;
<<<<<<< HEAD
pub mod sentinel;
pub mod server;
pub mod shared;
pub mod valkey;
=======
mod sentinel;
mod server;
mod shared;
mod valkey;
>>>>>>> link

pub use server::Server;
pub use shared::{shared, shared_cluster};
