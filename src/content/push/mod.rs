//! A push as a caller or a template writes it, and what it becomes on each platform: the body for
//! APNs, FCM's message, what is encrypted for web push. Pure. The device's token, what collapses, and
//! how long it lives are the channel's to add.

mod apns;
mod check;
mod fcm;
mod merge;
mod web_push;

use belfry_domain::ChannelKind;

pub use check::{MEMBERS, Wrong, check, check_written};

use super::json::Json;
use crate::ports::message::{PushSettings, PushType, Urgency};

/// Largest body for APNs, in bytes of UTF-8 (Apple, "Generating a remote notification").
pub const MOST_APNS: usize = 4096;
/// The same for VoIP.
pub const MOST_VOIP: usize = 5120;
/// Largest notification and data for FCM, in bytes (Google, "About FCM messages").
pub const MOST_FCM: usize = 4096;
/// Largest text that is encrypted for web push, in bytes: what every service has to take (RFC 8291, 4).
pub const MOST_WEB_PUSH: usize = 3993;

/// What is added at the call, so that the device can tell deliveries apart and say that it saw one:
/// `,"belfry":{"id":"dlv_…","seen":"…"}`, or the same as two of FCM's pairs.
const ADDED: usize = 96;

/// A push for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub payload: String,
    pub settings: PushSettings,
}

/// It would be refused for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// What it comes to, in bytes.
    pub bytes: usize,
    pub most: usize,
}

/// What `push`, which has passed [`check`], becomes on `channel`.
///
/// # Errors
/// [`TooLarge`] for that platform.
pub fn made(push: &Json, channel: ChannelKind) -> Result<Made, TooLarge> {
    let push = Push(push);
    let settings = PushSettings { urgency: push.urgency(), push_type: push.push_type() };
    let (payload, counted, most) = match channel {
        ChannelKind::Fcm => {
            let message = fcm::message(&push);
            let counted = fcm::counted(&message);
            (message, counted, MOST_FCM)
        }
        ChannelKind::WebPush => {
            let shown = web_push::shown(&push);
            let bytes = shown.to_string().len();
            (shown, bytes, MOST_WEB_PUSH)
        }
        // The inbox and the rest have no platform of their own.
        ChannelKind::Apns
        | ChannelKind::Email
        | ChannelKind::Sms
        | ChannelKind::Webhook
        | ChannelKind::Chat
        | ChannelKind::Inbox => {
            let body = apns::body(&push);
            let bytes = body.to_string().len();
            (body, bytes, if settings.push_type == PushType::Voip { MOST_VOIP } else { MOST_APNS })
        }
    };
    let bytes = counted + ADDED;
    if bytes > most {
        return Err(TooLarge { bytes, most });
    }
    // Only APNs has types.
    let settings = match channel {
        ChannelKind::Apns => settings,
        _ => PushSettings { push_type: PushType::default(), ..settings },
    };
    Ok(Made { payload: payload.to_string(), settings })
}

/// A push that has passed [`check`].
struct Push<'a>(&'a Json);

impl<'a> Push<'a> {
    fn get(&self, name: &str) -> Option<&'a Json> {
        self.0.get(name)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name) {
            Some(Json::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn members(&self, name: &str) -> &'a [(String, Json)] {
        match self.get(name) {
            Some(Json::Object(members)) => members,
            _ => &[],
        }
    }

    fn is_silent(&self) -> bool {
        self.get("silent") == Some(&Json::Bool(true))
    }

    /// Whether a person sees or hears anything.
    fn is_shown(&self) -> bool {
        has_any(self.0, &SHOWN) || self.is_shown_by_a_platform()
    }

    /// By what stands in a platform's own part alone.
    fn is_shown_by_a_platform(&self) -> bool {
        let aps = self.get("apns").and_then(|apns| apns.get("aps"));
        let fcm = self.get("fcm");
        let android = fcm.and_then(|fcm| fcm.get("android")).and_then(|android| android.get("notification"));
        aps.is_some_and(|aps| has_any(aps, &["alert", "badge", "sound"]))
            || fcm.is_some_and(|fcm| fcm.get("notification").is_some())
            || android.is_some()
            || self.get("web_push").is_some_and(|web| web.get("title").is_some())
    }

    /// Named for APNs. A call and its like are urgent, and are nothing that is fetched in the background.
    fn named_type(&self) -> Option<PushType> {
        let Some(Json::Text(name)) = self.get("apns").and_then(|apns| apns.get("push_type")) else { return None };
        check::PUSH_TYPES.iter().find(|(known, _)| known == name).map(|(_, kind)| *kind)
    }

    fn is_background(&self) -> bool {
        let usual = self.is_silent() || !self.is_shown();
        self.named_type().map_or(usual, |named| named == PushType::Background)
    }

    fn urgency(&self) -> Urgency {
        match self.text("urgency") {
            Some("low") => Urgency::Low,
            Some("normal") => Urgency::Normal,
            Some(_) | None if self.is_background() => Urgency::Normal,
            Some(_) | None => Urgency::High,
        }
    }

    fn push_type(&self) -> PushType {
        let usual = if self.is_background() { PushType::Background } else { PushType::Alert };
        self.named_type().unwrap_or(usual)
    }
}

/// What a person sees or hears, of the parts that all platforms have.
const SHOWN: [&str; 7] = ["title", "subtitle", "body", "title_key", "body_key", "badge", "sound"];

fn has_any(json: &Json, names: &[&str]) -> bool {
    names.iter().any(|name| json.get(name).is_some())
}

/// An object of those members that there are.
fn object<'a>(members: impl IntoIterator<Item = (&'a str, Option<Json>)>) -> Json {
    Json::Object(members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// `None` where it has no members.
fn unless_empty(json: Json) -> Option<Json> {
    (json != Json::Object(Vec::new())).then_some(json)
}

#[cfg(test)]
mod tests;
