//! Push: each platform's channel against a strict stand-in, then the whole server with all three behind it.

mod apns;
mod bed;
mod devices;
mod faults;
mod fcm;
pub(crate) mod live;
mod web_push;
