//! `messages:send`: who may, what may be sent, to whom.

use serde_json::{Map, Value, json};

use super::serve::{Asked, Body, Reply};
use super::{Act, Effect, PROJECT, Shared, error, json_reply, schema};

/// Keys and values of notification and data together, in bytes.
const LARGEST: usize = 4096;

impl Shared {
    pub(super) async fn send(&self, project: &str, asked: &Asked) -> Reply {
        self.seen.send_modify(|seen| seen.sends += 1);
        if let Some(refused) = self.unauthorised(project, asked) {
            return refused;
        }
        let request = match self.read(asked) {
            Ok(request) => request,
            Err(field) => {
                self.complain(field.clone());
                return invalid(&field);
            }
        };
        let message = &request["message"];
        let token = message["token"].as_str().unwrap_or_default().to_owned();
        let taken = Effect {
            token: token.clone(),
            body: String::from_utf8_lossy(&asked.body).into_owned(),
            message: message.clone(),
        };
        let only_checked = request["validate_only"] == true || request["validateOnly"] == true;
        let act = self.state.lock().unwrap().send_acts.get_mut(&token).and_then(|acts| acts.pop_front());
        if let Some(act) = act {
            let takes = !matches!(act, Act::Answer(..) | Act::AnswerOnRelease);
            if takes && !only_checked {
                self.seen.send_modify(|seen| seen.effects.push(taken.clone()));
            }
            if let Some(reply) = self.act(act).await {
                return reply;
            }
        }
        if !self.state.lock().unwrap().devices.contains(&token) {
            return invalid("message.token");
        }
        if only_checked {
            return json_reply(200, &json!({"name": format!("projects/{PROJECT}/messages/fake_message_id")}));
        }
        let mut number = 0;
        self.seen.send_modify(|seen| {
            seen.effects.push(taken);
            number = seen.effects.len();
        });
        json_reply(200, &json!({"name": format!("projects/{PROJECT}/messages/0:{number}%31bd1c96")}))
    }

    fn unauthorised(&self, project: &str, asked: &Asked) -> Option<Reply> {
        let refused = |status, name: &str, reason: &str| {
            let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason});
            let details = if reason.is_empty() { Vec::new() } else { vec![info] };
            let headers = vec![("content-type", "application/json; charset=UTF-8".to_owned())];
            Some(Reply { status, headers, body: Body::Whole(error(status, name, None, details)) })
        };
        let ends = asked.header("authorization").strip_prefix("Bearer ");
        let ends = ends.and_then(|token| self.state.lock().unwrap().access.get(token).copied());
        match (ends, project) {
            (Some(ends), PROJECT) if ends > self.now() => None,
            (Some(ends), "another-1") if ends > self.now() => {
                refused(403, "PERMISSION_DENIED", "IAM_PERMISSION_DENIED")
            }
            (Some(ends), _) if ends > self.now() => refused(404, "NOT_FOUND", ""),
            _ => refused(401, "UNAUTHENTICATED", "ACCESS_TOKEN_EXPIRED"),
        }
    }

    /// The request, or the field that is wrong.
    fn read(&self, asked: &Asked) -> Result<Value, String> {
        let kind = asked.header("content-type").to_ascii_lowercase();
        if !matches!(kind.as_str(), "application/json" | "application/json; charset=utf-8") {
            return Err(format!("content-type {kind}"));
        }
        let request = schema::read(&asked.body).map_err(|wrong| wrong.join(" "))?;
        let message = &request["message"];
        let targets = ["token", "fid", "topic", "condition"];
        if targets.iter().filter(|target| message.get(**target).is_some()).count() != 1 {
            return Err("message".to_owned());
        }
        if message.get("android").is_some() && message.get("android_v2").or_else(|| message.get("androidV2")).is_some()
        {
            return Err("message.android".to_owned());
        }
        for block in ["", "android", "webpush"] {
            let pairs = if block.is_empty() { &message["data"] } else { &message[block]["data"] };
            if let Some(key) = members(pairs).find(|(key, _)| is_reserved(key)).map(|(key, _)| key) {
                return Err(format!("message.{block}.data[{key}]"));
            }
        }
        headers(message)?;
        let weight = |part: &Value| -> usize {
            members(part).map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum()
        };
        if weight(&message["data"]) + weight(&message["notification"]) > LARGEST {
            return Err("message is too big".to_owned());
        }
        Ok(request)
    }
}

fn invalid(field: &str) -> Reply {
    let violations = json!([{"field": field, "description": "in words"}]);
    let detail = json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations});
    let body = error(400, "INVALID_ARGUMENT", Some("INVALID_ARGUMENT"), vec![detail]);
    let headers = vec![("content-type", "application/json; charset=UTF-8".to_owned())];
    Reply { status: 400, headers, body: Body::Whole(body) }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn is_reserved(key: &str) -> bool {
    matches!(key, "from" | "message_type") || key.starts_with("google") || key.starts_with("gcm")
}

/// What APNs and web push take as headers (Apple, "Sending notification requests to APNs"; RFC 8030).
fn headers(message: &Value) -> Result<(), String> {
    for (name, value) in members(&message["apns"]["headers"]).chain(members(&message["webpush"]["headers"])) {
        let text = value.as_str().unwrap_or_default();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let base64url = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let right = match name.to_ascii_lowercase().as_str() {
            "apns-collapse-id" => (1..=64).contains(&text.len()),
            "apns-expiration" | "ttl" => digits,
            "apns-priority" => matches!(text, "10" | "5" | "1"),
            "urgency" => matches!(text, "very-low" | "low" | "normal" | "high"),
            "topic" => (1..=32).contains(&text.len()) && base64url,
            _ => true,
        };
        if !right {
            return Err(format!("header {name}"));
        }
    }
    Ok(())
}
