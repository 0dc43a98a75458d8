//! What a request to FCM may consist of: unknown fields, wrong types and repeated names are refused,
//! where Google itself is more patient.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Google's discovery document of `fcm` v1, the types that a request reaches. `@` another type, `{}` a
/// map, `[]` a list, `|` an enum. `tests/it/push/fcm_schema.rs` compares it with the document.
pub const SCHEMA: &str = "
AndroidBackgroundSyncMessage
AndroidConfig
  bandwidthConstrainedOk:boolean collapseKey:string data:{string} directBootOk:boolean
  fcmOptions:@AndroidFcmOptions notification:@AndroidNotification priority:NORMAL|HIGH
  restrictedPackageName:string restrictedSatelliteOk:boolean ttl:string/google-duration
AndroidConfigV2
  backgroundSync:@AndroidBackgroundSyncMessage bandwidthConstrainedOk:boolean collapseKey:string data:{string}
  directBootOk:boolean fcmOptions:@AndroidFcmOptions remoteNotification:@AndroidRemoteNotification
  restrictedPackageName:string restrictedSatelliteOk:boolean ttl:string/google-duration
AndroidFcmOptions
  analyticsLabel:string
AndroidNotification
  body:string bodyLocArgs:[string] bodyLocKey:string bypassProxyNotification:boolean channelId:string
  clickAction:string color:string defaultLightSettings:boolean defaultSound:boolean defaultVibrateTimings:boolean
  eventTime:string/google-datetime icon:string image:string lightSettings:@LightSettings localOnly:boolean
  notificationCount:integer/int32
  notificationPriority:PRIORITY_UNSPECIFIED|PRIORITY_MIN|PRIORITY_LOW|PRIORITY_DEFAULT|PRIORITY_HIGH|PRIORITY_MAX
  proxy:PROXY_UNSPECIFIED|ALLOW|DENY|IF_PRIORITY_LOWERED sound:string sticky:boolean tag:string ticker:string
  title:string titleLocArgs:[string] titleLocKey:string vibrateTimings:[string/google-duration]
  visibility:VISIBILITY_UNSPECIFIED|PRIVATE|PUBLIC|SECRET
AndroidNotificationV2
  body:string bodyLocArgs:[string] bodyLocKey:string channelId:string clickAction:string color:string
  defaultLightSettings:boolean defaultSound:boolean defaultVibrateTimings:boolean eventTime:string/google-datetime
  icon:string id:integer/int32 image:string lightSettings:@GoogleFirebaseFcmV1AndroidNotificationV2LightSettings
  localOnly:boolean notificationCount:integer/int32
  notificationPriority:PRIORITY_UNSPECIFIED|PRIORITY_MIN|PRIORITY_LOW|PRIORITY_DEFAULT|PRIORITY_HIGH|PRIORITY_MAX
  sound:string sticky:boolean tag:string ticker:string title:string titleLocArgs:[string] titleLocKey:string
  vibrateTimings:[string/google-duration] visibility:VISIBILITY_UNSPECIFIED|PRIVATE|PUBLIC|SECRET
AndroidRemoteNotification
  mutableContent:boolean notification:@AndroidNotificationV2 useAsV1DataMessage:boolean
ApnsConfig
  fcmOptions:@ApnsFcmOptions headers:{string} liveActivityToken:string payload:{any}
ApnsFcmOptions
  analyticsLabel:string image:string
Color
  alpha:number/float blue:number/float green:number/float red:number/float
FcmOptions
  analyticsLabel:string
GoogleFirebaseFcmV1AndroidNotificationV2LightSettings
  color:@Color lightOffDuration:string/google-duration lightOnDuration:string/google-duration
LightSettings
  color:@Color lightOffDuration:string/google-duration lightOnDuration:string/google-duration
Message
  android:@AndroidConfig androidV2:@AndroidConfigV2 apns:@ApnsConfig condition:string data:{string}
  fcmOptions:@FcmOptions fid:string name:string notification:@Notification token:string topic:string
  webpush:@WebpushConfig
Notification
  body:string image:string title:string
SendMessageRequest
  message:@Message validateOnly:boolean
WebpushConfig
  data:{string} fcmOptions:@WebpushFcmOptions headers:{string} notification:{any}
WebpushFcmOptions
  analyticsLabel:string link:string
";

/// A type's fields, each a name and a kind; `None` for no type of this name.
pub fn fields(of: &str) -> Option<Vec<(&'static str, &'static str)>> {
    let mut lines = SCHEMA.lines().skip_while(|line| *line != of);
    lines.next()?;
    let fields = lines.take_while(|line| line.starts_with(' ')).flat_map(str::split_whitespace);
    Some(fields.filter_map(|field| field.split_once(':')).collect())
}

/// The names of all types.
pub fn types() -> impl Iterator<Item = &'static str> {
    SCHEMA.lines().filter(|line| !line.is_empty() && !line.starts_with(' '))
}

/// The request, or the paths of what is wrong with it.
pub fn read(body: &[u8]) -> Result<Value, Vec<String>> {
    serde_json::from_slice::<NoRepeats>(body).map_err(|error| vec![error.to_string()])?;
    let request: Value = serde_json::from_slice(body).map_err(|error| vec![error.to_string()])?;
    let mut wrong = Vec::new();
    check("@SendMessageRequest", &request, "", &mut wrong);
    if wrong.is_empty() { Ok(request) } else { Err(wrong) }
}

fn check(kind: &str, value: &Value, path: &str, wrong: &mut Vec<String>) {
    if let Some(name) = kind.strip_prefix('@') {
        return object(name, value, path, wrong);
    }
    if let Some(inner) = kind.strip_prefix('{').and_then(|kind| kind.strip_suffix('}')) {
        let Some(members) = value.as_object() else { return wrong.push(path.to_owned()) };
        return members.iter().for_each(|(name, value)| check(inner, value, &format!("{path}[{name}]"), wrong));
    }
    if let Some(inner) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        let Some(list) = value.as_array() else { return wrong.push(path.to_owned()) };
        return list.iter().for_each(|value| check(inner, value, &format!("{path}[]"), wrong));
    }
    let right = match kind {
        "any" => true,
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number/float" => value.is_number(),
        "integer/int32" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "string/google-duration" => value.as_str().is_some_and(is_duration),
        "string/google-datetime" => value.as_str().is_some_and(|text| text.ends_with('Z') && text.contains('T')),
        // FCM takes `high` for `HIGH`.
        names => value.as_str().is_some_and(|text| names.split('|').any(|name| name.eq_ignore_ascii_case(text))),
    };
    if !right {
        wrong.push(path.to_owned());
    }
}

fn object(name: &str, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let known = fields(name).unwrap_or_else(|| panic!("no type {name}"));
    let Some(members) = value.as_object() else { return wrong.push(path.to_owned()) };
    let mut seen = HashSet::new();
    for (member, value) in members {
        let path = if path.is_empty() { member.clone() } else { format!("{path}.{member}") };
        let name = camel(member);
        match known.iter().find(|(field, _)| *field == name) {
            Some((_, kind)) if seen.insert(name) => check(kind, value, &path, wrong),
            Some(_) | None => wrong.push(path),
        }
    }
}

/// `fcm_options` is `fcmOptions`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |made, word| match word.split_at_checked(1) {
        Some((head, tail)) => made + &head.to_ascii_uppercase() + tail,
        None => made,
    })
}

/// `3.5s`, of at most four weeks.
fn is_duration(text: &str) -> bool {
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
    text.starts_with(|letter: char| letter.is_ascii_digit())
        && seconds.is_some_and(|seconds| (0.0..=2_419_200.0).contains(&seconds))
}

/// JSON in which no object has a name twice.
struct NoRepeats;

impl<'de> Deserialize<'de> for NoRepeats {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for NoRepeats {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON without repeated names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some((name, Self)) = map.next_entry::<String, Self>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format!("{name} twice")));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_wrong_or_there_twice_is_found() {
        for (body, wrong) in [
            (r#"{"message":{"x":1}}"#, "message.x"),
            (r#"{"message":{"data":{"a":1}}}"#, "message.data[a]"),
            (r#"{"message":{"android":{"priority":"URGENT"}}}"#, "message.android.priority"),
            (r#"{"message":{"android":{"ttl":"5"}}}"#, "message.android.ttl"),
            (r#"{"message":{"android":{"ttl":"2419201s"}}}"#, "message.android.ttl"),
            (r#"{"message":{"fcm_options":{},"fcmOptions":{}}}"#, "message.fcm_options"),
            (r#"{"message":{"android":{"notification":{"notification_count":1.5}}}}"#, {
                "message.android.notification.notification_count"
            }),
            (r#"{"validate_only":"yes"}"#, "validate_only"),
            (r#"{"message":{"token":"a","token":"b"}}"#, "token twice at line 1 column 36"),
        ] {
            assert_eq!(read(body.as_bytes()), Err(vec![wrong.to_owned()]), "{body}");
        }
        let good =
            r#"{"message":{"data":{"a":"1"},"android":{"ttl":"3.5s","priority":"high"},"apns":{"payload":{"n":1}}}}"#;
        assert!(read(good.as_bytes()).is_ok());
    }
}
