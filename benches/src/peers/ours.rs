//! Belfry as a contestant: a node with its door, and the store that was asked for.

use anyhow::Result;
use tokio::process::Command;

use super::contest::{Arena, Goal, HttpDoor, Ran};
use crate::child::{Server, target};
use crate::http_load::post;
use crate::node::SMTP;
use crate::records::{mail_request, webhook_request};
use crate::smtp::CONNECTIONS;
use crate::stores::StoreKind;
use crate::webhook_sink::NOW;

/// Calls at once to the webhook-like sink, the quarter that is kept for urgent lanes included.
const CALLS: usize = 64;

pub(super) async fn run(arena: &Arena, kind: StoreKind, goal: Goal, items: usize) -> Result<Ran> {
    let folder = tempfile::tempdir_in(target())?;
    let at = match kind {
        StoreKind::Redis => arena.redis.url(),
        StoreKind::Sqlite => folder.path().join("belfry.db").display().to_string(),
    };
    let (sink, path, calls) = match goal {
        Goal::Http => (arena.http.address(), NOW, CALLS),
        Goal::Smtp => (arena.smtp.address(), SMTP, CONNECTIONS),
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["node", kind.option(), &at, sink, path, &calls.to_string()]);
    let server = Server::start("node", &mut command).await?;
    let request: fn(usize) -> Vec<u8> = match goal {
        Goal::Http => {
            |number| post("/v1/notifications", &format!("order-{number}"), &webhook_request("receipt", number))
        }
        Goal::Smtp => |number| post("/v1/notifications", &format!("order-{number}"), &mail_request(number, None)),
    };
    arena.race(HttpDoor { servers: vec![server], request }, goal, items).await
}
