//! A caller's JSON, as strictly as [`content::json`](crate::content::json) reads it and no deeper than
//! the API takes it.

use crate::content::json::read;
pub use crate::content::json::{JsonProblem, Node, Value, child};

/// Deepest nesting of arrays and objects.
pub const MOST_DEPTH: usize = 32;

/// Reads one JSON text.
///
/// # Errors
/// [`JsonProblem`].
pub fn parse(bytes: &[u8]) -> Result<Node<'_>, JsonProblem> {
    read(bytes, MOST_DEPTH)
}
