//! The real process: killed, stopped, restarted, waiting.

mod graceful;
mod http;
mod kills;
mod load;
mod reconcile;
mod server;
mod sink;
mod stopped;
mod waiting;
