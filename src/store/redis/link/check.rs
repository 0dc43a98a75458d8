//! Whether the servers can be used as they should: for `/readyz` and `doctor`.

use std::fmt;
use std::sync::Arc;

use futures::future::join_all;
use redis::Value;
use tokio::time::Instant;

use super::errors::Trouble;
use super::map::{Known, Map, NOBODY};
use super::node::Node;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `unreachable`, `role`, `eviction`, `writes`, `durability` or `slots`.
    pub code: &'static str,
    /// For who looks after the servers.
    pub text: String,
}

impl Finding {
    /// Records may be dropped while it lasts.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.code == "eviction"
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

pub(super) async fn check(map: &Map, until: Instant) -> Vec<Finding> {
    let known = match map.primaries(until).await {
        Ok(known) => known,
        Err(trouble) => {
            return vec![Finding { code: "unreachable", text: format!("no Redis primary is known: {trouble}") }];
        }
    };
    let mut findings: Vec<Finding> = uncovered(&known).into_iter().collect();
    let each = known.nodes.iter().enumerate().map(|(place, node)| check_one(map, &known, place, node, until));
    findings.extend(join_all(each).await.into_iter().flatten());
    findings
}

fn uncovered(known: &Known) -> Option<Finding> {
    let missing = known.slots.as_ref()?.iter().filter(|place| **place == NOBODY).count();
    let text = format!("{missing} of the Redis Cluster's slots are served by nobody");
    (missing > 0).then_some(Finding { code: "slots", text })
}

async fn check_one(map: &Map, known: &Known, place: usize, node: &Arc<Node>, until: Instant) -> Vec<Finding> {
    let at = &node.server.address;
    let finding = |code, what: String| Finding { code, text: format!("Redis at {at}: {what}") };
    let memory = match node.ask(redis::cmd("INFO").arg("memory").to_owned(), until).await {
        Ok(answer) => redis::from_redis_value::<String>(answer).unwrap_or_default(),
        Err(trouble) => {
            map.note(&trouble, node);
            return vec![finding("unreachable", trouble.to_string())];
        }
    };
    let mut findings = Vec::new();
    let policy = memory.lines().find_map(|line| line.trim_end().strip_prefix("maxmemory_policy:"));
    if policy.is_some_and(|policy| policy != "noeviction") && !map.settings.allow_eviction {
        let policy = policy.unwrap_or_default();
        findings.push(finding(
            "eviction",
            format!(
                "maxmemory-policy is {policy}: it may drop what was accepted. Set maxmemory-policy noeviction, or \
                 store.redis.allow_eviction = true where that is meant"
            ),
        ));
    }
    let Some(tag) = known.tag_at(place) else { return findings };
    if let Err(trouble) = write(map, node, &tag, until).await {
        map.note(&trouble, node);
        findings.push(finding("writes", trouble.to_string()));
        return findings;
    }
    // It may have been set up otherwise since it was connected to.
    node.look_again();
    if let Err(trouble) = node.settled(&tag, until).await {
        findings.push(finding("durability", trouble.to_string()));
    }
    findings
}

/// By a script, as everything else is written.
async fn write(map: &Map, node: &Node, tag: &[u8], until: Instant) -> Result<(), Trouble> {
    const WRITE: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000)";
    let key = [map.settings.prefix.as_bytes(), b":{", tag, b"}:checked"].concat();
    let command = redis::cmd("EVAL").arg(WRITE).arg(1).arg(key).arg(1).to_owned();
    match node.ask(command, until).await? {
        Value::Okay => Ok(()),
        _ => Err(Trouble::Other("ERR".into())),
    }
}
