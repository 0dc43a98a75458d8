//! Stores: implementations of the ports.

pub mod sqlite;
