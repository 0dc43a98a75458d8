//! A strict stand-in for FCM HTTP v1 and Google's token endpoint on loopback. What it takes is what
//! FCM documents and no more; each effect it had is kept. Its clock is its own and stands still until it
//! is stepped.
//!
//! Other clients can be pointed at it: `/v1/projects/<project>/messages:send` and the `token_uri` of
//! [`FcmSim::key_file`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

#[path = "fcm_sim_oauth.rs"]
mod oauth;
#[path = "fcm_sim_schema.rs"]
mod schema;
#[path = "fcm_sim_send.rs"]
mod send;
#[path = "fcm_sim_serve.rs"]
mod serve;

pub use schema::{fields, types};
use serve::{Asked, Body, Reply};

/// Bounds every wait of a test; never a measure of anything.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The project that it serves.
pub const PROJECT: &str = "shop-1";
/// 2023-11-14T22:13:20Z, when its clock stands still.
pub const START: i64 = 1_700_000_000;

/// What it does instead of its usual answer.
#[derive(Clone, Debug)]
pub enum Act {
    /// Status, headers, body. The message is not taken.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// The message is taken, and then this status and body told.
    TakeThenAnswer(u16, String),
    /// Nothing, for ever. The message is taken.
    Stall,
    /// This status, and no body. The message is taken.
    StallBody(u16),
    /// This status, and a body without end. The message is taken.
    Endless(u16),
    /// The usual answer, once the test calls [`FcmSim::release`].
    AnswerOnRelease,
}

impl Act {
    /// FCM's own form: HTTP status, its name, FCM's code where there is one, further details.
    pub fn error(status: u16, name: &str, code: Option<&str>, more: Vec<Value>) -> Self {
        Self::error_with(status, Vec::new(), name, code, more)
    }

    pub fn error_with(
        status: u16,
        headers: Vec<(&'static str, String)>,
        name: &str,
        code: Option<&str>,
        more: Vec<Value>,
    ) -> Self {
        Self::Answer(status, headers, error(status, name, code, more))
    }
}

/// `google.rpc.Status` in JSON.
pub fn error(status: u16, name: &str, code: Option<&str>, more: Vec<Value>) -> String {
    let fcm = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
    let mut details: Vec<Value> = code.map(|code| json!({"@type": fcm, "errorCode": code})).into_iter().collect();
    details.extend(more);
    json!({"error": {"code": status, "message": "in words", "status": name, "details": details}}).to_string()
}

/// One message that it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    pub token: String,
    /// The bytes as they came.
    pub body: String,
    pub message: Value,
}

#[derive(Debug, Default)]
pub struct Seen {
    pub connections: usize,
    /// Requests to the token endpoint.
    pub grants: usize,
    /// Requests to send, whatever came of them.
    pub sends: usize,
    pub effects: Vec<Effect>,
    /// What no careful client sends.
    pub complaints: Vec<String>,
}

#[derive(Default)]
struct State {
    /// Access tokens and when each ends.
    access: HashMap<String, i64>,
    issued: u32,
    lives: i64,
    devices: Vec<String>,
    grant_acts: VecDeque<Act>,
    send_acts: HashMap<String, VecDeque<Act>>,
}

pub struct Shared {
    token_uri: String,
    now: AtomicI64,
    state: Mutex<State>,
    pub seen: watch::Sender<Seen>,
    release: Notify,
}

/// Stops with its connections when dropped.
pub struct FcmSim {
    address: std::net::SocketAddr,
    pub ca: String,
    shared: Arc<Shared>,
    accepting: AbortHandle,
    forgiving: bool,
}

impl Drop for FcmSim {
    fn drop(&mut self) {
        self.accepting.abort();
        if !std::thread::panicking() && !self.forgiving {
            assert_eq!(self.seen(|seen| seen.complaints.clone()), Vec::<String>::new());
        }
    }
}

impl FcmSim {
    pub async fn start() -> Self {
        Self::speaking(&["h2", "http/1.1"]).await
    }

    /// With these protocols alone.
    pub async fn speaking(alpn: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tls, ca) = serve::certificate(alpn);
        let shared = Arc::new(Shared {
            token_uri: format!("https://{address}/token"),
            now: AtomicI64::new(START),
            state: Mutex::new(State { lives: 3599, ..State::default() }),
            seen: watch::Sender::new(Seen::default()),
            release: Notify::new(),
        });
        let accepting = tokio::spawn(serve::accept(listener, tls, shared.clone())).abort_handle();
        Self { address, ca, shared, accepting, forgiving: false }
    }

    /// Complaints are what the test is about.
    pub fn forgiving(mut self) -> Self {
        self.forgiving = true;
        self
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// A service account of [`PROJECT`].
    pub fn key_file(&self) -> String {
        oauth::key_file(PROJECT, &self.shared.token_uri)
    }

    /// A device that is registered.
    pub fn device(&self, token: &str) {
        self.shared.state.lock().unwrap().devices.push(token.to_owned());
    }

    /// What the next calls to `token` get, one after the other, before its usual answers.
    pub fn script(&self, token: &str, acts: impl IntoIterator<Item = Act>) {
        self.shared.state.lock().unwrap().send_acts.entry(token.to_owned()).or_default().extend(acts);
    }

    /// What the next requests to the token endpoint get.
    pub fn script_grants(&self, acts: impl IntoIterator<Item = Act>) {
        self.shared.state.lock().unwrap().grant_acts.extend(acts);
    }

    /// Seconds that access tokens live from now on.
    pub fn grant_for(&self, seconds: i64) {
        self.shared.state.lock().unwrap().lives = seconds;
    }

    /// No access token given out so far is good any more.
    pub fn revoke(&self) {
        self.shared.state.lock().unwrap().access.clear();
    }

    pub fn step(&self, by: Duration) {
        self.shared.now.fetch_add(i64::try_from(by.as_secs()).unwrap(), Ordering::SeqCst);
    }

    /// Answers one that waits for it, now or next.
    pub fn release(&self) {
        self.shared.release.notify_one();
    }

    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.shared.seen.borrow())
    }

    /// Waits until what was seen is as wanted.
    pub async fn until(&self, wanted: impl FnMut(&Seen) -> bool) {
        let mut seen = self.shared.seen.subscribe();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(wanted)).await;
        assert!(waited.is_ok_and(|seen| seen.is_ok()), "{:?}", self.shared.seen.borrow());
    }

    /// What an Android device shows at the end: titles by tag; one without a tag stands for itself.
    pub fn screen(&self, token: &str) -> BTreeMap<String, Value> {
        let effects = self.seen(|seen| seen.effects.clone());
        let shown = effects.into_iter().enumerate().filter(|(_, effect)| effect.token == token);
        let shown = shown.filter(|(_, effect)| effect.message.get("notification").is_some());
        shown
            .map(|(at, Effect { message, .. })| {
                let tag = message["android"]["notification"]["tag"].as_str();
                (tag.map_or_else(|| format!("untagged {at}"), str::to_owned), message["notification"]["title"].clone())
            })
            .collect()
    }
}

impl Shared {
    fn now(&self) -> i64 {
        self.now.load(Ordering::SeqCst)
    }

    async fn answer(&self, asked: &Asked) -> Reply {
        let mut reply = match (asked.method.as_str(), asked.path.as_str()) {
            ("POST", "/token") => self.grant(asked).await,
            ("POST", path) => match path.strip_prefix("/v1/projects/").and_then(|rest| rest.split_once('/')) {
                Some((project, "messages:send")) => self.send(project, asked).await,
                _ => self.nothing_there(asked),
            },
            _ => self.nothing_there(asked),
        };
        let now = std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(self.now()).unwrap());
        reply.headers.push(("date", httpdate::fmt_http_date(now)));
        reply
    }

    fn nothing_there(&self, asked: &Asked) -> Reply {
        self.complain(format!("{} {}", asked.method, asked.path));
        let page = "<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>".to_owned();
        Reply { status: 404, headers: vec![("content-type", "text/html".to_owned())], body: Body::Whole(page) }
    }

    fn complain(&self, what: String) {
        self.seen.send_modify(|seen| seen.complaints.push(what));
    }

    async fn grant(&self, asked: &Asked) -> Reply {
        self.seen.send_modify(|seen| seen.grants += 1);
        let act = self.state.lock().unwrap().grant_acts.pop_front();
        if let Some(act) = act
            && let Some(reply) = self.act(act).await
        {
            return reply;
        }
        if asked.header("content-type") != "application/x-www-form-urlencoded" {
            self.complain("the token endpoint wants a form".to_owned());
        }
        let form = String::from_utf8_lossy(&asked.body).into_owned();
        match oauth::verify(&form, &self.token_uri, self.now()) {
            Ok(()) => json_reply(200, &self.issue()),
            Err((code, what)) => {
                self.complain(format!("assertion: {what}"));
                json_reply(400, &json!({"error": code, "error_description": what}))
            }
        }
    }

    fn issue(&self) -> Value {
        let mut state = self.state.lock().unwrap();
        state.issued += 1;
        let token = format!("ya29.sim-{}", state.issued);
        let ends = self.now() + state.lives;
        state.access.insert(token.clone(), ends);
        json!({"access_token": token, "expires_in": state.lives, "token_type": "Bearer"})
    }

    /// `None`: the usual answer.
    async fn act(&self, act: Act) -> Option<Reply> {
        let plain = |status, body| Some(Reply { status, headers: Vec::new(), body });
        match act {
            Act::Answer(status, headers, body) => Some(Reply { status, headers, body: Body::Whole(body) }),
            Act::TakeThenAnswer(status, body) => plain(status, Body::Whole(body)),
            Act::Stall => std::future::pending().await,
            Act::StallBody(status) => plain(status, Body::Stalled),
            Act::Endless(status) => plain(status, Body::Endless),
            Act::AnswerOnRelease => {
                self.release.notified().await;
                None
            }
        }
    }
}

fn json_reply(status: u16, json: &Value) -> Reply {
    let headers = vec![("content-type", "application/json; charset=UTF-8".to_owned())];
    Reply { status, headers, body: Body::Whole(json.to_string()) }
}
