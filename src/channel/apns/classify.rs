//! What an answer of APNs means. Pure: no socket, no clock.
//!
//! Apple's own list is "Handling notification responses from APNs": a status, and a reason in the body. The reason
//! decides where it is known; else the status, as far as it says something by itself. A 4xx was not taken, a 5xx
//! may have been unless it says otherwise, and what is not known is never success.

use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::outcome::{Outcome, ThrottleScope, Why, WhyCode};
use serde::Deserialize;

use crate::channel::https::Answer;
use crate::channel::https::retry_after::retry_after;

/// How long a device is left alone after "too many requests" that name no time.
const AFTER_TOO_MANY: Duration = Duration::from_secs(60);
/// How long others wait after our login or a setting was refused, unless the breaker knows better.
const AFTER_REFUSED_LOGIN: Duration = Duration::from_secs(60);
/// How long after "too many token updates": the next call tries whether the older one is taken again.
const AFTER_TOKEN_UPDATES: Duration = Duration::from_secs(60);
/// How long after a 5xx that names no time (Apple, "Handling notification responses from APNs").
const AFTER_FAILURE: Duration = Duration::from_secs(15 * 60);
/// Longest reason that is kept; Apple's own are shorter.
const MOST_REASON: usize = 64;

/// An answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub status: u16,
    /// One visible word; `None` where the body has none or could not be read.
    pub reason: Option<String>,
    /// Of a 410: when Apple last found the token to be dead.
    pub since: Option<UnixMs>,
    pub retry_after: Option<Duration>,
    pub apns_id: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    reason: Option<String>,
    /// Milliseconds since 1970.
    timestamp: Option<i64>,
}

impl Told {
    /// `token` is kept out of whatever the other side says.
    #[must_use]
    pub fn read(answer: &Answer, now: UnixMs, token: &str) -> Self {
        let body: Option<Body> = answer.body.as_ref().and_then(|body| serde_json::from_slice(body).ok());
        let apns_id = answer.headers.get("apns-id").and_then(|id| id.to_str().ok());
        Self {
            status: answer.status.as_u16(),
            reason: body.as_ref().and_then(|body| body.reason.as_deref()).and_then(|reason| word(reason, token)),
            since: body.and_then(|body| body.timestamp).filter(|at| *at > 0).map(UnixMs),
            retry_after: retry_after(&answer.headers, now),
            apns_id: apns_id.filter(|id| id.len() <= MOST_REASON).map(str::to_owned),
        }
    }

    /// How long to wait before the same is sent again. Apple wants 15 minutes after any 5xx.
    fn wait(&self) -> Option<Duration> {
        self.retry_after.or_else(|| (500..=599).contains(&self.status).then_some(AFTER_FAILURE))
    }

    fn why(&self, code: WhyCode) -> Why {
        match &self.reason {
            Some(reason) => Why::said(code, format!("{} {reason}", self.status)),
            None => Why::said(code, self.status.to_string()),
        }
    }
}

/// A reason that may be shown. Apple's are words; another's may quote what we sent.
fn word(reason: &str, token: &str) -> Option<String> {
    let shown: String = reason.chars().filter(char::is_ascii_graphic).take(MOST_REASON).collect();
    let lower = shown.to_ascii_lowercase();
    let quoted = token.get(..8).is_some_and(|start| lower.contains(&start.to_ascii_lowercase()));
    (!shown.is_empty() && !quoted).then_some(shown)
}

/// What the call was for, as far as an answer's meaning hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The app itself.
    App,
    /// One of its services (`.voip`, …), named by the message: if that is refused, the message asked for what this
    /// app or device does not have, and nobody else's is at fault.
    Service,
}

/// What one reason of Apple's means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    BadToken,
    WrongApp,
    Gone,
    Content,
    TooLarge,
    Policy,
    Login,
    Setup,
    /// A setting, where the topic is the app's own.
    TopicSetup,
    /// It was renewed as far as that is allowed, and refused again.
    Skew,
    DeviceBusy,
    TokenUpdates,
    NotNow,
    MayHaveArrived,
}

/// Every reason with its meaning, in Apple's order, with the status that Apple documents.
const REASONS: &[(u16, &str, Means)] = &[
    (400, "BadCollapseId", Means::Content),
    (400, "BadDeviceToken", Means::BadToken),
    (400, "BadExpirationDate", Means::Content),
    (400, "BadMessageId", Means::Content),
    (400, "BadPriority", Means::Content),
    (400, "BadTopic", Means::TopicSetup),
    (400, "DeviceTokenNotForTopic", Means::WrongApp),
    (400, "DuplicateHeaders", Means::Content),
    // Of the connection: the request was not looked at.
    (400, "IdleTimeout", Means::NotNow),
    (400, "InvalidPushType", Means::Content),
    (400, "MissingDeviceToken", Means::Content),
    (400, "MissingTopic", Means::Setup),
    (400, "PayloadEmpty", Means::Content),
    (400, "TopicDisallowed", Means::TopicSetup),
    (403, "BadCertificate", Means::Login),
    (403, "BadCertificateEnvironment", Means::Setup),
    (403, "ExpiredProviderToken", Means::Skew),
    (403, "Forbidden", Means::Policy),
    (403, "InvalidProviderToken", Means::Login),
    (403, "MissingProviderToken", Means::Login),
    (403, "UnrelatedKeyIdInToken", Means::Login),
    (403, "BadEnvironmentKeyIdInToken", Means::Setup),
    // As documented above, and as it comes.
    (403, "BadEnvironmentKeyInToken", Means::Setup),
    // The token's shape was looked at before: it is the address or what stands in between.
    (404, "BadPath", Means::Setup),
    (405, "MethodNotAllowed", Means::Setup),
    (410, "ExpiredToken", Means::Gone),
    (410, "Unregistered", Means::Gone),
    (413, "PayloadTooLarge", Means::TooLarge),
    (429, "TooManyProviderTokenUpdates", Means::TokenUpdates),
    (429, "TooManyRequests", Means::DeviceBusy),
    (500, "InternalServerError", Means::MayHaveArrived),
    (503, "ServiceUnavailable", Means::NotNow),
    (503, "Shutdown", Means::NotNow),
];

fn meaning(told: &Told) -> Option<Means> {
    let reason = told.reason.as_deref()?;
    // A reason under a status of another kind is none of Apple's.
    let known = REASONS.iter().find(|(status, name, _)| *name == reason && status / 100 == told.status / 100);
    known.map(|(_, _, means)| *means)
}

/// An outcome out of the closed set.
#[must_use]
pub fn classify(told: &Told, topic: Topic) -> Outcome {
    if told.status == 200 {
        return Outcome::Accepted { provider_ref: told.apns_id.clone(), why: Why::new(WhyCode::Ok) };
    }
    match meaning(told) {
        Some(means) => known(means, told, topic),
        None => by_status(told),
    }
}

fn known(means: Means, told: &Told, topic: Topic) -> Outcome {
    let refused = |code| Outcome::Refused { why: told.why(code) };
    let paused = |scope, after, code| Outcome::Throttled { after, scope, why: told.why(code) };
    let credential = |code| paused(ThrottleScope::Credential, AFTER_REFUSED_LOGIN, code);
    match (means, topic) {
        (Means::BadToken, _) => refused(WhyCode::BadToken),
        (Means::WrongApp, Topic::App) => refused(WhyCode::WrongApp),
        // The token of the app is none of its service's; that says nothing against it.
        (Means::WrongApp | Means::TopicSetup, Topic::Service) => refused(WhyCode::SetupRefused),
        (Means::TopicSetup, Topic::App) | (Means::Setup, _) => credential(WhyCode::SetupRefused),
        (Means::Gone, _) => Outcome::RecipientGone { since: told.since, why: told.why(WhyCode::NoSuchRecipient) },
        (Means::Content, _) => refused(WhyCode::ContentRefused),
        (Means::TooLarge, _) => refused(WhyCode::TooLarge),
        (Means::Policy, _) => refused(WhyCode::PolicyRefused),
        (Means::Login, _) => credential(WhyCode::CredentialRefused),
        (Means::Skew, _) => credential(WhyCode::ClockSkew),
        (Means::DeviceBusy, _) => {
            let after = told.retry_after.unwrap_or(AFTER_TOO_MANY);
            paused(ThrottleScope::Recipient, after, WhyCode::RateLimited)
        }
        (Means::TokenUpdates, _) => {
            let after = told.retry_after.unwrap_or(AFTER_TOKEN_UPDATES);
            paused(ThrottleScope::Provider, after, WhyCode::RateLimited)
        }
        (Means::NotNow, _) => Outcome::NotAccepted { retry_after: told.wait(), why: told.why(WhyCode::TryLater) },
        (Means::MayHaveArrived, _) => {
            Outcome::Unknown { retry_after: told.wait(), why: told.why(WhyCode::ProviderFailed) }
        }
    }
}

/// No reason, or none that is known. What a status alone says is Apple's table of statuses.
fn by_status(told: &Told) -> Outcome {
    match told.status {
        410 => Outcome::RecipientGone { since: told.since, why: told.why(WhyCode::NoSuchRecipient) },
        413 => Outcome::Refused { why: told.why(WhyCode::TooLarge) },
        429 => Outcome::Throttled {
            after: told.retry_after.unwrap_or(AFTER_TOO_MANY),
            scope: ThrottleScope::Recipient,
            why: told.why(WhyCode::RateLimited),
        },
        300..=499 => Outcome::NotAccepted { retry_after: told.retry_after, why: told.why(WhyCode::Unrecognised) },
        500..=599 => Outcome::Unknown { retry_after: told.wait(), why: told.why(WhyCode::ProviderFailed) },
        _ => Outcome::Unknown { retry_after: None, why: told.why(WhyCode::Unrecognised) },
    }
}

/// Whether Apple found the token that we log in with too old.
#[must_use]
pub fn is_expired_login(told: &Told) -> bool {
    meaning(told) == Some(Means::Skew)
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
