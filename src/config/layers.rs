//! Where values come from: embedded defaults, a file over them, the environment over both. Each
//! layer stays apart, so that every value can say where it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Value};

use super::problem::{Origin, Problem};
use super::variables::{self, Stray};
use crate::text_file;

/// The complete, commented defaults.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");
/// `BELFRY__SECTION__KEY` overrides `section.key`.
pub const ENV_PREFIX: &str = "BELFRY__";

/// What a configuration is read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The environment, or as much of it as should count.
    pub env: BTreeMap<String, String>,
}

impl Sources {
    /// `file` and this process's environment. A variable of ours that is no text stays, so that it is
    /// refused for what it holds and not passed over.
    #[must_use]
    pub fn from_environment(file: Option<PathBuf>) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name.into_string().ok()?;
            let ours = name.starts_with("BELFRY");
            let value =
                value.into_string().or_else(|odd| if ours { Ok(odd.to_string_lossy().into()) } else { Err(odd) });
            Some((name, value.ok()?))
        };
        Self { file, env: std::env::vars_os().filter_map(text).collect() }
    }
}

pub(super) struct Layer {
    pub origin: Origin,
    pub tree: Dict,
}

pub(super) struct Layers {
    pub layers: Vec<Layer>,
    /// Environment overrides: key → the variable's own text, for values that only look like
    /// numbers, dates or lists.
    pub raw: BTreeMap<String, String>,
    /// Variables that begin like ours and are none that is read.
    pub unread: Vec<String>,
}

impl Layers {
    pub fn read(sources: &Sources, problems: &mut Vec<Problem>) -> Self {
        let mut layers = vec![Layer { origin: Origin::Default, tree: Dict::new() }];
        read_text(&mut layers[0], DEFAULTS, problems);
        if let Some(path) = &sources.file {
            layers.extend(read_file(path, problems));
        }
        let mut raw = BTreeMap::new();
        let mut unread = Vec::new();
        for (name, text) in &sources.env {
            let Some(rest) = name.strip_prefix(ENV_PREFIX) else {
                match variables::stray(name) {
                    Stray::NotOurs => {}
                    Stray::Unread => unread.push(name.clone()),
                    Stray::Meant(what) => {
                        let origin = Origin::Env(name.clone());
                        problems.push(Problem { key: String::new(), origin, what });
                    }
                }
                continue;
            };
            let parts: Vec<String> = rest.to_lowercase().split("__").map(str::to_owned).collect();
            let origin = Origin::Env(name.clone());
            if parts.iter().any(String::is_empty) || parts.len() < 2 {
                let what = "names no key: expected BELFRY__SECTION__KEY".into();
                problems.push(Problem { key: String::new(), origin, what });
                continue;
            }
            let mut value = guess(text);
            for part in parts.iter().rev() {
                value = Value::from(Dict::from([(part.clone(), value)]));
            }
            if let Value::Dict(_, tree) = value {
                layers.push(Layer { origin, tree });
            }
            raw.insert(parts.join("."), text.clone());
        }
        Self { layers, raw, unread }
    }

    /// All layers in one, later ones over earlier ones, key by key.
    pub fn merged(&self) -> Dict {
        let mut tree = Dict::new();
        for layer in &self.layers {
            merge(&mut tree, &layer.tree);
        }
        tree
    }

    pub fn defaults(&self) -> &Dict {
        &self.layers[0].tree
    }

    /// The last layer that says anything about `key`.
    pub fn origin(&self, key: &str) -> Option<Origin> {
        self.layers.iter().rev().find(|layer| find(&layer.tree, key).is_some()).map(|layer| layer.origin.clone())
    }
}

fn read_file(path: &Path, problems: &mut Vec<Problem>) -> Option<Layer> {
    let mut layer = Layer { origin: Origin::File(path.to_owned()), tree: Dict::new() };
    match text_file::read(path, text_file::SMALL) {
        Ok(text) => read_text(&mut layer, &text, problems),
        Err(error) => {
            let what = format!("cannot be read: {error}");
            problems.push(Problem { key: String::new(), origin: layer.origin, what });
            return None;
        }
    }
    Some(layer)
}

fn read_text(layer: &mut Layer, text: &str, problems: &mut Vec<Problem>) {
    match toml::from_str::<Dict>(text) {
        Ok(tree) => layer.tree = tree,
        Err(error) => {
            // Not the error's own rendering: it quotes the line, which may hold a secret.
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let what = format!("line {line} is no TOML: {}", error.message().trim().replace('\n', ", "));
            problems.push(Problem { key: String::new(), origin: layer.origin.clone(), what });
            return;
        }
    }
    drop_odd_names(layer, &mut Vec::new(), problems);
}

/// Takes out names that could not be written as a dotted key.
fn drop_odd_names(layer: &mut Layer, at: &mut Vec<String>, problems: &mut Vec<Problem>) {
    let Some(names) = names_at(&layer.tree, at) else { return };
    for name in names {
        at.push(name.clone());
        if name.is_empty() || name.contains('.') {
            let what = format!("holds the name {name:?}: names are letters, digits, \"-\" and \"_\"");
            problems.push(Problem { key: at[..at.len() - 1].join("."), origin: layer.origin.clone(), what });
            if let Some(inner) = dict_at(&mut layer.tree, &at[..at.len() - 1]) {
                inner.remove(&name);
            }
        } else {
            drop_odd_names(layer, at, problems);
        }
        at.pop();
    }
}

fn names_at(tree: &Dict, at: &[String]) -> Option<Vec<String>> {
    let mut inner = tree;
    for name in at {
        inner = match inner.get(name)? {
            Value::Dict(_, next) => next,
            _ => return None,
        };
    }
    Some(inner.keys().cloned().collect())
}

/// What an environment variable's text means: a TOML value where it is one, else the text.
fn guess(text: &str) -> Value {
    match toml::from_str::<Dict>(&format!("value = {text}")) {
        Ok(mut tree) if tree.len() == 1 => tree.remove("value").unwrap_or_else(|| Value::from(text)),
        Ok(_) | Err(_) => Value::from(text),
    }
}

fn merge(into: &mut Dict, from: &Dict) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Dict(_, below)), Value::Dict(_, above)) => merge(below, above),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

pub(super) fn find<'a>(tree: &'a Dict, key: &str) -> Option<&'a Value> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let value = tree.get(first)?;
    match (rest, value) {
        (None, _) => Some(value),
        (Some(rest), Value::Dict(_, inner)) => find(inner, rest),
        (Some(_), _) => None,
    }
}

fn dict_at<'a>(tree: &'a mut Dict, at: &[String]) -> Option<&'a mut Dict> {
    let mut inner = tree;
    for name in at {
        inner = match inner.get_mut(name)? {
            Value::Dict(_, next) => next,
            _ => return None,
        };
    }
    Some(inner)
}

/// Whether there was such a key.
pub(super) fn remove(tree: &mut Dict, key: &str) -> bool {
    let parts: Vec<String> = key.split('.').map(str::to_owned).collect();
    let Some((last, above)) = parts.split_last() else { return false };
    dict_at(tree, above).is_some_and(|inner| inner.remove(last).is_some())
}

/// Whether the key's place is there.
pub(super) fn put(tree: &mut Dict, key: &str, value: Value) -> bool {
    let parts: Vec<String> = key.split('.').map(str::to_owned).collect();
    let Some((last, above)) = parts.split_last() else { return false };
    dict_at(tree, above).map(|inner| inner.insert(last.clone(), value)).is_some()
}
