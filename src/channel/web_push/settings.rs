//! The configuration, read and checked once: what is wrong is said at start, by its key.

use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use thiserror::Error;

use super::config::WebPushConfig;
use super::vapid::VapidKey;
use crate::channel::https::{Addresses, Https, HttpsSettings, Protocol};
use crate::text_file;

/// A setting that cannot be used. Never shows a secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {problem}")]
pub struct WebPushConfigError {
    /// Within `[providers.<name>]`.
    pub key: &'static str,
    pub problem: String,
}

fn wrong(key: &'static str, problem: impl Into<String>) -> WebPushConfigError {
    WebPushConfigError { key, problem: problem.into() }
}

/// More push services than there are browsers; a subscription can name any.
const MOST_SERVICES: usize = 64;
/// The longest reason of the known services has less than 300 bytes.
const MOST_BODY: usize = 4096;
/// An idle connection is asked after so long whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(300);

/// Everything that [`zeros`], [`key`], [`subject`] and [`connect`] find.
pub(super) fn problems(config: &WebPushConfig) -> Vec<WebPushConfigError> {
    let mut found: Vec<WebPushConfigError> = zeros(config).collect();
    found.extend(key(config).err());
    found.extend(subject(config).err());
    found.extend(connect(config).err());
    found
}

pub(super) fn key(config: &WebPushConfig) -> Result<VapidKey, WebPushConfigError> {
    let pem = match (&config.vapid_key, &config.vapid_key_file) {
        (Some(key), _) => key.expose_secret().to_owned(),
        (None, Some(file)) => read("vapid_key_file", file)?,
        (None, None) => return Err(wrong("vapid_key_file", "must be set; `belfry vapid generate` makes a key")),
    };
    VapidKey::from_pem(&pem).map_err(|problem| wrong("vapid_key_file", problem.to_string()))
}

/// RFC 8292 2.1 takes any contact. Apple answers 403 to one that cannot be reached, such as
/// `mailto:admin@localhost`, while the others accept it: so such a subject would be found wrong late.
pub(super) fn subject(config: &WebPushConfig) -> Result<&str, WebPushConfigError> {
    let subject = config.subject.as_str();
    let printable = subject.bytes().all(|b| b.is_ascii_graphic());
    let host = if let Some(address) = subject.strip_prefix("mailto:") {
        address.rsplit_once('@').filter(|(local, _)| !local.is_empty()).map(|(_, host)| host)
    } else {
        subject.strip_prefix("https://").map(|rest| rest.split(['/', '?', '#', ':']).next().unwrap_or(rest))
    };
    match host {
        Some(host) if printable && is_reachable_name(host) => Ok(subject),
        _ => Err(wrong("subject", "must be mailto:… or https://… with a full host name that others can reach")),
    }
}

fn is_reachable_name(host: &str) -> bool {
    let labels_fit =
        host.split('.').all(|label| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    labels_fit && host.contains('.') && !host.ends_with(".localhost") && !host.ends_with(".local")
}

pub(super) fn connect(config: &WebPushConfig) -> Result<Https, WebPushConfigError> {
    let roots = match (&config.ca, &config.ca_file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(file)) => Some(read("ca_file", file)?),
        (None, None) => None,
    };
    Https::new(HttpsSettings {
        roots,
        identity: None,
        protocol: Protocol::Any,
        addresses: if config.allow_internal { Addresses::Any } else { Addresses::PublicOnly },
        connections: config.connections,
        streams: config.streams,
        origins: MOST_SERVICES,
        connect: config.timeouts.connect.0,
        answer: config.timeouts.answer.0,
        body: config.timeouts.body.0,
        most_body: MOST_BODY,
        keepalive: KEEPALIVE,
        keepalive_wait: KEEPALIVE_WAIT,
        idle: IDLE,
    })
    .map_err(|error| wrong(error.key, error.problem))
}

pub(super) fn zeros(config: &WebPushConfig) -> impl Iterator<Item = WebPushConfigError> {
    let counts = [("connections", config.connections), ("streams", config.streams)];
    let waits = [
        ("timeouts.connect", config.timeouts.connect),
        ("timeouts.answer", config.timeouts.answer),
        ("timeouts.body", config.timeouts.body),
    ];
    let none = counts.into_iter().filter(|(_, count)| *count == 0);
    let none = none.map(|(key, _)| wrong(key, "must be at least 1"));
    let never = waits.into_iter().filter(|(_, span)| span.0.is_zero());
    none.chain(never.map(|(key, _)| wrong(key, "must be longer than zero")))
}

fn read(key: &'static str, file: &Path) -> Result<String, WebPushConfigError> {
    text_file::read(file, text_file::SMALL).map_err(|error| wrong(key, format!("{}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::super::config::WebPushTimeouts;
    use super::super::vapid::generate;
    use super::*;
    use crate::ports::span::Span;

    fn config(subject: &str) -> WebPushConfig {
        WebPushConfig {
            app: None,
            vapid_key_file: None,
            vapid_key: Some(generate().pem),
            subject: subject.to_owned(),
            ca_file: None,
            ca: None,
            allow_internal: false,
            connections: 2,
            streams: 50,
            timeouts: WebPushTimeouts::default(),
        }
    }

    fn usual() -> WebPushConfig {
        config("mailto:push@example.com")
    }

    fn keys_of(config: &WebPushConfig) -> Vec<&'static str> {
        problems(config).into_iter().map(|error| error.key).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let text = "vapid_key_file = \"vapid.pem\"\nsubject = \"mailto:push@example.com\"\n";
        let read: WebPushConfig = toml::from_str(text).unwrap();
        assert_eq!((read.connections, read.streams, read.allow_internal), (2, 50, false));
        let waits = [read.timeouts.connect, read.timeouts.answer, read.timeouts.body];
        assert_eq!(waits, [Span::secs(10), Span::secs(30), Span::secs(5)]);
        assert!(toml::from_str::<WebPushConfig>(&format!("{text}urgency = \"high\"\n")).is_err());
        assert!(toml::from_str::<WebPushConfig>("vapid_key_file = \"vapid.pem\"\n").is_err(), "no subject");
        let shown = toml::to_string(&usual()).unwrap();
        assert!(!shown.contains("vapid_key"), "{shown}");
    }

    #[test]
    fn problems_name_their_key() {
        assert_eq!(keys_of(&usual()), [""; 0]);
        assert_eq!(keys_of(&WebPushConfig { vapid_key: None, ..usual() }), ["vapid_key_file"]);
        assert_eq!(keys_of(&WebPushConfig { vapid_key: Some("x".into()), ..usual() }), ["vapid_key_file"]);
        let missing = WebPushConfig { vapid_key: None, vapid_key_file: Some("/nonexistent".into()), ..usual() };
        assert_eq!(keys_of(&missing), ["vapid_key_file"]);
        assert_eq!(keys_of(&WebPushConfig { ca_file: Some("/nonexistent".into()), ..usual() }), ["ca_file"]);
        assert_eq!(keys_of(&WebPushConfig { ca: Some("no certificate".into()), ..usual() }), ["ca_file"]);
        assert_eq!(keys_of(&WebPushConfig { connections: 0, ..usual() }), ["connections"]);
        assert_eq!(keys_of(&WebPushConfig { streams: 0, ..usual() }), ["streams"]);
        let timeouts = WebPushTimeouts { body: Span::secs(0), ..WebPushTimeouts::default() };
        assert_eq!(keys_of(&WebPushConfig { timeouts, ..usual() }), ["timeouts.body"]);
        let all = WebPushConfig { subject: String::new(), vapid_key: None, ..usual() };
        assert_eq!(keys_of(&all), ["vapid_key_file", "subject"]);
    }

    #[test]
    fn a_problem_shows_no_key() {
        let secret = generate().pem;
        let damaged = secret.expose_secret().replace("PRIVATE", "PUBLIC");
        let found = problems(&WebPushConfig { vapid_key: Some(SecretString::from(damaged)), ..usual() });
        let body = secret.expose_secret().lines().nth(1).unwrap().to_owned();
        assert_eq!(found.len(), 1);
        assert!(!format!("{found:?} {:?}", usual()).contains(&body[..16]));
    }

    #[test]
    fn subjects() {
        for good in ["mailto:push@example.com", "https://shop.example/contact", "https://shop.example:8443"] {
            assert_eq!(subject(&config(good)).ok(), Some(good));
        }
        for bad in [
            "",
            "push@example.com",
            "mailto:",
            "mailto:@example.com",
            "mailto:push@localhost",
            "mailto:push@shop.localhost",
            "mailto:pu sh@example.com",
            "mailto:push@example.com\n",
            "mailto:push@exämple.com",
            "http://shop.example",
            "https://",
            "https://localhost/contact",
            "https://.example",
        ] {
            assert_eq!(subject(&config(bad)).map_err(|error| error.key), Err("subject"), "{bad}");
        }
    }
}
