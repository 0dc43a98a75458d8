//! What an answer of FCM means. Pure. Its details decide: the same status is a dead token or a wrong
//! project (404), our login or Apple's (401), one message or all of them (400, 429).
//!
//! After Google's "FCM error codes" and "ErrorCode" pages, and answers that others have met.

use std::time::Duration;

use belfry_domain::outcome::{Outcome, ThrottleScope, Why, WhyCode};
use serde_json::Value;

use super::words;

/// One answer.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// HTTP.
    pub status: u16,
    /// `None` where it broke off, or had no end.
    pub body: Option<&'a [u8]>,
    /// What the header asks for, however long.
    pub retry_after: Option<Duration>,
}

/// How long to wait after 429 where it does not say (Google, "Best practices when sending FCM
/// messages at scale").
const AFTER_429: Duration = Duration::from_secs(60);
/// Google, "Best practices when sending FCM messages at scale": at least so long after a 500 or 503.
const AFTER_A_FAILURE: Duration = Duration::from_secs(10);
/// How long others wait after our login or setting was refused, unless the breaker knows better.
const AFTER_REFUSED_SETUP: Duration = Duration::from_secs(60);

/// What Apple says of a token that it does not deliver to. A word about the token that FCM holds for
/// this one, or about a live activity's: so it is never a reason to drop the device.
const APPLE_NO_TOKEN: [&str; 4] = ["BadDeviceToken", "DeviceTokenNotForTopic", "ExpiredToken", "Unregistered"];

/// An outcome out of the closed set.
#[must_use]
pub fn classify(told: &Told<'_>) -> Outcome {
    let Some(body) = told.body else { return of_status_alone(told) };
    let answer: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    if told.status == 200 {
        return accepted(&answer);
    }
    let error = ApiError { told, error: &answer["error"] };
    match error.code() {
        // A refusal with a status that says otherwise is not understood.
        _ if !(400..600).contains(&told.status) => error.unrecognised(),
        _ if told.status >= 500 => failed(told.retry_after, error.why(WhyCode::ProviderFailed)),
        Some("UNREGISTERED") => Outcome::RecipientGone { since: None, why: error.why(WhyCode::NoSuchRecipient) },
        // Nothing that a new access token of ours would mend.
        Some("THIRD_PARTY_AUTH_ERROR") => Outcome::Refused { why: error.why(WhyCode::ThirdPartyRefused) },
        Some("SENDER_ID_MISMATCH") => Outcome::Refused { why: error.why(WhyCode::WrongApp) },
        Some("QUOTA_EXCEEDED") => error.throttled(),
        Some("INVALID_ARGUMENT") => error.invalid(),
        Some(_) | None => error.by_status(),
    }
}

/// Whether a new access token may help: the old one was refused, and not Apple's or a browser's.
#[must_use]
pub fn wants_new_token(told: &Told<'_>) -> bool {
    let outcome = classify(told);
    told.status == 401 && outcome.why().code == WhyCode::CredentialRefused
}

/// A 200 says what the message is called; what does not is somebody else's (a portal, a proxy).
fn accepted(answer: &Value) -> Outcome {
    let id = answer["name"].as_str().and_then(|name| name.rsplit_once("/messages/")).map(|(_, id)| id);
    match id.filter(|id| words::is_message_id(id)) {
        Some(id) => Outcome::Accepted { provider_ref: Some(id.to_owned()), why: Why::new(WhyCode::Ok) },
        None => unknown(Why::said(WhyCode::Unrecognised, "200 without a message's name")),
    }
}

/// The status came, the answer did not.
fn of_status_alone(told: &Told<'_>) -> Outcome {
    let why = |code| Why::said(code, format!("{} and no whole answer", told.status));
    match told.status {
        429 => throttled(told.retry_after, ThrottleScope::Provider, why(WhyCode::RateLimited)),
        // Whose fault it is would stand in the details.
        400..500 => Outcome::NotAccepted { retry_after: told.retry_after, why: why(WhyCode::Unrecognised) },
        _ => unknown(why(WhyCode::CutAfter)),
    }
}

/// `google.rpc.Status` in JSON. Whatever has another form counts as absent.
struct ApiError<'a> {
    told: &'a Told<'a>,
    error: &'a Value,
}

impl<'a> ApiError<'a> {
    /// Those of one type.
    fn details(&self, kind: &'static str) -> impl Iterator<Item = &'a Value> + use<'a> {
        let all = self.error["details"].as_array().map_or(&[][..], Vec::as_slice);
        all.iter().filter(move |one| {
            one["@type"].as_str().is_some_and(|name| name.strip_prefix("type.googleapis.com/") == Some(kind))
        })
    }

    fn code(&self) -> Option<&'a str> {
        self.details("google.firebase.fcm.v1.FcmError").find_map(|detail| detail["errorCode"].as_str())
    }

    fn apple(&self) -> Option<&'a str> {
        self.details("google.firebase.fcm.v1.ApnsError").find_map(|detail| detail["reason"].as_str())
    }

    fn status(&self) -> Option<&'a str> {
        self.error["status"].as_str()
    }

    fn fields(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        texts(self.details("google.rpc.BadRequest"), "fieldViolations", "field")
    }

    /// Whose quotas are spent: `project:…`, a device.
    fn subjects(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        texts(self.details("google.rpc.QuotaFailure"), "violations", "subject")
    }

    fn by_status(&self) -> Outcome {
        match (self.told.status, self.status()) {
            (429, _) | (_, Some("RESOURCE_EXHAUSTED")) => self.throttled(),
            (401, _) => self.refused_setup(WhyCode::CredentialRefused),
            (403 | 404, _) => self.refused_setup(WhyCode::SetupRefused),
            (413, _) => Outcome::Refused { why: self.why(WhyCode::TooLarge) },
            (400, Some("INVALID_ARGUMENT")) => self.invalid(),
            _ => self.unrecognised(),
        }
    }

    /// FCM says no more than this of a bad token, a bad value and a message that is too large, unless a
    /// detail names the token.
    fn invalid(&self) -> Outcome {
        let named = self.fields().any(|field| matches!(field, "message.token" | "message.fid"));
        let apples = self.apple().is_some_and(|reason| APPLE_NO_TOKEN.contains(&reason));
        let code = if named || apples { WhyCode::BadToken } else { WhyCode::ContentRefused };
        Outcome::Refused { why: self.why(code) }
    }

    /// One device's quota, FCM's or Apple's, is nothing to others. Where it is not said whose it is, it is
    /// the project's: a 429 that nobody heeds is answered with more of them.
    fn throttled(&self) -> Outcome {
        let mut subjects = self.subjects().peekable();
        let devices = match subjects.peek() {
            Some(_) => subjects.all(words::is_device),
            None => self.apple() == Some("TooManyRequests"),
        };
        let scope = if devices { ThrottleScope::Recipient } else { ThrottleScope::Provider };
        throttled(self.told.retry_after, scope, self.why(WhyCode::RateLimited))
    }

    fn refused_setup(&self, code: WhyCode) -> Outcome {
        Outcome::Throttled { after: AFTER_REFUSED_SETUP, scope: ThrottleScope::Credential, why: self.why(code) }
    }

    fn unrecognised(&self) -> Outcome {
        let why = self.why(WhyCode::Unrecognised);
        match self.told.status {
            // A redirect is not followed: whoever sent it took nothing.
            300..500 => Outcome::NotAccepted { retry_after: self.told.retry_after, why },
            _ => unknown(why),
        }
    }

    /// In words that we know: an answer may quote the token or the message.
    fn why(&self, code: WhyCode) -> Why {
        let reasons = self.details("google.rpc.ErrorInfo").filter_map(|detail| detail["reason"].as_str());
        let codes = self.status().into_iter().chain(self.code()).chain(reasons).chain(self.apple());
        let mut said: Vec<&str> = Vec::new();
        let known = codes.filter_map(words::known).chain(self.fields().map(words::field));
        for word in known.chain(self.subjects().map(words::subject)).take(8) {
            if !said.contains(&word) {
                said.push(word);
            }
        }
        let status = self.told.status.to_string();
        let said = std::iter::once(status.as_str()).chain(said).collect::<Vec<_>>().join(" ");
        match self.blame() {
            Some(blame) if matches!(code, WhyCode::SetupRefused | WhyCode::ThirdPartyRefused) => {
                Why::said(code, format!("{blame}: {said}"))
            }
            Some(_) | None => Why::said(code, said),
        }
    }

    /// What a person has to mend where it is a setting.
    fn blame(&self) -> Option<&'static str> {
        match (self.code(), self.told.status) {
            (Some("THIRD_PARTY_AUTH_ERROR"), _) => Some("the project's key for APNs or web push"),
            (_, 403) => Some("the service account's rights"),
            (_, 404) => Some("the project or the url"),
            _ => None,
        }
    }
}

/// The texts called `text` in the lists called `many`.
fn texts<'a>(
    details: impl Iterator<Item = &'a Value>,
    many: &'static str,
    text: &'static str,
) -> impl Iterator<Item = &'a str> {
    let all = details.flat_map(move |detail| detail[many].as_array().map_or(&[][..], Vec::as_slice));
    all.filter_map(move |one| one[text].as_str())
}

fn throttled(asked: Option<Duration>, scope: ThrottleScope, why: Why) -> Outcome {
    Outcome::Throttled { after: asked.unwrap_or(AFTER_429), scope, why }
}

/// FCM may have taken the message before it failed. It asks for exponential waits, of which the first has
/// at least [`AFTER_A_FAILURE`].
fn failed(asked: Option<Duration>, why: Why) -> Outcome {
    Outcome::Unknown { retry_after: Some(asked.unwrap_or_default().max(AFTER_A_FAILURE)), why }
}

/// FCM may have taken the message.
const fn unknown(why: Why) -> Outcome {
    Outcome::Unknown { retry_after: None, why }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
