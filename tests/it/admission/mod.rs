//! What may go out when: the whole server, asked over its API.

mod pauses;
mod preferences;
mod quiet_hours;
