//! The effective configuration for people: every key, its value, where it came from. Secrets are
//! no part of what is serialized, so there is none to leave out here.

use std::collections::BTreeMap;

use super::problem::Origin;
use super::sections::ProviderConfig;
use super::{BOOTSTRAP_KEY, Config};

/// One key as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub key: String,
    /// As TOML; `(set)` for a secret.
    pub value: String,
    pub origin: Origin,
}

pub(super) fn origins(config: &Config, origin: &dyn Fn(&str) -> Origin) -> BTreeMap<String, Origin> {
    leaves(config).into_iter().map(|(key, _)| (key.clone(), origin(&key))).collect()
}

impl Config {
    /// By key, in alphabetical order.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let origin = |key: &str| self.origins.get(key).cloned().unwrap_or(Origin::Default);
        let mut shown: Vec<Shown> = leaves(self)
            .into_iter()
            .map(|(key, value)| Shown { origin: origin(&key), key, value: value.to_string() })
            .collect();
        shown.extend(self.secrets());
        shown.sort_by(|a, b| a.key.cmp(&b.key));
        shown
    }

    fn secrets(&self) -> Vec<Shown> {
        let set = |key: String, origin: Origin| Shown { key, value: "(set)".into(), origin };
        let mut secrets = Vec::new();
        if self.bootstrap_key.is_some() {
            secrets.push(set(BOOTSTRAP_KEY.into(), Origin::Env(BOOTSTRAP_KEY.into())));
        }
        for (name, provider) in &self.providers {
            match provider {
                ProviderConfig::Smtp(smtp) if smtp.password.is_some() => {
                    let key = format!("providers.{name}.password");
                    let from = smtp.password_file.clone().map_or_else(
                        || Origin::Env(format!("{}{}", super::ENV_PREFIX, key.replace('.', "__").to_uppercase())),
                        Origin::File,
                    );
                    secrets.push(set(key, from));
                }
                ProviderConfig::Smtp(_) | ProviderConfig::Outbox(_) => {}
            }
        }
        secrets
    }
}

/// Every key that holds a value rather than a table. An empty table shows as itself.
fn leaves(config: &Config) -> Vec<(String, toml::Value)> {
    let mut found = Vec::new();
    // A plain tree of strings, numbers and maps with text keys always has a TOML form.
    if let Ok(toml::Value::Table(tree)) = toml::Value::try_from(config) {
        descend("", &tree, &mut found);
    }
    found
}

fn descend(at: &str, tree: &toml::Table, found: &mut Vec<(String, toml::Value)>) {
    for (name, value) in tree {
        let key = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match value {
            toml::Value::Table(inner) => descend(&key, inner, found),
            leaf => found.push((key, leaf.clone())),
        }
    }
}
