//! The whole policy from outside: every state against every event, and what must hold whatever
//! happens in whatever order.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and may look at the machine"
)]

mod actions;
mod admission;
mod broadcast;
mod caps;
mod circuit;
mod diagram;
mod fixtures;
mod golden;
mod held_back;
mod properties;
mod quiet;
mod readdressed;
mod reasons;
mod receipts;
mod schedule;
mod table;
mod waiting;
