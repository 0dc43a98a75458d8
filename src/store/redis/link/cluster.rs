//! Who has which slot of a Cluster, as one of its servers tells it (`CLUSTER SLOTS`, which every
//! version knows).

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::Instant;

use super::errors::Trouble;
use super::map::{Known, Map, NOBODY};
use super::node::Node;
use super::settings::Address;
use super::slot::SLOTS;

/// One server.
const ASK: Duration = Duration::from_millis(400);

/// A range of slots and its primary.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    primary: Address,
}

/// Asks the servers that are known, then the configured ones, until one answers.
///
/// # Errors
/// None did.
pub async fn look(map: &Map, seeds: &[Address], until: Instant) -> Result<(), Trouble> {
    let known = map.known();
    let strangers = seeds.iter().filter(|seed| !known.nodes.iter().any(|node| node.server.address == **seed));
    let strangers: Vec<Arc<Node>> = strangers.map(|seed| map.node(seed.clone())).collect();
    let mut trouble = Trouble::NoServer;
    for node in known.nodes.iter().chain(&strangers) {
        let question = redis::cmd("CLUSTER").arg("SLOTS").to_owned();
        match node.ask(question, until.min(Instant::now() + ASK)).await {
            Ok(answer) => {
                let ranges = ranges(&answer, &node.server.address);
                if !ranges.is_empty() {
                    map.set(table(map, &ranges, known.nodes.iter().chain(&strangers)));
                    return Ok(());
                }
            }
            Err(other) => trouble = other,
        }
    }
    Err(trouble)
}

/// Keeps the connections of servers that are still there.
fn table<'a>(map: &Map, ranges: &[Range], there: impl Iterator<Item = &'a Arc<Node>> + Clone) -> Known {
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    let mut slots = vec![NOBODY; usize::from(SLOTS)];
    for range in ranges {
        let place = nodes.iter().position(|node| node.server.address == range.primary).unwrap_or_else(|| {
            let old = there.clone().find(|node| node.server.address == range.primary).cloned();
            nodes.push(old.unwrap_or_else(|| map.node(range.primary.clone())));
            nodes.len() - 1
        });
        let place = u16::try_from(place).unwrap_or(NOBODY);
        slots[usize::from(range.first)..=usize::from(range.last)].fill(place);
    }
    Known { nodes, slots: Some(slots.into()) }
}

/// Ranges that make no sense are left out. An empty or unknown host (`?`) is the one that was
/// asked.
fn ranges(answer: &Value, asked: &Address) -> Vec<Range> {
    let Value::Array(items) = answer else { return Vec::new() };
    items.iter().filter_map(|item| range(item, asked)).collect()
}

fn range(item: &Value, asked: &Address) -> Option<Range> {
    let Value::Array(fields) = item else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = fields.as_slice() else { return None };
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        Value::BulkString(name) if !name.is_empty() && name != b"?" => String::from_utf8(name.clone()).ok()?,
        _ => asked.host.clone(),
    };
    let port = u16::try_from(*port).ok()?;
    (first <= last && last < SLOTS).then_some(Range { first, last, primary: Address { host, port } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_know_its_own_name_is_the_one_that_was_asked() {
        let text = |text: &str| Value::BulkString(text.into());
        let item = |first, last, host| {
            Value::Array(vec![Value::Int(first), Value::Int(last), Value::Array(vec![host, Value::Int(7001)])])
        };
        let asked = Address { host: "asked".into(), port: 7000 };
        let answer = Value::Array(vec![
            item(0, 100, text("10.0.0.1")),
            item(101, 200, text("")),
            item(201, 300, Value::Nil),
            item(301, 400, text("?")),
            item(401, 16_384, text("10.0.0.1")),
            item(5, 4, text("10.0.0.1")),
            Value::Nil,
        ]);
        let hosts: Vec<String> = ranges(&answer, &asked).into_iter().map(|range| range.primary.host).collect();
        assert_eq!(hosts, ["10.0.0.1", "asked", "asked", "asked"]);
    }
}
