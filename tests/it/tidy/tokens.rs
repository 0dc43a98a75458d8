//! What nobody writes, found word by word.

use super::Finding;
use super::source::{File, Token};

/// `let _ =` on a call, anything unbounded, jobs left undone. Anywhere.
pub(super) fn never(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, token) in file.tokens.iter().enumerate() {
        let Some(word) = token.word() else { continue };
        if matches!(word, "todo" | "unimplemented" | "dbg") && file.stands(at + 1, &["!"]) {
            found.push(Finding::new("undone", file, token.line, word));
        }
        if word.starts_with("unbounded") {
            found.push(Finding::new("unbounded", file, token.line, word));
        }
        if word == "let" && file.stands(at + 1, &["_", "="]) && calls_something(&file.tokens[at + 3..]) {
            found.push(Finding::new("dropped", file, token.line, "let _ = of a call"));
        }
    }
    found
}

/// Whether a call stands before the statement's end.
fn calls_something(tokens: &[Token]) -> bool {
    tokens.iter().take_while(|token| !token.is(';')).any(|token| token.is('('))
}

/// Sleeping in tests: a sleep is either too short or too long.
pub(super) fn naps(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let in_tests = |at: usize| file.is_test() || unit_tests_from(file).is_some_and(|from| at > from);
    for (at, token) in file.tokens.iter().enumerate() {
        let sleeps = token.word().is_some_and(|word| word.starts_with("sleep")) && file.stands(at + 1, &["("]);
        let own = at > 0 && file.tokens[at - 1].word() == Some("fn");
        if sleeps && !own && in_tests(at) {
            found.push(Finding::new("sleep", file, token.line, token.word().unwrap_or_default()));
        }
    }
    found
}

fn unit_tests_from(file: &File) -> Option<usize> {
    (0..file.tokens.len()).find(|at| file.stands(*at, &["#", "[", "cfg", "(", "test", ")", "]"]))
}

/// Leave to read the real clock, draw a real die or look at the surroundings. Clippy refuses the
/// calls (`clippy.toml`); here stands where its refusal may be lifted.
pub(super) fn shell_only(file: &File) -> Vec<Finding> {
    if !file.is_product() {
        return Vec::new();
    }
    file.tokens
        .iter()
        .filter(|token| token.word() == Some("disallowed_methods"))
        .map(|token| Finding::new("shell", file, token.line, "disallowed_methods"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::from_text;
    use super::*;

    #[test]
    fn finds_what_nobody_writes() {
        let undone = ["to", "do"].concat();
        for text in [
            format!("fn f() {{ {undone}!() }}"),
            "fn f() { let _ = g(); }".to_owned(),
            "fn f() { let _ = a.b().c; }".to_owned(),
            "fn f() { mpsc::unbounded_channel() }".to_owned(),
        ] {
            assert_eq!(never(&from_text("src/x.rs", &text)).len(), 1, "{text}");
        }
        assert_eq!(never(&from_text("src/x.rs", "fn f() { let _ = a; let _x = g(); }")), []);
    }

    #[test]
    fn finds_sleeps_in_tests_only() {
        let text = "fn f() { thread::sleep(x); } #[cfg(test)] mod tests { fn g() { tokio::time::sleep(x).await; } }";
        assert_eq!(naps(&from_text("src/x.rs", text)).len(), 1);
        assert_eq!(naps(&from_text("tests/it/x.rs", text)).len(), 2);
    }
}
