//! A simulated APNs, stricter than Apple's: HTTP/2 over TLS, every header, size, path and login looked at, refused
//! with Apple's own reasons. Counts and stores every effect it had: a push is taken once its last byte was read and
//! nothing was wrong with it, whatever is answered then.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

#[path = "apns_sim_login.rs"]
pub mod login;
#[path = "apns_sim_rules.rs"]
mod rules;
#[path = "apns_sim_session.rs"]
mod session;
#[path = "apns_sim_tls.rs"]
pub mod tls;

use login::{Logins, SimKey};
use tls::SimTls;

/// Bounds every wait of a test; never a measure of anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// 2023-11-14T22:13:20Z, in seconds: the simulator's time at its start.
pub const START: i64 = 1_700_000_000;

/// What it does instead of its usual answer. All but [`Act::Refuse`] and [`Act::Answer`] have taken the push.
#[derive(Clone, Debug)]
pub enum Act {
    /// This status and body. A push is taken with 200 only.
    Answer { status: u16, body: String, retry_after: Option<String> },
    /// REFUSED_STREAM: it was not looked at.
    Refuse,
    /// Nothing, for ever.
    Silence,
    /// This status, part of a body, and then nothing.
    StalledBody(u16),
    /// This status, and a body without an end.
    EndlessBody(u16),
    /// The stream is reset.
    Reset,
    /// The connection is closed without a word.
    Cut,
    /// The usual answer, once the test calls [`ApnsSim::release`].
    AnswerOnRelease,
}

impl Act {
    /// As Apple refuses.
    pub fn refusal(status: u16, reason: &str) -> Self {
        Self::Answer { status, body: format!(r#"{{"reason":"{reason}"}}"#), retry_after: None }
    }

    pub fn gone(reason: &str, timestamp: i64) -> Self {
        let body = format!(r#"{{"reason":"{reason}","timestamp":{timestamp}}}"#);
        Self::Answer { status: 410, body, retry_after: None }
    }

    pub fn busy(reason: &str, retry_after: &str) -> Self {
        let body = format!(r#"{{"reason":"{reason}"}}"#);
        Self::Answer { status: 429, body, retry_after: Some(retry_after.to_owned()) }
    }
}

/// How the first connection ends: once so many requests were read, by a GOAWAY that names the `last` of them that
/// it saw through; none is answered, those above were not looked at.
#[derive(Clone, Copy, Debug)]
pub struct CutShort {
    pub after: usize,
    pub last: usize,
}

/// What it is.
pub struct Options {
    pub tls: SimTls,
    pub keys: Vec<SimKey>,
    pub topics: Vec<String>,
    /// Most streams at once on a connection.
    pub streams: u32,
    /// Says goodbye (GOAWAY) on each connection after so many requests.
    pub goaway_every: Option<usize>,
    pub cut_first: Option<CutShort>,
    /// Who has no certificate of our CA is turned away at the handshake.
    pub wants_certificates: bool,
    /// Looks at nothing and keeps nothing but the count: for measuring.
    pub fast: bool,
}

impl Options {
    pub fn new(keys: &[SimKey], topics: &[&str]) -> Self {
        Self {
            tls: SimTls::new(),
            keys: keys.to_vec(),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            streams: 1000,
            goaway_every: None,
            cut_first: None,
            wants_certificates: false,
            fast: false,
        }
    }
}

/// One request that was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub token: String,
    /// By name; each came once.
    pub headers: HashMap<String, String>,
    pub body: Bytes,
    /// Counted from 0.
    pub connection: usize,
    /// What was found wrong with it.
    pub refused: Option<(u16, &'static str)>,
    /// Whether it was taken: shown on the device, as far as the simulator goes.
    pub taken: bool,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }
}

#[derive(Default)]
struct Book {
    requests: Vec<Seen>,
    connections: usize,
    open: usize,
    /// Requests that were answered REFUSED_STREAM, or lay above a GOAWAY's last.
    not_looked_at: usize,
}

struct Shared {
    options: Options,
    logins: Mutex<Logins>,
    /// Seconds since 1970.
    now: AtomicI64,
    book: watch::Sender<Book>,
    taken: AtomicUsize,
    always: Mutex<HashMap<String, Act>>,
    next: Mutex<VecDeque<Act>>,
    frozen: watch::Sender<usize>,
    farewell: watch::Sender<usize>,
    release: Notify,
}

/// Stops with its connections when dropped.
pub struct ApnsSim {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Drop for ApnsSim {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl ApnsSim {
    pub async fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            logins: Mutex::new(Logins::new(options.keys.clone())),
            options,
            now: AtomicI64::new(START),
            book: watch::Sender::default(),
            taken: AtomicUsize::new(0),
            always: Mutex::default(),
            next: Mutex::default(),
            frozen: watch::Sender::new(0),
            farewell: watch::Sender::new(0),
            release: Notify::new(),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Self { address, shared, accepting }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub fn tls(&self) -> &SimTls {
        &self.shared.options.tls
    }

    /// Its clock, moved on.
    pub fn step(&self, span: Duration) {
        self.shared.now.fetch_add(i64::try_from(span.as_secs()).unwrap(), Ordering::SeqCst);
    }

    /// What comes of every push to `token`.
    pub fn always(&self, token: &str, act: Act) {
        self.shared.always.lock().unwrap().insert(token.to_owned(), act);
    }

    /// What comes of the next `count` pushes, whoever they are to.
    pub fn next(&self, count: usize, act: &Act) {
        self.shared.next.lock().unwrap().extend(std::iter::repeat_n(act.clone(), count));
    }

    /// Reads and writes nothing more on the connections that are open now.
    pub fn freeze(&self) {
        self.shared.frozen.send_modify(|times| *times += 1);
    }

    /// Lets one [`Act::AnswerOnRelease`] go on.
    pub fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Closes what is open, and returns once the other side has left, too.
    pub async fn close_all(&self) {
        self.shared.farewell.send_modify(|times| *times += 1);
        self.until(|book| book.open == 0).await;
    }

    pub fn requests(&self) -> Vec<Seen> {
        self.shared.book.borrow().requests.clone()
    }

    /// What was taken.
    pub fn effects(&self) -> Vec<Seen> {
        self.requests().into_iter().filter(|seen| seen.taken).collect()
    }

    /// How many were taken, also where nothing else is kept.
    pub fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::SeqCst)
    }

    pub fn not_looked_at(&self) -> usize {
        self.shared.book.borrow().not_looked_at
    }

    /// What was found wrong, over all requests.
    pub fn refusals(&self) -> Vec<(u16, &'static str)> {
        self.requests().into_iter().filter_map(|seen| seen.refused).collect()
    }

    /// Different provider tokens that came.
    pub fn logins(&self) -> usize {
        self.shared.logins.lock().unwrap().tokens()
    }

    /// Accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.book.borrow().connections
    }

    /// Waits until so many requests were read whole.
    pub async fn wait_for(&self, requests: usize) {
        self.until(|book| book.requests.len() >= requests).await;
    }

    async fn until(&self, is_so: impl FnMut(&Book) -> bool) {
        let mut book = self.shared.book.subscribe();
        let waited = tokio::time::timeout(PATIENCE, book.wait_for(is_so)).await;
        drop(waited.expect("the simulator has not seen it in time").unwrap());
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let acceptor = tokio_rustls::TlsAcceptor::from(shared.options.tls.server(shared.options.wants_certificates));
    // Dropped with this task, and every session with it.
    let mut sessions = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut number = 0;
        shared.book.send_modify(|book| {
            number = book.connections;
            book.connections += 1;
            book.open += 1;
        });
        let (shared, acceptor) = (shared.clone(), acceptor.clone());
        sessions.spawn(async move {
            match acceptor.accept(stream).into_fallible().await {
                Ok(stream) => session::run(stream, &shared, number).await,
                Err((_, stream)) => session::hang_up(stream).await,
            }
            shared.book.send_modify(|book| book.open -= 1);
        });
    }
}
