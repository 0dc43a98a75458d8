//! Stores: implementations of the ports.

mod due;
pub mod redis;
pub mod sqlite;
