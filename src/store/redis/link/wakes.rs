//! Word that something may have come due, from whoever made it so: published by the scripts, heard
//! on a connection of its own. Losing one costs a poll's delay, nothing else.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use super::errors::Trouble;
use super::map::Map;
use super::node::Node;

const CONNECT: Duration = Duration::from_secs(1);
/// Between two tries to subscribe.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a silent server is asked whether it is still there, and is still the one.
const STILL_THERE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    Shard {
        shard: u16,
        /// The mark of the node that made it so.
        by: u64,
    },
    /// Some may have gone unheard: look everywhere.
    Missed,
}

pub(super) async fn listen(map: Arc<Map>, tell: Arc<dyn Fn(Wake) + Send + Sync>) {
    loop {
        let begun = Instant::now();
        if let Err(trouble) = subscribe(&map, &tell).await {
            tracing::debug!(code = trouble.code(), "no wakes are heard: {trouble}");
        }
        sleep_until(begun + AGAIN).await;
    }
}

/// Listens until the connection ends or another server leads.
async fn subscribe(map: &Map, tell: &Arc<dyn Fn(Wake) + Send + Sync>) -> Result<(), Trouble> {
    let until = Instant::now() + CONNECT;
    let known = map.primaries(until).await?;
    let node = known.nodes.first().ok_or(Trouble::NoServer)?;
    let connection = map.dialer().subscribe(&node.server.address, until).await?;
    let (mut sink, mut messages) = connection.split();
    let channel = format!("{}:wake", map.settings.prefix);
    timeout(CONNECT, sink.subscribe(channel)).await.map_err(|_| Trouble::Late)??;
    tell(Wake::Missed);
    let mut next_look = Instant::now() + STILL_THERE;
    loop {
        tokio::select! {
            biased;
            () = sleep_until(next_look) => {
                if !is_still_there(map, node) {
                    return Ok(());
                }
                timeout(CONNECT, sink.ping::<redis::Value>()).await.map_err(|_| Trouble::Late)??;
                next_look = Instant::now() + STILL_THERE;
            }
            message = messages.next() => {
                let message = message.ok_or(Trouble::Cut)?;
                tell(std::str::from_utf8(message.get_payload_bytes()).ok().and_then(read).unwrap_or(Wake::Missed));
            }
        }
    }
}

/// What is published.
#[must_use]
pub fn written(shard: u16, by: u64) -> Vec<u8> {
    format!("{shard} {by}").into_bytes()
}

fn read(text: &str) -> Option<Wake> {
    let (shard, by) = text.split_once(' ')?;
    Some(Wake::Shard { shard: shard.parse().ok()?, by: by.parse().ok()? })
}

fn is_still_there(map: &Map, node: &Arc<Node>) -> bool {
    map.known().nodes.iter().any(|one| one.server.address == node.server.address)
}
