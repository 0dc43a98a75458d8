//! Whether a server keeps anything, where no answer waits until it does.

use futures::future::join_all;
use tokio::time::Instant;

use super::map::Map;
use super::node::Node;
use super::settings::Durability;

/// Those that are known to keep nothing: managed servers forbid CONFIG, and are passed over.
pub(super) async fn keeping_nothing(map: &Map, until: Instant) -> Vec<String> {
    if map.settings.durability != Durability::Ack {
        return Vec::new();
    }
    let Ok(known) = map.primaries(until).await else { return Vec::new() };
    let each = known.nodes.iter().map(async |node| {
        let (save, append) = (setting(node, "save", until).await?, setting(node, "appendonly", until).await?);
        (save.is_empty() && append == "no").then(|| node.server.address.to_string())
    });
    join_all(each).await.into_iter().flatten().collect()
}

async fn setting(node: &Node, name: &str, until: Instant) -> Option<String> {
    let answer = node.ask(redis::cmd("CONFIG").arg("GET").arg(name).to_owned(), until).await.ok()?;
    redis::from_redis_value::<Vec<String>>(answer).ok()?.into_iter().nth(1)
}
