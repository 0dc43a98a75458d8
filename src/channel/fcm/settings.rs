//! The configuration, read and checked once: what is wrong is said at start, by its key.

use std::net::IpAddr;
use std::time::Duration;

use http::Uri;
use secrecy::ExposeSecret as _;

use super::account::Account;
use super::config::FcmConfig;
use crate::channel::https::{Https, HttpsSettings};
use crate::channel::setting::{CA, Ways, WrongSetting, wrong};

const ACCOUNT: Ways = Ways { text: "service_account", file: "service_account_file" };

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
const KEEPALIVE: Duration = Duration::from_secs(30);

impl Settings {
    /// Everything that [`Self::read`] would stop at, one after the other.
    pub fn problems(config: &FcmConfig) -> Vec<WrongSetting> {
        let mut found = config.limits().zeros();
        match account(config) {
            Ok(account) => found.extend(project(config, &account).err()),
            Err(problem) => found.push(problem),
        }
        found.extend(origin(&config.url).err().map(|must| no_url(&must)));
        found.extend(https(config).err());
        found
    }

    pub fn read(config: &FcmConfig) -> Result<Self, WrongSetting> {
        if let Some(zero) = config.limits().zeros().into_iter().next() {
            return Err(zero);
        }
        let account = account(config)?;
        let project = project(config, &account)?;
        let origin = origin(&config.url).map_err(|must| no_url(&must))?;
        let send = format!("{origin}/v1/projects/{project}/messages:send");
        let send = send.parse::<Uri>().map_err(|_| no_url("be an address"))?;
        let host = send.authority().map_or_else(String::new, ToString::to_string);
        Ok(Self { account, project, host, send, https: https(config)? })
    }
}

fn account(config: &FcmConfig) -> Result<Account, WrongSetting> {
    let text = config.service_account.as_ref().map(|text| text.expose_secret());
    let Some(given) = ACCOUNT.given(text, config.service_account_file.as_deref())? else {
        return Err(wrong(ACCOUNT.file, format!("is missing; expected {}", super::account::EXPECTED)));
    };
    let account = Account::read(given.text()).map_err(|problem| given.wrong(problem))?;
    match safe(&account.token_uri) {
        Ok(_) => Ok(account),
        Err(must) => Err(given
            .wrong(format!("has a token_uri that cannot be used: it must {must}; Google's keys have the right one"))),
    }
}

/// Part of an address, so of few letters: `my-project-1`, of old `example.com:my-project`.
fn project(config: &FcmConfig, account: &Account) -> Result<String, WrongSetting> {
    const SHAPE: &str = "the project's id as the Firebase console shows it, such as \"shop-1234\"";
    let Some(project) = config.project.as_ref().or(account.project.as_ref()) else {
        return Err(wrong(
            "project",
            format!("is missing, and the service account's key names none; expected {SHAPE}"),
        ));
    };
    let usable = (1..=100).contains(&project.len())
        && project.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:_".contains(&byte));
    if usable { Ok(project.clone()) } else { Err(wrong("project", format!("must be {SHAPE}"))) }
}

fn no_url(must: &str) -> WrongSetting {
    wrong("url", format!("must {must}; without it, it is Google's own: \"https://fcm.googleapis.com\""))
}

/// The address without its last slash, or what it must do.
fn origin(url: &str) -> Result<String, String> {
    let url = url.strip_suffix('/').unwrap_or(url);
    let uri = safe(url)?;
    if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
        return Err("end after the host and port".to_owned());
    }
    Ok(url.to_owned())
}

/// An address that secrets may be sent to: over TLS, or to this machine. Else what it must do.
fn safe(url: &str) -> Result<Uri, String> {
    let uri = url.parse::<Uri>().map_err(|_| "be an address".to_owned())?;
    match uri.scheme_str() {
        Some("https" | "http") => {}
        _ => return Err("begin with https://".to_owned()),
    }
    let Some(host) = uri.host().filter(|host| !host.is_empty()) else { return Err("name a host".to_owned()) };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("hold no login".to_owned());
    }
    if uri.scheme_str() == Some("https") || is_loopback(host) {
        return Ok(uri);
    }
    Err("begin with https:// (http:// goes to this machine only)".to_owned())
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn https(config: &FcmConfig) -> Result<Https, WrongSetting> {
    Https::new(HttpsSettings {
        origins: ORIGINS,
        most_body: MOST_ANSWER,
        keepalive: KEEPALIVE,
        ..HttpsSettings::of(config.limits(), CA.given(config.ca.as_deref(), config.ca_file.as_deref())?)
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
