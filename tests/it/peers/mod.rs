//! Peers that tests talk to.

pub mod guarantees;
pub mod mail_server;
pub mod rng;
pub mod signal;
pub mod smtp_stub;
pub mod until;
