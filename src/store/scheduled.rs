//! What both stores read of schedules: one text each.

use crate::ports::schedules::{Kept, SchedulePage};

/// # Errors
/// It is not as it was written.
pub fn kept(written: String) -> serde_json::Result<Kept> {
    Ok(Kept { schedule: serde_json::from_str(&written)?, written })
}

/// What was found behind a name, in order, cut to a page.
#[must_use]
pub fn page(mut found: Vec<(String, String)>, limit: usize) -> SchedulePage {
    let more = found.len() > limit;
    found.truncate(limit);
    let next = if more { found.last().map(|(name, _)| name.clone()) } else { None };
    // What cannot be read must not hold up the rest.
    let schedules = found.into_iter().filter_map(|(_, body)| kept(body).ok()).map(|one| one.schedule).collect();
    SchedulePage { schedules, next }
}
