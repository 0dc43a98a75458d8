//! Providers. Each one file or folder: its configuration, a pure `classify`, and `send`. Knows the
//! ports and the domain; never a store, a metric or an HTTP status of ours.

pub mod apns;
pub mod fcm;
pub mod https;
pub mod outbox;
mod payload;
mod pem;
pub mod setting;
pub mod smtp;
pub mod web_push;
