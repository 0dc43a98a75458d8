//! Stores: implementations of the ports.

mod due;
pub mod redis;
mod registry;
pub mod sqlite;
mod suppressed;
