//! What may go out when: the whole server, asked over its API.

mod pauses;
mod quiet_hours;
