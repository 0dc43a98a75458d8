//! What a server costs that has nothing to do, and how soon it is ready.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::Plan;
use crate::accept::row;
use crate::child::Server;
use crate::http_load::answer;
use crate::rows::{Better, Report};

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
