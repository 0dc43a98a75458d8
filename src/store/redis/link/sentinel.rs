//! The primary as the sentinels name it: the answer with the highest configuration epoch counts,
//! because a sentinel that was cut off still names the old one.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::errors::Trouble;
use super::map::{Known, Map};
use super::settings::Address;

/// One sentinel.
const ASK: Duration = Duration::from_millis(400);
/// The primary, about its role.
const CONFIRM: Duration = Duration::from_millis(600);

/// # Errors
/// No sentinel names a primary, or it is none (any more).
pub async fn look(map: &Map, sentinels: &[Address], primary: &str, until: Instant) -> Result<(), Trouble> {
    let limit = until.min(Instant::now() + ASK);
    let answers = join_all(sentinels.iter().map(|sentinel| ask(map, sentinel, primary, limit))).await;
    let mut best: Option<(u64, Address)> = None;
    let mut refused = Trouble::NoServer;
    for answer in answers {
        match answer {
            Ok(one) if best.as_ref().is_none_or(|best| one.0 > best.0) => best = Some(one),
            Ok(_) => {}
            Err(login @ (Trouble::NotLoggedIn | Trouble::WrongPassword | Trouble::NotPermitted)) => refused = login,
            Err(_) => {}
        }
    }
    let Some((_, address)) = best else { return Err(refused) };
    match map.known().nodes.first() {
        Some(node) if node.server.address == address => {
            // A demoted primary keeps its sockets: only it can say so.
            node.still_leads(until.min(Instant::now() + CONFIRM)).await
        }
        _ => {
            map.set(Known { nodes: vec![map.node(address)], slots: None });
            Ok(())
        }
    }
}

/// The epoch and the address that one sentinel has.
async fn ask(map: &Map, sentinel: &Address, primary: &str, until: Instant) -> Result<(u64, Address), Trouble> {
    let question = redis::cmd("SENTINEL").arg("MASTER").arg(primary).to_owned();
    let connection = map.dialer().connect_sentinel(sentinel, false, until).await?;
    let answer = match connection.ask(&question, until).await {
        Err(Trouble::NotLoggedIn) => {
            map.dialer().connect_sentinel(sentinel, true, until).await?.ask(&question, until).await?
        }
        other => other?,
    };
    let fields: HashMap<String, String> = redis::from_redis_value(answer).map_err(|_| Trouble::NoServer)?;
    let field = |name: &str| fields.get(name).ok_or(Trouble::NoServer);
    let epoch = field("config-epoch")?.parse().map_err(|_| Trouble::NoServer)?;
    let port = field("port")?.parse().map_err(|_| Trouble::NoServer)?;
    Ok((epoch, Address { host: field("ip")?.clone(), port }))
}
