//! Web push (RFC 8030): encrypts for one browser, posts to that browser's push service, says what
//! came of it.
//!
//! One provider serves every push service, since the subscription names its own. That address was
//! chosen by whoever registered it, so it leads into no network of ours, is never followed elsewhere,
//! and is told to nobody.

pub mod classify;
pub mod config;
mod encrypt;
mod settings;
mod subscription;
pub mod vapid;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::UnixMs;
use belfry_domain::outcome::{Outcome, RepeatGuard, Why, WhyCode};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};

pub use self::encrypt::MOST_PLAINTEXT;

use self::classify::{Service, classify};
use self::config::WebPushConfig;
use self::encrypt::{NotOnCurve, encrypt};
use self::subscription::{Malformed, Subscription};
use self::vapid::Tokens;
use super::https::{Fault, Https, is_inside};
use super::payload::with_own;
use super::setting::WrongSetting;
use crate::ports::channel::{self, Call, Channel};
use crate::ports::clock::Clock;
use crate::ports::message::{Address, Outgoing, Rendered, Urgency};

const TTL: HeaderName = HeaderName::from_static("ttl");
const URGENCY: HeaderName = HeaderName::from_static("urgency");
const TOPIC: HeaderName = HeaderName::from_static("topic");

/// The services keep a message for 28 to 30 days; some refuse a longer wish.
const LONGEST_TTL: Duration = Duration::from_secs(28 * 24 * 60 * 60);

/// One `[providers.<name>]` of kind `web_push`.
pub struct WebPushChannel {
    https: Https,
    tokens: Tokens,
    clock: Arc<dyn Clock>,
    allow_internal: bool,
}

impl WebPushChannel {
    /// Checks the configuration and reads the files of it that were not read yet. Connects nowhere.
    ///
    /// # Errors
    /// [`WrongSetting`] names the key.
    pub fn new(config: &WebPushConfig, clock: Arc<dyn Clock>) -> Result<Self, WrongSetting> {
        if let Some(zero) = config.limits().zeros().into_iter().next() {
            return Err(zero);
        }
        let key = settings::key(config)?;
        let subject = settings::subject(config)?.to_owned();
        Ok(Self {
            https: settings::connect(config)?,
            tokens: Tokens::new(key, subject, clock.clone()),
            clock,
            allow_internal: config.allow_internal,
        })
    }

    /// Everything wrong with a configuration that [`Self::new`] would stop at. Connects nowhere.
    #[must_use]
    pub fn problems(config: &WebPushConfig) -> Vec<WrongSetting> {
        settings::problems(config)
    }

    /// What browsers subscribe with: base64url without padding.
    #[must_use]
    pub fn application_server_key(&self) -> &str {
        self.tokens.public()
    }

    /// For `doctor`: there is no server of our own to connect to, so this is what can be said without
    /// a subscription. The key's halves fit each other and the subject can be told, else [`Self::new`]
    /// had stopped.
    #[must_use]
    pub fn check(&self) -> String {
        format!("the VAPID key and subject can be used; applicationServerKey is {}", self.application_server_key())
    }

    /// The request for one message, or why there can be none.
    fn request(&self, out: &Outgoing) -> Result<(Request<Bytes>, Service), Why> {
        let Rendered::Push { payload, settings } = &out.message else {
            return Err(Why::said(WhyCode::RenderFailed, "the message is no push"));
        };
        let bad_token = |malformed: Malformed| Why::said(WhyCode::TokenMalformed, malformed.to_string());
        let to = Subscription::parse(&out.address.0, self.allow_internal).map_err(bad_token)?;
        if !self.allow_internal && is_inside(&to.host) {
            return Err(Why::said(WhyCode::InternalEndpoint, "its host is an internal one by its address or name"));
        }
        let plaintext = with_own(payload, out.delivery, out.seen_token.as_deref())
            .map_err(|problem| Why::said(WhyCode::RenderFailed, problem.to_string()))?;
        if plaintext.len() > MOST_PLAINTEXT {
            let size = format!("{} bytes, of which {MOST_PLAINTEXT} fit", plaintext.len());
            return Err(Why::said(WhyCode::TooLarge, size));
        }
        let body = encrypt(plaintext.as_bytes(), &to.receiver).map_err(|NotOnCurve| bad_token(Malformed::PublicKey))?;
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = self.headers(out, settings.urgency, &to.origin);
        let service = Service::at(to.authority());
        *request.uri_mut() = to.endpoint;
        Ok((request, service))
    }

    fn headers(&self, out: &Outgoing, urgency: Urgency, origin: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, self.tokens.authorization(origin));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("aes128gcm"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(TTL, HeaderValue::from(ttl(out.expires_at, self.clock.now())));
        headers.insert(URGENCY, HeaderValue::from_static(urgency_word(urgency)));
        // 24 hex digits: of the 32 base64url characters that may be, and a multiple of 4, since Apple
        // decodes them.
        let topic = HeaderValue::try_from(out.collapse_id().to_string()).expect("hex digits are a header's value");
        headers.insert(TOPIC, topic);
        headers
    }
}

/// Seconds, rounded up: 0 asks to forget the message unless the browser is connected at this moment,
/// and Windows' service refuses it.
fn ttl(expires_at: UnixMs, now: UnixMs) -> u64 {
    let left = expires_at.since(now).min(LONGEST_TTL);
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

const fn urgency_word(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::High => "high",
        Urgency::Normal => "normal",
        Urgency::Low => "low",
    }
}

#[async_trait]
impl Channel for WebPushChannel {
    /// A Topic makes a message replace an earlier one only while the service still keeps that one:
    /// once it was delivered, a repeat is shown again.
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::None
    }

    /// RFC 8030 5.1 knows receipts; none of the services sends any.
    fn receipts(&self) -> bool {
        false
    }

    /// Whoever registers a subscription names its service: what one of them says, or leaves unsaid, opens no circuit
    /// for the rest. What is no subscription has none, and is never sent.
    fn service(&self, address: &Address) -> Option<channel::Service> {
        let to = Subscription::parse(&address.0, self.allow_internal).ok()?;
        let known = Service::at(to.authority()) == Service::Known;
        Some(channel::Service { name: classify::name(to.authority()), known, key: to.origin })
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        let (request, service) = match self.request(out) {
            Ok(made) => made,
            Err(why) => return Outcome::Refused { why },
        };
        match self.https.ask(request, &|| call.commit()).await {
            Ok(answer) => classify(&answer, service, self.clock.now()),
            Err(fault) => unanswered(&fault, service),
        }
    }
}

/// A name that leads inside is refused for good where anybody may have made it. Those of the known services do not
/// lead there but by a name server of ours that goes wrong, which is no reason to lose a message.
fn unanswered(fault: &Fault, service: Service) -> Outcome {
    match (fault, service) {
        (Fault::Internal, Service::Other) => {
            let said = "its host has no addresses but internal ones";
            Outcome::Refused { why: Why::said(WhyCode::InternalEndpoint, said) }
        }
        (Fault::Internal, Service::Known) => {
            let said = "the push service's name leads to internal addresses: look at this machine's name server";
            Outcome::NotAccepted { retry_after: None, why: Why::said(WhyCode::Unreachable, said) }
        }
        (Fault::LeaseLost | Fault::NotTaken { .. } | Fault::Unknown { .. }, _) => fault.outcome(),
    }
}

impl std::fmt::Debug for WebPushChannel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("WebPushChannel(…)")
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::outcome::OutcomeKind;

    use super::*;

    #[test]
    fn only_what_anybody_may_have_named_is_refused_for_leading_inside() {
        let told = |fault, service| {
            let outcome = unanswered(&fault, service);
            (outcome.kind(), outcome.why().code)
        };
        let unreachable = Fault::NotTaken { code: WhyCode::Unreachable, detail: None };
        for (fault, service, expected) in [
            (Fault::Internal, Service::Other, (OutcomeKind::Refused, WhyCode::InternalEndpoint)),
            (Fault::Internal, Service::Known, (OutcomeKind::NotAccepted, WhyCode::Unreachable)),
            (unreachable.clone(), Service::Other, (OutcomeKind::NotAccepted, WhyCode::Unreachable)),
            (unreachable, Service::Known, (OutcomeKind::NotAccepted, WhyCode::Unreachable)),
            (Fault::LeaseLost, Service::Other, (OutcomeKind::NotAccepted, WhyCode::LeaseLost)),
        ] {
            assert_eq!(told(fault.clone(), service), expected, "{fault:?} {service:?}");
        }
    }

    #[test]
    fn the_time_to_live_is_what_is_left() {
        let now = UnixMs(1_700_000_000_000);
        for (left, seconds) in [(60_000, 60), (59_001, 60), (1, 1), (0, 0), (i64::MAX, 28 * 24 * 3600)] {
            assert_eq!(ttl(UnixMs(now.0.saturating_add(left)), now), seconds, "{left}");
        }
        assert_eq!(ttl(UnixMs(now.0 - 1), now), 0);
    }
}
