//! What a service worker gets: the push as it was written, with the web's own part over it.

use super::super::json::Json;
use super::Push;
use super::merge::merge;

/// Settings of the call, and the other platforms' parts.
const NOT_SHOWN: [&str; 4] = ["apns", "fcm", "web_push", "urgency"];

pub fn shown(push: &Push<'_>) -> Json {
    let Json::Object(members) = push.0 else { return Json::Object(Vec::new()) };
    let shown = Json::Object(members.iter().filter(|(name, _)| !NOT_SHOWN.contains(&name.as_str())).cloned().collect());
    match push.get("web_push") {
        Some(own) => merge(shown, own),
        None => shown,
    }
}
