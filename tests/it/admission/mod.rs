//! What may go out when: the whole server, asked over its API.

mod digests;
mod pauses;
mod preferences;
mod quiet_hours;
