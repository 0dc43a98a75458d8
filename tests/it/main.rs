//! The one integration-test binary.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and stands outside the ports"
)]

mod admission;
mod cli;
mod contract;
mod drill;
mod due;
mod http;
mod kill;
mod nodes;
mod outbox;
mod peers;
mod push;
mod redis;
mod sim;
mod smtp;
mod templates;
mod tidy;
