//! The one integration-test binary.

mod cases;
mod cli;
mod contract;
mod engine;
mod http;
mod kill;
mod outbox;
mod peers;
mod sim;
mod smtp;
mod templates;
mod tidy;
