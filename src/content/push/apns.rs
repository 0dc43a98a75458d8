//! The body of an APNs request: `aps` as Apple reads it, and beside it what the app reads.

use super::super::json::Json;
use super::merge::merge;
use super::{Push, object, unless_empty};

/// Of `apns`, what is a header and no part of the body.
const NO_BODY: &str = "push_type";

pub fn body(push: &Push<'_>) -> Json {
    let own = Json::Object(push.members("apns").iter().filter(|(name, _)| name != NO_BODY).cloned().collect());
    let mut members = vec![("aps".to_owned(), aps(push))];
    members.extend(push.members("data").iter().cloned());
    for name in ["link", "image", "actions"] {
        members.extend(push.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    merge(Json::Object(members), &own)
}

/// Also the `aps` of a message that reaches an iPhone through FCM.
pub fn aps(push: &Push<'_>) -> Json {
    let get = |name: &str| push.get(name).cloned();
    let alert = object([
        ("title", get("title")),
        ("subtitle", get("subtitle")),
        ("body", get("body")),
        ("title-loc-key", get("title_key")),
        ("title-loc-args", get("title_args")),
        ("loc-key", get("body_key")),
        ("loc-args", get("body_args")),
    ]);
    let one = |yes: bool| yes.then(|| Json::Number("1".into()));
    object([
        ("alert", unless_empty(alert)),
        ("badge", get("badge")),
        ("sound", get("sound")),
        ("category", get("category")),
        ("thread-id", get("thread")),
        // An image is fetched and shown by the app's own extension, which only then is asked.
        ("mutable-content", one(push.get("image").is_some())),
        ("content-available", one(push.is_background())),
    ])
}
