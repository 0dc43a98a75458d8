//! What a server costs that has nothing to do, and how soon it is ready.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::accept::LISTEN;
use crate::child::Server;
use crate::delivered::fill;
use crate::http_load::answer;
use crate::plan::Plan;
use crate::records::Shape;
use crate::redis_server::Persistence;
use crate::rows::{Report, Row};
use crate::stores::{Place, StoreKind};

pub(crate) async fn measure(plan: &Plan, kind: StoreKind, report: &mut Report) -> Result<()> {
    let name = |what: &str| format!("{what}, {}", kind.name());
    let empty = Place::new(kind, Persistence::EverySecond).await?;
    let mut memory = Row::lower(&name("resident memory, idle"), "MiB", 50.0, 30.0);
    for _ in 0..plan.rounds {
        memory.rounds.push((started(&empty).await?.1, 1.0));
    }
    empty.stop().await?;
    let records = plan.sized(1_000_000);
    let full = Place::new(kind, Persistence::EverySecond).await?;
    let store = full.open()?;
    fill(&store.deliveries, Shape::mail("outbox").in_a_month(), 0..records).await?;
    store.close().await;
    let mut ready_after = Row::lower(&name(&format!("start to ready with {records} records")), "s", 2.0, 1.0);
    let mut pending = Row::lower(&name(&format!("resident memory with {records} pending")), "MiB", 100.0, 64.0);
    for _ in 0..plan.rounds {
        let (seconds, mib) = started(&full).await?;
        ready_after.rounds.push((seconds, 1.0));
        pending.rounds.push((mib, 1.0));
    }
    report.add([memory, ready_after, pending]);
    full.stop().await
}

/// Seconds from a start to ready, and the resident memory in MiB a little later.
async fn started(place: &Place) -> Result<(f64, f64)> {
    let config = format!("{LISTEN}{}", place.config()?);
    let started = Instant::now();
    let mut server = Server::belfry(place.folder.path(), &config).await?;
    ready(&server.address).await?;
    let seconds = started.elapsed().as_secs_f64();
    // Long enough for whatever it does at its start.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let resident = server.resident()?;
    server.end().await?;
    Ok((seconds, resident))
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
