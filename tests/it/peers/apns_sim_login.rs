//! Provider tokens (JWT, ES256), looked at as Apple does: signature, ids, age, and how often they change.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::Value;

const HOUR: i64 = 3600;
const TWENTY_MINUTES: i64 = 1200;
/// How far ahead an `iat` may lie.
const AHEAD: i64 = 60;

/// A team's signing key.
#[derive(Clone)]
pub struct SimKey {
    pub team: String,
    pub id: String,
    /// PKCS#8.
    pub pem: String,
    public: Vec<u8>,
}

impl SimKey {
    pub fn new(team: &str, id: &str) -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap();
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(&made));
        let public = pair.public_key().as_ref().to_vec();
        Self { team: team.to_owned(), id: id.to_owned(), pem, public }
    }
}

/// A token that came, and when it came first.
struct Known {
    token: String,
    team: String,
    first_seen: i64,
}

pub struct Logins {
    keys: Vec<SimKey>,
    known: Vec<Known>,
}

impl Logins {
    pub fn new(keys: Vec<SimKey>) -> Self {
        Self { keys, known: Vec::new() }
    }

    pub fn tokens(&self) -> usize {
        self.known.len()
    }

    /// Whose token it is, or why it is refused. `now` in seconds.
    pub fn check(&mut self, authorization: Option<&str>, now: i64) -> Result<String, (u16, &'static str)> {
        let invalid = (403, "InvalidProviderToken");
        let authorization = authorization.ok_or((403, "MissingProviderToken"))?;
        let token = authorization.strip_prefix("bearer ").ok_or(invalid)?;
        let (team, issued) = self.claims(token).ok_or(invalid)?;
        // Apple: "if the timestamp isn't within the last hour".
        if issued < now - HOUR || issued > now + AHEAD {
            return Err((403, "ExpiredProviderToken"));
        }
        if !self.known.iter().any(|known| known.token == token) {
            let last = self.known.iter().rfind(|known| known.team == team);
            if last.is_some_and(|last| now - last.first_seen < TWENTY_MINUTES) {
                return Err((429, "TooManyProviderTokenUpdates"));
            }
            self.known.push(Known { token: token.to_owned(), team: team.clone(), first_seen: now });
        }
        Ok(team)
    }

    /// The team and the time of a token that is well made and well signed.
    fn claims(&self, token: &str) -> Option<(String, i64)> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let json = |part: &str| -> Option<Value> { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok() };
        let (head, claims) = (json(head)?, json(claims)?);
        if head["alg"] != "ES256" {
            return None;
        }
        let key = self.keys.iter().find(|key| head["kid"] == *key.id && claims["iss"] == *key.team)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.public)
            .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?)
            .ok()?;
        Some((key.team.clone(), claims["iat"].as_i64()?))
    }
}
