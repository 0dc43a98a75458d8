//! Conditions that real users met carry numbers; `tests/cases.txt` lists the ones that have a
//! test. The list and the tests' names must agree.

use std::collections::BTreeSet;

use super::Finding;
use super::source::{self, File};

pub(super) fn unmatched(files: &[File]) -> Vec<Finding> {
    let list = source::texts().iter().find(|file| file.path == "tests/cases.txt").expect("tests/cases.txt");
    let mut listed = BTreeSet::new();
    let mut found = Vec::new();
    let tested: BTreeSet<u32> = files.iter().flat_map(case_tests).map(|(number, _)| number).collect();
    for (at, line) in list.text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let row = line.split_once(' ').and_then(|(number, title)| Some((number.parse::<u32>().ok()?, title.trim())));
        match row {
            Some((number, title)) if title.len() > 10 => {
                if !listed.insert(number) {
                    found.push(Finding::new("case", list, at + 1, format!("case {number} is listed twice")));
                }
                if !tested.contains(&number) {
                    found.push(Finding::new("case", list, at + 1, format!("case {number} has no test")));
                }
            }
            _ => found.push(Finding::new("case", list, at + 1, "not a number and a title")),
        }
    }
    for file in files {
        for (number, line) in case_tests(file) {
            if !listed.contains(&number) {
                found.push(Finding::new("case", file, line, format!("case {number} is not in tests/cases.txt")));
            }
        }
    }
    found
}

/// `fn case_NN_…` and `fn case_NN`, with their lines.
fn case_tests(file: &File) -> Vec<(u32, usize)> {
    file.tokens
        .iter()
        .enumerate()
        .filter(|(at, _)| *at > 0 && file.tokens[at - 1].word() == Some("fn"))
        .filter_map(|(_, token)| {
            let rest = token.word()?.strip_prefix("case_")?;
            Some((rest.split('_').next()?.parse().ok()?, token.line))
        })
        .collect()
}
