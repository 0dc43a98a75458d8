//! How long a login code takes from its request to the provider: with nothing else to do, and with a
//! million marketing messages queued before it that go out all the while. One code at a time, over
//! HTTP, to a sink that takes 20 ms to answer; what counts is when the call came, not its answer.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use belfry_domain::{ChannelKind, Priority};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::child::Server;
use crate::delivered::{PROVIDER, fill};
use crate::http_load::{answer, post};
use crate::plan::Plan;
use crate::records::{Shape, webhook_request};
use crate::redis_server::Persistence;
use crate::rows::{Report, Row};
use crate::stores::Place;
use crate::webhook_sink::{SLOW, Watch, listen};

const CODES: usize = 500;
/// Between one code's arrival and the next request.
const PAUSE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(10);
/// Calls at once to the sink; marketing may have half of them, so that 1,600 go out a second.
const CALLS: &str = "64";
const MARKETING: Shape = Shape {
    channel: ChannelKind::Webhook,
    class: "marketing",
    priority: Priority::Low,
    provider: PROVIDER,
    wait: Duration::ZERO,
};

/// The sink, and word of the codes that came to it.
struct Bed {
    sink: String,
    came: mpsc::Receiver<Instant>,
    /// No code is sent twice over the same store.
    next: usize,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let (came, codes) = mpsc::channel(16);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let sink = listener.local_addr()?.to_string();
    let watch = Watch { mark: b"\"event\":\"code\"", came };
    let listening = tokio::spawn(listen(listener, Some(watch)));

    let empty = Place::new(plan.store, Persistence::EverySecond).await?;
    let full = Place::new(plan.store, Persistence::EverySecond).await?;
    let store = full.open()?;
    // Apart from the numbers of the codes.
    fill(&store.deliveries, MARKETING, CODES * 1_000..CODES * 1_000 + plan.backlog).await?;
    store.close().await;
    let mut bed = Bed { sink, came: codes, next: 0 };
    let (store, codes) = (plan.store.name(), plan.sized(CODES));
    let mut medians = Row::told(&format!("a code, accept → provider: p50, {store}"), "ms");
    let mut idle = Row::lower(&format!("a code, accept → provider: p99, {store}"), "ms", 20.0, 10.0);
    let queued = format!("a code, {} marketing messages queued: p99, {store}", plan.backlog);
    let mut busy = Row::lower(&queued, "ms", 2.0, 1.5).beside("idle");
    for _ in 0..plan.rounds {
        let quiet = bed.run(&empty, codes).await?;
        let loaded = bed.run(&full, codes).await?;
        medians.rounds.push((quiet.0, 1.0));
        idle.rounds.push((quiet.1, 1.0));
        busy.rounds.push((loaded.1, quiet.1));
    }
    report.add([medians, idle, busy]);
    listening.abort();
    empty.stop().await?;
    full.stop().await
}

impl Bed {
    /// Median and 99th percentile, in milliseconds.
    async fn run(&mut self, place: &Place, codes: usize) -> Result<(f64, f64)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["node", place.kind.option(), &place.at()?, &self.sink, SLOW, CALLS]);
        let mut node = Server::start("node", &mut command).await?;
        let mut stream = TcpStream::connect(&node.address).await?;
        stream.set_nodelay(true)?;
        // Connections, caches, and whatever a start has to do.
        self.codes(&mut stream, codes / 10 + 10).await?;
        let mut took = self.codes(&mut stream, codes).await?;
        drop(stream);
        node.end().await?;
        took.sort_unstable();
        let at = |part: usize| took.get(took.len() * part / 100).map(|it| it.as_secs_f64() * 1e3);
        Ok((at(50).context("no codes")?, at(99).context("no codes")?))
    }

    async fn codes(&mut self, stream: &mut TcpStream, count: usize) -> Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(count);
        let mut buffer = Vec::new();
        for number in self.next..self.next + count {
            let request = post("/v1/notifications", &format!("order-{number}"), &webhook_request("code", number));
            let started = Instant::now();
            stream.write_all(&request).await?;
            answer(stream, &mut buffer, "202").await?;
            let came = tokio::time::timeout(PATIENCE, self.came.recv()).await.context("no code came")?;
            took.push(came.context("the sink ended")?.duration_since(started));
            ensure!(self.came.is_empty(), "a code came twice");
            tokio::time::sleep(PAUSE).await;
        }
        self.next += count;
        Ok(took)
    }
}
