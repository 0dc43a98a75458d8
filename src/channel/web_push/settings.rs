//! The configuration, read and checked once: what is wrong is said at start, by its key.

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::config::WebPushConfig;
use super::vapid::VapidKey;
use crate::channel::https::{Addresses, Https, HttpsSettings};
use crate::channel::setting::{CA, Ways, WrongSetting, wrong};

const KEY: Ways = Ways { text: "vapid_key", file: "vapid_key_file" };
/// More push services than there are browsers; a subscription can name any.
const MOST_SERVICES: usize = 64;
/// The longest reason of the known services has less than 300 bytes.
const MOST_BODY: usize = 4096;
const IDLE: Duration = Duration::from_secs(300);

/// Everything that [`key`], [`subject`] and [`connect`] would stop at, and the zeros.
pub(super) fn problems(config: &WebPushConfig) -> Vec<WrongSetting> {
    let mut found = config.limits().zeros();
    found.extend(key(config).err());
    found.extend(subject(config).err());
    found.extend(connect(config).err());
    found
}

pub(super) fn key(config: &WebPushConfig) -> Result<VapidKey, WrongSetting> {
    let text = config.vapid_key.as_ref().map(|key| key.expose_secret());
    let Some(given) = KEY.given(text, config.vapid_key_file.as_deref())? else {
        return Err(wrong(KEY.file, "is missing; `belfry vapid generate` makes a key, once and for all"));
    };
    VapidKey::from_pem(given.text()).map_err(|problem| {
        if is_of_another_library(given.text()) {
            return given.wrong("is a key as web-push of npm writes it; `belfry vapid import` makes the PEM file");
        }
        given.wrong(problem)
    })
}

/// Its JSON, or the private key alone: 32 bytes in base64url.
fn is_of_another_library(text: &str) -> bool {
    let text = text.trim().trim_end_matches('=');
    let of_a_key = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.starts_with('{') && text.contains("\"privateKey\"") || text.len() == 43 && text.bytes().all(of_a_key)
}

/// RFC 8292 2.1 takes any contact. Apple answers 403 to one that cannot be reached, such as
/// `mailto:admin@localhost`, while the others accept it: so such a subject would be found wrong late.
pub(super) fn subject(config: &WebPushConfig) -> Result<&str, WrongSetting> {
    let subject = config.subject.as_str();
    let printable = subject.bytes().all(|b| b.is_ascii_graphic());
    let host = if let Some(address) = subject.strip_prefix("mailto:") {
        address.rsplit_once('@').filter(|(local, _)| !local.is_empty()).map(|(_, host)| host)
    } else {
        subject.strip_prefix("https://").map(|rest| rest.split(['/', '?', '#', ':']).next().unwrap_or(rest))
    };
    match host {
        Some(host) if printable && is_reachable_name(host) => Ok(subject),
        _ => Err(wrong(
            "subject",
            "must be whom push services may write to: \"mailto:ops@example.com\" or \"https://example.com/contact\", \
             with a host name that others can reach",
        )),
    }
}

fn is_reachable_name(host: &str) -> bool {
    let labels_fit =
        host.split('.').all(|label| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    labels_fit && host.contains('.') && !host.ends_with(".localhost") && !host.ends_with(".local")
}

pub(super) fn connect(config: &WebPushConfig) -> Result<Https, WrongSetting> {
    Https::new(HttpsSettings {
        addresses: if config.allow_internal { Addresses::Any } else { Addresses::PublicOnly },
        origins: MOST_SERVICES,
        most_body: MOST_BODY,
        idle: IDLE,
        ..HttpsSettings::of(config.limits(), CA.given(config.ca.as_deref(), config.ca_file.as_deref())?)
    })
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
        assert_eq!(keys_of(&WebPushConfig { vapid_key: Some("x".into()), ..usual() }), ["vapid_key"]);
        let missing = WebPushConfig { vapid_key: None, vapid_key_file: Some("/nonexistent".into()), ..usual() };
        assert_eq!(keys_of(&missing), ["vapid_key_file"]);
        assert_eq!(keys_of(&WebPushConfig { ca_file: Some("/nonexistent".into()), ..usual() }), ["ca_file"]);
        assert_eq!(keys_of(&WebPushConfig { ca: Some("no certificate".into()), ..usual() }), ["ca"]);
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
    fn what_is_no_vapid_key_is_told_with_what_would_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vapid.pem");
        let npm = r#"{"publicKey":"BPub","privateKey":"secret"}"#;
        let bare = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
        let rsa = "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\n";
        let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().serialize_pem();
        for (text, said) in [
            (npm, "`belfry vapid import` makes the PEM file"),
            (bare, "`belfry vapid import` makes the PEM file"),
            (rsa, "openssl pkey"),
            (&p384, "(P-384); expected one of the curve P-256"),
            ("", "expected a private key in PEM"),
        ] {
            std::fs::write(&path, text).unwrap();
            let itself = WebPushConfig { vapid_key: Some(text.into()), ..usual() };
            let by_file = WebPushConfig { vapid_key: None, vapid_key_file: Some(path.clone()), ..usual() };
            let filled_in = WebPushConfig { vapid_key_file: Some(path.clone()), ..itself.clone() };
            for (config, key) in [(itself, "vapid_key"), (by_file, "vapid_key_file"), (filled_in, "vapid_key_file")] {
                let found = problems(&config);
                assert_eq!(found.iter().map(|one| one.key).collect::<Vec<_>>(), [key], "{text}");
                assert!(found[0].problem.contains(said) && !found[0].problem.contains("secret"), "{found:?}");
            }
        }
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
