//! Words that say nothing, kept out of names: whoever writes `handle` has not yet said what is
//! done.

use super::Finding;
use super::source::{File, Kind, Token};

/// Beginnings of words; a name is split at `_` and at capitals first.
const BANNED: [(&str, &[&str]); 6] = [
    ("process", &["", "es", "ed", "ing", "or", "ors"]),
    ("handle", &["", "s", "d", "r", "rs"]),
    ("manage", &["", "s", "d", "r", "rs", "ment"]),
    ("util", &["", "s", "ity", "ities"]),
    ("helper", &["", "s"]),
    ("data", &[""]),
];

/// Names that are given here: items, fields, variants, parameters, variables.
pub(super) fn banned(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, token) in file.tokens.iter().enumerate() {
        let Some(word) = token.word() else { continue };
        // A test's name is a sentence, in which such a word may well say something.
        let sentence = at > 0 && file.tokens[at - 1].word() == Some("fn") && words(word).len() > 4;
        if says_nothing(word) && is_given_here(file, at) && !sentence {
            found.push(Finding::new("name", file, token.line, word));
        }
    }
    found
}

fn is_given_here(file: &File, at: usize) -> bool {
    const GIVERS: [&str; 10] = ["fn", "struct", "enum", "trait", "mod", "const", "static", "type", "let", "mut"];
    let before = at.checked_sub(1).map(|at| &file.tokens[at]);
    let after = file.tokens.get(at + 1);
    let by_word = before.and_then(Token::word).is_some_and(|word| GIVERS.contains(&word));
    let by_colon = after.is_some_and(|token| token.is(':'))
        && !file.stands(at + 1, &[":", ":"])
        && !before.is_some_and(|token| token.is(':'));
    by_word || by_colon || is_variant(file, at)
}

/// A variant stands right inside an enum's braces, after `{`, `,` or an attribute.
fn is_variant(file: &File, at: usize) -> bool {
    let capital = file.tokens[at].word().is_some_and(|word| word.starts_with(char::is_uppercase));
    let placed = at > 0 && ['{', ',', ']'].iter().any(|mark| file.tokens[at - 1].is(*mark));
    if !capital || !placed {
        return false;
    }
    let mut nesting = 0;
    for (index, token) in file.tokens[..at].iter().enumerate().rev() {
        match token.kind {
            Kind::Close(_) => nesting += 1,
            Kind::Open(_) if nesting > 0 => nesting -= 1,
            Kind::Open('{') => return index >= 2 && file.tokens[index - 2].word() == Some("enum"),
            Kind::Open(_) => return false,
            _ => {}
        }
    }
    false
}

fn says_nothing(name: &str) -> bool {
    words(name).iter().any(|word| {
        BANNED.iter().any(|(stem, endings)| word.strip_prefix(stem).is_some_and(|rest| endings.contains(&rest)))
    })
}

fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter != '_'
            && let Some(last) = words.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_that_are_given() {
        for text in [
            "fn handle_request() {}",
            "struct MessageProcessor;",
            "mod utils {}",
            "struct A { data: u8 }",
            "fn f(helper: u8) {}",
            "fn f() { let mut data = 1; }",
            "enum E { A, #[x] Handler(u8) }",
            "trait ConnectionManager {}",
        ] {
            let file = super::super::source::from_text("src/x.rs", text);
            assert_eq!(banned(&file).len(), 1, "{text}");
        }
    }

    #[test]
    fn leaves_alone_what_others_named() {
        for text in [
            "use std::process::Command;",
            "fn metadata() {}",
            "fn f() { std::process::exit(1) }",
            "struct Database;",
            "fn f() { match x { Handler::A => {} } }",
        ] {
            let file = super::super::source::from_text("src/x.rs", text);
            assert_eq!(banned(&file), [], "{text}");
        }
    }
}
