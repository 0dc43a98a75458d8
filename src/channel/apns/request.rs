//! What is sent: a path, headers, and the body as it was made, with our own mark in it.

use belfry_domain::UnixMs;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};

use super::classify::Topic;
use crate::channel::payload::with_own;
use crate::ports::message::{Outgoing, PushSettings, PushType, Rendered, Urgency};

/// Largest body in bytes (Apple, "Generating a remote notification").
const MOST: usize = 4096;
const MOST_VOIP: usize = 5120;
/// Apple's tokens are 32 bytes, and may grow; so much is one in any case.
const TOKEN_DIGITS: std::ops::RangeInclusive<usize> = 16..=200;

/// Why nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unsendable {
    /// The token is none of APNs'.
    BadToken,
    TooLarge {
        bytes: usize,
        most: usize,
    },
    NotAPush,
}

/// All but the login, which may change while the rest stays.
pub(super) struct Draft {
    request: Request<Bytes>,
    pub topic: Topic,
}

impl Draft {
    /// `url`: `https://host[:port]`; `topic`: the app's.
    pub fn of(out: &Outgoing, url: &str, topic: &str) -> Result<Self, Unsendable> {
        let Rendered::Push { payload, settings } = &out.message else { return Err(Unsendable::NotAPush) };
        if !is_token(&out.address.0) {
            return Err(Unsendable::BadToken);
        }
        let body = with_own(payload, out.delivery, out.seen_token.as_deref()).map_err(|_| Unsendable::NotAPush)?;
        let most = if settings.push_type == PushType::Voip { MOST_VOIP } else { MOST };
        if body.len() > most {
            return Err(Unsendable::TooLarge { bytes: body.len(), most });
        }
        let mut draft = Self::to(&out.address.0, (url, topic), *settings, body)?;
        draft.set("apns-id", out.uuid())?;
        draft.set("apns-collapse-id", out.collapse_id().to_string())?;
        draft.set("apns-expiration", expiration(out.expires_at))?;
        Ok(draft)
    }

    /// To a device that nobody has.
    pub fn nobodys(url: &str, topic: &str) -> Result<Self, Unsendable> {
        let quiet = PushSettings { urgency: Urgency::Normal, push_type: PushType::Alert };
        let mut draft = Self::to(&"0".repeat(64), (url, topic), quiet, r#"{"aps":{}}"#.to_owned())?;
        draft.set("apns-expiration", "0".to_owned())?;
        Ok(draft)
    }

    fn to(token: &str, (url, topic): (&str, &str), settings: PushSettings, body: String) -> Result<Self, Unsendable> {
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = format!("{url}/3/device/{token}").parse().map_err(|_| Unsendable::BadToken)?;
        let suffix = suffix(settings.push_type);
        let headers = request.headers_mut();
        let topic = HeaderValue::try_from(format!("{topic}{suffix}")).map_err(|_| Unsendable::NotAPush)?;
        headers.insert("apns-topic", topic);
        headers.insert("apns-push-type", HeaderValue::from_static(name(settings.push_type)));
        headers.insert("apns-priority", HeaderValue::from_static(priority(settings)));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { request, topic: if suffix.is_empty() { Topic::App } else { Topic::Service } })
    }

    /// What is another on every call stays out of the small table that both sides keep (HPACK).
    fn set(&mut self, name: &'static str, text: String) -> Result<(), Unsendable> {
        let mut value = HeaderValue::try_from(text).map_err(|_| Unsendable::NotAPush)?;
        value.set_sensitive(true);
        self.request.headers_mut().insert(name, value);
        Ok(())
    }

    /// `None`: who we are was said in the TLS handshake.
    pub fn with(&self, authorization: Option<HeaderValue>) -> Request<Bytes> {
        let mut request = self.request.clone();
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        request
    }

    /// The device's, from the path's end.
    pub fn token(&self) -> &str {
        self.request.uri().path().rsplit('/').next().unwrap_or_default()
    }
}

fn is_token(token: &str) -> bool {
    TOKEN_DIGITS.contains(&token.len())
        && token.len().is_multiple_of(2)
        && token.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whole seconds, never before the message expires.
fn expiration(at: UnixMs) -> String {
    (at.0.max(0).saturating_add(999) / 1000).to_string()
}

const fn priority(settings: PushSettings) -> &'static str {
    match (settings.push_type, settings.urgency) {
        // Apple: 10 is an error here.
        (PushType::Background, _) | (_, Urgency::Normal) => "5",
        (_, Urgency::High) => "10",
        (_, Urgency::Low) => "1",
    }
}

const fn name(push_type: PushType) -> &'static str {
    match push_type {
        PushType::Alert => "alert",
        PushType::Background => "background",
        PushType::Voip => "voip",
        PushType::Complication => "complication",
        PushType::FileProvider => "fileprovider",
        PushType::LiveActivity => "liveactivity",
        PushType::Location => "location",
        PushType::PushToTalk => "pushtotalk",
    }
}

/// What the topic has after the bundle id (Apple, "Sending notification requests to APNs").
const fn suffix(push_type: PushType) -> &'static str {
    match push_type {
        PushType::Alert | PushType::Background => "",
        PushType::Voip => ".voip",
        PushType::Complication => ".complication",
        PushType::FileProvider => ".pushkit.fileprovider",
        PushType::LiveActivity => ".push-type.liveactivity",
        PushType::Location => ".location-query",
        PushType::PushToTalk => ".voip-ptt",
    }
}
