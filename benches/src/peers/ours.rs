//! Belfry as a contestant: a node with its door, and the store that was asked for.

use anyhow::Result;
use tokio::process::Command;

use super::contest::{Arena, Goal, HttpDoor, Ran};
use crate::accept::LISTEN;
use crate::child::{Server, target};
use crate::http_load::post;
use crate::records::{mail_request, webhook_request};
use crate::smtp::CONNECTIONS;
use crate::stores::{StoreKind, config};
use crate::webhook_sink::NOW;

/// Calls at once to the sink, the quarter that is kept for urgent lanes included.
const CALLS: &str = "64";

pub(super) async fn run(arena: &Arena, kind: StoreKind, goal: Goal, items: usize) -> Result<Ran> {
    let folder = tempfile::tempdir_in(target())?;
    let at = match kind {
        StoreKind::Redis => arena.redis.url(),
        StoreKind::Sqlite => folder.path().join("belfry.db").display().to_string(),
    };
    let (server, request): (_, fn(usize) -> Vec<u8>) = match goal {
        Goal::Http => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["node", kind.option(), &at, arena.http.address(), NOW, CALLS]);
            (Server::start("node", &mut command).await?, |number| {
                post("/v1/notifications", &format!("order-{number}"), &webhook_request("receipt", number))
            })
        }
        Goal::Smtp => {
            let provider = format!(
                "[channels.email]\nproviders = [\"main\"]\n[providers.main]\nkind = \"smtp\"\n\
                 url = \"smtp://{}\"\nfrom = \"Shop <shop@example.com>\"\nhelo = \"bench.example\"\n\
                 connections = {CONNECTIONS}\nreuse = {{ messages = 1000000 }}\n",
                arena.smtp.address()
            );
            let config = format!("{LISTEN}{}{provider}", config(kind, &at));
            (Server::belfry(folder.path(), &config).await?, |number| {
                post("/v1/notifications", &format!("order-{number}"), &mail_request(number, None))
            })
        }
    };
    arena.race(HttpDoor { servers: vec![server], request }, goal, items).await
}
