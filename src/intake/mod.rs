//! The one door: every way in ends at `accept`. Knows no HTTP and no store's name.

pub mod accept;
pub mod actions;
pub mod address;
pub mod admission;
pub mod answer;
pub mod batch;
pub mod caller;
pub mod canonical;
pub mod channels;
pub mod content_check;
pub mod fields;
pub mod inline;
pub mod instant;
pub mod json;
pub mod pauses;
pub mod plan;
pub mod recipient;
pub mod registrar;
pub mod restored;
pub mod seen;
pub mod slot;
pub mod stored;
pub mod submission;
pub mod suppressions;
