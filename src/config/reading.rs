//! From untyped layers to types, with every problem found on the way: a key at fault is reported,
//! its default put in its place, and the reading goes on.

use std::collections::{BTreeMap, BTreeSet};

use figment::error::{Actual, Kind};
use figment::value::{Dict, Value};
use serde::de::DeserializeOwned;

use super::layers::{Layers, Sources, find, put, remove};
use super::problem::{Origin, Problem};
use crate::ports::near::near_match;

pub(super) struct Reading {
    pub layers: Layers,
    /// All layers merged, less what was refused.
    pub tree: Dict,
    pub problems: Vec<Problem>,
    /// Reported already; their absence is no second problem.
    pub gone: BTreeSet<String>,
    /// Environment values whose text has been tried in other ways, by key: how often, and what was
    /// wrong with the first reading.
    tried: BTreeMap<String, (u8, String)>,
}

impl Reading {
    pub fn new(sources: &Sources) -> Self {
        let mut problems = Vec::new();
        let layers = Layers::read(sources, &mut problems);
        let tree = layers.merged();
        Self { layers, tree, problems, gone: BTreeSet::new(), tried: BTreeMap::new() }
    }

    pub fn report(&mut self, key: &str, what: impl Into<String>) {
        let origin = self.layers.origin(key).unwrap_or(Origin::Default);
        self.problems.push(Problem { key: key.to_owned(), origin, what: what.into() });
    }

    /// Reports the top-level keys that are no section.
    pub fn refuse_unknown_sections(&mut self, sections: &[&'static str]) {
        let strangers: Vec<String> =
            self.tree.keys().filter(|name| !sections.contains(&name.as_str())).cloned().collect();
        for name in strangers {
            self.report(&name, unknown(&name, sections));
            self.tree.remove(&name);
        }
    }

    /// The names under a section of named entries, with those that are no name reported.
    pub fn names(&mut self, section: &str) -> Vec<String> {
        let names = match find(&self.tree, section) {
            None => Vec::new(),
            Some(Value::Dict(_, entries)) => entries.keys().cloned().collect(),
            Some(_) => {
                self.report(section, format!("expected tables: [{section}.<name>]"));
                Vec::new()
            }
        };
        let (good, odd): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| is_name(name));
        for name in odd {
            let what = "is no name: up to 64 lower-case letters, digits, \"-\" and \"_\", a letter first";
            self.report(&format!("{section}.{name}"), what);
        }
        good
    }

    /// The section at `key`, or `None` where it cannot be had; then there is a problem to read.
    pub fn section<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        loop {
            let value = match find(&self.tree, key) {
                Some(value) => value.clone(),
                None if self.gone.contains(key) => return None,
                None => Value::from(Dict::new()),
            };
            let error = match value.deserialize::<T>() {
                Ok(section) => return Some(section),
                Err(error) => error,
            };
            let mut path: Vec<String> = key.split('.').map(str::to_owned).collect();
            path.extend(error.path.clone());
            if !self.mend(&path, &error.kind) {
                return None;
            }
        }
    }

    /// Reports one error and takes its cause out. Whether it makes sense to read on.
    fn mend(&mut self, path: &[String], kind: &Kind) -> bool {
        let (key, whole) = whole_key(&self.tree, path);
        match kind {
            Kind::UnknownField(name, known) => {
                let key = if path.last() == Some(name) { key } else { format!("{key}.{name}") };
                self.report(&key, unknown(name, known));
                remove(&mut self.tree, &key)
            }
            Kind::MissingField(name) => {
                let missing = format!("{key}.{name}");
                if !self.gone.insert(missing.clone()) {
                    return false;
                }
                self.report(&key, format!("lacks the key \"{name}\"{}{}", needed(name), self.meant_class(&key)));
                // Something in its place, so that what else is wrong comes to light as well.
                put(&mut self.tree, &missing, Value::from(""))
            }
            // What stands in for a missing key does not fit either.
            _ if self.gone.contains(&key) => remove(&mut self.tree, &key),
            _ => {
                let what = match hint(&key) {
                    Some(hint) => hint.to_owned(),
                    None if whole => wrong(&key, kind),
                    None => format!("in its list, {}", wrong(&key, kind)),
                };
                if self.read_otherwise(&key, &what) {
                    return true;
                }
                let first = self.tried.remove(&key).map(|(_, first)| first);
                self.report(&key, first.unwrap_or(what));
                self.restore(&key)
            }
        }
    }

    /// A new class that is probably a known one, mistyped.
    fn meant_class(&self, key: &str) -> String {
        let Some(Value::Dict(_, known)) = find(self.layers.defaults(), "classes") else { return String::new() };
        let name = key.strip_prefix("classes.").filter(|name| !known.contains_key(*name));
        let near = name.and_then(|name| near_match(name, known.keys().map(String::as_str)));
        near.map(|near| format!("; did you mean [classes.{near}]?")).unwrap_or_default()
    }

    /// An environment variable holds text; where its first reading did not fit, the text itself is
    /// tried, then a list of its parts between commas.
    fn read_otherwise(&mut self, key: &str, what: &str) -> bool {
        let Some(text) = self.layers.raw.get(key).cloned() else { return false };
        if self.layers.origin(key).is_none_or(|origin| !matches!(origin, Origin::Env(_))) {
            return false;
        }
        let (tried, _) = self.tried.entry(key.to_owned()).or_insert_with(|| (0, what.to_owned()));
        *tried += 1;
        let value = match *tried {
            1 => Value::from(text),
            2 => Value::from(text.split(',').map(|part| Value::from(part.trim())).collect::<Vec<_>>()),
            _ => return false,
        };
        put(&mut self.tree, key, value)
    }

    /// Puts the default in the place of a value that was refused, or nothing where there is none.
    pub fn restore(&mut self, key: &str) -> bool {
        let default = find(self.layers.defaults(), key).cloned();
        match default {
            Some(default) if find(&self.tree, key) != Some(&default) => put(&mut self.tree, key, default),
            _ => {
                self.gone.insert(key.to_owned());
                remove(&mut self.tree, key)
            }
        }
    }
}

/// The key without list positions (a list is replaced whole), and whether it was that already.
fn whole_key(tree: &Dict, path: &[String]) -> (String, bool) {
    for end in 1..=path.len() {
        let key = path[..end].join(".");
        if matches!(find(tree, &key), Some(Value::Array(..))) {
            return (key, end == path.len());
        }
    }
    (path.join("."), true)
}

/// Provider, class and environment names are metric labels and parts of environment variables.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    name.len() <= 64 && name.bytes().all(plain) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

fn unknown(name: &str, known: &[&'static str]) -> String {
    match near_match(name, known.iter().copied()) {
        Some(near) => format!("no such key; did you mean \"{near}\"?"),
        None => format!("no such key; known here: {}", known.join(", ")),
    }
}

/// What a key is that was left out, where its name says little.
fn needed(name: &str) -> &'static str {
    match name {
        "topic" => ": the app's bundle id, such as \"com.example.shop\"",
        "subject" => ": whom push services may write to, such as \"mailto:ops@example.com\"",
        _ => "",
    }
}

/// What would be right, where the type's own words say little.
fn hint(key: &str) -> Option<&'static str> {
    match key {
        "http.listen" => Some("expected an address and a port such as \"127.0.0.1:8090\"; no name, no port alone"),
        cap if cap.starts_with("caps.") && cap.ends_with(".limit") => Some("expected a whole number from 1 to 10000"),
        "store.redis.shards" => Some("expected a whole number from 1 to 256"),
        _ => None,
    }
}

/// What would be right, without the value that was found.
fn wrong(key: &str, kind: &Kind) -> String {
    match kind {
        Kind::Message(what) => what.clone(),
        Kind::InvalidType(found, expected) => format!("expected {}, found {}", plainly(key, expected), sort_of(found)),
        Kind::InvalidValue(found, expected) => format!("expected {}, found {}", plainly(key, expected), shown(found)),
        Kind::InvalidLength(found, expected) => format!("expected {expected}, found {found} items"),
        Kind::UnknownVariant(name, known) => match near_match(name, known.iter().copied()) {
            Some(near) => format!("expected one of {}; did you mean \"{near}\"?", quoted(known)),
            None => format!("expected one of {}", quoted(known)),
        },
        Kind::UnknownField(name, known) => unknown(name, known),
        Kind::MissingField(name) => format!("lacks the key \"{name}\""),
        Kind::DuplicateField(name) => format!("has the key \"{name}\" twice"),
        Kind::ISizeOutOfRange(_) | Kind::USizeOutOfRange(_) => "the number is out of range".into(),
        Kind::Unsupported(found) | Kind::UnsupportedKey(found, _) => format!("cannot be {}", sort_of(found)),
    }
}

fn quoted(known: &[&str]) -> String {
    known.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// A number that is out of range may be named; what should have been text may be a secret.
fn shown(found: &Actual) -> String {
    match found {
        Actual::Unsigned(value) => value.to_string(),
        Actual::Signed(value) => value.to_string(),
        other => sort_of(other).into(),
    }
}

/// Where 0 is refused as well, once it is read.
fn counts_from_one(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default();
    ["max_connections", "keep", "concurrency", "connections", "streams", "messages", "max_attempts", "burst"]
        .contains(&last)
}

/// Rust's names for numbers say little to an operator.
fn plainly(key: &str, expected: &str) -> String {
    let least = u8::from(counts_from_one(key));
    match expected {
        "u32" if key.ends_with(".rate") => "a whole number from 1 to 1000000".into(),
        "u16" => format!("a whole number from {least} to 65535"),
        "u32" => format!("a whole number from {least} to 4294967295"),
        "a boolean" => "true or false".into(),
        "a string" => "text".into(),
        "a sequence" => "a list".into(),
        other => match other.strip_prefix("struct ") {
            Some(_) => "a table".into(),
            None => other.into(),
        },
    }
}

fn sort_of(found: &Actual) -> &'static str {
    match found {
        Actual::Bool(_) => "true or false",
        Actual::Unsigned(_) | Actual::Signed(_) | Actual::Float(_) => "a number",
        Actual::Char(_) | Actual::Str(_) | Actual::Bytes(_) => "text",
        Actual::Seq => "a list",
        Actual::Map => "a table",
        Actual::Unit
        | Actual::Option
        | Actual::NewtypeStruct
        | Actual::Enum
        | Actual::UnitVariant
        | Actual::NewtypeVariant
        | Actual::TupleVariant
        | Actual::StructVariant
        | Actual::Other(_) => "something else",
    }
}
