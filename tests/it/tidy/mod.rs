//! The tree keeps its own rules: who may know whom, how long things may grow, what nobody writes.
//! What clippy can check stands in `clippy.toml` and `Cargo.toml`; this is the rest.

mod arrows;
mod cases;
mod exceptions;
mod names;
mod source;
mod tokens;
mod tree;

use exceptions::EXCEPTIONS;
use source::File;

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    rule: &'static str,
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(rule: &'static str, file: &File, line: usize, what: impl Into<String>) -> Self {
        Self { rule, path: file.path.clone(), line, what: what.into() }
    }

    fn excepted(&self) -> bool {
        EXCEPTIONS.iter().any(|one| one.covers(self.rule, &self.path, &self.what))
    }
}

#[track_caller]
fn report(findings: &[Finding]) {
    let lines: Vec<String> = findings
        .iter()
        .filter(|one| !one.excepted())
        .map(|one| format!("{}:{}: {}: {}", one.path, one.line, one.rule, one.what))
        .collect();
    assert!(lines.is_empty(), "{}\n", lines.join("\n"));
}

#[test]
fn rooms_know_only_whom_they_may() {
    report(&source::rust().iter().flat_map(arrows::rooms).collect::<Vec<_>>());
}

#[test]
fn every_room_has_its_arrows() {
    report(&source::rust().iter().filter_map(arrows::nameless).collect::<Vec<_>>());
}

#[test]
fn each_library_has_its_room() {
    report(&source::rust().iter().flat_map(arrows::libraries).collect::<Vec<_>>());
}

#[test]
fn files_stay_short() {
    report(&source::rust().iter().filter_map(tree::too_long).collect::<Vec<_>>());
}

#[test]
fn every_file_is_part_of_the_tree() {
    report(&tree::orphans(source::rust()));
}

#[test]
fn every_snapshot_belongs_to_a_test() {
    report(&tree::stray_snapshots());
}

#[test]
fn names_say_something() {
    report(&source::rust().iter().flat_map(names::banned).collect::<Vec<_>>());
}

#[test]
fn nothing_is_unbounded_dropped_or_left_undone() {
    report(&source::rust().iter().flat_map(tokens::never).collect::<Vec<_>>());
}

#[test]
fn tests_wait_for_conditions_and_never_sleep() {
    report(&source::rust().iter().flat_map(tokens::naps).collect::<Vec<_>>());
}

#[test]
fn clock_dice_and_surroundings_stay_in_the_shell() {
    report(&source::rust().iter().flat_map(tokens::shell_only).collect::<Vec<_>>());
}

#[test]
fn nothing_speaks_of_the_workplace() {
    report(&source::texts().iter().flat_map(tree::workplace).collect::<Vec<_>>());
}

#[test]
fn every_listed_case_has_its_test_and_every_case_test_its_row() {
    report(&cases::unmatched(source::rust()));
}

#[test]
fn every_exception_is_needed_and_says_why() {
    let files = source::rust();
    let mut found: Vec<Finding> = Vec::new();
    for file in files {
        found.extend(arrows::rooms(file));
        found.extend(arrows::libraries(file));
        found.extend(tree::too_long(file));
        found.extend(names::banned(file));
        found.extend(tokens::never(file));
        found.extend(tokens::naps(file));
        found.extend(tokens::shell_only(file));
    }
    for one in EXCEPTIONS {
        assert!(one.reason.len() > 20, "{} in {}: say why", one.rule, one.path);
        let needed = found.iter().any(|finding| one.covers(finding.rule, &finding.path, &finding.what));
        assert!(needed, "{} in {} ({}) is no longer needed", one.rule, one.path, one.what);
    }
}
