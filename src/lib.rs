//! Belfry: one intent, one effect, whatever is repeated on the way.
//!
//! `docs/ARCHITECTURE.md` is the map of this crate.

pub mod app;
pub mod channel;
pub mod cli;
pub mod config;
pub mod content;
pub mod engine;
pub mod facts;
pub mod gatherer;
pub mod http;
pub mod intake;
pub mod machine;
pub mod ops;
pub mod ports;
pub mod schedules;
pub mod store;
pub mod telemetry;
pub mod text_file;
