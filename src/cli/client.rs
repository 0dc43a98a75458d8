//! The API as the commands use it: one request, one answer, every failure with the exit code that
//! belongs to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use reqwest::{Method, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::{Exit, Failure};
use super::local::LocalDir;
use crate::config::Config;
use crate::text_file;

/// Where the server is and which key opens it.
#[derive(Args, Clone, Default)]
pub struct ServerArgs {
    /// Address of the server; absent: the one that runs on this machine
    #[arg(long, env = "BELFRY_SERVER", value_name = "URL")]
    server: Option<String>,
    /// File with an API key; absent: BELFRY_API_KEY, or the key that `serve` left on this machine
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// By environment only: on a command line every user of the machine could read it
    #[arg(long, env = "BELFRY_API_KEY", hide = true, hide_env_values = true)]
    api_key: Option<String>,
}

impl ServerArgs {
    /// Whether a server was named, rather than to be found on this machine.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.server.is_some()
    }

    /// The flags for the same server, as another command takes them.
    #[must_use]
    pub fn again(&self) -> String {
        let server = self.server.iter().map(|url| format!(" --server {}", quoted(url)));
        let key = self.api_key_file.iter().map(|path| format!(" --api-key-file {}", quoted(&path.to_string_lossy())));
        server.chain(key).collect()
    }
}

pub struct Client {
    http: reqwest::Client,
    base: String,
    /// Asked where nobody listens at `base`: who left that address may have ended since.
    other: Option<String>,
    /// Nobody does.
    gone: AtomicBool,
    /// That it has to come back has been told.
    waits_told: AtomicBool,
    key: Option<SecretString>,
}

/// How long a call may take, connecting included.
#[derive(Clone, Copy)]
pub enum Patience {
    Long,
    /// For a look at what may hang.
    Short,
}

impl Patience {
    /// To connect, and altogether.
    const fn spans(self) -> (Duration, Duration) {
        match self {
            Self::Long => (Duration::from_secs(5), Duration::from_secs(60)),
            Self::Short => (Duration::from_secs(1), Duration::from_secs(3)),
        }
    }
}

/// The longest that a command waits because it was asked to come back; who is to wait for longer is told so.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often it comes back to a server that cannot say yes. To one that only counts calls as often as it takes.
const MOST_RETURNS: usize = 5;

/// What the server said, whatever its status.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    /// `Retry-After`, in seconds.
    retry_after: Option<Duration>,
    /// `Idempotency-Replayed: true`.
    pub replayed: bool,
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Client {
    /// # Errors
    /// The key file cannot be read, or there is no TLS to be had.
    pub fn discover(args: &ServerArgs, config: &Config) -> Result<Self, Failure> {
        Self::look_for(args, config, Patience::Long)
    }

    /// # Errors
    /// As [`Self::discover`].
    pub fn look_for(args: &ServerArgs, config: &Config, patience: Patience) -> Result<Self, Failure> {
        let dir = LocalDir::of(config);
        let local = dir.server().unwrap_or_else(|| listener(config));
        let base = args.server.clone().unwrap_or_else(|| local.clone()).trim_end_matches('/').to_owned();
        if !["http://", "https://"].iter().any(|scheme| base.starts_with(scheme)) {
            let what = format!("--server (or BELFRY_SERVER): begin with http:// or https://, as in http://{base}");
            return Err(Failure::new(Exit::Usage, what));
        }
        let key = match &args.api_key_file {
            Some(path) => {
                let text = text_file::read(path, text_file::SMALL).map_err(|error| {
                    Failure::new(Exit::Usage, format!("--api-key-file {}: {error}", path.display()))
                })?;
                let key = text.trim();
                if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                    let what = format!("--api-key-file {}: holds no API key", path.display());
                    return Err(Failure::new(Exit::Usage, what));
                }
                Some(key.to_owned())
            }
            // The key left here opens the server here; no other server must ever be shown it.
            None => {
                let here = base == local.trim_end_matches('/');
                let operators = || config.bootstrap_key.as_ref().map(|key| key.expose_secret().to_owned());
                args.api_key.clone().or_else(|| if here { operators().or_else(|| dir.key()) } else { None })
            }
        };
        let other = Some(listener(config)).filter(|other| args.server.is_none() && *other != base);
        Ok(Self { other, ..Self::with_patience(&base, key, patience)? })
    }

    /// # Errors
    /// There is no TLS to be had.
    pub fn new(base: &str, key: Option<String>) -> Result<Self, Failure> {
        Self::with_patience(base, key, Patience::Long)
    }

    fn with_patience(base: &str, key: Option<String>, patience: Patience) -> Result<Self, Failure> {
        install_tls();
        let (connect, whole) = patience.spans();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(connect)
            .timeout(whole)
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(base) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| Failure::new(Exit::Failed, plain(&error)))?;
        let [gone, waits_told] = [AtomicBool::new(false), AtomicBool::new(false)];
        Ok(Self { http, base: base.to_owned(), other: None, gone, waits_told, key: key.map(SecretString::from) })
    }

    #[must_use]
    pub fn base(&self) -> &str {
        match &self.other {
            Some(other) if self.gone.load(Ordering::Relaxed) => other,
            _ => &self.base,
        }
    }

    #[must_use]
    pub const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// # Errors
    /// The server is away.
    pub async fn delete(&self, path: &str) -> Result<Answer, Failure> {
        self.call(Method::DELETE, path, None, None).await
    }

    /// # Errors
    /// The server is away.
    pub async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.call(Method::GET, path, None, None).await
    }

    /// Makes a call that may be made again, and again where the server asks to come back: one of many calls, which a
    /// limit of calls would else cut short.
    ///
    /// # Errors
    /// The server is away.
    pub async fn patiently<F>(&self, call: impl Fn() -> F) -> Result<Answer, Failure>
    where
        F: Future<Output = Result<Answer, Failure>>,
    {
        let mut returns = 0;
        loop {
            let answer = call().await?;
            returns += usize::from(answer.status == StatusCode::SERVICE_UNAVAILABLE);
            match answer.asks_to_come_back().filter(|_| returns <= MOST_RETURNS) {
                Some(wait) => {
                    // Whoever imports under a small limit waits for minutes, and would see nothing move.
                    if !self.waits_told.swap(true, Ordering::Relaxed) {
                        eprintln!("waiting {} s at a time: the server says {}", wait.as_secs().max(1), answer.status);
                    }
                    tokio::time::sleep(wait).await;
                }
                None => return Ok(answer),
            }
        }
    }

    /// # Errors
    /// The server is away.
    pub async fn put(&self, path: &str, body: String) -> Result<Answer, Failure> {
        self.call(Method::PUT, path, None, Some(body)).await
    }

    /// `idempotency_key` as it shall stand in the header.
    ///
    /// # Errors
    /// The server is away.
    pub async fn post(&self, path: &str, idempotency_key: Option<&str>, body: String) -> Result<Answer, Failure> {
        self.call(Method::POST, path, idempotency_key, Some(body)).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        idempotency_key: Option<&str>,
        body: Option<String>,
    ) -> Result<Answer, Failure> {
        let sent = self.send(method.clone(), path, idempotency_key, body.clone()).await;
        let response = match sent {
            // Nothing was sent.
            Err(error) if error.is_connect() && self.other.is_some() && !self.gone.load(Ordering::Relaxed) => {
                self.gone.store(true, Ordering::Relaxed);
                let again = self.send(method, path, idempotency_key, body).await;
                again.map_err(|other| {
                    // Nobody there either: the address that was left says more.
                    let neither = other.is_connect();
                    self.gone.store(!neither, Ordering::Relaxed);
                    self.away(if neither { &error } else { &other })
                })?
            }
            sent => sent.map_err(|error| self.away(&error))?,
        };
        self.read(response).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        idempotency_key: Option<&str>,
        body: Option<String>,
    ) -> reqwest::Result<Response> {
        let mut request = self.http.request(method, format!("{}{path}", self.base()));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body);
        }
        request.send().await
    }

    async fn read(&self, response: Response) -> Result<Answer, Failure> {
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let replayed = header("Idempotency-Replayed") == Some("true");
        let retry_after = header("Retry-After").and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let text = response.text().await.map_err(|error| self.away(&error))?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status, retry_after, replayed, body, text })
    }

    fn away(&self, error: &reqwest::Error) -> Failure {
        if error.is_builder() {
            return Failure::new(Exit::Usage, format!("{} is no address of a server: {}", self.base(), plain(error)));
        }
        Failure::new(
            Exit::RetryLater,
            format!("no answer from {} ({}). Is `belfry serve` running?", self.base(), plain(error)),
        )
    }
}

impl Answer {
    fn asks_to_come_back(&self) -> Option<Duration> {
        let asks = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&self.status);
        self.retry_after.filter(|wait| asks && *wait <= LONGEST_WAIT)
    }

    /// The body of a success.
    ///
    /// # Errors
    /// The problem in words, with the exit code of its kind.
    pub fn ok(self) -> Result<Self, Failure> {
        self.ok_by_flags(&|_| None)
    }

    /// As [`Self::ok`]; `flag_of` knows which flag a field of the request came from.
    ///
    /// # Errors
    /// As [`Self::ok`].
    pub fn ok_by_flags(self, flag_of: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        if self.status.is_success() {
            return Ok(self);
        }
        let exit = match self.status {
            StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT => Exit::RetryLater,
            // What it was given is wrong, whoever found that out.
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => Exit::Usage,
            _ => Exit::Failed,
        };
        let text = self.problem(flag_of);
        Err(Failure { exit, text, problem: Some(self.body).filter(Value::is_object) })
    }

    /// The body as what it should be.
    ///
    /// # Errors
    /// It is something else.
    pub fn read<T: DeserializeOwned>(&self, what: &str) -> Result<T, Failure> {
        serde_json::from_str(&self.text).map_err(|_| {
            Failure::new(Exit::Failed, format!("the server's answer cannot be read as {what}; is it a Belfry server?"))
        })
    }

    /// An RFC 9457 problem in words, one line for each field at fault.
    fn problem(&self, flag_of: &dyn Fn(&str) -> Option<String>) -> String {
        let word = |key: &str| self.body[key].as_str();
        let mut text = format!("{}: {}", self.status.as_u16(), word("title").unwrap_or("the server refused it"));
        if let Some(detail) = word("detail") {
            text.push_str(&format!(". {detail}"));
        }
        for field in self.body["errors"].as_array().into_iter().flatten() {
            let word = |key: &str| field[key].as_str().unwrap_or_default();
            let pointer = word("pointer");
            let place = flag_of(pointer).unwrap_or_else(|| pointer.to_owned());
            let place = if place.is_empty() { place } else { format!("{place}: ") };
            text.push_str(&format!("\n  {place}{}", word("detail")));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            text.push_str("\nGive a key by --api-key-file or BELFRY_API_KEY; make one with `belfry keys create`.");
        }
        text
    }
}

/// As a shell takes it for one word.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:@%+=,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Where a server with this configuration is reached from the same machine.
fn listener(config: &Config) -> String {
    let mut listen = config.http.listen;
    if listen.ip().is_unspecified() {
        let loopback = match listen.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        listen.set_ip(loopback);
    }
    format!("http://{listen}")
}

fn is_loopback(base: &str) -> bool {
    let host = base.split("://").nth(1).unwrap_or(base);
    ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start))
}

/// The innermost cause: what people call "connection refused".
fn plain(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// One TLS backend for the whole program; whoever comes second finds it installed.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race to another thread leaves the same provider in place.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}
