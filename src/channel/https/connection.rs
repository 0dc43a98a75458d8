//! One connection: opened, driven by a task of its own, asked whether it lives, closed.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use belfry_domain::WhyCode;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::dial::{Duplex, Line, Target, dial};
use super::seen::{Seen, Watched};
use super::{Fault, HttpsSettings, Shared};

type Http2Driver = h2::client::Connection<Watched<Box<dyn Duplex>>, Bytes>;
type Http1Driver = hyper::client::conn::http1::Connection<TokioIo<Watched<Box<dyn Duplex>>>, Full<Bytes>>;
pub(super) type Http1Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

/// An answer's headers are bounded too.
const MOST_HEADERS: u32 = 64 * 1024;

pub(super) struct Connection {
    pub seen: Arc<Seen>,
    pub way: Way,
    /// Streams lent. Raised under the origin's lock only.
    busy: AtomicUsize,
    used_at: Mutex<Instant>,
    /// A request on it got no answer: whether it lives has to be asked before it is used again.
    doubted: AtomicBool,
    closing: Notify,
    over: watch::Sender<bool>,
}

pub(super) enum Way {
    Http2 {
        sender: SendRequest<Bytes>,
        ping: tokio::sync::Mutex<PingPong>,
    },
    /// One request at a time. Gone while it is lent, and for good if it does not come back.
    Http1 {
        sender: Mutex<Option<Http1Sender>>,
    },
}

pub(super) enum Driver {
    Http2(Box<Http2Driver>),
    Http1(Box<Http1Driver>),
}

impl Connection {
    /// Connects and waits for the other side's first word: only then is the handshake over (it may still refuse
    /// our certificate), and only then is known how many streams it takes.
    pub async fn open(target: &Target, shared: &Shared) -> Result<(Arc<Self>, Driver), Fault> {
        let limit = shared.settings.connect;
        let opened = async {
            let line = dial(target, shared, limit).await?;
            if line.http2 { Self::http2(line).await } else { Self::http1(line).await }
        };
        let silence = Fault::NotTaken { code: WhyCode::TimedOutBefore, detail: None };
        timeout(limit, opened).await.unwrap_or(Err(silence))
    }

    async fn http2(line: Line) -> Result<(Arc<Self>, Driver), Fault> {
        let seen = Arc::new(Seen::new());
        let stream = Watched::http2(line.stream, seen.clone());
        let mut builder = h2::client::Builder::new();
        builder.enable_push(false).max_header_list_size(MOST_HEADERS);
        let (sender, mut driver) = builder.handshake(stream).await.map_err(|error| broken(&seen, &error))?;
        let ping = driver.ping_pong();
        let first_word = std::future::poll_fn(|cx| match Pin::new(&mut driver).poll(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(broken(&seen, &error))),
            Poll::Ready(Ok(())) => Poll::Ready(Err(Fault::not_taken(WhyCode::Unreachable, "closed at once"))),
            Poll::Pending if seen.anything() => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        });
        first_word.await?;
        let ping = ping.ok_or_else(|| Fault::not_taken(WhyCode::Unreachable, "closed at once"))?;
        let way = Way::Http2 { sender, ping: tokio::sync::Mutex::new(ping) };
        Ok((Arc::new(Self::new(seen, way)), Driver::Http2(Box::new(driver))))
    }

    async fn http1(line: Line) -> Result<(Arc<Self>, Driver), Fault> {
        let seen = Arc::new(Seen::new());
        let stream = TokioIo::new(Watched::http1(line.stream, seen.clone()));
        let (sender, driver) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MOST_HEADERS as usize)
            .handshake(stream)
            .await
            .map_err(|error| Fault::not_taken(WhyCode::Unreachable, error.to_string()))?;
        let way = Way::Http1 { sender: Mutex::new(Some(sender)) };
        Ok((Arc::new(Self::new(seen, way)), Driver::Http1(Box::new(driver))))
    }

    fn new(seen: Arc<Seen>, way: Way) -> Self {
        Self {
            seen,
            way,
            busy: AtomicUsize::new(0),
            used_at: Mutex::new(Instant::now()),
            doubted: AtomicBool::new(false),
            closing: Notify::new(),
            over: watch::Sender::new(false),
        }
    }

    /// Does its reading and writing until it ends: by itself, by silence, by having been idle, or told to.
    pub async fn drive(&self, driver: Driver, settings: &HttpsSettings) {
        // How it ended is told by each stream on it.
        let ended = async {
            match driver {
                Driver::Http2(driver) => drop(driver.await),
                Driver::Http1(driver) => drop(driver.await),
            }
        };
        tokio::select! {
            () = ended => {}
            () = self.watch_over(settings) => {}
            () = self.closing.notified() => {}
        }
    }

    /// To be said once its driver is gone: from then on nothing more is written.
    pub fn end(&self) {
        self.over.send_replace(true);
    }

    /// Returns once nothing more is written.
    pub async fn ended(&self) {
        self.closing.notify_one();
        // Its sender lives as long as `self`.
        drop(self.over.subscribe().wait_for(|over| *over).await);
    }

    pub fn close(&self) {
        self.closing.notify_one();
    }

    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Whether it may be lent once more.
    pub fn has_room(&self, settings: &HttpsSettings) -> bool {
        let most = match &self.way {
            Way::Http2 { sender, .. } => sender.current_max_send_streams().min(usize::from(settings.streams)),
            Way::Http1 { .. } => 1,
        };
        !self.is_over() && !self.seen.is_going() && self.busy() < most
    }

    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::SeqCst)
    }

    pub fn lend(&self) {
        self.busy.fetch_add(1, Ordering::SeqCst);
    }

    pub fn take_back(&self) {
        *self.used_at() = Instant::now();
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }

    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody used it for too long, so that nobody should now.
    pub fn is_stale(&self, settings: &HttpsSettings) -> bool {
        self.busy() == 0 && self.used_at().elapsed() >= settings.idle
    }

    /// A request of `since` got no answer. Where nothing else was heard either, it is the connection that is asked.
    pub fn doubt(&self, since: Instant) {
        if self.seen.heard_at() < since {
            self.doubted.store(true, Ordering::SeqCst);
        }
    }

    fn is_in_doubt(&self, settings: &HttpsSettings) -> bool {
        self.doubted.load(Ordering::SeqCst) || self.seen.heard_at().elapsed() >= settings.keepalive
    }

    /// Whether it lives, asked over the wire where there is reason to.
    pub async fn lives(&self, settings: &HttpsSettings) -> bool {
        match &self.way {
            Way::Http2 { ping, .. } => {
                if !self.is_in_doubt(settings) {
                    return true;
                }
                // Whoever waits here asks with the one who asks.
                let mut ping = ping.lock().await;
                if !self.is_in_doubt(settings) {
                    return true;
                }
                let lives = timeout(settings.keepalive_wait, answers(&mut ping)).await.unwrap_or(false);
                if lives {
                    self.doubted.store(false, Ordering::SeqCst);
                } else {
                    self.close();
                }
                lives
            }
            Way::Http1 { sender } => {
                sender.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|sender| !sender.is_closed())
            }
        }
    }

    async fn watch_over(&self, settings: &HttpsSettings) {
        let tick = settings.keepalive.min(settings.idle).max(Duration::from_millis(1));
        loop {
            let open = self.busy() > 0;
            let due = if open { self.seen.heard_at() + settings.keepalive } else { Instant::now() + tick };
            sleep_until(due).await;
            if self.is_stale(settings) || open && !self.lives(settings).await {
                return;
            }
        }
    }
}

/// Whether a question of now is answered.
async fn answers(ping: &mut PingPong) -> bool {
    // One who gave up waiting left a question behind, whose answer says nothing of now.
    while ping.send_ping(Ping::opaque()).is_err() {
        if std::future::poll_fn(|cx| ping.poll_pong(cx)).await.is_err() {
            return false;
        }
    }
    std::future::poll_fn(|cx| ping.poll_pong(cx)).await.is_ok()
}

/// Why there is no HTTP/2 connection. A refusal of our certificate comes here, after the handshake as we see it.
fn broken(seen: &Seen, error: &h2::Error) -> Fault {
    Fault::not_taken(if seen.tls_failed() { WhyCode::TlsFailed } else { WhyCode::Unreachable }, error.to_string())
}
