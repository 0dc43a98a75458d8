//! The listener: an accept loop of our own, because a bare one waits for ever on slow clients and
//! knows no end. Every connection has a deadline for whatever it is waiting for.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::drain::Drain;
use super::guarded_io::{GuardedIo, OurTurn, Turns};
use crate::facts::{Fact, FactSink};

#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Beyond these, connections wait in the kernel's queue.
    pub most_connections: usize,
    /// From the first byte of a request's head (or the opening of the connection) to its last.
    pub header_timeout: Duration,
    /// Between an answer and the next request.
    pub idle_timeout: Duration,
    /// For a client that has stopped reading its answer.
    pub write_timeout: Duration,
    /// A request's head, in bytes.
    pub most_header_bytes: usize,
    /// How long open requests may take to finish once the end has begun.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            most_connections: 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            most_header_bytes: 16 * 1024,
            grace: Duration::from_secs(25),
        }
    }
}

pub struct Server {
    pub limits: ServerLimits,
    pub drain: Drain,
    pub facts: Arc<dyn FactSink>,
}

/// The router that answers; another may take its place while requests come.
pub struct Current(watch::Sender<Router>);

impl Current {
    #[must_use]
    pub fn new(router: Router) -> Self {
        Self(watch::Sender::new(router))
    }

    /// From the next request on, also on connections that are open.
    pub fn replace(&self, router: Router) {
        drop(self.0.send_replace(router));
    }

    #[must_use]
    pub fn seen(&self) -> watch::Receiver<Router> {
        self.0.subscribe()
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Connections that had not finished when the grace ran out, and were cut.
    pub cut: usize,
}

/// Wait after the system refused us a connection (no descriptors left): trying again at once would
/// burn the processor that could free some.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// How long a request may still be arriving once the end has begun.
const HEAD_AT_THE_END: Duration = Duration::from_secs(2);

impl Server {
    /// Serves until the drain begins and open requests have finished, or the grace has run out.
    /// Idle connections are closed at once: nobody waits for a client that has nothing to say.
    pub async fn serve(&self, listener: TcpListener, router: Router) -> Served {
        self.serve_current(listener, Current::new(router).seen()).await
    }

    /// The same by whatever router is the current one when a request comes.
    pub async fn serve_current(&self, listener: TcpListener, router: watch::Receiver<Router>) -> Served {
        let mut connections = JoinSet::new();
        loop {
            let room = connections.len() < self.limits.most_connections;
            tokio::select! {
                biased;
                () = self.drain.begun() => break,
                Some(ended) = connections.join_next() => self.ended(&ended),
                accepted = listener.accept(), if room => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(stream, router.clone(), self.limits, self.drain.clone()));
                    }
                    Err(error) if of_one_connection(&error) => {}
                    Err(_) => tokio::time::sleep(AFTER_REFUSAL).await,
                },
            }
        }
        drop(listener);
        let finished = async {
            while let Some(ended) = connections.join_next().await {
                self.ended(&ended);
            }
        };
        // Not finished in time: what is left is cut when the set goes.
        let in_time = tokio::time::timeout(self.limits.grace, finished).await.is_ok();
        Served { cut: if in_time { 0 } else { connections.len() } }
    }

    fn ended(&self, ended: &Result<(), JoinError>) {
        if ended.as_ref().is_err_and(JoinError::is_panic) {
            self.facts.record(&Fact::TaskPanicked { task: "connection" });
        }
    }
}

fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection(stream: TcpStream, router: watch::Receiver<Router>, limits: ServerLimits, drain: Drain) {
    // Without it small answers wait for the client's delayed acknowledgement.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let turns = Arc::new(Turns::default());
    let io = GuardedIo::new(stream, Arc::clone(&turns), limits.header_timeout, limits.write_timeout);
    let answering = Arc::clone(&turns);
    let service = service_fn(move |request: Request<Incoming>| {
        let turn = OurTurn::begin(&turns);
        let current = router.borrow().clone();
        let answering = TowerToHyperService::new(current).call(request);
        async move {
            let answer = answering.await;
            drop(turn);
            answer
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // hyper counts it from the last answer; the head's own deadline is the guard's.
        .header_read_timeout(limits.idle_timeout)
        .max_header_size(limits.most_header_bytes)
        .serve_connection(TokioIo::new(io), service);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => Some(ended),
        () = drain.begun() => None,
    };
    if ended.is_none() {
        serving.as_mut().graceful_shutdown();
        // How a connection breaks is the client's business and nobody else's. A request that is
        // being answered has the whole grace; a head that is still coming in, only a moment.
        let half_a_head = tokio::time::timeout(HEAD_AT_THE_END, serving.as_mut()).await.is_err();
        if half_a_head && answering.is_open() {
            drop(serving.await);
        }
    }
}
