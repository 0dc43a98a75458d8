//! What webhook-like messages are sent to: takes any POST, counts it, answers 204, and keeps
//! nothing. As little work as can be, so that what is measured is the sender and what lies behind.
//!
//! `POST /now` is answered at once, `POST /slow` after 20 ms, `GET /count` with how many came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::child::Server;
use crate::http_load::{answer, content_length, head_end};

pub(crate) const NOW: &str = "/now";
pub(crate) const SLOW: &str = "/slow";
const SLOW_FOR: Duration = Duration::from_millis(20);
const MOST_CONNECTIONS: usize = 1_024;
const MOST_BYTES: usize = 1024 * 1024;

/// Tells when a body that holds `mark` has come.
#[derive(Clone)]
pub(crate) struct Watch {
    pub mark: &'static [u8],
    pub came: mpsc::Sender<Instant>,
}

/// The sink as a child of its own, on one thread.
pub(crate) struct Sink {
    server: Server,
}

impl Sink {
    pub(crate) async fn start() -> Result<Self> {
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        Ok(Self { server: Server::start("webhook-sink", command.arg("webhook-sink")).await? })
    }

    pub(crate) fn address(&self) -> &str {
        &self.server.address
    }

    /// How many have come since it started.
    pub(crate) async fn count(&self) -> Result<usize> {
        let mut stream = TcpStream::connect(self.address()).await?;
        stream.write_all(b"GET /count HTTP/1.1\r\nHost: bench\r\n\r\n").await?;
        let mut buffer = Vec::new();
        answer(&mut stream, &mut buffer, "200").await?;
        let end = head_end(&buffer).context("an answer")?;
        Ok(std::str::from_utf8(&buffer[end..])?.parse()?)
    }

    /// Returns once `count` have come, and says when the look that found them was made.
    pub(crate) async fn has(&self, count: usize, within: Duration) -> Result<Instant> {
        let until = Instant::now() + within;
        while Instant::now() < until {
            let asked = Instant::now();
            let came = self.count().await?;
            ensure!(came <= count, "{came} came where {count} were due");
            if came == count {
                return Ok(asked);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("only {} of {count} came within {within:?}", self.count().await?)
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.server.stop().await
    }
}

/// The child's own main.
pub(crate) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        listen(listener, None).await
    })
}

/// Takes what comes, for ever.
pub(crate) async fn listen(listener: TcpListener, watch: Option<Watch>) -> Result<()> {
    let count = Arc::new(AtomicUsize::new(0));
    let places = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await?;
        let (stream, _) = listener.accept().await?;
        let (count, watch) = (count.clone(), watch.clone());
        tokio::spawn(async move {
            // A sender that hangs up in the middle shows as one that did not come.
            converse(stream, &count, watch.as_ref()).await.ok();
            drop(place);
        });
    }
}

async fn converse(mut stream: TcpStream, count: &AtomicUsize, watch: Option<&Watch>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(8 * 1024);
    loop {
        let head = loop {
            if let Some(end) = head_end(&buffer) {
                break end;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let whole = head + content_length(&buffer[..head]).unwrap_or(0);
        ensure!(whole <= MOST_BYTES, "too long");
        while buffer.len() < whole {
            ensure!(stream.read_buf(&mut buffer).await? > 0, "cut off");
        }
        if buffer.starts_with(b"GET /count") {
            let told = count.load(Ordering::Relaxed).to_string();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{told}", told.len());
            stream.write_all(answer.as_bytes()).await?;
        } else {
            count.fetch_add(1, Ordering::Relaxed);
            if let Some(watch) = watch
                && buffer[head..whole].windows(watch.mark.len()).any(|part| part == watch.mark)
            {
                watch.came.send(Instant::now()).await?;
            }
            if buffer.starts_with(b"POST /slow") {
                tokio::time::sleep(SLOW_FOR).await;
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        }
        buffer.drain(..whole);
    }
}
