//! The effective configuration for people: every key, its value, where it came from. Secrets are
//! no part of what is serialized, so there is none to leave out here.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::problem::Origin;
use super::sections::ProviderKind;
use super::{BOOTSTRAP_KEY, Config};

/// One key as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

/// A value as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// As TOML, and as JSON.
    Plain(String, serde_json::Value),
    /// A secret, which nobody is shown, or a certificate.
    Set,
}

impl Value {
    fn of(value: toml::Value) -> Self {
        // Strings, numbers, truths and lists of them: all have a JSON form.
        let json = serde_json::to_value(&value).unwrap_or_default();
        Self::Plain(value.to_string(), json)
    }

    /// For programs; `"(set)"` for a secret.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Plain(_, json) => json.clone(),
            Self::Set => self.to_string().into(),
        }
    }
}

impl fmt::Display for Value {
    /// As TOML; `(set)` for a secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Plain(toml, _) => toml,
            Self::Set => "(set)",
        })
    }
}

pub(super) fn origins(config: &Config, origin: &dyn Fn(&str) -> Origin) -> BTreeMap<String, Origin> {
    let keys = leaves(config).into_iter().map(|(key, _)| key).chain(certificates(config));
    keys.map(|key| (key.clone(), origin(&key))).collect()
}

/// The keys of certificates that stand in the configuration itself. Shown as set: each is a page.
fn certificates(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    for (name, provider) in &config.providers {
        let texts = match &provider.kind {
            ProviderKind::Apns(apns) => vec![
                ("certificate", apns.certificate.is_some() && apns.certificate_file.is_none()),
                ("ca", apns.ca.is_some() && apns.ca_file.is_none()),
            ],
            ProviderKind::Fcm(fcm) => vec![("ca", fcm.ca.is_some() && fcm.ca_file.is_none())],
            ProviderKind::WebPush(web) => vec![("ca", web.ca.is_some() && web.ca_file.is_none())],
            ProviderKind::Smtp(_) | ProviderKind::Outbox(_) => Vec::new(),
        };
        let given = texts.into_iter().filter(|(_, given)| *given);
        found.extend(given.map(|(key, _)| format!("providers.{name}.{key}")));
    }
    found
}

impl Config {
    /// By key, in alphabetical order.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = leaves(self)
            .into_iter()
            .map(|(key, value)| Shown { origin: self.origin(&key), key, value: Value::of(value) })
            .collect();
        shown.extend(self.secrets());
        shown.sort_by(|a, b| a.key.cmp(&b.key));
        shown
    }

    fn secrets(&self) -> Vec<Shown> {
        let set = |key: String, origin: Origin| Shown { key, value: Value::Set, origin };
        let mut secrets = Vec::new();
        if self.bootstrap_key.is_some() {
            secrets.push(set(BOOTSTRAP_KEY.into(), Origin::Env(BOOTSTRAP_KEY.into())));
        }
        let mut password = |key: String, file: Option<&PathBuf>| {
            let by_env = || Origin::Env(format!("{}{}", super::ENV_PREFIX, key.replace('.', "__").to_uppercase()));
            let from = file.cloned().map_or_else(by_env, Origin::File);
            secrets.push(set(key, from));
        };
        if self.store.redis.password.is_some() {
            password("store.redis.password".into(), self.store.redis.password_file.as_ref());
        }
        for (name, provider) in &self.providers {
            let (key, secret, file) = match &provider.kind {
                ProviderKind::Smtp(smtp) => ("password", &smtp.password, &smtp.password_file),
                ProviderKind::Apns(apns) => ("key", &apns.key, &apns.key_file),
                ProviderKind::Fcm(fcm) => ("service_account", &fcm.service_account, &fcm.service_account_file),
                ProviderKind::WebPush(web) => ("vapid_key", &web.vapid_key, &web.vapid_key_file),
                ProviderKind::Outbox(_) => continue,
            };
            if secret.is_some() {
                password(format!("providers.{name}.{key}"), file.as_ref());
            }
        }
        secrets.extend(certificates(self).into_iter().map(|key| set(key.clone(), self.origin(&key))));
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
