//! The real process: killed, stopped, restarted, waiting.

mod graceful;
pub(crate) mod http;
mod kills;
pub(crate) mod load;
pub(crate) mod reconcile;
mod restored;
pub(crate) mod server;
pub(crate) mod sink;
mod stopped;
mod waiting;
