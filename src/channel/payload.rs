//! What goes to a device: the rendered payload and, in one more member, which delivery it is and by what
//! the device may say that it was seen.

use std::collections::BTreeMap;

use belfry_domain::DeliveryId;
use serde::Serialize;
use serde::de::IgnoredAny;

/// The member that is ours.
const OWN: &str = "belfry";

/// The payload cannot carry our member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PayloadProblem {
    #[error("the payload is no JSON object")]
    NotAnObject,
    #[error("the payload has a member named belfry, which is kept for the delivery's id")]
    OwnMemberTaken,
}

#[derive(Serialize)]
struct Own<'a> {
    id: DeliveryId,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<&'a str>,
}

/// `payload` with one more member at its end; its own bytes stay as they are, so that what is not
/// ASCII takes the room of its UTF-8 and no more.
pub(super) fn with_own(payload: &str, id: DeliveryId, seen: Option<&str>) -> Result<String, PayloadProblem> {
    let members: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(payload).map_err(|_| PayloadProblem::NotAnObject)?;
    if members.contains_key(OWN) {
        return Err(PayloadProblem::OwnMemberTaken);
    }
    let open = payload.trim().strip_suffix('}').ok_or(PayloadProblem::NotAnObject)?;
    let own = serde_json::to_string(&Own { id, seen }).map_err(|_| PayloadProblem::NotAnObject)?;
    let comma = if members.is_empty() { "" } else { "," };
    Ok(format!("{open}{comma}\"{OWN}\":{own}}}"))
}

#[cfg(test)]
mod tests {
    use belfry_domain::NotificationId;

    use super::*;

    fn delivery() -> DeliveryId {
        DeliveryId::of(NotificationId::http("default", "live", "main", "order-42"), "web_push", "dev_1")
    }

    #[test]
    fn one_more_member_at_the_end() {
        let id = delivery();
        let own = format!(r#""belfry":{{"id":"{id}","seen":"s.t"}}"#);
        for (payload, expected) in [
            ("{}", format!("{{{own}}}")),
            (" { }\n", format!("{{ {own}}}")),
            (r#"{"title":"}"}"#, format!(r#"{{"title":"}}",{own}}}"#)),
            ("{\"a\": {}\n}", format!("{{\"a\": {{}}\n,{own}}}")),
            (r#"{"a":{"belfry":1}}"#, format!(r#"{{"a":{{"belfry":1}},{own}}}"#)),
        ] {
            let made = with_own(payload, id, Some("s.t")).unwrap();
            assert_eq!(made, expected);
            let read: serde_json::Value = serde_json::from_str(&made).unwrap();
            assert_eq!(read["belfry"]["id"], id.to_string());
        }
        assert_eq!(with_own("{}", id, None).unwrap(), format!(r#"{{"belfry":{{"id":"{id}"}}}}"#));
    }

    #[test]
    fn case_110_the_payload_stays_utf_8() {
        let payload = r#"{"title":"طلبك في الطريق","body":"您的订单已发货 🎉"}"#;
        let made = with_own(payload, delivery(), None).unwrap();
        assert!(made.starts_with(payload.strip_suffix('}').unwrap()));
        assert!(!made.contains("\\u"));
    }

    #[test]
    fn what_cannot_carry_it() {
        for payload in ["", "[]", "1", "{", "}", "{}x", "{\"a\":1,}", "\"{}\""] {
            assert_eq!(with_own(payload, delivery(), None), Err(PayloadProblem::NotAnObject), "{payload}");
        }
        for payload in [r#"{"belfry":1}"#, r#"{"\u0062elfry":1}"#] {
            assert_eq!(with_own(payload, delivery(), None), Err(PayloadProblem::OwnMemberTaken), "{payload}");
        }
    }
}
