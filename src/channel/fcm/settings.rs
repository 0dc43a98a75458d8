//! The configuration, read and checked once: what is wrong is said at start, by its key.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use http::Uri;
use secrecy::ExposeSecret as _;
use thiserror::Error;

use super::account::Account;
use super::config::{FcmConfig, FcmTimeouts};
use crate::channel::https::{Addresses, Https, HttpsSettings, Protocol};
use crate::text_file;

/// A setting that cannot be used. Never shows a secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key}: {problem}")]
pub struct FcmConfigError {
    /// Within `[providers.<name>]`.
    pub key: &'static str,
    pub problem: String,
}

fn wrong(key: &'static str, problem: impl Into<String>) -> FcmConfigError {
    FcmConfigError { key, problem: problem.into() }
}

pub(super) struct Settings {
    pub account: Account,
    pub project: String,
    /// Host, and port where it is given: for people.
    pub host: String,
    /// Where messages are posted to.
    pub send: Uri,
    pub https: Https,
}

/// Bytes of an answer: FCM's are under one KiB.
const MOST_ANSWER: usize = 64 * 1024;
/// FCM and the token endpoint.
const ORIGINS: usize = 2;
/// Google's front ends close what is idle for four minutes.
const IDLE: Duration = Duration::from_secs(180);
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(10);

impl Settings {
    /// Everything that [`Self::read`] would stop at, one after the other.
    pub fn problems(config: &FcmConfig) -> Vec<FcmConfigError> {
        let mut found: Vec<FcmConfigError> = zeros(config).collect();
        match account(config) {
            Ok(account) => found.extend(project(config, &account).err()),
            Err(problem) => found.push(problem),
        }
        found.extend(origin(&config.url).err().map(|problem| wrong("url", problem)));
        found.extend(https(config).err());
        found
    }

    pub fn read(config: &FcmConfig) -> Result<Self, FcmConfigError> {
        if let Some(zero) = zeros(config).next() {
            return Err(zero);
        }
        let account = account(config)?;
        let project = project(config, &account)?;
        let origin = origin(&config.url).map_err(|problem| wrong("url", problem))?;
        let send = format!("{origin}/v1/projects/{project}/messages:send");
        let send = send.parse::<Uri>().map_err(|_| wrong("url", "is no address"))?;
        let host = send.authority().map_or_else(String::new, ToString::to_string);
        Ok(Self { account, project, host, send, https: https(config)? })
    }
}

fn zeros(config: &FcmConfig) -> impl Iterator<Item = FcmConfigError> {
    let FcmTimeouts { connect, answer, body } = &config.timeouts;
    let counts = [("connections", config.connections), ("streams", config.streams)];
    let counts = counts.into_iter().filter(|(_, count)| *count == 0).map(|(key, _)| wrong(key, "must be at least 1"));
    let waits = [("timeouts.connect", connect.0), ("timeouts.answer", answer.0), ("timeouts.body", body.0)];
    let waits = waits.into_iter().filter(|(_, wait)| wait.is_zero());
    counts.chain(waits.map(|(key, _)| wrong(key, "must be longer than zero")))
}

fn account(config: &FcmConfig) -> Result<Account, FcmConfigError> {
    const KEY: &str = "service_account_file";
    let text = match (&config.service_account, &config.service_account_file) {
        (Some(text), _) => text.expose_secret().to_owned(),
        (None, Some(file)) => read(KEY, file)?,
        (None, None) => return Err(wrong(KEY, "is missing: the JSON key of a service account")),
    };
    let account = Account::read(&text).map_err(|problem| wrong(KEY, problem))?;
    match safe(&account.token_uri) {
        Ok(_) => Ok(account),
        Err(problem) => Err(wrong(KEY, format!("has a token_uri that {problem}"))),
    }
}

/// Part of an address, so of few letters: `my-project-1`, of old `example.com:my-project`.
fn project(config: &FcmConfig, account: &Account) -> Result<String, FcmConfigError> {
    let Some(project) = config.project.as_ref().or(account.project.as_ref()) else {
        return Err(wrong("project", "is missing: the service account's key names none"));
    };
    let usable = (1..=100).contains(&project.len())
        && project.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:_".contains(&byte));
    if usable { Ok(project.clone()) } else { Err(wrong("project", "is no project's id")) }
}

/// The address without its last slash.
fn origin(url: &str) -> Result<String, String> {
    let url = url.strip_suffix('/').unwrap_or(url);
    let uri = safe(url)?;
    if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
        return Err("has something after the host".to_owned());
    }
    Ok(url.to_owned())
}

/// An address that secrets may be sent to: over TLS, or to this machine.
fn safe(url: &str) -> Result<Uri, String> {
    let uri = url.parse::<Uri>().map_err(|_| "is no address".to_owned())?;
    let Some(host) = uri.host().filter(|host| !host.is_empty()) else { return Err("has no host".to_owned()) };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("must not hold a login".to_owned());
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_loopback(host) => Ok(uri),
        Some("http") => Err("must begin with https:// (http:// only on loopback)".to_owned()),
        _ => Err("must begin with https://".to_owned()),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn https(config: &FcmConfig) -> Result<Https, FcmConfigError> {
    let roots = match (&config.ca, &config.ca_file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(file)) => Some(read("ca_file", file)?),
        (None, None) => None,
    };
    let settings = HttpsSettings {
        roots,
        identity: None,
        protocol: Protocol::Any,
        // The operator's own setting, who may have a gateway inside.
        addresses: Addresses::Any,
        connections: config.connections,
        streams: config.streams,
        origins: ORIGINS,
        connect: config.timeouts.connect.0,
        answer: config.timeouts.answer.0,
        body: config.timeouts.body.0,
        most_body: MOST_ANSWER,
        keepalive: KEEPALIVE,
        keepalive_wait: KEEPALIVE_WAIT,
        idle: IDLE,
    };
    Https::new(settings).map_err(|error| wrong(error.key, error.problem))
}

fn read(key: &'static str, file: &Path) -> Result<String, FcmConfigError> {
    text_file::read(file, text_file::SMALL).map_err(|error| wrong(key, format!("{}: {error}", file.display())))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
