//! Push by Firebase Cloud Messaging (HTTP v1): one JSON POST per device.
//!
//! Before the request only an access token is fetched, which reaches nobody; after it only FCM's own
//! word says that the message was not taken. A 5xx is no such word.

mod account;
pub mod classify;
pub mod config;
mod fields;
mod grant;
pub mod message;
mod settings;
mod token;
mod words;

use std::sync::Arc;

use async_trait::async_trait;
use belfry_domain::outcome::{Outcome, RepeatGuard, Why, WhyCode};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};

use self::classify::{Told, classify, wants_new_token};
use self::config::FcmConfig;
use self::message::{MessageError, body};
use self::settings::Settings;
use self::token::{NoToken, Tokens};
use super::https::retry_after::retry_after;
use super::https::{Answer, Commit, Fault};
use super::setting::WrongSetting;
use crate::ports::channel::{Call, Channel, CheckProblem};
use crate::ports::clock::Clock;
use crate::ports::message::{Outgoing, Rendered};

/// Longer than any that FCM gives out (about 160 bytes), which it may outgrow.
const LONGEST_TOKEN: usize = 4096;
/// No device's.
const NOBODY: &str = "belfry-check:not-a-device";

/// One `[providers.<name>]` of kind `fcm`.
pub struct FcmChannel {
    place: String,
    send: http::Uri,
    https: super::https::Https,
    tokens: Tokens,
    clock: Arc<dyn Clock>,
}

/// What came of a post, and the machine's own words where nothing came.
struct Posted {
    outcome: Outcome,
    detail: Option<String>,
}

impl From<Outcome> for Posted {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, detail: None }
    }
}

impl From<NoToken> for Posted {
    fn from(NoToken { outcome, detail }: NoToken) -> Self {
        Self { outcome, detail }
    }
}

impl FcmChannel {
    /// Reads and checks the configuration, its key and certificate files included. Connects nowhere.
    ///
    /// # Errors
    /// [`WrongSetting`] names the key.
    pub fn new(config: &FcmConfig, clock: Arc<dyn Clock>) -> Result<Self, WrongSetting> {
        let Settings { account, project, host, send, https } = Settings::read(config)?;
        let tokens = Tokens::new(account, https.clone(), clock.clone());
        Ok(Self { place: format!("{host} (project {project})"), send, https, tokens, clock })
    }

    /// Everything wrong with a configuration that [`Self::new`] would stop at, key and certificate
    /// files included. Connects nowhere.
    #[must_use]
    pub fn problems(config: &FcmConfig) -> Vec<WrongSetting> {
        Settings::problems(config)
    }

    /// Where it sends to: `fcm.googleapis.com (project my-project)`.
    #[must_use]
    pub fn place(&self) -> String {
        self.place.clone()
    }

    /// Logs in and lets FCM judge, without sending it, a message to a device that does not exist; for
    /// `doctor`. That this one is refused shows that the project and the rights are right.
    ///
    /// # Errors
    /// Why a message would not get through now.
    pub async fn check(&self) -> Result<(), CheckProblem> {
        let trial = serde_json::json!({"validate_only": true, "message": {"token": NOBODY}});
        let Posted { outcome, detail } = self.post(&Bytes::from(trial.to_string()), &|| Ok(())).await;
        match outcome {
            Outcome::Accepted { .. } | Outcome::RecipientGone { .. } => Ok(()),
            Outcome::Refused { why } if is_about_the_trial(why.code) => Ok(()),
            Outcome::Refused { why }
            | Outcome::NotAccepted { why, .. }
            | Outcome::Throttled { why, .. }
            | Outcome::Unknown { why, .. } => Err(CheckProblem { why, detail }),
        }
    }

    /// Posts a body, once more with a new access token where the first is refused.
    async fn post(&self, body: &Bytes, commit: Commit<'_>) -> Posted {
        let access = match self.tokens.get(None).await {
            Ok(access) => access,
            Err(none) => return none.into(),
        };
        let first = match self.ask(body, &access.header, commit).await {
            Ok(answer) => answer,
            Err(fault) => return of_fault(fault),
        };
        let told = self.told(&first);
        if !wants_new_token(&told) {
            return classify(&told).into();
        }
        let access = match self.tokens.get(Some(&access)).await {
            Ok(access) => access,
            Err(none) => return none.into(),
        };
        match self.ask(body, &access.header, commit).await {
            Ok(answer) => classify(&self.told(&answer)).into(),
            Err(fault) => of_fault(fault),
        }
    }

    async fn ask(&self, body: &Bytes, authorization: &HeaderValue, commit: Commit<'_>) -> Result<Answer, Fault> {
        let mut request = Request::new(body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.send.clone();
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, authorization.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.https.ask(request, commit).await
    }

    fn told<'a>(&self, answer: &'a Answer) -> Told<'a> {
        Told {
            status: answer.status.as_u16(),
            body: answer.body.as_deref(),
            retry_after: retry_after(&answer.headers, self.clock.now()),
        }
    }
}

/// Whether it is the device that FCM refused.
fn is_about_the_trial(code: WhyCode) -> bool {
    matches!(code, WhyCode::BadToken | WhyCode::ContentRefused | WhyCode::WrongApp)
}

fn of_fault(fault: Fault) -> Posted {
    let outcome = fault.outcome();
    let detail = if let Fault::NotTaken { detail, .. } = fault { detail } else { None };
    Posted { outcome, detail }
}

/// Whether FCM could have given it out. What it could not is refused here, without a call.
fn is_token(token: &str) -> bool {
    (1..=LONGEST_TOKEN).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic())
}

#[async_trait]
impl Channel for FcmChannel {
    /// By tag, APNs' collapse id and web push's tag; FCM itself recognises no repeat.
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::Collapse
    }

    fn receipts(&self) -> bool {
        false
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        let refused = |code, said: String| Outcome::Refused { why: Why::said(code, said) };
        let Rendered::Push { payload, settings } = &out.message else {
            return refused(WhyCode::RenderFailed, "the message is no push".to_owned());
        };
        if !is_token(&out.address.0) {
            return refused(WhyCode::TokenMalformed, "no token of FCM looks like this; it was not called".to_owned());
        }
        match body(payload, *settings, out, self.clock.now()) {
            Ok(body) => self.post(&body, &|| call.commit()).await.outcome,
            Err(error @ MessageError::TooLarge { .. }) => refused(WhyCode::TooLarge, error.to_string()),
            Err(error @ (MessageError::NotAMessage | MessageError::Aimed)) => {
                refused(WhyCode::RenderFailed, error.to_string())
            }
        }
    }
}

impl std::fmt::Debug for FcmChannel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "FcmChannel({})", self.place)
    }
}
