//! `[caps.<name>]`, and the classes that name them.

use std::collections::BTreeMap;

use belfry_domain::ChannelKind;
use belfry_domain::caps::{Cap, Per, Then};
use serde::{Deserialize, Serialize};

use super::{ClassConfig, Config};
use crate::ports::caps::MOST_TAKES;
use crate::ports::near::near_match;
use crate::ports::span::Span;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CapConfig {
    pub per: CountedBy,
    /// Of `per = "prefix"`: how many digits of the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
    pub limit: u32,
    pub window: Span,
    pub then: Then,
    /// Counts these channels only; empty: all. The same for the templates.
    #[serde(default)]
    pub channels: Vec<ChannelKind>,
    #[serde(default)]
    pub templates: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CountedBy {
    Recipient,
    Address,
    Scope,
    Prefix,
}

impl CapConfig {
    /// As the domain wants it. `classes`: those that name it.
    fn cap(&self, name: &str, classes: Vec<String>) -> Cap {
        let per = match self.per {
            CountedBy::Recipient => Per::Recipient,
            CountedBy::Address => Per::Address,
            CountedBy::Scope => Per::Scope,
            CountedBy::Prefix => Per::Prefix { digits: self.digits.unwrap_or_default() },
        };
        Cap {
            name: name.to_owned(),
            per,
            limit: self.limit,
            window: self.window.0,
            then: self.then,
            classes,
            channels: self.channels.clone(),
            templates: self.templates.clone(),
        }
    }
}

fn naming(classes: &BTreeMap<String, ClassConfig>, cap: &str) -> Vec<String> {
    let names = |class: &ClassConfig| class.caps.iter().any(|named| named == cap);
    classes.iter().filter(|(_, class)| names(class)).map(|(name, _)| name.clone()).collect()
}

/// The caps of each class that has any.
pub(super) fn by_class(config: &Config) -> BTreeMap<String, Vec<Cap>> {
    let made: BTreeMap<&str, Cap> =
        config.caps.iter().map(|(name, cap)| (name.as_str(), cap.cap(name, naming(&config.classes, name)))).collect();
    let of = |class: &ClassConfig| class.caps.iter().filter_map(|name| made.get(name.as_str()).cloned()).collect();
    let capped = config.classes.iter().filter(|(_, class)| !class.caps.is_empty());
    capped.map(|(name, class)| (name.clone(), of(class))).collect()
}

/// What is wrong with caps and with the classes that name them, by key. `known`: whether something at a key or below
/// it is known to be wrong, so that what only follows from it is not said as well.
pub(super) fn contradictions(config: &Config, known: &dyn Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, cap) in &config.caps {
        if naming(&config.classes, name).is_empty() && !known("classes") {
            let what = format!("counts nothing: no class names it; write caps = [\"{name}\"] in a [classes.<name>]");
            found.push((format!("caps.{name}"), what));
        }
        for (key, problem) in of_cap(name, cap) {
            let key = if key.is_empty() { format!("caps.{name}") } else { format!("caps.{name}.{key}") };
            found.push((key, problem));
        }
    }
    let names: Vec<&str> = config.caps.keys().map(String::as_str).collect();
    let there = |cap: &str| config.caps.contains_key(cap) || known(&format!("caps.{cap}"));
    for (name, class) in &config.classes {
        let problems = of_class(class, &there, &names).into_iter();
        found.extend(problems.map(|problem| (format!("classes.{name}.caps"), problem)));
    }
    found
}

fn of_cap(name: &str, cap: &CapConfig) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    match (cap.per, cap.digits) {
        (CountedBy::Prefix, None) => {
            let what = format!("lacks the key \"digits\": of how many digits the prefix is, 1 to {}", Cap::MOST_DIGITS);
            found.push(("", what));
        }
        (CountedBy::Recipient | CountedBy::Address | CountedBy::Scope, Some(_)) => {
            found.push(("digits", "has a meaning with per = \"prefix\" only".into()));
        }
        (CountedBy::Prefix, Some(_)) | (CountedBy::Recipient | CountedBy::Address | CountedBy::Scope, None) => {}
    }
    if cap.per == CountedBy::Prefix && !cap.channels.is_empty() && !cap.channels.contains(&ChannelKind::Sms) {
        found.push(("channels", "leaves out sms, and only sms goes to numbers, which per = \"prefix\" counts".into()));
    }
    let own = cap.cap(name, Vec::new()).contradictions();
    let said = |one: &str| one == "digits" && cap.digits.is_none();
    found.extend(own.into_iter().filter(|one| !said(one.key)).map(|one| (one.key, one.problem)));
    found
}

fn of_class(class: &ClassConfig, there: &dyn Fn(&str) -> bool, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, name) in class.caps.iter().enumerate() {
        if class.caps[..at].contains(name) {
            found.push(format!("names \"{name}\" twice"));
        } else if !there(name) {
            let near = near_match(name, names.iter().copied());
            let hint = near.map_or_else(|| format!("define [caps.{name}]"), |near| format!("did you mean \"{near}\"?"));
            found.push(format!("there is no cap \"{name}\"; {hint}"));
        }
    }
    if class.caps.len() > MOST_TAKES {
        found.push(format!("names {} caps; one message comes under {MOST_TAKES} at the most", class.caps.len()));
    }
    found
}
