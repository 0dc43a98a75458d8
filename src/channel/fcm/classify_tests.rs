//! The table: answer to outcome. Bodies as Google documents them, or as others have met them.

use belfry_domain::device::{Standing, TokenFault};
use belfry_domain::outcome::OutcomeKind as K;
use belfry_domain::{UnixMs, WhyCode as W};

use super::*;

const FCM: &str = "google.firebase.fcm.v1.FcmError";
const APNS: &str = "google.firebase.fcm.v1.ApnsError";

/// `google.rpc.Status` with these details, each a type and its members.
fn error(status: u16, word: &str, details: &[(&str, &str)]) -> String {
    let details: Vec<String> =
        details.iter().map(|(kind, rest)| format!(r#"{{"@type":"type.googleapis.com/{kind}",{rest}}}"#)).collect();
    format!(
        r#"{{"error":{{"code":{status},"message":"a secret in words","status":"{word}","details":[{}]}}}}"#,
        details.join(",")
    )
}

fn fcm(status: u16, word: &str, code: &str) -> String {
    error(status, word, &[(FCM, &format!(r#""errorCode":"{code}""#))])
}

fn of(status: u16, body: &str) -> Outcome {
    classify(&Told { status, body: Some(body.as_bytes()), retry_after: None })
}

fn short(outcome: &Outcome) -> (K, W) {
    (outcome.kind(), outcome.why().code)
}

#[test]
fn every_code_of_fcm() {
    for (status, word, code, kind, why) in [
        (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", K::Refused, W::ContentRefused),
        (404, "NOT_FOUND", "UNREGISTERED", K::RecipientGone, W::NoSuchRecipient),
        (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", K::Refused, W::WrongApp),
        (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", K::Throttled, W::RateLimited),
        (503, "UNAVAILABLE", "UNAVAILABLE", K::Unknown, W::ProviderFailed),
        (500, "INTERNAL", "INTERNAL", K::Unknown, W::ProviderFailed),
        (401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", K::Refused, W::ThirdPartyRefused),
        (400, "FAILED_PRECONDITION", "UNSPECIFIED_ERROR", K::NotAccepted, W::Unrecognised),
        (403, "PERMISSION_DENIED", "UNSPECIFIED_ERROR", K::Throttled, W::SetupRefused),
        (418, "ODD", "BRAND_NEW", K::NotAccepted, W::Unrecognised),
        // The detail decides, whatever the status is called.
        (410, "GONE", "UNREGISTERED", K::RecipientGone, W::NoSuchRecipient),
        (400, "INVALID_ARGUMENT", "SENDER_ID_MISMATCH", K::Refused, W::WrongApp),
        // But a failure of theirs, or a success, with a refusal inside is neither.
        (500, "INTERNAL", "UNREGISTERED", K::Unknown, W::ProviderFailed),
        (200, "OK", "UNREGISTERED", K::Unknown, W::Unrecognised),
        (204, "OK", "UNREGISTERED", K::Unknown, W::Unrecognised),
        (302, "FOUND", "UNREGISTERED", K::NotAccepted, W::Unrecognised),
    ] {
        let outcome = of(status, &fcm(status, word, code));
        assert_eq!(short(&outcome), (kind, why), "{status} {word} {code}: {outcome:?}");
    }
}

#[test]
fn without_a_code_of_fcm_the_status_is_left() {
    for (status, word, kind, why) in [
        (400, "INVALID_ARGUMENT", K::Refused, W::ContentRefused),
        (400, "FAILED_PRECONDITION", K::NotAccepted, W::Unrecognised),
        (401, "UNAUTHENTICATED", K::Throttled, W::CredentialRefused),
        (403, "PERMISSION_DENIED", K::Throttled, W::SetupRefused),
        (404, "NOT_FOUND", K::Throttled, W::SetupRefused),
        (413, "", K::Refused, W::TooLarge),
        (429, "RESOURCE_EXHAUSTED", K::Throttled, W::RateLimited),
        (429, "", K::Throttled, W::RateLimited),
        (403, "RESOURCE_EXHAUSTED", K::Throttled, W::RateLimited),
        (408, "", K::NotAccepted, W::Unrecognised),
        (302, "", K::NotAccepted, W::Unrecognised),
        (500, "INTERNAL", K::Unknown, W::ProviderFailed),
        (502, "", K::Unknown, W::ProviderFailed),
        (503, "UNAVAILABLE", K::Unknown, W::ProviderFailed),
        (504, "DEADLINE_EXCEEDED", K::Unknown, W::ProviderFailed),
        (200, "", K::Unknown, W::Unrecognised),
        (202, "", K::Unknown, W::Unrecognised),
    ] {
        let outcome = of(status, &error(status, word, &[]));
        assert_eq!(short(&outcome), (kind, why), "{status} {word}: {outcome:?}");
    }
}

#[test]
fn bodies_that_are_not_fcms() {
    for body in
        ["", "{", "[]", "null", "1", "<html>Error 404</html>", r#"{"error":"x"}"#, r#"{"error":{"details":{}}}"#]
    {
        for (status, kind, why) in [
            (200, K::Unknown, W::Unrecognised),
            (400, K::NotAccepted, W::Unrecognised),
            (401, K::Throttled, W::CredentialRefused),
            (404, K::Throttled, W::SetupRefused),
            (413, K::Refused, W::TooLarge),
            (429, K::Throttled, W::RateLimited),
            (500, K::Unknown, W::ProviderFailed),
        ] {
            assert_eq!(short(&of(status, body)), (kind, why), "{status} {body}");
        }
    }
}

#[test]
fn an_answer_that_broke_off_decides_about_no_token_and_no_credential() {
    for (status, kind, why) in [
        (200, K::Unknown, W::CutAfter),
        (400, K::NotAccepted, W::Unrecognised),
        (401, K::NotAccepted, W::Unrecognised),
        (404, K::NotAccepted, W::Unrecognised),
        (429, K::Throttled, W::RateLimited),
        (500, K::Unknown, W::CutAfter),
        (503, K::Unknown, W::CutAfter),
    ] {
        let told = Told { status, body: None, retry_after: None };
        assert_eq!(short(&classify(&told)), (kind, why), "{status}");
        assert!(!wants_new_token(&told));
    }
}

#[test]
fn case_50_only_a_named_message_is_accepted_and_never_delivered() {
    let accepted = of(200, r#"{"name":"projects/shop/messages/0:1500415314455276%31bd1c9631bd1c96"}"#);
    let id = "0:1500415314455276%31bd1c9631bd1c96".to_owned();
    assert_eq!(accepted, Outcome::Accepted { provider_ref: Some(id), why: Why::new(W::Ok) });
    let spaced = r#"{"name":"projects/shop/messages/a b"}"#;
    let long = format!(r#"{{"name":"projects/shop/messages/{}"}}"#, "x".repeat(201));
    for odd in
        [spaced, &long, r#"{"name":""}"#, r#"{"name":"projects/shop/messages/"}"#, r#"{"name":7}"#, r#"{"name":"x"}"#]
    {
        assert_eq!(short(&of(200, odd)), (K::Unknown, W::Unrecognised), "{odd}");
    }
    for status in (100..600).filter(|status| *status != 200) {
        let outcome = of(status, r#"{"name":"projects/shop/messages/0:1"}"#);
        assert_ne!(outcome.kind(), K::Accepted, "{status}");
    }
}

#[test]
fn case_38_a_404_is_a_dead_token_only_where_the_details_say_so() {
    let gone = of(404, &fcm(404, "NOT_FOUND", "UNREGISTERED"));
    assert_eq!(TokenFault::of(&gone), Some(TokenFault::Unregistered));
    assert_eq!(gone.why().answer.as_deref(), Some("404 NOT_FOUND UNREGISTERED"));
    let other = of(404, &error(404, "NOT_FOUND", &[]));
    assert!(matches!(other, Outcome::Throttled { scope: ThrottleScope::Credential, .. }), "{other:?}");
    assert_eq!(TokenFault::of(&other), None);
    assert_eq!(other.why().answer.as_deref(), Some("the project or the url: 404 NOT_FOUND"));
    // Said by another type than FCM's own.
    let alike = of(404, &error(404, "NOT_FOUND", &[("google.rpc.ErrorInfo", r#""errorCode":"UNREGISTERED""#)]));
    assert_eq!(TokenFault::of(&alike), None);
}

#[test]
fn case_41_apples_refusal_is_not_our_login() {
    let reason = (APNS, r#""statusCode":403,"reason":"InvalidProviderToken""#);
    let body = error(401, "UNAUTHENTICATED", &[(FCM, r#""errorCode":"THIRD_PARTY_AUTH_ERROR""#), reason]);
    let told = Told { status: 401, body: Some(body.as_bytes()), retry_after: None };
    assert!(!wants_new_token(&told));
    let outcome = classify(&told);
    assert_eq!((short(&outcome), TokenFault::of(&outcome)), ((K::Refused, W::ThirdPartyRefused), None));
    assert_eq!(
        outcome.why().answer.as_deref(),
        Some("the project's key for APNs or web push: 401 UNAUTHENTICATED THIRD_PARTY_AUTH_ERROR InvalidProviderToken")
    );
    let ours = error(401, "UNAUTHENTICATED", &[("google.rpc.ErrorInfo", r#""reason":"ACCESS_TOKEN_EXPIRED""#)]);
    assert!(wants_new_token(&Told { status: 401, body: Some(ours.as_bytes()), retry_after: None }));
}

#[test]
fn case_43_a_429_waits_as_long_as_it_says_for_whom_it_names() {
    let quota = |subjects: &[&str]| {
        let violations: Vec<String> = subjects.iter().map(|one| format!(r#"{{"subject":"{one}"}}"#)).collect();
        let violations = format!(r#""violations":[{}]"#, violations.join(","));
        let details = [(FCM, r#""errorCode":"QUOTA_EXCEEDED""#), ("google.rpc.QuotaFailure", violations.as_str())];
        error(429, "RESOURCE_EXHAUSTED", &details)
    };
    for (subjects, scope, said) in [
        (&["device:secret"][..], ThrottleScope::Recipient, " quota of the device"),
        (&["project:42"], ThrottleScope::Provider, " quota of the project"),
        (&["topic:news"], ThrottleScope::Provider, " quota of the topic"),
        (&["device:1", "project:42"], ThrottleScope::Provider, " quota of the device quota of the project"),
        (&["what"], ThrottleScope::Provider, " another quota"),
        (&[], ThrottleScope::Provider, ""),
    ] {
        for (asked, after) in [(Some(120), 120), (Some(0), 0), (None, 60), (Some(315_360_000), 315_360_000)] {
            let retry_after = asked.map(Duration::from_secs);
            let outcome = classify(&Told { status: 429, body: Some(quota(subjects).as_bytes()), retry_after });
            let said = format!("429 RESOURCE_EXHAUSTED QUOTA_EXCEEDED{said}");
            let why = Why::said(W::RateLimited, said);
            assert_eq!(outcome, Outcome::Throttled { after: Duration::from_secs(after), scope, why }, "{subjects:?}");
        }
    }
}

#[test]
fn apples_limit_is_one_devices() {
    let code = (FCM, r#""errorCode":"QUOTA_EXCEEDED""#);
    let apple = (APNS, r#""statusCode":429,"reason":"TooManyRequests""#);
    let outcome = of(429, &error(429, "RESOURCE_EXHAUSTED", &[code, apple]));
    let why = Why::said(W::RateLimited, "429 RESOURCE_EXHAUSTED QUOTA_EXCEEDED TooManyRequests");
    assert_eq!(outcome, Outcome::Throttled { after: AFTER_429, scope: ThrottleScope::Recipient, why });
}

#[test]
fn an_invalid_argument_never_drops_a_token() {
    let coded = (FCM, r#""errorCode":"INVALID_ARGUMENT""#);
    let field = |name: &str| format!(r#""fieldViolations":[{{"field":"{name}","description":"a secret"}}]"#);
    let apple = |reason: &str| format!(r#""statusCode":400,"reason":"{reason}""#);
    let bad_request = "google.rpc.BadRequest";
    for (detail, code, said) in [
        ((bad_request, field("message.token")), W::BadToken, "message.token"),
        ((bad_request, field("message.data[0].value")), W::ContentRefused, "message.data"),
        ((bad_request, field("message")), W::ContentRefused, "message"),
        ((APNS, apple("BadDeviceToken")), W::BadToken, "BadDeviceToken"),
        ((APNS, apple("Unregistered")), W::BadToken, "Unregistered"),
        ((APNS, apple("PayloadTooLarge")), W::ContentRefused, "PayloadTooLarge"),
    ] {
        let outcome = of(400, &error(400, "INVALID_ARGUMENT", &[coded, (detail.0, &detail.1)]));
        assert_eq!(outcome, Outcome::Refused { why: Why::said(code, format!("400 INVALID_ARGUMENT {said}")) });
        let standing = TokenFault::of(&outcome).map(|fault| Standing::after(fault, UnixMs(7)));
        assert!(!matches!(standing, Some(Standing::Dead { .. })), "{outcome:?}");
    }
}

#[test]
fn nothing_but_known_words_is_told() {
    let details = [
        (FCM, r#""errorCode":"a secret""#),
        ("google.rpc.ErrorInfo", r#""reason":"a secret","metadata":{"a":"secret"}"#),
        (APNS, r#""reason":"a secret""#),
        ("google.rpc.BadRequest", r#""fieldViolations":[{"field":"a secret"},{"field":"message.data[a secret]"}]"#),
        ("google.rpc.QuotaFailure", r#""violations":[{"subject":"device:a secret","description":"a secret"}]"#),
    ];
    for status in [200, 302, 400, 401, 403, 404, 413, 418, 429, 500, 503] {
        let outcome = of(status, &error(status, "a secret", &details));
        assert!(!format!("{outcome:?}").contains("secret"), "{outcome:?}");
        let answer = outcome.why().answer.clone().unwrap();
        assert!(answer.contains(&status.to_string()) && answer.len() <= 200, "{answer}");
    }
}

#[test]
fn many_details_make_no_long_answer() {
    let field = r#"{"field":"message.android.notification.x"},{"field":"message.apns"},{"field":"message.webpush"}"#;
    let fields = format!(r#""fieldViolations":[{}]"#, [field; 500].join(","));
    let outcome = of(400, &error(400, "INVALID_ARGUMENT", &[("google.rpc.BadRequest", &fields)]));
    let said = "400 INVALID_ARGUMENT message.android.notification message.apns message.webpush";
    assert_eq!(outcome.why().answer.as_deref(), Some(said));
}
