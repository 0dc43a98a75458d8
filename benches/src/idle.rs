//! What a server costs that has nothing to do, and how soon it is ready.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use belfry::machine::MachineClock;
use belfry::ports::clock::Clock;
use belfry::ports::deliveries::{Deliveries, MOST_ITEMS};
use belfry::store::sqlite::SqliteStore;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Plan;
use crate::accept::row;
use crate::child::Server;
use crate::http_load::answer;
use crate::records::planned;
use crate::rows::{Better, Report};

const RECORDS: usize = 1_000_000;
const MONTH: Duration = Duration::from_secs(30 * 86_400);
const CONFIG: &str = "[http]\nlisten = \"127.0.0.1:0\"\n";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let mut memory = row("resident memory, idle", "MiB", 50.0, 30.0);
    memory.better = Better::Lower;
    for _ in 0..plan.rounds {
        let folder = tempfile::tempdir_in(crate::child::target())?;
        let server = Server::belfry(folder.path(), CONFIG).await?;
        ready(&server.address).await?;
        // Long enough for whatever it does at its start.
        tokio::time::sleep(Duration::from_secs(2)).await;
        memory.rounds.push((server.resident()?, 1.0));
        server.stop().await?;
    }
    report.rows.push(memory);
    start(plan, report).await
}

/// From its start to ready, on a store that holds a million records.
async fn start(plan: &Plan, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir_in(crate::child::target())?;
    fill(&folder.path().join("store")).await?;
    let config = format!("{CONFIG}[store.sqlite]\npath = \"store/belfry.db\"\n");
    let mut ready_after = row("start to ready with 1,000,000 records", "s", 2.0, 1.0);
    ready_after.better = Better::Lower;
    let mut memory = row("resident memory with 1,000,000 pending in SQLite", "MiB", 100.0, 64.0);
    memory.better = Better::Lower;
    for _ in 0..plan.rounds {
        let started = Instant::now();
        let server = Server::belfry(folder.path(), &config).await?;
        ready(&server.address).await?;
        ready_after.rounds.push((started.elapsed().as_secs_f64(), 1.0));
        tokio::time::sleep(Duration::from_secs(2)).await;
        memory.rounds.push((server.resident()?, 1.0));
        server.stop().await?;
    }
    report.rows.extend([ready_after, memory]);
    Ok(())
}

async fn fill(folder: &Path) -> Result<()> {
    let clock = Arc::new(MachineClock);
    let store = SqliteStore::open(&folder.join("belfry.db"), clock.clone())?;
    let mut filling = JoinSet::new();
    for from in (0..RECORDS).step_by(MOST_ITEMS) {
        let batch: Vec<_> =
            (from..RECORDS.min(from + MOST_ITEMS)).map(|at| planned(at, clock.now(), MONTH, "outbox")).collect();
        let store = store.clone();
        filling.spawn(async move { store.accept(batch).await });
        if filling.len() >= 8
            && let Some(done) = filling.join_next().await
        {
            done??;
        }
    }
    while let Some(done) = filling.join_next().await {
        done??;
    }
    store.close().await;
    Ok(())
}

/// Returns once `/readyz` says yes.
pub(crate) async fn ready(address: &str) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(60);
    let mut buffer = Vec::new();
    while Instant::now() < until {
        let asked = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: bench\r\n\r\n").await?;
            answer(&mut stream, &mut buffer, "200").await
        };
        if asked.await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    bail!("not ready within a minute")
}
