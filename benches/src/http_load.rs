//! A caller that costs as little as can be: requests written as bytes on connections that stay
//! open, answers read no further than their length says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::child::KEY;

/// So many connections, each with one request under way.
pub(crate) const CONNECTIONS: usize = 32;

/// A `POST` of JSON with the bench's key.
pub(crate) fn post(path: &str, key: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\nIdempotency-Key: \"{key}\"\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// What is asked for, how often, and what a good answer starts with.
#[derive(Clone)]
pub(crate) struct Load {
    pub address: String,
    pub requests: usize,
    /// The request with this number, whole.
    pub make: Arc<dyn Fn(usize) -> Vec<u8> + Send + Sync>,
    pub status: &'static str,
}

pub(crate) struct Measured {
    /// Requests a second.
    pub rate: f64,
    pub p99: Duration,
}

impl Load {
    pub(crate) async fn run(&self) -> Result<Measured> {
        let next = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..CONNECTIONS {
            callers.spawn(self.clone().call(next.clone()));
        }
        let mut took: Vec<Duration> = Vec::with_capacity(self.requests);
        while let Some(caller) = callers.join_next().await {
            took.extend(caller??);
        }
        let seconds = started.elapsed().as_secs_f64();
        took.sort_unstable();
        let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        Ok(Measured { rate: self.requests as f64 / seconds, p99 })
    }

    async fn call(self, next: Arc<AtomicUsize>) -> Result<Vec<Duration>> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let mut took = Vec::new();
        let mut buffer = Vec::with_capacity(64 * 1024);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= self.requests {
                return Ok(took);
            }
            let request = (self.make)(number);
            let started = Instant::now();
            stream.write_all(&request).await?;
            answer(&mut stream, &mut buffer, self.status).await?;
            took.push(started.elapsed());
        }
    }
}

/// Reads one answer whole; fails unless its status is the expected one.
pub(crate) async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>, status: &str) -> Result<()> {
    buffer.clear();
    let head = loop {
        if let Some(end) = head_end(buffer) {
            break end;
        }
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
    };
    if buffer.get(9..12) != Some(status.as_bytes()) {
        bail!("expected {status}: {}", String::from_utf8_lossy(buffer));
    }
    let whole = head + content_length(&buffer[..head]).context("an answer without a length")?;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
    }
    Ok(())
}

/// Where the head ends and the body begins.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn content_length(head: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(head).ok()?;
    let found = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    found.1.trim().parse().ok()
}
