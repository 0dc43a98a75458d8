//! Secrets: read once, from files or the environment; a secret in a configuration file is refused,
//! because such files end up in repositories.

use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use super::problem::{Origin, Problem};
use super::sections::{ProviderKind, RedisConfig};
use super::{BOOTSTRAP_KEY, Config, Sources};
use crate::channel::setting::unreadable;
use crate::channel::smtp::config::SmtpConfig;
use crate::text_file;

pub(super) fn bootstrap_key(sources: &Sources, problems: &mut Vec<Problem>) -> Option<SecretString> {
    let key = sources.env.get(BOOTSTRAP_KEY)?;
    if (32..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(SecretString::from(key.as_str()));
    }
    let what = "expected 32 to 128 visible ASCII characters".into();
    problems.push(Problem { key: BOOTSTRAP_KEY.into(), origin: Origin::Default, what });
    None
}

/// Reads what the `*_file` keys name.
pub(super) fn fill(config: &mut Config, origin: &dyn Fn(&str) -> Origin) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut filling = Filling { at: "store.redis".into(), origin, problems: &mut problems };
    filling.redis(&mut config.store.redis);
    let mut filling = Filling { at: "links".into(), origin, problems: &mut problems };
    let links = &mut config.links;
    filling.secret("keys", &mut links.keys, links.keys_file.as_deref());
    if let Some(wrong) = links.wrong_keys() {
        filling.report(if links.keys_file.is_some() { "keys_file" } else { "keys" }, wrong);
    }
    for (name, provider) in &mut config.providers {
        let mut filling = Filling { at: format!("providers.{name}"), origin, problems: &mut problems };
        match &mut provider.kind {
            ProviderKind::Smtp(smtp) => filling.smtp(smtp),
            ProviderKind::Apns(apns) => {
                filling.secret("key", &mut apns.key, apns.key_file.as_deref());
                filling.text("certificate", &mut apns.certificate, apns.certificate_file.as_deref());
                filling.text("ca", &mut apns.ca, apns.ca_file.as_deref());
            }
            ProviderKind::Fcm(fcm) => {
                filling.secret("service_account", &mut fcm.service_account, fcm.service_account_file.as_deref());
                filling.text("ca", &mut fcm.ca, fcm.ca_file.as_deref());
            }
            ProviderKind::WebPush(web) => {
                filling.secret("vapid_key", &mut web.vapid_key, web.vapid_key_file.as_deref());
                filling.text("ca", &mut web.ca, web.ca_file.as_deref());
            }
            ProviderKind::Outbox(_) => {}
        }
    }
    problems
}

/// What else than a password may have got into its file, where nobody would see it.
fn no_password(text: &SecretString) -> Option<&'static str> {
    let text = text.expose_secret();
    if text.contains(['\n', '\r']) {
        return Some("holds more than one line; expected the password alone");
    }
    text.ends_with([' ', '\t']).then_some("ends with a blank before its line end; expected the password alone")
}

struct Filling<'a> {
    at: String,
    origin: &'a dyn Fn(&str) -> Origin,
    problems: &'a mut Vec<Problem>,
}

impl Filling<'_> {
    fn smtp(&mut self, smtp: &mut SmtpConfig) {
        self.password(&mut smtp.password, smtp.password_file.as_deref());
        if let Some(dkim) = &mut smtp.dkim {
            self.refuse_inline("dkim.key", dkim.key.as_ref());
            if dkim.key.is_none() {
                dkim.key = self.read("dkim.key_file", &dkim.key_file);
            }
        }
        if let Some(path) = &smtp.ca_file {
            self.read("ca_file", path);
        }
    }

    fn redis(&mut self, redis: &mut RedisConfig) {
        self.password(&mut redis.password, redis.password_file.as_deref());
        if let Some(path) = &redis.ca_file {
            self.read("ca_file", path);
        }
    }

    fn password(&mut self, password: &mut Option<SecretString>, file: Option<&Path>) {
        self.refuse_inline("password", password.as_ref());
        if let Some(path) = file {
            self.refuse_twice("password", password.is_some());
            let read = self.read("password_file", path);
            if let Some(why) = read.as_ref().and_then(no_password) {
                self.report("password_file", &format!("{} {why}", path.display()));
            }
            *password = read.or(password.take());
        }
    }

    /// A secret that is a whole file: a key, an account.
    fn secret(&mut self, key: &str, secret: &mut Option<SecretString>, file: Option<&Path>) {
        self.refuse_inline(key, secret.as_ref());
        let Some(path) = file else { return };
        self.refuse_twice(key, secret.is_some());
        *secret = self.read(&format!("{key}_file"), path).or(secret.take());
    }

    /// What is in a file and no secret.
    fn text(&mut self, key: &str, text: &mut Option<String>, file: Option<&Path>) {
        let Some(path) = file else { return };
        self.refuse_twice(key, text.is_some());
        let read = self.read(&format!("{key}_file"), path);
        *text = read.map(|read| read.expose_secret().to_owned()).or(text.take());
    }

    /// `there`: `key` is set, beside the `_file` that gives the same.
    fn refuse_twice(&mut self, key: &str, there: bool) {
        if there {
            let here = (self.origin)(&format!("{}.{key}", self.at));
            self.report(key, &format!("is given twice: by {here} and by {key}_file; give one"));
        }
    }

    fn refuse_inline(&mut self, key: &str, secret: Option<&SecretString>) {
        let key_origin = (self.origin)(&format!("{}.{key}", self.at));
        if secret.is_some() && matches!(key_origin, Origin::File(_)) {
            self.report(key, &format!("a secret does not belong in a configuration file; use {key}_file"));
        }
    }

    /// The file's text without the line end that editors add.
    fn read(&mut self, key: &str, path: &Path) -> Option<SecretString> {
        let text = match text_file::read(path, text_file::SMALL) {
            Ok(text) => SecretString::from(text.trim_end_matches(['\r', '\n'])),
            Err(error) => {
                self.report(key, &unreadable(path, &error));
                return None;
            }
        };
        if text.expose_secret().is_empty() {
            self.report(key, &format!("{} is empty", path.display()));
            return None;
        }
        Some(text)
    }

    fn report(&mut self, key: &str, what: &str) {
        let key = format!("{}.{key}", self.at);
        self.problems.push(Problem { origin: (self.origin)(&key), key, what: what.to_owned() });
    }
}
