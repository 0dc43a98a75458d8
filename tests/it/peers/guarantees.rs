//! `docs/guarantees.md` has two authors: the simulation's sweep makes its first half, the tests with real
//! processes its second. Both are compared; with `UPDATE_DOCS=1` each writes its own.

use std::fs;
use std::sync::{Mutex, PoisonError};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guarantees.md");

/// The heading of the second half.
pub const SECOND: &str = "## With real processes\n";

/// Tests run side by side, and each reads the file before it writes.
static WRITING: Mutex<()> = Mutex::new(());

fn halves() -> [String; 2] {
    let text = fs::read_to_string(FILE).unwrap_or_default();
    let (first, second) = text.split_at(text.find(SECOND).unwrap_or(text.len()));
    [first.to_owned(), second.to_owned()]
}

/// Whether what is made is to be written.
pub fn updating() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// The first half, made anew by `make` where that is asked for.
pub fn first(make: impl FnOnce() -> String) -> String {
    kept(|[first, _]| *first = make())[0].clone()
}

/// The second half, changed by `change` where that is asked for.
pub fn second(change: impl FnOnce(&str) -> String) -> String {
    kept(|[_, second]| *second = change(second))[1].clone()
}

fn kept(change: impl FnOnce(&mut [String; 2])) -> [String; 2] {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    if updating() {
        let mut halves = halves();
        change(&mut halves);
        fs::write(FILE, halves.concat()).unwrap();
    }
    halves()
}
