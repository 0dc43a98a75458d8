//! FCM's message (HTTP v1) without its target.

use super::super::json::Json;
use super::merge::merge;
use super::{Push, apns, object, unless_empty};

pub fn message(push: &Push<'_>) -> Json {
    let get = |name: &str| push.get(name).cloned();
    let notification = object([("title", get("title")), ("body", get("body")), ("image", get("image"))]);
    let shown = !push.is_silent() && push.is_shown();
    let android = object([
        ("title_loc_key", get("title_key")),
        ("title_loc_args", get("title_args")),
        ("body_loc_key", get("body_key")),
        ("body_loc_args", get("body_args")),
        ("sound", get("sound")),
        ("notification_count", get("badge")),
    ]);
    let android = object([("notification", unless_empty(android).filter(|_| shown))]);
    let made = object([
        ("notification", unless_empty(notification).filter(|_| shown)),
        ("data", unless_empty(pairs(push))),
        ("android", unless_empty(android)),
        ("apns", unless_empty(object([("payload", unless_empty(object([("aps", unless_empty(rest_of_aps(push)))])))]))),
        ("webpush", web_link(push)),
    ]);
    match push.get("fcm") {
        Some(own) => merge(made, own),
        None => made,
    }
}

/// What Google's limit counts: what is shown and the app's pairs, without the platforms' settings.
pub fn counted(message: &Json) -> usize {
    ["notification", "data"].iter().filter_map(|name| message.get(name)).map(|part| part.to_string().len()).sum()
}

/// The app's own pairs, and what Android has no field for. Strings only.
fn pairs(push: &Push<'_>) -> Json {
    let mut pairs = push.members("data").to_vec();
    for name in ["link", "category", "thread"] {
        pairs.extend(push.text(name).map(|text| (name.to_owned(), Json::Text(text.to_owned()))));
    }
    pairs.extend(push.get("actions").map(|actions| ("actions".to_owned(), Json::Text(actions.to_string()))));
    Json::Object(pairs)
}

/// Title and body reach an iPhone as FCM's own notification; the rest has no other way.
fn rest_of_aps(push: &Push<'_>) -> Json {
    let Json::Object(aps) = apns::aps(push) else { return Json::Object(Vec::new()) };
    let localised = push.get("title_key").is_some() || push.get("body_key").is_some() || push.get("subtitle").is_some();
    Json::Object(aps.into_iter().filter(|(name, _)| name != "alert" || localised).collect())
}

/// Browsers open only what is secure.
fn web_link(push: &Push<'_>) -> Option<Json> {
    let link = push.text("link").filter(|link| link.starts_with("https://"))?;
    Some(object([("fcm_options", Some(object([("link", Some(Json::Text(link.to_owned())))])))]))
}
