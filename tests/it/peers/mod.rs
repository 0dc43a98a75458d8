//! Peers that tests talk to.

pub mod apns_sim;
pub mod fcm_sim;
pub mod guarantees;
pub mod mail_server;
pub mod rng;
pub mod signal;
pub mod smtp_stub;
pub mod until;
pub mod web_push_sim;
