//! What was done and what was found, as a row of `docs/guarantees.md`. Nothing stands there that differs from
//! run to run: how often there was a repeat or an unknown outcome is printed only.

use std::collections::BTreeMap;

use super::scenarios::TITLES;
use crate::peers::guarantees;

const HEAD: &str = include_str!("guarantees_head.md");
const TAIL: &str = include_str!("guarantees_tail.md");

/// What was done in one scenario, and found.
pub struct Row {
    pub done: String,
    /// Asked for until acknowledged.
    pub intents: usize,
    /// Asked for once, by callers who take no for an answer.
    pub once: usize,
    pub lost: String,
    pub doubled: usize,
    pub unexplained: usize,
    pub endless: usize,
}

impl Row {
    fn line(&self, title: &str) -> String {
        let Self { done, intents, once, lost, doubled, unexplained, endless } = self;
        let intents = if *once == 0 { intents.to_string() } else { format!("{intents}, {once} once") };
        format!("| {title} | {done} | {intents} | {lost} | {doubled} | {unexplained} | {endless} |")
    }
}

/// The rows of a page, by their titles.
fn rows(page: &str) -> BTreeMap<&str, &str> {
    let title = |line: &str| line.strip_prefix("| ").and_then(|line| line.split_once(" |")).map_or(0, |at| at.0.len());
    page.lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .map_while(|line| (line.starts_with('|')).then(|| (&line[2..2 + title(line)], line)))
        .collect()
}

/// The half that the tests with real processes make; what has no row is left out.
fn page(rows: &BTreeMap<&str, &str>) -> String {
    let lines = TITLES.iter().filter_map(|title| rows.get(title)).map(|line| format!("{line}\n"));
    [guarantees::SECOND.to_owned(), HEAD.to_owned(), lines.collect(), TAIL.to_owned()].concat()
}

/// Compares what a scenario found with the document; `None` where it could not run as planned.
pub fn keep(title: &str, found: Option<Row>) {
    let Some(row) = found else { return println!("{title}: not compared with the document") };
    let line = row.line(title);
    println!("{line}");
    let kept = guarantees::second(|half| {
        let mut rows = rows(half);
        rows.insert(title, &line);
        page(&rows)
    });
    let kept = rows(&kept).get(title).copied().unwrap_or("no row").to_owned();
    assert_eq!(kept, line, "docs/guarantees.md is not what this run found (UPDATE_DOCS=1 writes it)");
}

#[test]
fn the_document_has_a_row_of_every_scenario_and_no_other() {
    let kept = guarantees::second(|half| page(&rows(half)));
    let found = rows(&kept);
    assert_eq!(kept, page(&found), "in another order, or with a row that no test makes");
    // While rows are written some may not be there yet.
    let missing: Vec<_> = TITLES.iter().filter(|title| !found.contains_key(*title)).collect();
    assert!(guarantees::updating() || missing.is_empty(), "no row: {missing:?}");
}

#[test]
fn titles_differ() {
    let different: std::collections::BTreeSet<_> = TITLES.iter().collect();
    assert_eq!(different.len(), TITLES.len());
}
