//! Reading an object member by member, collecting **every** problem instead of stopping at the
//! first: a caller mends a request once.

use std::borrow::Cow;

use belfry_domain::UnixMs;
use serde::Serialize;

use super::instant;
use super::json::{Node, Value, child};

/// One bad field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldProblem {
    /// JSON pointer into the request.
    pub pointer: String,
    /// What is wrong and what would be right; never the value itself.
    pub detail: String,
    /// Nothing is wrong with the field: what looks at it was too slow just now.
    #[serde(skip)]
    pub late: bool,
}

impl FieldProblem {
    #[must_use]
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into(), late: false }
    }
}

/// Everything wrong with a request so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Wrong whenever it comes.
    pub lasting: Vec<FieldProblem>,
    /// Wrong by the clock or the configuration of now: the same request may have been right before.
    pub passing: Vec<FieldProblem>,
}

/// Most problems named in one answer.
const MOST_NAMED: usize = 100;

impl Problems {
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.lasting.len() < MOST_NAMED {
            self.lasting.push(FieldProblem::new(pointer, detail));
        }
    }

    pub fn add_passing(&mut self, problem: FieldProblem) {
        if self.passing.len() < MOST_NAMED {
            self.passing.push(problem);
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lasting.is_empty() && self.passing.is_empty()
    }

    /// All of them, in the order of their places.
    #[must_use]
    pub fn all(self) -> Vec<FieldProblem> {
        let mut all: Vec<_> = self.lasting.into_iter().chain(self.passing).collect();
        all.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        all.truncate(MOST_NAMED);
        all
    }
}

/// How long a text may be, in characters; no control characters unless `lines`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub most: usize,
    /// Line breaks and tabs may occur.
    pub lines: bool,
}

/// A name, a key, a header value: one line.
#[must_use]
pub const fn line(most: usize) -> Limits {
    Limits { most, lines: false }
}

/// A body.
#[must_use]
pub const fn body(most: usize) -> Limits {
    Limits { most, lines: true }
}

/// Members of a notification that are looked for elsewhere, and where they are.
const MISPLACED: &[(&str, &str)] = &[
    ("/to/cc", "/content/cc"),
    ("/to/bcc", "/content/bcc"),
    ("/cc", "/content/cc"),
    ("/bcc", "/content/bcc"),
    ("/to/data", "/data"),
    ("/to/template", "/template"),
    ("/content/data", "/data"),
    ("/content/template", "/template"),
    ("/content/locale", "/to/locale"),
    ("/content/time_zone", "/to/time_zone"),
];

/// An object whose members are read one by one.
pub struct Object<'n, 'a> {
    pub pointer: String,
    members: &'n [(Cow<'a, str>, Node<'a>)],
}

impl<'n, 'a> Object<'n, 'a> {
    /// `None` where it is no object; members that are not `known` are problems.
    pub fn open(node: &'n Node<'a>, pointer: &str, known: &[&str], problems: &mut Problems) -> Option<Self> {
        let object = Self::any(node, pointer, problems)?;
        for (name, _) in object.members {
            if !known.contains(&name.as_ref()) {
                let pointer = child(pointer, name);
                let belongs = MISPLACED.iter().find(|(wrong, _)| *wrong == pointer).map(|(_, right)| *right);
                let detail = match belongs {
                    Some(right) => format!("unknown field; it belongs at {right}"),
                    None => format!("unknown field; known are {}", known.join(", ")),
                };
                problems.add(pointer, detail);
            }
        }
        Some(object)
    }

    /// Likewise, with members of any name.
    pub fn any(node: &'n Node<'a>, pointer: &str, problems: &mut Problems) -> Option<Self> {
        let Value::Object(members) = &node.value else {
            problems.add(pointer, "must be an object");
            return None;
        };
        Some(Self { pointer: pointer.to_owned(), members })
    }

    #[must_use]
    pub fn at(&self, name: &str) -> String {
        child(&self.pointer, name)
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'n Node<'a>> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn members(&self) -> impl Iterator<Item = (&'n str, &'n Node<'a>)> + use<'n, 'a> {
        self.members.iter().map(|(name, node)| (name.as_ref(), node))
    }

    /// A string within its limits, if it is there.
    pub fn text(&self, name: &str, limits: Limits, problems: &mut Problems) -> Option<String> {
        text(self.get(name)?, &self.at(name), limits, problems)
    }

    /// A 64-bit integer, if it is there.
    pub fn integer(&self, name: &str, problems: &mut Problems) -> Option<i64> {
        let number = match &self.get(name)?.value {
            Value::Number(digits) => digits.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Object(_) => None,
        };
        if number.is_none() {
            problems
                .add(self.at(name), "must be an integer between -2^63 and 2^63 - 1, written without point or exponent");
        }
        number
    }

    /// An RFC 3339 instant, if it is there.
    pub fn instant(&self, name: &str, problems: &mut Problems) -> Option<UnixMs> {
        let text = self.get(name)?.text();
        let read = text.and_then(instant::read);
        if read.is_none() {
            problems.add(self.at(name), instant::wrong(text.unwrap_or_default()));
        }
        read
    }

    /// The items of an array with their pointers, at most `most` of them; empty where it is absent.
    pub fn list(&self, name: &str, most: usize, problems: &mut Problems) -> Vec<(String, &'n Node<'a>)> {
        let Some(node) = self.get(name) else { return Vec::new() };
        let pointer = self.at(name);
        let Value::List(items) = &node.value else {
            problems.add(pointer, "must be an array");
            return Vec::new();
        };
        if items.len() > most {
            problems.add(&pointer, format!("must hold at most {most} items, holds {}", items.len()));
        }
        items.iter().take(most).enumerate().map(|(at, item)| (child(&pointer, &at.to_string()), item)).collect()
    }
}

/// A string within its limits.
pub fn text(node: &Node<'_>, pointer: &str, limits: Limits, problems: &mut Problems) -> Option<String> {
    let Some(text) = node.text() else {
        problems.add(pointer, "must be a string");
        return None;
    };
    let long = text.chars().count();
    if long == 0 {
        problems.add(pointer, "must not be empty");
    } else if long > limits.most {
        problems.add(pointer, format!("must have at most {} characters, has {long}", limits.most));
    } else if text.contains(|c: char| c.is_control() && !(limits.lines && matches!(c, '\n' | '\r' | '\t'))) {
        let allowed =
            if limits.lines { "control characters other than line breaks and tabs" } else { "control characters" };
        problems.add(pointer, format!("must not contain {allowed}"));
    } else {
        return Some(text.to_owned());
    }
    None
}
