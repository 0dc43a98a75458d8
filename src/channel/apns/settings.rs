//! The configuration, read and checked once: what is wrong is said at start, by its key.

use std::path::Path;

use http::Uri;
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;

use super::config::ApnsConfig;
use super::token::{Signer, SignerId};
use crate::channel::https::{Addresses, Https, HttpsError, HttpsSettings, Identity, Protocol};
use crate::text_file;

/// Apple's answers are one short JSON object.
const MOST_BODY: usize = 16 * 1024;

/// A setting that cannot be used. Never shows a secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {problem}")]
pub struct ApnsConfigError {
    /// Within `[providers.<name>]`.
    pub key: &'static str,
    pub problem: String,
}

fn wrong(key: &'static str, problem: impl Into<String>) -> ApnsConfigError {
    ApnsConfigError { key, problem: problem.into() }
}

impl From<HttpsError> for ApnsConfigError {
    fn from(error: HttpsError) -> Self {
        wrong(error.key, error.problem)
    }
}

pub(super) struct Settings {
    /// `https://host[:port]`, no slash at the end.
    pub url: String,
    /// For people.
    pub place: String,
    pub topic: String,
    pub login: Login,
    pub https: Https,
}

/// How Apple knows us.
pub(super) enum Login {
    Token(SignerId, Box<Signer>),
    /// In the TLS handshake.
    Certificate,
}

impl Settings {
    pub fn problems(config: &ApnsConfig) -> Vec<ApnsConfigError> {
        match Self::read(config) {
            Ok(_) => Vec::new(),
            Err(found) => found,
        }
    }

    /// Everything at once, or everything that is wrong.
    pub fn read(config: &ApnsConfig) -> Result<Self, Vec<ApnsConfigError>> {
        let mut found: Vec<ApnsConfigError> = numbers(config);
        let topic = noted(topic(&config.topic), &mut found);
        let url = noted(url(config), &mut found);
        let roots = noted(text("ca_file", config.ca.as_deref(), config.ca_file.as_deref()), &mut found);
        let login = login(config, &mut found);
        let (Some(topic), Some((url, place)), Some(roots), Some((login, identity))) = (topic, url, roots, login) else {
            return Err(found);
        };
        match Https::new(https(config, roots, identity)) {
            Ok(https) if found.is_empty() => Ok(Self { url, place, topic, login, https }),
            Ok(_) => Err(found),
            Err(error) => {
                found.push(error.into());
                Err(found)
            }
        }
    }
}

fn noted<T>(read: Result<T, ApnsConfigError>, found: &mut Vec<ApnsConfigError>) -> Option<T> {
    read.map_err(|error| found.push(error)).ok()
}

fn https(config: &ApnsConfig, roots: Option<String>, identity: Option<Identity>) -> HttpsSettings {
    HttpsSettings {
        roots,
        identity,
        protocol: Protocol::Http2,
        addresses: Addresses::Any,
        connections: config.connections,
        streams: config.streams,
        origins: 1,
        connect: config.timeouts.connect.0,
        answer: config.timeouts.answer.0,
        body: config.timeouts.body.0,
        most_body: MOST_BODY,
        keepalive: config.keepalive.0,
        keepalive_wait: config.keepalive_wait.0,
        idle: config.idle.0,
    }
}

fn numbers(config: &ApnsConfig) -> Vec<ApnsConfigError> {
    let counts = [("connections", config.connections), ("streams", config.streams)];
    let waits = [
        ("timeouts.connect", config.timeouts.connect),
        ("timeouts.answer", config.timeouts.answer),
        ("timeouts.body", config.timeouts.body),
        ("keepalive", config.keepalive),
        ("keepalive_wait", config.keepalive_wait),
        ("idle", config.idle),
    ];
    let none = counts.into_iter().filter(|(_, count)| *count == 0).map(|(key, _)| wrong(key, "must be at least 1"));
    let zero = waits.into_iter().filter(|(_, span)| span.0.is_zero());
    none.chain(zero.map(|(key, _)| wrong(key, "must be longer than zero"))).collect()
}

/// A bundle id: letters, digits, hyphens and dots (Apple, `CFBundleIdentifier`).
fn topic(topic: &str) -> Result<String, ApnsConfigError> {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if topic.len() > 155 || !topic.split('.').all(part) {
        return Err(wrong("topic", "must be the app's bundle id, such as \"com.example.shop\""));
    }
    Ok(topic.to_owned())
}

/// The address, and the same for people.
fn url(config: &ApnsConfig) -> Result<(String, String), ApnsConfigError> {
    let text = config.url.as_deref().unwrap_or_else(|| config.environment.url());
    let uri: Uri = text.parse().map_err(|_| wrong("url", "is no address"))?;
    if uri.scheme_str() != Some("https") {
        return Err(wrong("url", "must begin with https://"));
    }
    let authority =
        uri.authority().filter(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
    let authority = authority.ok_or_else(|| wrong("url", "must name a host and nothing before it"))?;
    if authority.port().is_some() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(wrong("url", "the port must be a number from 1 to 65535"));
    }
    if uri.path() != "/" || uri.query().is_some() {
        return Err(wrong("url", "has something after the port"));
    }
    Ok((format!("https://{authority}"), authority.to_string()))
}

/// The text that was filled in, else the file's.
fn text(key: &'static str, filled: Option<&str>, file: Option<&Path>) -> Result<Option<String>, ApnsConfigError> {
    match (filled, file) {
        (Some(text), _) => Ok(Some(text.to_owned())),
        (None, Some(file)) => {
            let read = text_file::read(file, text_file::SMALL);
            read.map(Some).map_err(|error| wrong(key, format!("{}: {error}", file.display())))
        }
        (None, None) => Ok(None),
    }
}

/// Exactly one way of authentication.
fn login(config: &ApnsConfig, found: &mut Vec<ApnsConfigError>) -> Option<(Login, Option<Identity>)> {
    let filled = config.key.as_ref().map(|key| key.expose_secret());
    let key = noted(text("key_file", filled, config.key_file.as_deref()), found)?;
    let key = key.map(SecretString::from);
    let chain = text("certificate_file", config.certificate.as_deref(), config.certificate_file.as_deref());
    let chain = noted(chain, found)?;
    let before = found.len();
    if key.is_none() {
        found.push(wrong("key_file", "is missing: the signing key (.p8), or the certificate's key"));
    }
    let login = match chain {
        Some(chain) => {
            for (name, id) in [("team_id", &config.team_id), ("key_id", &config.key_id)] {
                if id.is_some() {
                    found.push(wrong(name, "belongs to token authentication; there is a certificate already"));
                }
            }
            key.map(|key| (Login::Certificate, Some(Identity { chain, key })))
        }
        None => {
            let team = noted(id("team_id", config.team_id.as_deref()), found);
            let key_id = noted(id("key_id", config.key_id.as_deref()), found);
            let signer = key.as_ref().map(|key| Signer::read(key).map_err(|problem| wrong("key_file", problem)));
            let signer = signer.and_then(|signer| noted(signer, found));
            match (team, key_id, signer) {
                (Some(team), Some(key_id), Some(signer)) => {
                    Some((Login::Token(SignerId { team, key_id, key: signer.print() }, Box::new(signer)), None))
                }
                _ => None,
            }
        }
    };
    login.filter(|_| found.len() == before)
}

fn id(key: &'static str, id: Option<&str>) -> Result<String, ApnsConfigError> {
    let id = id.ok_or_else(|| wrong(key, "is missing (or certificate_file, to authenticate with a certificate)"))?;
    if id.len() != 10 || !id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return Err(wrong(key, "must be ten upper-case letters and digits"));
    }
    Ok(id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::config::{ApnsEnvironment, ApnsTimeouts};
    use super::*;
    use crate::ports::span::Span;

    fn key(alg: &'static rcgen::SignatureAlgorithm) -> Option<SecretString> {
        Some(rcgen::KeyPair::generate_for(alg).unwrap().serialize_pem().into())
    }

    fn config(toml: serde_json::Value) -> ApnsConfig {
        serde_json::from_value(toml).unwrap()
    }

    /// As a configuration names it, its key filled in.
    fn good() -> ApnsConfig {
        let least = serde_json::json!({ "topic": "com.example.shop", "team_id": "TEAM000001", "key_id": "KEY0000001" });
        ApnsConfig { key: key(&rcgen::PKCS_ECDSA_P256_SHA256), ..config(least) }
    }

    fn wrong(config: &ApnsConfig) -> Vec<&'static str> {
        Settings::problems(config).into_iter().map(|error| error.key).collect()
    }

    #[test]
    fn the_environment_says_where_to() {
        let place = |config: &ApnsConfig| Settings::read(config).map(|read| (read.url, read.place)).ok();
        let expected = |host: &str| Some((format!("https://{host}"), host.to_owned()));
        assert_eq!(place(&good()), expected("api.push.apple.com"));
        let sandbox = ApnsConfig { environment: ApnsEnvironment::Sandbox, ..good() };
        assert_eq!(place(&sandbox), expected("api.sandbox.push.apple.com"));
        let own = ApnsConfig { url: Some("https://gateway.example.com:2197/".into()), ..good() };
        assert_eq!(place(&own), expected("gateway.example.com:2197"));
    }

    #[test]
    fn what_is_not_said_is_as_documented() {
        let read = good();
        assert_eq!((read.environment, read.connections, read.streams), (ApnsEnvironment::Production, 2, 100));
        let timeouts = [read.timeouts.connect, read.timeouts.answer, read.timeouts.body];
        assert_eq!(timeouts, [10, 30, 5].map(Span::secs));
        let waits = [read.keepalive, read.keepalive_wait, read.idle];
        assert_eq!(waits, [60, 10, 1800].map(Span::secs));
        assert!(serde_json::from_value::<ApnsConfig>(serde_json::json!({ "topic": "a", "teamid": "x" })).is_err());
    }

    #[test]
    fn every_wrong_key_is_named() {
        assert_eq!(wrong(&good()), [""; 0]);
        for topic in ["", "com..shop", ".shop", "com.shop.", "com.sh op", "com.é", &"a".repeat(156)] {
            assert_eq!(wrong(&ApnsConfig { topic: topic.into(), ..good() }), ["topic"], "{topic}");
        }
        for url in
            ["http://127.0.0.1", "api.push.apple.com", "https://u@x", "https://x/y", "https://x?y", "https://x:0"]
        {
            assert_eq!(wrong(&ApnsConfig { url: Some(url.into()), ..good() }), ["url"], "{url}");
        }
        for id in ["", "TEAM00001", "TEAM0000012", "team000001", "TEAM-00001", "TEAM00000É"] {
            assert_eq!(wrong(&ApnsConfig { team_id: Some(id.into()), ..good() }), ["team_id"], "{id}");
            assert_eq!(wrong(&ApnsConfig { key_id: Some(id.into()), ..good() }), ["key_id"], "{id}");
        }
        let zero = Span::secs(0);
        let timeouts = ApnsTimeouts { connect: zero, answer: zero, body: zero };
        let zeros = ApnsConfig {
            connections: 0,
            streams: 0,
            timeouts,
            keepalive: zero,
            keepalive_wait: zero,
            idle: zero,
            ca: Some("x".into()),
            topic: "-.".into(),
            ..good()
        };
        let named = wrong(&zeros);
        let expected = [
            "connections",
            "streams",
            "timeouts.connect",
            "timeouts.answer",
            "timeouts.body",
            "keepalive",
            "keepalive_wait",
            "idle",
            "topic",
        ];
        assert_eq!(named, expected, "the certificates are looked at once the rest is right");
        assert_eq!(wrong(&ApnsConfig { ca: Some("x".into()), ..good() }), ["ca_file"]);
    }

    #[test]
    fn there_is_exactly_one_way_of_authentication() {
        let made = rcgen::generate_simple_self_signed(["client.test".to_owned()]).unwrap();
        let certificate = Some(made.cert.pem());
        let own: Option<SecretString> = Some(made.signing_key.serialize_pem().into());
        let with = ApnsConfig { certificate, key: own, team_id: None, key_id: None, ..good() };
        assert_eq!(wrong(&with), [""; 0]);
        let both = ApnsConfig { team_id: Some("TEAM000001".into()), key_id: Some("KEY0000001".into()), ..with.clone() };
        assert_eq!(wrong(&both), ["team_id", "key_id"]);
        assert_eq!(wrong(&ApnsConfig { key: None, ..with.clone() }), ["key_file"]);
        assert_eq!(wrong(&ApnsConfig { key: good().key, ..with }), ["certificate_file"]);
        let none = ApnsConfig { team_id: None, key_id: None, key: None, ..good() };
        assert_eq!(wrong(&none), ["key_file", "team_id", "key_id"]);
        for odd in [Some("".into()), Some("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".into())] {
            assert_eq!(wrong(&ApnsConfig { key: odd, ..good() }), ["key_file"]);
        }
        for alg in [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
            assert_eq!(wrong(&ApnsConfig { key: key(alg), ..good() }), ["key_file"]);
        }
    }

    #[test]
    fn files_are_read_where_nothing_was_filled_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.p8");
        let named = ApnsConfig { key: None, key_file: Some(path.clone()), ..good() };
        assert_eq!(wrong(&named), ["key_file"]);
        std::fs::write(&path, good().key.unwrap().expose_secret()).unwrap();
        assert_eq!(wrong(&named), [""; 0]);
        let missing = Some(folder.path().join("missing"));
        assert_eq!(wrong(&ApnsConfig { ca_file: missing.clone(), ..good() }), ["ca_file"]);
        assert_eq!(wrong(&ApnsConfig { certificate_file: missing, ..good() }), ["certificate_file"]);
    }

    #[test]
    fn no_text_shows_a_key() {
        let key = good().key.unwrap().expose_secret().to_owned();
        let secret = key.lines().nth(1).unwrap();
        let broken = key.replace("BEGIN PRIVATE", "BEGIN PUBLIC");
        let config = ApnsConfig { key: Some(broken.into()), ..good() };
        let shown = format!("{config:?} {:?} {}", Settings::problems(&config), serde_json::to_string(&config).unwrap());
        assert!(!shown.contains(secret) && !shown.contains(&secret[..16]));
    }
}
