//! The words of an answer that may be told: a closed set. An answer quotes what was sent, the token
//! and the caller's own text included.

/// Status, codes and reasons. What is not here is left out.
const KNOWN: [&str; 42] = [
    // google.rpc.Code
    "ABORTED",
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    // google.firebase.fcm.v1.FcmError
    "QUOTA_EXCEEDED",
    "SENDER_ID_MISMATCH",
    "THIRD_PARTY_AUTH_ERROR",
    "UNREGISTERED",
    "UNSPECIFIED_ERROR",
    // google.rpc.ErrorInfo
    "ACCESS_TOKEN_EXPIRED",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
    "ACCESS_TOKEN_TYPE_UNSUPPORTED",
    "ACCOUNT_STATE_INVALID",
    "BILLING_DISABLED",
    "CONSUMER_INVALID",
    "CONSUMER_SUSPENDED",
    "CREDENTIALS_MISSING",
    "IAM_PERMISSION_DENIED",
    "RATE_LIMIT_EXCEEDED",
    "SERVICE_DISABLED",
    "USER_PROJECT_DENIED",
    // google.firebase.fcm.v1.ApnsError: Apple's own
    "BadDeviceToken",
    "BadEnvironmentKeyInToken",
    "BadTopic",
    "DeviceTokenNotForTopic",
    "ExpiredProviderToken",
    "ExpiredToken",
    "InvalidProviderToken",
    "MissingProviderToken",
    "PayloadTooLarge",
    "TooManyRequests",
    "TopicDisallowed",
    "Unregistered",
];

/// Fields that a person can look for; the caller's own keys come after them.
const FIELDS: [&str; 13] = [
    "message.android.data",
    "message.android.notification",
    "message.android.ttl",
    "message.android",
    "message.apns",
    "message.data",
    "message.fcm_options",
    "message.fid",
    "message.notification",
    "message.token",
    "message.webpush",
    "message",
    "validate_only",
];

/// OAuth 2.0 (RFC 6749, 5.2).
const GRANT: [&str; 7] = [
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
];

pub fn known(word: &str) -> Option<&'static str> {
    KNOWN.into_iter().find(|known| *known == word)
}

/// The part of a field's path that is the same for everybody.
pub fn field(path: &str) -> &'static str {
    let within =
        |field: &str| path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    FIELDS.into_iter().find(|field| within(field)).unwrap_or("another field")
}

/// Whether a quota's subject is one device.
pub fn is_device(subject: &str) -> bool {
    let kind = subject.split(':').next().unwrap_or_default();
    ["device", "token", "registration"].iter().any(|word| kind.to_ascii_lowercase().starts_with(word))
}

/// Whose quota, without naming them.
pub fn subject(subject: &str) -> &'static str {
    let kind = subject.split(':').next().unwrap_or_default().to_ascii_lowercase();
    match kind.as_str() {
        _ if is_device(subject) => "quota of the device",
        "project" => "quota of the project",
        "topic" => "quota of the topic",
        _ => "another quota",
    }
}

/// What a token endpoint says is wrong.
pub fn grant(word: &str) -> Option<&'static str> {
    GRANT.into_iter().find(|known| *known == word)
}

/// What FCM calls a message it took, short enough to keep: `0:1500415314455276%31bd1c9631bd1c96`.
pub fn is_message_id(id: &str) -> bool {
    (1..=200).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_callers_is_told() {
        for (path, told) in [
            ("message.token", "message.token"),
            ("message.data[3].value", "message.data"),
            ("message.data.secret", "message.data"),
            ("message.android.data[secret]", "message.android.data"),
            ("message.android.collapse_key", "message.android"),
            ("message.apns.payload.aps", "message.apns"),
            ("message", "message"),
            ("messages", "another field"),
            ("secret", "another field"),
            ("", "another field"),
        ] {
            assert_eq!(field(path), told, "{path}");
        }
        assert_eq!((known("UNREGISTERED"), known("secret"), grant("invalid_grant"), grant("secret")), {
            (Some("UNREGISTERED"), None, Some("invalid_grant"), None)
        });
    }

    #[test]
    fn whose_quota() {
        for (named, told, device) in [
            ("project:42", "quota of the project", false),
            ("device:secret", "quota of the device", true),
            ("Device message rate", "quota of the device", true),
            ("topic:news", "quota of the topic", false),
            ("clientip:192.0.2.1", "another quota", false),
            ("", "another quota", false),
        ] {
            assert_eq!((subject(named), is_device(named)), (told, device), "{named}");
        }
    }
}
