//! Who we are to a push service (RFC 8292): a key of our own, and tokens signed with it.
//!
//! A subscription takes messages only under the key that it was made with, so the key is made once
//! and kept; the tokens are short-lived, one for each push service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use belfry_domain::UnixMs;
use http::HeaderValue;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use secrecy::SecretString;
use serde::Serialize;

use crate::channel::pem::p256;
use crate::ports::clock::{Boot, Clock};

const RANDOM: &str = "the system has no random numbers";

/// A new VAPID key.
pub struct GeneratedKey {
    /// For `vapid_key_file`: PKCS#8 in PEM.
    pub pem: SecretString,
    /// For the browser's `pushManager.subscribe({ applicationServerKey })`: the uncompressed point
    /// in base64url without padding.
    pub public: String,
}

/// Makes a key.
///
/// # Panics
/// Where the system has no random numbers.
#[must_use]
pub fn generate() -> GeneratedKey {
    let rng = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).expect(RANDOM);
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &rng)
        .expect("what was just written is read");
    GeneratedKey { pem: SecretString::from(pem_of(der.as_ref())), public: encoded(&pair) }
}

fn pem_of(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}

/// A key as other libraries keep it: the number and the point, each in base64url.
///
/// # Errors
/// [`NotAKey`]: they are none, or do not belong together.
pub fn import(private: &str, public: &str) -> Result<GeneratedKey, NotAKey> {
    // PKCS#8 (RFC 5208) with an EC key (RFC 5915) of P-256, which has one form but for number and point.
    const HEAD: [u8; 36] = [
        0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
        0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20,
    ];
    const BETWEEN: [u8; 5] = [0xa1, 0x44, 0x03, 0x42, 0x00];
    let read = |text: &str, long: usize| {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('=')).map_err(|_| NotAKey)?;
        if bytes.len() == long { Ok(bytes) } else { Err(NotAKey) }
    };
    let der = [HEAD.as_slice(), &read(private, 32)?, &BETWEEN, &read(public, 65)?].concat();
    let pem = pem_of(&der);
    let key = VapidKey::from_pem(&pem).map_err(|_| NotAKey)?;
    Ok(GeneratedKey { pem: SecretString::from(pem), public: key.public })
}

/// The `applicationServerKey` that belongs to a key in PEM.
///
/// # Errors
/// [`NotAKey`].
pub fn public_of(pem: &str) -> Result<String, NotAKey> {
    VapidKey::from_pem(pem).map(|key| key.public).map_err(|_| NotAKey)
}

/// The text is no PKCS#8 P-256 key in PEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("holds no P-256 key in PKCS#8 (a PEM file that begins with BEGIN PRIVATE KEY)")]
pub struct NotAKey;

fn encoded(pair: &EcdsaKeyPair) -> String {
    URL_SAFE_NO_PAD.encode(pair.public_key())
}

pub(super) struct VapidKey {
    pair: EcdsaKeyPair,
    public: String,
}

impl VapidKey {
    /// # Errors
    /// What is wrong, with what would be right; never any of the key's.
    pub fn from_pem(pem: &str) -> Result<Self, String> {
        let (pair, _) = p256(pem)?;
        Ok(Self { public: encoded(&pair), pair })
    }

    pub fn public(&self) -> &str {
        &self.public
    }
}

/// Of a token, by our clock. RFC 8292 2 allows at most 24 hours; with half of that a service's clock
/// may be off by some hours in either direction.
const LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// A token is renewed at half its life. Apple asks for no more than one an hour.
const RENEWED_AFTER: Duration = Duration::from_secs(6 * 60 * 60);
/// A token that a step of our clock has brought this near to its end, or this near to 24 hours before
/// it, is renewed at once: the clock that it was made by was wrong.
const MARGIN: Duration = Duration::from_secs(60 * 60);
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Far more push services than there are. Whoever registers a subscription names its service, so
/// without a bound they could fill the memory.
const MOST_ORIGINS: usize = 1024;

/// The `Authorization` of each push service.
pub(super) struct Tokens {
    key: VapidKey,
    subject: String,
    clock: Arc<dyn Clock>,
    kept: Mutex<HashMap<String, Kept>>,
}

struct Kept {
    header: HeaderValue,
    /// Age is counted on the clock that never steps: a wall clock that goes back and forth would have
    /// tokens made anew all the time, or one used long after its end.
    made: Boot,
    used: Boot,
    expires: UnixMs,
}

#[derive(Serialize)]
struct Claims<'a> {
    aud: &'a str,
    /// Seconds.
    exp: i64,
    sub: &'a str,
}

impl Tokens {
    pub fn new(key: VapidKey, subject: String, clock: Arc<dyn Clock>) -> Self {
        Self { key, subject, clock, kept: Mutex::default() }
    }

    pub fn public(&self) -> &str {
        self.key.public()
    }

    /// For a request to `origin` (`https://push.example.com`, with its port where it is not the usual).
    pub fn authorization(&self, origin: &str) -> HeaderValue {
        let (boot, now) = (self.clock.boot(), self.clock.now());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = kept.get_mut(origin).filter(|token| token.serves(boot, now)) {
            token.used = boot;
            return token.header.clone();
        }
        let expires = now.plus(LIFE);
        let header = self.signed(origin, expires);
        if kept.len() >= MOST_ORIGINS
            && let Some(oldest) = kept.iter().min_by_key(|(_, token)| token.used).map(|(origin, _)| origin.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(origin.to_owned(), Kept { header: header.clone(), made: boot, used: boot, expires });
        header
    }

    fn signed(&self, origin: &str, expires: UnixMs) -> HeaderValue {
        let claims = Claims { aud: origin, exp: expires.0.div_euclid(1000), sub: &self.subject };
        let claims = serde_json::to_string(&claims).expect("texts and a number are JSON");
        let [head, claims] = [r#"{"typ":"JWT","alg":"ES256"}"#, &claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{head}.{claims}");
        let signature = self.key.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect(RANDOM);
        let signature = URL_SAFE_NO_PAD.encode(signature);
        let mut header = HeaderValue::try_from(format!("vapid t={signed}.{signature}, k={}", self.key.public))
            .expect("base64url, commas and spaces are a header's value");
        header.set_sensitive(true);
        header
    }
}

impl Kept {
    fn serves(&self, boot: Boot, now: UnixMs) -> bool {
        let left = self.expires.since(now);
        boot.saturating_sub(self.made) < RENEWED_AFTER && left >= MARGIN && left <= LONGEST_LIFE - MARGIN
    }
}

#[cfg(test)]
#[path = "vapid_tests.rs"]
mod tests;
