//! What a push service looks at, and what a browser does with a message (RFC 8030, 8188, 8291, 8292).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::request::Parts;
use p256::PublicKey;
use p256::ecdh::diffie_hellman;
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;

use super::Browser;

/// Why a message is not taken: the status and body that the real services answer.
pub(super) struct Wrong {
    pub why: &'static str,
    pub status: u16,
    pub body: &'static str,
}

type Checked<T> = Result<T, Wrong>;

fn wrong<T>(why: &'static str, status: u16, body: &'static str) -> Checked<T> {
    Err(Wrong { why, status, body })
}

const OTHER_KEY: &str = "the VAPID credentials in the authorization header do not correspond to the credentials used \
    to create the subscriptions.\n";
const EXP_TOO_FAR: &str = "exp claim MUST NOT be more than 24 hours from the time of the request\n";

/// The plaintext, where everything is right.
pub(super) fn taken(head: &Parts, body: &[u8], browser: Option<&Browser>, origin: &str, now: i64) -> Checked<String> {
    if head.method != http::Method::POST {
        return wrong("method", 405, "");
    }
    let Some(browser) = browser else { return wrong("subscription", 404, "") };
    authorized(&head.headers, browser, origin, now)?;
    wishes(&head.headers)?;
    if body.len() > 4096 {
        return wrong("size", 413, "");
    }
    coded(&head.headers, body)?;
    match decrypted(body, browser) {
        Some(plaintext) => Ok(plaintext),
        None => wrong("encryption", 400, ""),
    }
}

/// The only value of a header that must stand once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn authorized(headers: &HeaderMap, browser: &Browser, origin: &str, now: i64) -> Checked<()> {
    let Some(header) = one(headers, "authorization") else { return wrong("authorization", 401, "") };
    let parts = header.strip_prefix("vapid t=").and_then(|rest| rest.split_once(", k="));
    let Some((token, key)) = parts else { return wrong("scheme", 403, r#"{"reason":"BadAuthorizationHeader"}"#) };
    if key != browser.application_server_key {
        return wrong("key", 403, OTHER_KEY);
    }
    let Some(claims) = claims(token, key) else { return wrong("signature", 403, "invalid JWT provided\n") };
    if claims["aud"] != *origin {
        return wrong("aud", 403, "aud claim in the token MUST include the origin of the push resource URL\n");
    }
    let Some(exp) = claims["exp"].as_i64() else { return wrong("exp", 403, "exp claim is missing\n") };
    let left = exp - now.div_euclid(1000);
    if left <= 0 {
        return wrong("expired", 403, "token has expired\n");
    }
    if left > 24 * 60 * 60 {
        return wrong("exp too far", 403, EXP_TOO_FAR);
    }
    let contact = claims["sub"].as_str().unwrap_or_default();
    if !contact.starts_with("mailto:") && !contact.starts_with("https://") || contact.ends_with("@localhost") {
        return wrong("sub", 403, r#"{"reason":"BadJwtToken"}"#);
    }
    Ok(())
}

/// A token's claims, if it is signed with the key that stands beside it.
fn claims(token: &str, key: &str) -> Option<Value> {
    let key = URL_SAFE_NO_PAD.decode(key).ok().filter(|key| key.len() == 65 && key[0] == 4)?;
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(signed.as_bytes(), &signature).ok()?;
    let (head, claims) = signed.split_once('.')?;
    let [head, claims] =
        [head, claims].map(|part| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).ok()?).ok());
    (head?["alg"] == "ES256").then_some(claims?)
}

/// TTL, Urgency and Topic.
fn wishes(headers: &HeaderMap) -> Checked<()> {
    let ttl = one(headers, "ttl").filter(|ttl| ttl.bytes().all(|b| b.is_ascii_digit()));
    match ttl.and_then(|ttl| ttl.parse::<u32>().ok()) {
        Some(..=2_419_200) => {}
        Some(_) | None => return wrong("ttl", 400, r#"{"reason":"BadTtl"}"#),
    }
    if !matches!(one(headers, "urgency"), Some("very-low" | "low" | "normal" | "high")) {
        return wrong("urgency", 400, r#"{"reason":"BadUrgency"}"#);
    }
    // Apple decodes the topic, so it must be whole base64url.
    let topic = one(headers, "topic").filter(|topic| (1..=32).contains(&topic.len()));
    match topic.map(|topic| URL_SAFE_NO_PAD.decode(topic)) {
        Some(Ok(_)) => Ok(()),
        Some(Err(_)) | None => wrong("topic", 400, r#"{"reason":"BadWebPushTopic"}"#),
    }
}

fn coded(headers: &HeaderMap, body: &[u8]) -> Checked<()> {
    let old = ["crypto-key", "encryption"].iter().any(|name| headers.contains_key(*name));
    let length = one(headers, "content-length").and_then(|length| length.parse::<usize>().ok());
    if old || one(headers, "content-encoding") != Some("aes128gcm") {
        return wrong("content-encoding", 400, r#"{"code":400,"errno":110}"#);
    }
    if one(headers, "content-type") != Some("application/octet-stream") {
        return wrong("content-type", 400, "");
    }
    if length != Some(body.len()) {
        return wrong("content-length", 400, "");
    }
    Ok(())
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(extracted: &Prk, info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    extracted.expand(info, Length(N)).unwrap().fill(&mut out).unwrap();
    out
}

/// As the browser does it: salt, record size, sender's key, one record, delimiter, padding.
fn decrypted(body: &[u8], browser: &Browser) -> Option<String> {
    let (salt, rest) = body.split_at_checked(16)?;
    let (size, rest) = rest.split_at_checked(4)?;
    let (length, rest) = rest.split_first()?;
    let (sender, record) = rest.split_at_checked(usize::from(*length))?;
    let size = u32::from_be_bytes(size.try_into().ok()?);
    if size < 18 || record.len() > usize::try_from(size).ok()? {
        return None;
    }
    let theirs = PublicKey::from_sec1_bytes(sender).ok().filter(|_| sender.len() == 65)?;
    let shared = diffie_hellman(browser.secret.to_nonzero_scalar(), theirs.as_affine());
    let own = browser.secret.public_key().to_encoded_point(false);
    let extracted = Salt::new(HKDF_SHA256, &browser.auth).extract(shared.raw_secret_bytes());
    let material: [u8; 32] = expand(&extracted, &[b"WebPush: info\0", own.as_bytes(), sender]);
    let extracted = Salt::new(HKDF_SHA256, salt).extract(&material);
    let content: [u8; 16] = expand(&extracted, &[b"Content-Encoding: aes128gcm\0"]);
    let nonce: [u8; 12] = expand(&extracted, &[b"Content-Encoding: nonce\0"]);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &content).ok()?);
    let mut record = record.to_vec();
    let opened = key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record).ok()?;
    let end = opened.iter().rposition(|byte| *byte != 0)?;
    (opened[end] == 2).then(|| String::from_utf8(opened[..end].to_vec()).ok())?
}
