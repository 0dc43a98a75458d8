//! Stores: implementations of the ports.

pub mod redis;
pub mod sqlite;
