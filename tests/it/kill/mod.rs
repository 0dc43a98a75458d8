//! The real process, killed.

mod graceful;
mod http;
mod kills;
mod load;
mod reconcile;
mod server;
mod sink;
mod stopped;
