//! Many requests in one body. Each item stands for itself, under its own key, exactly as if it had
//! come alone: a batch that is sent again after a crash half way finishes what was left.

use super::accept::{Candidate, Intake};
use super::caller::Caller;
use super::fields::{FieldProblem, Object, Problems};
use super::json::Node;
use super::plan::{Arrival, wrong_key};
use belfry_domain::timeline::Hop;

/// Most items in one batch.
pub const MOST_ITEMS: usize = 1000;
/// The member that carries an item's key.
pub const KEY: &str = "key";

/// One item, ready to be accepted.
#[derive(Debug)]
pub struct BatchItem {
    /// As written; empty where there is none.
    pub key: String,
    pub candidate: Candidate,
}

/// Reads `{"items": [{"key": …, …}]}`. A bad item is a refused candidate, not an error.
///
/// # Errors
/// What is wrong with the batch as a whole.
pub fn prepare(
    intake: &Intake,
    caller: &Caller,
    node: &Node<'_>,
    traceparent: Option<&str>,
) -> Result<Vec<BatchItem>, Vec<FieldProblem>> {
    let mut problems = Problems::default();
    let items = match Object::open(node, "", &["items"], &mut problems) {
        Some(object) => {
            if !object.has("items") {
                problems.add("/items", "is required");
            }
            object.list("items", MOST_ITEMS, &mut problems)
        }
        None => Vec::new(),
    };
    if items.is_empty() && problems.is_empty() {
        problems.add("/items", "must hold at least one item");
    }
    if !problems.is_empty() {
        return Err(problems.all());
    }
    Ok(items.into_iter().map(|(_, node)| item(intake, caller, node, traceparent)).collect())
}

fn item(intake: &Intake, caller: &Caller, node: &Node<'_>, traceparent: Option<&str>) -> BatchItem {
    let key = node.member(KEY).and_then(Node::text).unwrap_or_default().to_owned();
    let arrival = Arrival { key: key.clone(), via: Hop::Batch, traceparent: traceparent.map(str::to_owned) };
    let mut candidate = intake.prepare(caller, &arrival, node, Some(KEY));
    if let Some(wrong) = wrong_key(&key) {
        candidate.refuse(FieldProblem::new("/key", wrong));
    }
    BatchItem { key, candidate }
}
