//! What intake and engine need of the configuration, as one value that a reload swaps whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::{ChannelKind, Class, Pace};

use super::channel::Channel;

pub use belfry_domain::lane::OUTBOX;

#[derive(Clone)]
pub struct Provider {
    pub channel: Arc<dyn Channel>,
    /// Most calls under way at once.
    pub concurrency: u16,
    /// How often it may be called by all nodes together.
    pub pace: Option<Pace>,
}

#[derive(Clone)]
pub struct Policy {
    pub classes: BTreeMap<String, Class>,
    /// By name; [`OUTBOX`] is always among them.
    pub providers: BTreeMap<String, Provider>,
    /// Which provider a channel's messages go to; a channel without one goes to [`OUTBOX`].
    pub routes: BTreeMap<ChannelKind, String>,
    pub environments: BTreeMap<String, EnvironmentRule>,
    /// How long a record outlives its end.
    pub keep_record: Duration,
}

/// Where an environment's messages may really go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentRule {
    /// To the outbox, always.
    Outbox,
    /// To the outbox but for addresses that match one of these patterns (`*@ours.example`).
    Allow(Vec<String>),
}

impl Policy {
    /// The provider for a message to `address` on `channel` from `environment`.
    ///
    /// `test` always goes to the outbox.
    #[must_use]
    pub fn route(&self, channel: ChannelKind, environment: &str, address: &str) -> &str {
        let real = || self.routes.get(&channel).map_or(OUTBOX, String::as_str);
        match self.environments.get(environment) {
            _ if environment == "test" => OUTBOX,
            Some(EnvironmentRule::Outbox) => OUTBOX,
            Some(EnvironmentRule::Allow(patterns)) if !patterns.iter().any(|one| matches(one, address)) => OUTBOX,
            Some(EnvironmentRule::Allow(_)) | None => real(),
        }
    }
}

/// `*` stands for any run of characters; case does not count.
fn matches(pattern: &str, address: &str) -> bool {
    let (pattern, address) = (pattern.to_lowercase(), address.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = address.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        last = Some(part);
        match rest.find(part) {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => last.is_empty() || address.ends_with(last),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, address, expected) in [
            ("*@ours.example", "Ann@Ours.example", true),
            ("*@ours.example", "ann@ours.example.evil", false),
            ("*@ours.example", "ann@notours.example", false),
            ("ann@ours.example", "ann@ours.example", true),
            ("ann@ours.example", "joann@ours.example", false),
            ("+4670*", "+46701234567", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("*", "anything", true),
        ] {
            assert_eq!(matches(pattern, address), expected, "{pattern} {address}");
        }
    }
}
