//! Files: their length, whether anything reaches them, what they speak of.

use std::collections::BTreeSet;

use super::Finding;
use super::source::{self, File, Kind};

const MOST_LINES: usize = 400;

pub(super) fn too_long(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > MOST_LINES).then(|| Finding::new("file-length", file, lines, format!("{lines} lines")))
}

/// Rust files that no `mod` leads to: they compile nowhere and rot.
pub(super) fn orphans(files: &[File]) -> Vec<Finding> {
    let roots = files.iter().filter(|file| is_root(&file.path));
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<&File> = roots.collect();
    while let Some(file) = open.pop() {
        if !reached.insert(file.path.clone()) {
            continue;
        }
        for module in modules(file) {
            let places = [format!("{module}.rs"), format!("{module}/mod.rs")];
            open.extend(files.iter().filter(|one| places.contains(&one.path)));
        }
    }
    files
        .iter()
        .filter(|file| !reached.contains(&file.path))
        .map(|file| Finding::new("orphan", file, 1, "no mod leads here"))
        .collect()
}

/// What cargo itself starts from.
fn is_root(path: &str) -> bool {
    let path = path.strip_prefix("crates/domain/").unwrap_or(path);
    let tests = path.strip_prefix("tests/").map(|rest| rest.split('/').collect::<Vec<_>>());
    let test = tests.is_some_and(|parts| parts.len() == 1 || parts.len() == 2 && parts[1] == "main.rs");
    test || matches!(path, "src/lib.rs" | "src/main.rs" | "build.rs" | "benches/src/main.rs")
}

/// Where the files of `mod name;` may be, without their ending.
fn modules(file: &File) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    let folder = match stem {
        "mod" | "lib" | "main" => folder.to_owned(),
        _ if is_root(&file.path) => folder.to_owned(),
        _ => format!("{folder}/{stem}"),
    };
    let own = file.path.rsplit_once('/').map_or("", |(own, _)| own);
    (0..file.tokens.len())
        .filter(|at| file.tokens[*at].word() == Some("mod") && file.stands(at + 2, &[";"]))
        .filter_map(|at| Some((at, file.tokens[at + 1].word()?)))
        .map(|(at, name)| {
            named_path(file, at).map_or_else(|| format!("{folder}/{name}"), |path| format!("{own}/{path}"))
        })
        .collect()
}

/// The path in `#[path = "….rs"] mod name;` or `pub mod name;`, from the file's own folder and without its ending.
fn named_path(file: &File, at: usize) -> Option<&str> {
    let at = if at > 0 && file.tokens[at - 1].word() == Some("pub") { at - 1 } else { at };
    let from = at.checked_sub(6)?;
    if !file.stands(from, &["#", "[", "path", "="]) {
        return None;
    }
    match &file.tokens[at - 2].kind {
        Kind::Literal(path) => path.trim_matches('"').strip_suffix(".rs"),
        _ => None,
    }
}

/// Snapshots (`<module>__<name>.snap`) whose test is gone.
pub(super) fn stray_snapshots() -> Vec<Finding> {
    source::texts()
        .iter()
        .filter(|file| file.path.ends_with(".snap") || file.path.ends_with(".snap.new"))
        .filter(|file| !has_test(file))
        .map(|file| Finding::new("snapshot", file, 1, "no test makes it"))
        .collect()
}

fn has_test(file: &File) -> bool {
    let Some(stem) = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".snap")) else { return false };
    let Some(made_by) = file.text.lines().find_map(|line| line.strip_prefix("source: ")) else { return false };
    let name = stem.rsplit("__").next().unwrap_or(stem);
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end_matches('-');
    // A name with dots is put together from what its test goes through.
    let named = |one: &File| one.text.contains(name) || name.contains('.') && one.text.contains("assert_snapshot!");
    source::rust().iter().any(|one| one.path.ends_with(made_by) && named(one))
}

/// Where this was written is nobody's business who uses it.
pub(super) fn workplace(file: &File) -> Vec<Finding> {
    let words = [
        ["/wor", "k/"].concat(),
        ["/far", "m/"].concat(),
        [".lib", "rary"].concat(),
        ["sub", "agent"].concat(),
        ["before", "-stop"].concat(),
        ["../sha", "red"].concat(),
    ];
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| words.iter().any(|word| line.to_lowercase().contains(word.as_str())))
        .map(|(at, line)| Finding::new("workplace", file, at + 1, line.trim()))
        .collect()
}
