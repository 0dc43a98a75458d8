//! The one door: every way in ends at `accept`. Knows no HTTP and no store's name.

pub mod canonical;
pub mod instant;
pub mod json;
