//! The address of a browser: its push subscription, as `PushSubscription.toJSON()` writes it. The
//! endpoint is a bearer secret: whoever has it may send, so nothing here prints it.

use std::fmt;
use std::net::IpAddr;

use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use http::Uri;
use http::uri::Scheme;
use serde::Deserialize;

use super::encrypt::POINT;

/// The known services' endpoints have less than 700 bytes.
const LONGEST_ENDPOINT: usize = 2048;

/// With padding or without.
const TOLERANT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a message is encrypted for.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Receiver {
    /// The browser's public key: an uncompressed P-256 point.
    pub p256dh: [u8; POINT],
    /// The secret between browser and application (RFC 8291 3.2).
    pub auth: [u8; 16],
}

impl fmt::Debug for Receiver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Receiver(…)")
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Subscription {
    pub endpoint: Uri,
    /// Scheme, host and, where it is not the usual one, port.
    pub origin: String,
    /// Lower case.
    pub host: String,
    pub receiver: Receiver,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Subscription(…)")
    }
}

/// What is wrong with a subscription, without any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it is no push subscription")]
    NotASubscription,
    #[error("its endpoint is no https URL")]
    Endpoint,
    #[error("its p256dh is no public key")]
    PublicKey,
    #[error("its auth has not 16 bytes")]
    Auth,
}

#[derive(Deserialize)]
struct Written {
    endpoint: String,
    keys: WrittenKeys,
}

#[derive(Deserialize)]
struct WrittenKeys {
    p256dh: String,
    auth: String,
}

impl Subscription {
    /// Host and, where it is not the usual one, port: another port of a known host need not be its service.
    pub fn authority(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// Reads a delivery's address. A bare endpoint is none: without keys nothing can be encrypted.
    /// With `allow_internal`, plain http to this very machine is let through, for tests and gateways.
    pub fn parse(text: &str, allow_internal: bool) -> Result<Self, Malformed> {
        let written: Written = serde_json::from_str(text).map_err(|_| Malformed::NotASubscription)?;
        let (endpoint, origin, host) = endpoint(&written.endpoint, allow_internal).ok_or(Malformed::Endpoint)?;
        let p256dh: [u8; POINT] = decoded(&written.keys.p256dh).ok_or(Malformed::PublicKey)?;
        if p256dh[0] != 4 {
            return Err(Malformed::PublicKey);
        }
        let auth = decoded(&written.keys.auth).ok_or(Malformed::Auth)?;
        Ok(Self { endpoint, origin, host, receiver: Receiver { p256dh, auth } })
    }
}

fn endpoint(text: &str, allow_internal: bool) -> Option<(Uri, String, String)> {
    // What follows `#` never goes over the wire, and what precedes `@` would be a login.
    if text.len() > LONGEST_ENDPOINT || text.contains('#') {
        return None;
    }
    let uri: Uri = text.parse().ok()?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let host = authority.host().to_ascii_lowercase();
    let scheme = uri.scheme()?;
    let usual = if *scheme == Scheme::HTTPS {
        443
    } else if *scheme == Scheme::HTTP && allow_internal && is_this_machine(&host) {
        80
    } else {
        return None;
    };
    let origin = match authority.port_u16() {
        // A port that is no number, or none after its colon.
        None if authority.as_str().len() != authority.host().len() => return None,
        Some(port) if port != usual => format!("{scheme}://{host}:{port}"),
        None | Some(_) => format!("{scheme}://{host}"),
    };
    Some((uri, origin, host))
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Base64url; browsers' older libraries write the standard alphabet, and padding.
fn decoded<const N: usize>(text: &str) -> Option<[u8; N]> {
    TOLERANT.decode(text.replace('+', "-").replace('/', "_")).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const P256DH: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    fn written(endpoint: &str, p256dh: &str, auth: &str) -> String {
        serde_json::json!({"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": auth}}).to_string()
    }

    fn at(endpoint: &str, allow_internal: bool) -> Result<Subscription, Malformed> {
        Subscription::parse(&written(endpoint, P256DH, AUTH), allow_internal)
    }

    #[test]
    fn what_browsers_write_is_read() {
        let text = format!(
            r#"{{"endpoint":"https://Push.Example.com/w/a?b=c","expirationTime":null,"keys":{{"auth":"{AUTH}","p256dh":"{P256DH}"}}}}"#
        );
        let read = Subscription::parse(&text, false).unwrap();
        assert_eq!(read.origin, "https://push.example.com");
        assert_eq!(read.host, "push.example.com");
        assert_eq!(read.endpoint.path_and_query().unwrap(), "/w/a?b=c");
        assert_eq!(read.receiver.auth[..2], [5, 48]);
        let padded = written(
            "https://push.example.com/w",
            &format!("{}=", P256DH.replace('-', "+").replace('_', "/")),
            &format!("{}==", AUTH.replace('_', "/")),
        );
        assert_eq!(Subscription::parse(&padded, false).unwrap().receiver, read.receiver);
    }

    #[test]
    fn origins() {
        for (endpoint, origin) in [
            ("https://push.example.com:443/w", "https://push.example.com"),
            ("https://push.example.com:8443/w", "https://push.example.com:8443"),
            ("https://[2001:DB8::1]/w", "https://[2001:db8::1]"),
            ("HTTPS://push.example.com", "https://push.example.com"),
        ] {
            assert_eq!(at(endpoint, false).map(|read| read.origin), Ok(origin.to_owned()), "{endpoint}");
        }
        for (endpoint, origin) in [
            ("http://127.0.0.1:8080/w", "http://127.0.0.1:8080"),
            ("http://[::1]:80/w", "http://[::1]"),
            ("http://localhost/w", "http://localhost"),
        ] {
            assert_eq!(at(endpoint, true).map(|read| read.origin), Ok(origin.to_owned()), "{endpoint}");
            assert_eq!(at(endpoint, false), Err(Malformed::Endpoint), "{endpoint}");
        }
    }

    #[test]
    fn endpoints_that_are_none() {
        let long = format!("https://push.example.com/{}", "a".repeat(LONGEST_ENDPOINT));
        for bad in [
            "",
            "/w/a",
            "push.example.com",
            "https://",
            "https:///w",
            "http://push.example.com/w",
            "http://localhost.example/w",
            "ftp://push.example.com/w",
            "https://user:word@push.example.com/w",
            "https://push.example.com:99999/w",
            "https://push.example.com:/w",
            "https://push.example.com/w#a",
            "https://push.example.com/a b",
            "https://push.example.com/\r\nx: y",
            &long,
        ] {
            assert_eq!(at(bad, true), Err(Malformed::Endpoint), "{bad}");
        }
    }

    #[test]
    fn keys_that_are_none() {
        let endpoint = "https://push.example.com/w";
        let compressed = format!("A{}", &P256DH[1..]);
        for p256dh in ["", &P256DH[..86], &format!("{P256DH}AA"), &P256DH.replace('x', "!"), &compressed] {
            let parsed = Subscription::parse(&written(endpoint, p256dh, AUTH), false);
            assert_eq!(parsed, Err(Malformed::PublicKey), "{p256dh}");
        }
        for auth in ["", &AUTH[..21], &format!("{AUTH}AA"), "not base64 at all!!!!!"] {
            assert_eq!(Subscription::parse(&written(endpoint, P256DH, auth), false), Err(Malformed::Auth), "{auth}");
        }
    }

    #[test]
    fn what_is_no_subscription_at_all() {
        for text in [
            "",
            "https://push.example.com/w/secret",
            "\"https://push.example.com/w/secret\"",
            "{}",
            r#"{"endpoint":"https://push.example.com/w"}"#,
            r#"{"endpoint":"https://push.example.com/w","keys":{"p256dh":"x"}}"#,
            r#"{"endpoint":1,"keys":{"p256dh":"x","auth":"y"}}"#,
        ] {
            assert_eq!(Subscription::parse(text, true), Err(Malformed::NotASubscription), "{text}");
        }
    }

    #[test]
    fn nothing_is_printed() {
        let read = at("https://push.example.com/w/secret", false).unwrap();
        assert_eq!(format!("{read:?} {:?}", read.receiver), "Subscription(…) Receiver(…)");
    }
}
