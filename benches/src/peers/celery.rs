//! Celery with Redis as its broker, acknowledging late, one POST for each task.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::contest::{Arena, Door, Goal, Ran};
use crate::child::{Server, target};

/// How its worker runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    pub pool: &'static str,
    pub concurrency: usize,
    /// Tasks fetched ahead, for each in hand.
    pub prefetch: usize,
}

/// What is tried before the first round.
pub(super) const TUNINGS: [Tuning; 5] = [
    Tuning { pool: "prefork", concurrency: 2, prefetch: 32 },
    Tuning { pool: "prefork", concurrency: 2, prefetch: 1 },
    Tuning { pool: "prefork", concurrency: 4, prefetch: 32 },
    Tuning { pool: "threads", concurrency: 16, prefetch: 4 },
    Tuning { pool: "gevent", concurrency: 100, prefetch: 1 },
];

impl Tuning {
    pub(super) fn told(&self) -> String {
        format!("{} pool of {}, {} fetched ahead for each", self.pool, self.concurrency, self.prefetch)
    }
}

/// The producers and the worker.
struct Tasks {
    worker: Server,
    producer: Server,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

pub(super) async fn run(arena: &Arena, tuning: Tuning, items: usize) -> Result<Ran> {
    let mut worker = python(arena, tuning);
    worker.args(["-m", "celery", "-A", "tasks", "worker", "--loglevel", "CRITICAL"]);
    worker.args(["--pool", tuning.pool, "--concurrency", &tuning.concurrency.to_string()]);
    worker.args(["--without-gossip", "--without-mingle", "--without-heartbeat"]);
    let worker = Server::spawn("celery-worker", worker.stdin(Stdio::null()).stdout(Stdio::null()))?;
    let mut producer = python(arena, tuning);
    producer.arg("produce.py").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut producer = Server::spawn("celery-producer", &mut producer)?;
    let (orders, answers) = producer.pipes().context("its pipes")?;
    let mut tasks = Tasks { worker, producer, orders, answers: BufReader::new(answers).lines() };
    tasks.answer("ready").await?;
    arena.race(tasks, Goal::Http, items).await
}

fn python(arena: &Arena, tuning: Tuning) -> Command {
    let bench = target().join("bench");
    let mut command = Command::new(bench.join("venv/bin/python"));
    command.current_dir(bench.join("celery")).env("BROKER", format!("{}/0", arena.redis.url()));
    command.env("SINK", arena.http.address()).env("PREFETCH", tuning.prefetch.to_string());
    command.env("POOL", tuning.concurrency.to_string()).env("C_FORCE_ROOT", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

impl Tasks {
    async fn answer(&mut self, expected: &str) -> Result<()> {
        let Some(line) = self.answers.next_line().await? else {
            bail!("the producer ended: see target/bench/celery-producer.log")
        };
        ensure!(line == expected, "the producer says {line}");
        Ok(())
    }
}

impl Door for Tasks {
    async fn send(&mut self, from: usize, count: usize) -> Result<()> {
        self.orders.write_all(format!("{from} {count}\n").as_bytes()).await?;
        self.answer("queued").await
    }

    fn servers(&self) -> Vec<&Server> {
        vec![&self.worker, &self.producer]
    }

    async fn stop(self) -> Result<()> {
        self.producer.stop().await?;
        self.worker.stop().await
    }
}
