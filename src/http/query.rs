//! Query parameters and cursors. An unknown parameter is refused: a mistyped filter must not
//! answer with everything.

use axum::extract::Query;
use axum::http::Uri;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::problem::{Code, Problem};
use crate::intake::fields::FieldProblem;

/// The parameters of one request, read one by one; every bad one is named.
pub struct Params {
    pairs: Vec<(String, String)>,
    problems: Vec<FieldProblem>,
}

impl Params {
    /// Splits the query; parameters that are not `known` or stand twice are problems.
    #[must_use]
    pub fn of(uri: &Uri, known: &[&str]) -> Self {
        let mut read = Self { pairs: Vec::new(), problems: Vec::new() };
        let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
            read.problem("", "the query cannot be read");
            return read;
        };
        for (at, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let known = match known {
                    [] => "none is known here".into(),
                    known => format!("known are {}", known.join(", ")),
                };
                read.problem(name, &format!("unknown parameter; {known}"));
            } else if pairs[..at].iter().any(|(other, _)| other == name) {
                read.problem(name, "stands more than once");
            }
        }
        read.pairs = pairs;
        read
    }

    fn problem(&mut self, name: &str, detail: &str) {
        self.problems.push(FieldProblem::new(crate::intake::json::child("/query", name), detail));
    }

    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A text of 1 to `most` characters.
    pub fn bounded(&mut self, name: &str, most: usize) -> Option<String> {
        let text = self.text(name)?.to_owned();
        if text.is_empty() || text.chars().count() > most {
            self.problem(name, &format!("must have 1 to {most} characters"));
            return None;
        }
        Some(text)
    }

    /// A value that `read` can make something of.
    pub fn parsed<T>(&mut self, name: &str, right: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let parsed = read(self.text(name)?);
        if parsed.is_none() {
            self.problem(name, right);
        }
        parsed
    }

    /// # Errors
    /// 400, naming every bad parameter.
    pub fn end(self) -> Result<(), Problem> {
        if self.problems.is_empty() {
            return Ok(());
        }
        Err(Problem::new(Code::BadParameter, "One or more query parameters are wrong.").with(self.problems))
    }
}

/// A position as callers see it: opaque, and refused when mistyped.
#[must_use]
pub fn cursor(position: u64) -> String {
    let bytes = position.to_be_bytes();
    URL_SAFE_NO_PAD.encode([&bytes[..], &check(bytes)].concat())
}

/// Reads a cursor back.
#[must_use]
pub fn position(cursor: &str) -> Option<u64> {
    let bytes: [u8; 10] = URL_SAFE_NO_PAD.decode(cursor).ok()?.try_into().ok()?;
    let mut position = [0; 8];
    position.copy_from_slice(&bytes[..8]);
    (check(position) == bytes[8..]).then(|| u64::from_be_bytes(position))
}

fn check(position: [u8; 8]) -> [u8; 2] {
    let hash = Sha256::digest([b"cursor".as_slice(), &position].concat());
    [hash[0], hash[1]]
}

#[cfg(test)]
mod tests {
    use super::{cursor, position};

    #[test]
    fn cursors_come_back_and_nothing_else_does() {
        for at in [0, 1, u64::MAX] {
            assert_eq!(position(&cursor(at)), Some(at));
        }
        for bad in ["", "1", "AAAAAAAAAAAAAA", "!", &cursor(7)[1..]] {
            assert_eq!(position(bad), None, "{bad}");
        }
    }
}
