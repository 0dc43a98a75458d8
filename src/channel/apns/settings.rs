//! The configuration, read and checked once: what is wrong is said at start, by its key.

use belfry_domain::UnixMs;
use http::Uri;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::ExposeSecret as _;

use super::certificate::Certificate;
use super::config::ApnsConfig;
use super::token::{Signer, SignerId};
use crate::channel::https::{Https, HttpsSettings, Identity, Protocol};
use crate::channel::setting::{CA, Given, Ways, WrongSetting, wrong, zeros};

const KEY: Ways = Ways { text: "key", file: "key_file" };
const CERTIFICATE: Ways = Ways { text: "certificate", file: "certificate_file" };

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
    /// In the TLS handshake. Until when, as far as that can be read.
    Certificate(Option<UnixMs>),
}

impl Settings {
    pub fn problems(config: &ApnsConfig) -> Vec<WrongSetting> {
        match Self::read(config) {
            Ok(_) => Vec::new(),
            Err(found) => found,
        }
    }

    /// Everything at once, or everything that is wrong.
    pub fn read(config: &ApnsConfig) -> Result<Self, Vec<WrongSetting>> {
        let mut found: Vec<WrongSetting> = numbers(config);
        let topic = noted(topic(config), &mut found);
        let url = noted(url(config), &mut found);
        let roots = noted(CA.given(config.ca.as_deref(), config.ca_file.as_deref()), &mut found);
        let login = login(config, &mut found);
        let (Some(topic), Some((url, place)), Some(roots), Some((login, identity))) = (topic, url, roots, login) else {
            return Err(found);
        };
        match Https::new(https(config, roots, identity)) {
            Ok(https) if found.is_empty() => Ok(Self { url, place, topic, login, https }),
            Ok(_) => Err(found),
            Err(error) => {
                found.push(error);
                Err(found)
            }
        }
    }
}

fn noted<T>(read: Result<T, WrongSetting>, found: &mut Vec<WrongSetting>) -> Option<T> {
    read.map_err(|error| found.push(error)).ok()
}

fn https(config: &ApnsConfig, roots: Option<Given>, identity: Option<Identity>) -> HttpsSettings {
    HttpsSettings {
        identity,
        protocol: Protocol::Http2,
        keepalive: config.keepalive.0,
        keepalive_wait: config.keepalive_wait.0,
        idle: config.idle.0,
        ..HttpsSettings::of(config.limits(), roots)
    }
}

fn numbers(config: &ApnsConfig) -> Vec<WrongSetting> {
    let waits = [("keepalive", config.keepalive), ("keepalive_wait", config.keepalive_wait), ("idle", config.idle)];
    [config.limits().zeros(), zeros(&[], &waits)].concat()
}

/// A bundle id: letters, digits, hyphens and dots (Apple, `CFBundleIdentifier`).
fn topic(config: &ApnsConfig) -> Result<String, WrongSetting> {
    let topic = &config.topic;
    let part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if topic.len() > 155 || !topic.split('.').all(part) {
        return Err(wrong("topic", "must be the app's bundle id, such as \"com.example.shop\""));
    }
    // An App ID as Apple's site shows it.
    if config.team_id.as_ref().is_some_and(|team| topic.strip_prefix(team).is_some_and(|rest| rest.starts_with('.'))) {
        return Err(wrong("topic", "begins with the team's id; give the bundle id alone"));
    }
    Ok(topic.clone())
}

/// The address, and the same for people.
fn url(config: &ApnsConfig) -> Result<(String, String), WrongSetting> {
    const SHAPE: &str = "such as \"https://gateway.example.com:2197\"; without it, it is Apple's own";
    let must = |what: &str| wrong("url", format!("must {what}, {SHAPE}"));
    let text = config.url.as_deref().unwrap_or_else(|| config.environment.url());
    let uri: Uri = text.parse().map_err(|_| must("be an address"))?;
    if uri.scheme_str() != Some("https") {
        return Err(must("begin with https://"));
    }
    let authority =
        uri.authority().filter(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
    let authority = authority.ok_or_else(|| must("name a host and no login"))?;
    if authority.port().is_some() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(must("have a port from 1 to 65535 or none"));
    }
    if uri.path() != "/" || uri.query().is_some() {
        return Err(must("end after the host and port"));
    }
    Ok((format!("https://{authority}"), authority.to_string()))
}

/// Exactly one way of authentication.
fn login(config: &ApnsConfig, found: &mut Vec<WrongSetting>) -> Option<(Login, Option<Identity>)> {
    let key = config.key.as_ref().map(|key| key.expose_secret());
    let key = noted(KEY.given(key, config.key_file.as_deref()), found)?;
    let chain = noted(CERTIFICATE.given(config.certificate.as_deref(), config.certificate_file.as_deref()), found)?;
    match chain {
        Some(chain) => by_certificate(config, chain, key, found),
        None => by_token(config, key, found),
    }
}

fn by_token(
    config: &ApnsConfig,
    key: Option<Given>,
    found: &mut Vec<WrongSetting>,
) -> Option<(Login, Option<Identity>)> {
    let signer = key
        .ok_or_else(|| wrong(KEY.file, "is missing: the signing key as Apple gives it (AuthKey_….p8)"))
        .and_then(|key| {
            let expected = |problem| key.wrong(format!("{problem} (Apple's AuthKey_….p8)"));
            Signer::read(key.text()).map_err(expected)
        });
    let signer = noted(signer, found);
    let team = noted(id("team_id", config.team_id.as_deref()), found);
    let key_id = noted(id("key_id", config.key_id.as_deref()), found);
    let (signer, team, key_id) = (signer?, team?, key_id?);
    Some((Login::Token(SignerId { team, key_id, key: signer.print() }, Box::new(signer)), None))
}

fn by_certificate(
    config: &ApnsConfig,
    chain: Given,
    key: Option<Given>,
    found: &mut Vec<WrongSetting>,
) -> Option<(Login, Option<Identity>)> {
    let before = found.len();
    if key.is_none() {
        found.push(wrong(KEY.file, format!("is missing: the private key that belongs to {}, in PEM", chain.key)));
    }
    for (name, id) in [("team_id", &config.team_id), ("key_id", &config.key_id)] {
        if id.is_some() {
            found.push(wrong(name, format!("belongs to a signing key (.p8); leave it out, or {}", chain.key)));
        }
    }
    // What cannot be read at all is told when TLS is set up.
    let own = CertificateDer::from_pem_slice(chain.text().as_bytes()).ok().and_then(|own| Certificate::read(&own));
    // A gateway may know us by a certificate that is none of Apple's.
    if let (Some(own), None) = (&own, &config.url)
        && let Some(other) = own.other_app(&config.topic)
    {
        let (key, right) = (chain.key, "give that, or the certificate of this app");
        found.push(wrong("topic", format!("is not the app that {key} was made for (\"{other}\"); {right}")));
    }
    let ends = own.and_then(|own| own.ends);
    let key = key.filter(|_| found.len() == before)?;
    Some((Login::Certificate(ends), Some(Identity { chain, key })))
}

fn id(key: &'static str, id: Option<&str>) -> Result<String, WrongSetting> {
    const SHAPE: &str = "ten upper-case letters and digits, as Apple's developer site shows it";
    let id = id.ok_or_else(|| {
        wrong(key, format!("is missing: {SHAPE} (or give certificate_file, to log in with a certificate)"))
    })?;
    if id.len() != 10 || !id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return Err(wrong(key, format!("must be {SHAPE}")));
    }
    Ok(id.to_owned())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
