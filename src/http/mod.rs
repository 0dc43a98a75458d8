//! The API over HTTP.

pub mod api;
pub mod auth;
pub mod body;
pub mod drain;
pub mod headers;
pub mod keys;
pub mod problem;
pub mod query;
