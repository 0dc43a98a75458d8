//! Stores: implementations of the ports.

mod due;
pub mod redis;
mod registry;
mod scheduled;
pub mod sqlite;
mod suppressed;
