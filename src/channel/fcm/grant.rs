//! The exchange of an assertion for an access token (RFC 7523, 2.1), and what its answer means. Pure.

use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::outcome::{Outcome, ThrottleScope, Why, WhyCode};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE};
use http::{HeaderMap, Method, Request};
use secrecy::SecretString;
use serde::Deserialize;

use super::words;
use crate::channel::https::Answer;
use crate::channel::https::retry_after::retry_after;

/// Where the answer does not say (RFC 6749, 5.1): Google's own.
const USUAL_LIFE: u64 = 3600;
const LONGEST_LIFE: u64 = 24 * 3600;
/// How long others wait after our login was refused, unless the breaker knows better.
const AFTER_REFUSED: Duration = Duration::from_secs(60);
/// A clock that is off by more is no longer set by anything.
const MOST_SKEW: Duration = Duration::from_secs(60);

pub(super) struct Granted {
    pub token: SecretString,
    pub lives: Duration,
}

/// # Errors
/// Where `uri` cannot be asked.
pub(super) fn request(uri: &str, assertion: &str) -> Result<Request<Bytes>, http::Error> {
    // base64url and dots need no escapes.
    let body = format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
    Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Bytes::from(body))
}

#[derive(Deserialize)]
struct Grant {
    access_token: SecretString,
    token_type: String,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// # Errors
/// What comes of a message that this answer keeps from being sent: it was not.
pub(super) fn read(answer: &Answer, now: UnixMs) -> Result<Granted, Outcome> {
    let body = answer.body.as_deref().unwrap_or_default();
    let status = answer.status.as_u16();
    let said = |code| Why::said(code, format!("token endpoint: {status}"));
    let asked = retry_after(&answer.headers, now);
    match status {
        // A portal or a proxy in between: nothing was sent, and nothing is wrong with the message.
        200 => granted(body).ok_or(Outcome::NotAccepted { retry_after: None, why: said(WhyCode::TryLater) }),
        408 | 429 | 500.. => Err(Outcome::NotAccepted { retry_after: asked, why: said(WhyCode::TryLater) }),
        400..500 => Err(refusal(status, body, is_off(&answer.headers, now))),
        _ => Err(Outcome::NotAccepted { retry_after: None, why: said(WhyCode::TryLater) }),
    }
}

fn granted(body: &[u8]) -> Option<Granted> {
    let grant: Grant = serde_json::from_slice(body).ok()?;
    let lives = Duration::from_secs(grant.expires_in.unwrap_or(USUAL_LIFE).min(LONGEST_LIFE));
    grant.token_type.eq_ignore_ascii_case("bearer").then_some(Granted { token: grant.access_token, lives })
}

fn refusal(status: u16, body: &[u8], clock_is_off: bool) -> Outcome {
    let refusal: Option<Refusal> = serde_json::from_slice(body).ok();
    let word = refusal.as_ref().and_then(|refusal| words::grant(&refusal.error));
    // An assertion from another time is refused with the same word as one of a deleted key.
    let code = match word {
        Some("invalid_grant") if clock_is_off => WhyCode::ClockSkew,
        _ => WhyCode::CredentialRefused,
    };
    let word = word.map(|word| format!(" {word}")).unwrap_or_default();
    refused(Why::said(code, format!("token endpoint: {status}{word}")))
}

/// Our login at this provider is refused: nobody's message is at fault.
pub(super) const fn refused(why: Why) -> Outcome {
    Outcome::Throttled { after: AFTER_REFUSED, scope: ThrottleScope::Credential, why }
}

/// Whether the answer tells another time than we do.
fn is_off(headers: &HeaderMap, now: UnixMs) -> bool {
    let date =
        headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(|date| httpdate::parse_http_date(date).ok());
    let theirs = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
    theirs.is_some_and(|theirs| {
        let theirs = UnixMs(i64::try_from(theirs.as_millis()).unwrap_or(i64::MAX));
        now.since(theirs).max(theirs.since(now)) > MOST_SKEW
    })
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
