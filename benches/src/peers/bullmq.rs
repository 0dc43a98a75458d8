//! BullMQ with fastify before it and undici or nodemailer behind it, each in processes of its own.

use anyhow::Result;
use tokio::process::Command;

use super::contest::{Arena, Goal, HttpDoor, Ran};
use crate::child::{Server, target};
use crate::http_load::post;
use crate::records::{mail_request, webhook_request};
use crate::smtp::CONNECTIONS;

/// How many workers it has, and how many jobs each has in hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    goal: Goal,
    workers: usize,
    concurrency: usize,
    /// To the mail server, of all workers together.
    connections: usize,
}

/// What is tried before the first round. One worker for each of two processors was never the faster
/// one: it shares them with the door, Redis and the sink.
pub(super) fn tunings(goal: Goal) -> Vec<Tuning> {
    let connections = if goal == Goal::Smtp { 4 * CONNECTIONS } else { 0 };
    let one = |workers, concurrency| Tuning { goal, workers, concurrency, connections };
    let mut all = vec![one(1, 200), one(1, 100), one(1, 50), one(2, 100)];
    if goal == Goal::Smtp {
        // As many as Belfry has.
        all.push(Tuning { connections: CONNECTIONS, ..one(1, 50) });
    }
    all
}

impl Tuning {
    pub(super) fn told(&self) -> String {
        let Self { workers, concurrency, connections, .. } = self;
        let mail = if self.goal == Goal::Smtp { format!(", {connections} connections") } else { String::new() };
        format!("{workers} worker(s), {concurrency} jobs at once in each{mail}")
    }
}

pub(super) async fn run(arena: &Arena, tuning: Tuning, items: usize) -> Result<Ran> {
    let mut servers = vec![Server::start("bullmq-door", node("door.js").arg(arena.redis.port().to_string())).await?];
    for _ in 0..tuning.workers {
        let mut worker = node("worker.js");
        worker.arg(arena.redis.port().to_string()).arg(tuning.concurrency.to_string());
        match tuning.goal {
            Goal::Http => worker.args(["http", arena.http.address()]),
            Goal::Smtp => {
                let connections = tuning.connections.div_ceil(tuning.workers).to_string();
                worker.args(["smtp", arena.smtp.address(), &connections])
            }
        };
        servers.push(Server::start("bullmq-worker", &mut worker).await?);
    }
    let request: fn(usize) -> Vec<u8> = match tuning.goal {
        Goal::Http => |number| post("/notify", &format!("order-{number}"), &webhook_request("receipt", number)),
        Goal::Smtp => |number| post("/notify", &format!("order-{number}"), &mail_request(number, None)),
    };
    arena.race(HttpDoor { servers, request }, tuning.goal, items).await
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.current_dir(target().join("bench/node")).env("NODE_ENV", "production").arg(script);
    command
}
