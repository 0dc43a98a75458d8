//! Many requests in one body. Each item stands for itself, under its own key, exactly as if it had
//! come alone: a batch that is sent again after a crash half way finishes what was left.

use super::accept::{Candidate, Intake};
use super::fields::{FieldProblem, Object, Problems};
use super::json::{Node, Value};
use super::plan::{Arrival, wrong_key};
use super::stored::{Asker, named};
use belfry_domain::timeline::Hop;
use std::collections::BTreeSet;

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
    asker: Asker<'_>,
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
    Ok(items.into_iter().map(|(_, node)| item(intake, asker, node, traceparent)).collect())
}

/// The recipients that the items name.
#[must_use]
pub fn all_named(node: &Node<'_>) -> BTreeSet<String> {
    match node.member("items").map(|items| &items.value) {
        Some(Value::List(items)) => items.iter().take(MOST_ITEMS).filter_map(named).collect(),
        _ => BTreeSet::new(),
    }
}

/// How many items there are. 0 where there are more than one batch may have: it is refused as a whole.
#[must_use]
pub fn count(node: &Node<'_>) -> usize {
    match node.member("items").map(|items| &items.value) {
        Some(Value::List(items)) if items.len() <= MOST_ITEMS => items.len(),
        _ => 0,
    }
}

fn item(intake: &Intake, asker: Asker<'_>, node: &Node<'_>, traceparent: Option<&str>) -> BatchItem {
    let key = node.member(KEY).and_then(Node::text).unwrap_or_default().to_owned();
    let arrival = Arrival { key: key.clone(), via: Hop::Batch, traceparent: traceparent.map(str::to_owned) };
    let mut candidate = intake.prepare(asker, &arrival, node, Some(KEY));
    if let Some(wrong) = wrong_key(&key) {
        candidate.refuse(FieldProblem::new("/key", wrong));
    }
    BatchItem { key, candidate }
}
