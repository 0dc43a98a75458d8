//! A scripted SMTP server on loopback. Counts and stores every effect it had: a message is stored
//! once its final dot was read, whatever is answered then.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

#[path = "smtp_stub_session.rs"]
mod session;

/// Bounds every wait of a test; never a measure of anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Where in the exchange a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Greeting,
    Ehlo,
    StartTls,
    Auth,
    Mail,
    Rcpt,
    Data,
    /// The final dot: the message is stored already.
    Dot,
    Reset,
}

/// What the stub does instead of its usual answer.
#[derive(Clone, Debug)]
pub enum Act {
    /// These lines.
    Reply(String),
    /// These lines, then it closes.
    ReplyThenCut(String),
    /// Nothing, for ever.
    Stall,
    /// It closes without a word.
    Cut,
    /// The usual answer, once the test calls [`SmtpStub::release`].
    AnswerOnRelease,
}

#[derive(Clone, Debug)]
struct Rule {
    at: At,
    act: Act,
    /// Only where the command holds this text.
    holding: Option<String>,
    /// How many times it still applies.
    left: Option<u32>,
    /// How many occurrences pass before it applies.
    skip: u32,
}

/// What the stub offers, asks and does.
#[derive(Clone, Debug)]
pub struct Script {
    offers: Vec<String>,
    rules: Vec<Rule>,
    login: Option<(String, String)>,
    tls: Option<StubTls>,
    implicit_tls: bool,
    cut_first_after: Option<usize>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            offers: ["PIPELINING", "SIZE 20000000", "8BITMIME", "SMTPUTF8"].map(str::to_owned).to_vec(),
            rules: Vec::new(),
            login: None,
            tls: None,
            implicit_tls: false,
            cut_first_after: None,
        }
    }
}

impl Script {
    pub fn offering(mut self, offers: &[&str]) -> Self {
        self.offers = offers.iter().map(|one| (*one).to_owned()).collect();
        self
    }

    /// Every time.
    pub fn always(self, at: At, act: Act) -> Self {
        self.rule(Rule { at, act, holding: None, left: None, skip: 0 })
    }

    /// The first time only.
    pub fn once(self, at: At, act: Act) -> Self {
        self.rule(Rule { at, act, holding: None, left: Some(1), skip: 0 })
    }

    /// The `nth` time only, counted from 1 over all connections.
    pub fn nth(self, at: At, nth: u32, act: Act) -> Self {
        self.rule(Rule { at, act, holding: None, left: Some(1), skip: nth - 1 })
    }

    /// Whenever the command holds `text`, such as a recipient's address.
    pub fn holding(self, at: At, text: &str, act: Act) -> Self {
        self.rule(Rule { at, act, holding: Some(text.to_owned()), left: None, skip: 0 })
    }

    fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Offers AUTH and wants this login before MAIL.
    pub fn with_login(mut self, user: &str, password: &str) -> Self {
        self.login = Some((user.to_owned(), password.to_owned()));
        self
    }

    /// Offers STARTTLS.
    pub fn with_starttls(mut self, tls: &StubTls) -> Self {
        self.tls = Some(tls.clone());
        self
    }

    /// Speaks TLS from the first byte.
    pub fn with_implicit_tls(mut self, tls: &StubTls) -> Self {
        self.tls = Some(tls.clone());
        self.implicit_tls = true;
        self
    }

    /// Closes the first connection once so many bytes were read from it.
    pub fn cutting_first_after(mut self, bytes: usize) -> Self {
        self.cut_first_after = Some(bytes);
        self
    }

    fn act(&mut self, at: At, command: &str) -> Option<Act> {
        let applies = |rule: &Rule| rule.at == at && rule.holding.as_ref().is_none_or(|text| command.contains(text));
        for rule in self.rules.iter_mut().filter(|rule| applies(rule)) {
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.left != Some(0) {
                rule.left = rule.left.map(|left| left - 1);
                return Some(rule.act.clone());
            }
        }
        None
    }
}

/// A certificate of the stub's own, for 127.0.0.1 and localhost.
#[derive(Clone, Debug)]
pub struct StubTls {
    config: Arc<rustls::ServerConfig>,
    /// To be given to the client as `ca_file`.
    pub ca_file: PathBuf,
    _folder: Arc<tempfile::TempDir>,
}

impl StubTls {
    pub fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, made.cert.pem()).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self { config: Arc::new(config), ca_file, _folder: Arc::new(folder) }
    }
}

/// One message whose final dot was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub from: String,
    pub to: Vec<String>,
    /// What followed the address in MAIL.
    pub parameters: String,
    /// As sent, doubled dots undone.
    pub bytes: Vec<u8>,
    /// Counted from 0.
    pub connection: usize,
    pub encrypted: bool,
    /// The user who logged in.
    pub login: Option<String>,
}

impl Stored {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// A header's unfolded value.
    pub fn header(&self, name: &str) -> Option<String> {
        let text = self.text();
        let head = text.split("\r\n\r\n").next()?.replace("\r\n ", " ");
        let prefix = format!("{}:", name.to_ascii_lowercase());
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&prefix))?;
        Some(line[prefix.len()..].trim().to_owned())
    }
}

#[derive(Default)]
struct Seen {
    messages: Vec<Stored>,
    commands: Vec<String>,
    connections: usize,
    open: usize,
    /// Bytes read, by connection.
    bytes: Vec<usize>,
}

struct Shared {
    script: Mutex<Script>,
    seen: watch::Sender<Seen>,
    release: Notify,
    farewell: watch::Sender<Option<String>>,
}

/// Stops with its sessions when dropped.
pub struct SmtpStub {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Drop for SmtpStub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl SmtpStub {
    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            seen: watch::Sender::new(Seen::default()),
            release: Notify::new(),
            farewell: watch::Sender::new(None),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Self { address, shared, accepting }
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    /// For a provider's `url`.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Replaces what the stub does from now on; what it has seen stays.
    pub fn follow(&self, script: Script) {
        *self.shared.script.lock().unwrap() = script;
    }

    pub fn messages(&self) -> Vec<Stored> {
        self.shared.seen.borrow().messages.clone()
    }

    /// Accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.seen.borrow().connections
    }

    /// Every command line, over all connections.
    pub fn commands(&self) -> Vec<String> {
        self.shared.seen.borrow().commands.clone()
    }

    pub fn count(&self, verb: &str) -> usize {
        self.commands().iter().filter(|line| line.to_ascii_uppercase().starts_with(verb)).count()
    }

    /// Bytes read on one connection.
    pub fn bytes_read(&self, connection: usize) -> usize {
        self.shared.seen.borrow().bytes[connection]
    }

    /// Waits until at least `n` messages are stored.
    pub async fn wait_for(&self, n: usize) -> Vec<Stored> {
        self.until(|seen| seen.messages.len() >= n).await;
        self.messages()
    }

    /// Waits until a command that begins so was read.
    pub async fn wait_for_command(&self, verb: &str) {
        self.until(|seen| seen.commands.iter().any(|line| line.starts_with(verb))).await;
    }

    /// Waits until no connection is open any more.
    pub async fn wait_until_left(&self) {
        self.until(|seen| seen.open == 0).await;
    }

    async fn until(&self, is_so: impl FnMut(&Seen) -> bool) {
        let mut seen = self.shared.seen.subscribe();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(is_so)).await;
        drop(waited.expect("the stub has not seen it in time").unwrap());
    }

    /// Lets one [`Act::AnswerOnRelease`] go on.
    pub fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Says `line` on every connection that waits for a command, unasked, and closes it.
    pub async fn say_to_idle_and_close(&self, line: &str) {
        self.shared.farewell.send_replace(Some(line.to_owned()));
        self.until(|seen| seen.open == 0).await;
        self.shared.farewell.send_replace(None);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and every session with it.
    let mut sessions = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut number = 0;
        shared.seen.send_modify(|seen| {
            number = seen.connections;
            seen.connections += 1;
            seen.open += 1;
            seen.bytes.push(0);
        });
        let shared = shared.clone();
        sessions.spawn(async move {
            session::run(stream, &shared, number).await;
            shared.seen.send_modify(|seen| seen.open -= 1);
        });
    }
}
