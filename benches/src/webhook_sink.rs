//! What webhook-like messages are sent to: takes any POST, counts it, answers 204, and keeps
//! nothing, on one thread.
//!
//! `POST /now` is answered at once, `POST /slow` after 20 ms, `GET /count` with how many came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::child::Server;
use crate::http_load::{answer, head_end};

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

async fn converse(stream: TcpStream, count: &AtomicUsize, watch: Option<&Watch>) -> Result<()> {
    stream.set_nodelay(true)?;
    let service = service_fn(|request| taken(request, count, watch));
    Ok(http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(stream), service).await?)
}

async fn taken(
    request: Request<Incoming>,
    count: &AtomicUsize,
    watch: Option<&Watch>,
) -> Result<Response<Full<Bytes>>> {
    let slow = match request.uri().path() {
        "/count" => {
            let told = count.load(Ordering::Relaxed).to_string();
            return Ok(Response::new(Full::new(Bytes::from(told))));
        }
        path => path == SLOW,
    };
    let body = Limited::new(request.into_body(), MOST_BYTES).collect().await.map_err(|_| anyhow!("cut off"))?;
    count.fetch_add(1, Ordering::Relaxed);
    if let Some(watch) = watch
        && body.to_bytes().windows(watch.mark.len()).any(|part| part == watch.mark)
    {
        watch.came.send(Instant::now()).await?;
    }
    if slow {
        tokio::time::sleep(SLOW_FOR).await;
    }
    Ok(Response::builder().status(StatusCode::NO_CONTENT).body(Full::default())?)
}
