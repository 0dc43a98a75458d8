//! Keys of features that are designed and not built: refused by name, because a setting that is
//! silently without effect is worse than none.

use figment::value::{Dict, Value};

use super::KINDS;
use super::layers::remove;
use super::reading::Reading;

/// `*` stands for one name.
const KEYS: [(&str, &str); 3] = [
    ("escalation", "escalation is"),
    ("classes.*.escalation", "escalation is"),
    ("classes.*.failover_after_unknown", "failover between providers is"),
];

const PROVIDER_KINDS: [&str; 8] = ["twilio", "sms", "webhook", "slack", "discord", "teams", "telegram", "chat"];

/// Reports and takes out every such key, so that the rest can still be read.
pub(super) fn refuse(reading: &mut Reading) {
    for (pattern, feature) in KEYS {
        for key in matching(&reading.tree, pattern) {
            reading.report(&key, format!("{feature} not built yet"));
            remove(&mut reading.tree, &key);
        }
    }
    for key in matching(&reading.tree, "providers.*.kind") {
        let Some(kind) = text_at(&reading.tree, &key) else { continue };
        if PROVIDER_KINDS.contains(&kind.as_str()) {
            let what = format!("providers of kind \"{kind}\" are not built yet; there are {}", KINDS.join(", "));
            reading.report(&key, what);
            let provider = key.trim_end_matches(".kind").to_owned();
            remove(&mut reading.tree, &provider);
            reading.gone.insert(provider);
        }
    }
}

fn text_at(tree: &Dict, key: &str) -> Option<String> {
    super::layers::find(tree, key)?.as_str().map(str::to_owned)
}

fn matching(tree: &Dict, pattern: &str) -> Vec<String> {
    let parts: Vec<&str> = pattern.split('.').collect();
    let mut found = Vec::new();
    descend(tree, &parts, &mut Vec::new(), &mut found);
    found
}

fn descend(tree: &Dict, pattern: &[&str], at: &mut Vec<String>, found: &mut Vec<String>) {
    let Some((first, rest)) = pattern.split_first() else { return };
    for (name, value) in tree.iter().filter(|(name, _)| *first == "*" || name == first) {
        at.push(name.clone());
        match value {
            _ if rest.is_empty() => found.push(at.join(".")),
            Value::Dict(_, inner) => descend(inner, rest, at, found),
            _ => {}
        }
        at.pop();
    }
}
