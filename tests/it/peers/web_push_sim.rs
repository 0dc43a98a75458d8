//! A push service on loopback, as strict as the strictest of the real ones, with the browsers behind
//! it: what it takes it decrypts with the browser's own key, by another implementation of the curve.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::request::Parts;
use p256::SecretKey;
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

#[path = "web_push_sim_checks.rs"]
mod checks;
#[path = "web_push_sim_wire.rs"]
mod wire;

/// What it offers by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Http2,
    Http1,
}

/// What it does instead of looking at a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers so; the message is not taken.
    Answer(Scripted),
    /// Takes the message, if it is right, and never answers.
    Stall,
    /// Answers with this status and a body that has no end.
    Endless(u16),
}

#[derive(Clone, Debug, Default)]
pub struct Scripted {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Act {
    pub fn status(status: u16) -> Self {
        Self::Answer(Scripted { status, ..Scripted::default() })
    }

    pub fn saying(status: u16, body: &str) -> Self {
        Self::Answer(Scripted { status, body: body.to_owned(), ..Scripted::default() })
    }

    pub fn with(status: u16, name: &'static str, value: &str) -> Self {
        Self::Answer(Scripted { status, headers: vec![(name, value.to_owned())], body: String::new() })
    }
}

/// A message that was right in everything.
#[derive(Clone, Debug)]
pub struct Taken {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub plaintext: String,
    /// As it came, encrypted.
    pub body: Bytes,
}

impl Taken {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.plaintext).unwrap()
    }
}

/// One browser.
pub struct Browser {
    pub secret: SecretKey,
    pub auth: [u8; 16],
    /// What it subscribed with; the sender must prove to have it.
    pub application_server_key: String,
}

#[derive(Default)]
struct Inner {
    /// Milliseconds since 1970, by this service's clock.
    now: i64,
    browsers: BTreeMap<String, Arc<Browser>>,
    script: VecDeque<Act>,
    taken: Vec<Taken>,
    /// What was wrong with the requests that it did not take, in our words.
    refusals: Vec<&'static str>,
    connections: usize,
    requests: usize,
}

struct Service {
    origin: String,
    inner: Mutex<Inner>,
}

impl Service {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// What is answered to a whole request; `None`: nothing, ever.
    fn react(&self, head: &Parts, body: &Bytes) -> Option<Reply> {
        let mut inner = self.inner();
        inner.requests += 1;
        match inner.script.pop_front() {
            Some(Act::Answer(scripted)) => return Some(Reply::of(&scripted)),
            Some(Act::Endless(status)) => return Some(Reply { status, headers: Vec::new(), body: None }),
            Some(Act::Stall) => {
                self.take(&mut inner, head, body);
                return None;
            }
            None => {}
        }
        Some(self.take(&mut inner, head, body))
    }

    fn take(&self, inner: &mut Inner, head: &Parts, body: &Bytes) -> Reply {
        let path = head.uri.path().to_owned();
        let browser = inner.browsers.get(&path).cloned();
        match checks::taken(head, body, browser.as_deref(), &self.origin, inner.now) {
            Ok(plaintext) => {
                let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
                let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
                inner.taken.push(Taken { path, headers: headers.collect(), plaintext, body: body.clone() });
                let location = format!("{}/message/{}", self.origin, inner.taken.len());
                Reply { status: 201, headers: vec![("location", location)], body: Some(String::new()) }
            }
            Err(wrong) => {
                inner.refusals.push(wrong.why);
                Reply { status: wrong.status, headers: Vec::new(), body: Some(wrong.body.to_owned()) }
            }
        }
    }
}

struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    /// `None`: one without an end.
    body: Option<String>,
}

impl Reply {
    fn of(scripted: &Scripted) -> Self {
        Self { status: scripted.status, headers: scripted.headers.clone(), body: Some(scripted.body.clone()) }
    }
}

pub struct PushService {
    service: Arc<Service>,
    /// PEM of the root that its certificate is of.
    pub ca: String,
    task: AbortHandle,
}

impl Drop for PushService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PushService {
    pub async fn start(speaks: Speaks, now: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (ca, acceptor) = wire::tls(speaks);
        let service = Arc::new(Service { origin, inner: Mutex::new(Inner { now, ..Inner::default() }) });
        let task = tokio::spawn(wire::serve(listener, acceptor, service.clone())).abort_handle();
        Self { service, ca, task }
    }

    /// A new browser's subscription, as `PushSubscription.toJSON()` writes it.
    pub fn subscribe(&self, application_server_key: &str) -> String {
        let rng = SystemRandom::new();
        let (mut secret, mut auth, mut name) = ([0; 32], [0; 16], [0; 16]);
        rng.fill(&mut secret).unwrap();
        rng.fill(&mut auth).unwrap();
        rng.fill(&mut name).unwrap();
        let secret = SecretKey::from_slice(&secret).unwrap();
        let public = secret.public_key().to_encoded_point(false);
        let path = format!("/wpush/{}", URL_SAFE_NO_PAD.encode(name));
        let subscription = json!({
            "endpoint": format!("{}{path}", self.service.origin),
            "expirationTime": null,
            "keys": { "p256dh": URL_SAFE_NO_PAD.encode(public), "auth": URL_SAFE_NO_PAD.encode(auth) },
        });
        let browser = Browser { secret, auth, application_server_key: application_server_key.to_owned() };
        self.service.inner().browsers.insert(path, Arc::new(browser));
        subscription.to_string()
    }

    /// Does this to the next request; several are done one after the other.
    pub fn next(&self, act: Act) {
        self.service.inner().script.push_back(act);
    }

    /// Its clock.
    pub fn set_now(&self, now: i64) {
        self.service.inner().now = now;
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.service.inner().taken.clone()
    }

    /// What was wrong with what it did not take.
    pub fn refusals(&self) -> Vec<&'static str> {
        self.service.inner().refusals.clone()
    }

    pub fn connections(&self) -> usize {
        self.service.inner().connections
    }

    pub fn requests(&self) -> usize {
        self.service.inner().requests
    }

    pub fn browser(&self, path: &str) -> Arc<Browser> {
        self.service.inner().browsers[path].clone()
    }

    pub fn origin(&self) -> &str {
        &self.service.origin
    }
}
