//! What a request must be, and with which of Apple's reasons it is refused where it is not.

use std::collections::HashMap;

use http::{HeaderMap, Method, Request};
use serde_json::Value;

type Refusal = (u16, &'static str);

const KNOWN_HEADERS: [&str; 10] = [
    "authorization",
    "content-type",
    "content-length",
    "apns-id",
    "apns-collapse-id",
    "apns-expiration",
    "apns-priority",
    "apns-push-type",
    "apns-topic",
    "user-agent",
];

/// By push type, what the topic has after the bundle id.
const SUFFIXES: [(&str, &str); 9] = [
    ("alert", ""),
    ("background", ""),
    ("voip", ".voip"),
    ("complication", ".complication"),
    ("fileprovider", ".pushkit.fileprovider"),
    ("liveactivity", ".push-type.liveactivity"),
    ("location", ".location-query"),
    ("pushtotalk", ".voip-ptt"),
    ("mdm", ""),
];

pub fn token(request: &Request<h2::RecvStream>) -> Result<String, Refusal> {
    if request.method() != Method::POST {
        return Err((405, "MethodNotAllowed"));
    }
    let path = request.uri().path_and_query().map_or("", |path| path.as_str());
    let token = path.strip_prefix("/3/device/").ok_or((404, "BadPath"))?;
    if token.is_empty() {
        return Err((400, "MissingDeviceToken"));
    }
    if token.contains(['/', '?']) {
        return Err((404, "BadPath"));
    }
    if token.len() % 2 != 0 || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err((400, "BadDeviceToken"));
    }
    Ok(token.to_owned())
}

/// Each header once, and none that APNs does not know: what it ignores today it may refuse tomorrow.
pub fn headers(headers: &HeaderMap) -> Result<HashMap<String, String>, Refusal> {
    let mut found = HashMap::new();
    for (name, value) in headers {
        let value = value.to_str().map_err(|_| (400, "BadMessageId"))?.to_owned();
        if !KNOWN_HEADERS.contains(&name.as_str()) || found.insert(name.as_str().to_owned(), value).is_some() {
            return Err((400, "DuplicateHeaders"));
        }
    }
    Ok(found)
}

/// All but path and login.
pub fn check(headers: &HashMap<String, String>, body: &[u8], topics: &[String]) -> Result<(), Refusal> {
    let get = |name: &str| headers.get(name).map(String::as_str);
    let push_type = get("apns-push-type").ok_or((400, "InvalidPushType"))?;
    let known = SUFFIXES.iter().find(|(name, _)| *name == push_type);
    let (_, suffix) = known.ok_or((400, "InvalidPushType"))?;
    let topic = get("apns-topic").ok_or((400, "MissingTopic"))?;
    let app = topic.strip_suffix(suffix).ok_or((400, "BadTopic"))?;
    if !topics.iter().any(|topic| topic == app) {
        return Err((400, "TopicDisallowed"));
    }
    if get("apns-id").is_some_and(|id| !is_uuid(id)) {
        return Err((400, "BadMessageId"));
    }
    if get("apns-collapse-id").is_some_and(|id| id.is_empty() || id.len() > 64) {
        return Err((400, "BadCollapseId"));
    }
    if get("apns-expiration").is_some_and(|at| at.parse::<u32>().is_err()) {
        return Err((400, "BadExpirationDate"));
    }
    let priority = get("apns-priority").unwrap_or("10");
    if !["10", "5", "1"].contains(&priority) || push_type == "background" && priority != "5" {
        return Err((400, "BadPriority"));
    }
    if get("content-length").is_some_and(|length| length != body.len().to_string()) {
        return Err((400, "PayloadEmpty"));
    }
    payload(body, push_type)
}

fn payload(body: &[u8], push_type: &str) -> Result<(), Refusal> {
    if body.len() > if push_type == "voip" { 5120 } else { 4096 } {
        return Err((413, "PayloadTooLarge"));
    }
    let payload: Value = serde_json::from_slice(body).map_err(|_| (400, "PayloadEmpty"))?;
    let aps = payload.get("aps").and_then(Value::as_object).ok_or((400, "PayloadEmpty"))?;
    let shows = ["alert", "badge", "sound"].iter().any(|name| aps.contains_key(*name));
    if push_type == "background" && (shows || aps.get("content-available") != Some(&Value::from(1))) {
        return Err((400, "InvalidPushType"));
    }
    Ok(())
}

/// 8-4-4-4-12 lower-case hex digits.
fn is_uuid(id: &str) -> bool {
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}
