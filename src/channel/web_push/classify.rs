//! What a push service's answer means. Pure: no socket, no clock.
//!
//! One provider of ours speaks to every push service there is, and whoever registers a subscription
//! names its service. So what one service says about itself (wait, come back) counts for that
//! recipient alone: else one made-up endpoint that answers 429 for a day would stop the push of everybody
//! who is behind its host. Only about our login are the services of the known browsers believed for all
//! that go there: a made-up endpoint could else call for an operator.
//!
//! An answer is told by its status and a word of the table below, never by its own text: that may
//! hold the endpoint.

use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::outcome::{Outcome, ThrottleScope, Why, WhyCode};
use http::HeaderMap;

use crate::channel::https::Answer;
use crate::channel::https::retry_after::retry_after;

/// Whose answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Of a browser that many people have.
    Known,
    /// Anybody's.
    Other,
}

impl Service {
    /// Chrome and what is built on it, Firefox, Safari, Edge on Windows. `host` in lower case, with its port where that
    /// is not the usual one.
    #[must_use]
    pub fn at(host: &str) -> Self {
        if known(host).is_some() { Self::Known } else { Self::Other }
    }
}

/// What the service at `host` is called where it may be told: of a host that is none of the known browsers'
/// nothing is, since it may be one person's own.
#[must_use]
pub fn name(host: &str) -> &'static str {
    known(host).unwrap_or("another push service")
}

fn known(host: &str) -> Option<&'static str> {
    const KNOWN: [&str; 4] =
        ["fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com", "notify.windows.com"];
    let under = |known: &str| host.strip_suffix(known).is_some_and(|rest| rest.ends_with('.'));
    // Google's has no names below it.
    KNOWN.into_iter().find(|known| if *known == KNOWN[0] { host == *known } else { under(known) })
}

/// How long others wait where the service does not say.
const AFTER_THROTTLE: Duration = Duration::from_secs(60);
const AFTER_REFUSED_LOGIN: Duration = Duration::from_secs(60);

/// What a word of a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The subscription was made with another VAPID key.
    OtherKey,
    /// Our token has expired, or its end lies too far ahead. It is always 1 to 23 hours ahead by our
    /// own clock, so that clock is hours off.
    Clock,
    /// Our token, whatever is wrong with it.
    Login,
    /// The request.
    Request,
}

/// What the services say, in lower case, and how we tell it; the first that is found counts. Google's are
/// listed in Chromium's `web_push_common.cc`, Mozilla's in autopush's error codes, Apple's in "Sending
/// web push notifications in web apps and browsers".
const WORDS: [(&str, &str, About); 25] = [
    ("do not correspond to the credentials used to create", "not the subscription's key", About::OtherKey),
    ("does not correspond to the sender id", "not the subscription's sender", About::OtherKey),
    ("unauthorizedregistration", "UnauthorizedRegistration", About::OtherKey),
    ("vapid public key mismatch", "VAPID public key mismatch", About::OtherKey),
    ("vapidpkhashmismatch", "VapidPkHashMismatch", About::OtherKey),
    ("token has expired", "the token has expired", About::Clock),
    ("exp claim must not be more than 24 hours", "exp is too far ahead", About::Clock),
    ("expiredsignature", "ExpiredSignature", About::Clock),
    ("vapid token expiration is too long", "exp is too far ahead", About::Clock),
    ("invalid vapid expiry", "exp is not taken", About::Clock),
    ("exp claim is missing", "exp is missing", About::Login),
    ("invalid jwt", "the token is invalid", About::Login),
    ("aud claim", "aud is not taken", About::Login),
    ("sender is not authenticated", "not authenticated", About::Login),
    ("application server key", "the public key is not taken", About::Login),
    ("public key must be", "the public key is not taken", About::Login),
    ("badjwttoken", "BadJwtToken", About::Login),
    ("badauthorizationheader", "BadAuthorizationHeader", About::Login),
    ("badvapidpublickey", "BadVapidPublicKey", About::Login),
    ("\"errno\":109", "errno 109", About::Login),
    ("badttl", "BadTtl", About::Request),
    ("badurgency", "BadUrgency", About::Request),
    ("badwebpushtopic", "BadWebPushTopic", About::Request),
    ("badwebpushrequest", "BadWebPushRequest", About::Request),
    ("\"errno\":110", "errno 110", About::Request),
];

/// An outcome out of the closed set.
#[must_use]
pub fn classify(answer: &Answer, service: Service, now: UnixMs) -> Outcome {
    let status = answer.status.as_u16();
    let said = |code| Why::said(code, status.to_string());
    let asked = retry_after(&answer.headers, now);
    match status {
        200..=202 => accepted(answer, asked),
        // Another success than the services' own: it may have been taken.
        203..=299 => Outcome::Unknown { retry_after: None, why: said(WhyCode::Unrecognised) },
        400 | 401 | 403 => refused(answer, service),
        404 | 410 => Outcome::RecipientGone { since: None, why: said(WhyCode::NoSuchRecipient) },
        413 => Outcome::Refused { why: said(WhyCode::TooLarge) },
        429 => throttled(asked, said(WhyCode::RateLimited)),
        // Windows' service says so instead of 429.
        406 if windows_word(&answer.headers) == Some("throttled") => throttled(asked, said(WhyCode::RateLimited)),
        503 => Outcome::NotAccepted { retry_after: asked, why: said(WhyCode::TryLater) },
        // It broke over the message, before or after it had taken it.
        500..=599 => Outcome::Unknown { retry_after: asked, why: said(WhyCode::ProviderFailed) },
        _ => Outcome::NotAccepted { retry_after: None, why: said(WhyCode::Unrecognised) },
    }
}

/// The `Location` of the message is a bearer secret too (whoever has it may take the message back), so it is
/// not kept as a reference.
fn accepted(answer: &Answer, asked: Option<Duration>) -> Outcome {
    let said = |code, word: &str| Why::said(code, format!("{}: {word}", answer.status.as_u16()));
    match windows_word(&answer.headers) {
        Some(word @ "throttled") => throttled(asked, said(WhyCode::RateLimited, word)),
        Some(word) => Outcome::Refused { why: said(WhyCode::PolicyRefused, word) },
        None => {
            Outcome::Accepted { provider_ref: None, why: Why::said(WhyCode::Ok, answer.status.as_u16().to_string()) }
        }
    }
}

fn throttled(asked: Option<Duration>, why: Why) -> Outcome {
    Outcome::Throttled { after: asked.unwrap_or(AFTER_THROTTLE), scope: ThrottleScope::Recipient, why }
}

/// Windows' service takes a message and says in a header that it did not pass it on
/// (`X-WNS-NotificationStatus`: received, dropped, channelthrottled, appthrottled).
fn windows_word(headers: &HeaderMap) -> Option<&'static str> {
    let status = headers.get("x-wns-notificationstatus").or_else(|| headers.get("x-wns-status"))?;
    let status = status.to_str().ok()?.to_ascii_lowercase();
    if status.ends_with("throttled") { Some("throttled") } else { (status == "dropped").then_some("dropped") }
}

/// 400, 401 or 403: RFC 8292 4.2 leaves to the service which of the three it answers to which fault.
fn refused(answer: &Answer, service: Service) -> Outcome {
    let status = answer.status.as_u16();
    let found = found(answer.body.as_deref().unwrap_or_default());
    let said = |code| match found {
        Some((word, _)) => Why::said(code, format!("{status}: {word}")),
        None => Why::said(code, status.to_string()),
    };
    match (found.map(|(_, about)| about), status) {
        (Some(About::OtherKey), _) => Outcome::Refused { why: said(WhyCode::WrongApp) },
        (Some(About::Clock), _) => refused_login(service, said(WhyCode::ClockSkew)),
        (Some(About::Login), _) => refused_login(service, said(WhyCode::CredentialRefused)),
        (Some(About::Request), _) | (None, 400) => Outcome::Refused { why: said(WhyCode::ContentRefused) },
        // Authenticated, and not for this subscription.
        (None, 403) => Outcome::Refused { why: said(WhyCode::WrongApp) },
        // A service that says no more may mean this subscription alone, and has not told it gone.
        (None, _) => refused_login(Service::Other, said(WhyCode::CredentialRefused)),
    }
}

fn refused_login(service: Service, why: Why) -> Outcome {
    let scope = match service {
        Service::Known => ThrottleScope::Credential,
        Service::Other => ThrottleScope::Recipient,
    };
    Outcome::Throttled { after: AFTER_REFUSED_LOGIN, scope, why }
}

fn found(body: &[u8]) -> Option<(&'static str, About)> {
    let body = String::from_utf8_lossy(body).to_ascii_lowercase();
    WORDS.iter().find(|(said, ..)| body.contains(said)).map(|(_, word, about)| (*word, *about))
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
