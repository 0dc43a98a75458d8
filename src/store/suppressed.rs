//! What both stores mean by the list of suppressions. It is in the order of its places, the latest first: since when
//! in 15 digits, then the digits of the id.

use belfry_domain::UnixMs;

use super::registry::dead_time;
use crate::ports::suppressions::{Suppressed, SuppressedPage, SuppressionId, is_place};

#[must_use]
pub fn place(since: UnixMs, id: SuppressionId) -> String {
    format!("{}{}{}", dead_time(since), id.address, id.word)
}

/// A place that a store gave out.
#[must_use]
pub fn read_place(text: &str) -> Option<&str> {
    is_place(text).then_some(text)
}

/// An entry in place of the one before.
#[must_use]
pub fn kept(before: Option<&Suppressed>, new: &Suppressed) -> Suppressed {
    let in_force = before.filter(|it| !it.is_over(new.since));
    Suppressed { since: in_force.map_or(new.since, |it| it.since), ..new.clone() }
}

/// What was found behind a place, in order, cut to a page: each with its own place.
#[must_use]
pub fn page(mut found: Vec<(String, Suppressed)>, limit: usize) -> SuppressedPage {
    let more = found.len() > limit;
    found.truncate(limit);
    let next = if more { found.last().map(|(place, _)| place.clone()) } else { None };
    SuppressedPage { entries: found.into_iter().map(|(_, entry)| entry).collect(), next }
}
