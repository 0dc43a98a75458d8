use belfry_domain::outcome::OutcomeKind as K;
use belfry_domain::outcome::WhyCode as W;
use bytes::Bytes;
use http::StatusCode;

use super::*;
use crate::channel::https::Fault;

const NOW: UnixMs = UnixMs(1_700_000_000_000);

fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
    Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect(),
        body: Some(Bytes::copy_from_slice(body.as_bytes())),
    }
}

fn by(service: Service, status: u16, body: &str) -> Outcome {
    classify(&answer(status, &[], body), service, NOW)
}

fn mozilla(message: &str) -> String {
    format!(
        "{{\"code\":401,\"errno\":109,\"error\":\"Unauthorized\",\"message\":\"{message}\",\
         \"more_info\":\"http://autopush.readthedocs.io/en/latest/http.html#error-codes\"}}"
    )
}

#[test]
fn every_status() {
    for (status, kind, code) in [
        (200, K::Accepted, W::Ok),
        (201, K::Accepted, W::Ok),
        (202, K::Accepted, W::Ok),
        (204, K::Unknown, W::Unrecognised),
        (206, K::Unknown, W::Unrecognised),
        (300, K::NotAccepted, W::Unrecognised),
        (301, K::NotAccepted, W::Unrecognised),
        (307, K::NotAccepted, W::Unrecognised),
        (308, K::NotAccepted, W::Unrecognised),
        (400, K::Refused, W::ContentRefused),
        (401, K::Throttled, W::CredentialRefused),
        (402, K::NotAccepted, W::Unrecognised),
        (403, K::Refused, W::WrongApp),
        (404, K::RecipientGone, W::NoSuchRecipient),
        (405, K::NotAccepted, W::Unrecognised),
        (406, K::NotAccepted, W::Unrecognised),
        (410, K::RecipientGone, W::NoSuchRecipient),
        (413, K::Refused, W::TooLarge),
        (415, K::NotAccepted, W::Unrecognised),
        (418, K::NotAccepted, W::Unrecognised),
        (429, K::Throttled, W::RateLimited),
        (500, K::Unknown, W::ProviderFailed),
        (502, K::Unknown, W::ProviderFailed),
        (503, K::NotAccepted, W::TryLater),
        (504, K::Unknown, W::ProviderFailed),
        (599, K::Unknown, W::ProviderFailed),
        (600, K::NotAccepted, W::Unrecognised),
    ] {
        let outcome = by(Service::Other, status, "");
        assert_eq!((outcome.kind(), outcome.why().code), (kind, code), "{status}");
        assert_eq!(outcome.why().answer, Some(status.to_string()));
    }
}

#[test]
fn case_50_accepted_is_no_more_than_that_and_the_location_is_not_kept() {
    let told = answer(201, &[("location", "https://push.example.com/m/secret")], "");
    let expected = Outcome::Accepted { provider_ref: None, why: Why::said(W::Ok, "201") };
    assert_eq!(classify(&told, Service::Known, NOW), expected);
    assert_eq!(classify(&Answer { body: None, ..told }, Service::Known, NOW), expected);
}

/// Each row: status, body word for word as a service writes it, and how it is told.
fn told(rows: &[(u16, &str, &str)], kind: K, code: W) {
    for (status, body, answer) in rows {
        let outcome = by(Service::Known, *status, body);
        assert_eq!((outcome.kind(), outcome.why()), (kind, &Why::said(code, *answer)), "{status} {body}");
    }
}

#[test]
fn a_key_that_is_not_the_subscriptions() {
    const GOOGLE: &str = "the VAPID credentials in the authorization header do not correspond to the credentials used \
        to create the subscriptions.\n";
    const GOOGLE_ONCE: &str =
        "the key in the authorization header does not correspond to the sender ID used to subscribe this user.";
    let mozilla = mozilla("VAPID public key mismatch");
    let rows = [
        (403, GOOGLE, "403: not the subscription's key"),
        (403, GOOGLE_ONCE, "403: not the subscription's sender"),
        (400, "UnauthorizedRegistration", "400: UnauthorizedRegistration"),
        (401, &mozilla, "401: VAPID public key mismatch"),
        (400, r#"{"reason":"VapidPkHashMismatch"}"#, "400: VapidPkHashMismatch"),
        (403, r#"{"reason":"VapidPkHashMismatch"}"#, "403: VapidPkHashMismatch"),
        (403, "https://push.example.com/w/secret is no good", "403"),
    ];
    told(&rows, K::Refused, W::WrongApp);
}

#[test]
fn a_token_whose_time_is_wrong() {
    let mozilla = ["ExpiredSignature", "The VAPID token expiration is too long", "Invalid VAPID expiry"].map(mozilla);
    let google = "exp claim MUST NOT be more than 24 hours from the time of the request\n";
    let rows = [
        (403, "token has expired\n", "403: the token has expired"),
        (403, google, "403: exp is too far ahead"),
        (401, &mozilla[0], "401: ExpiredSignature"),
        (401, &mozilla[1], "401: exp is too far ahead"),
        (401, &mozilla[2], "401: exp is not taken"),
    ];
    told(&rows, K::Throttled, W::ClockSkew);
}

#[test]
fn a_token_that_is_not_taken() {
    let mozilla = mozilla("Missing VAPID token");
    let rows = [
        (403, "invalid JWT provided\n", "403: the token is invalid"),
        (403, "invalid aud claim\n", "403: aud is not taken"),
        (403, "exp claim is missing\n", "403: exp is missing"),
        (403, "public key must be 65 bytes long\n", "403: the public key is not taken"),
        (403, "sender is not authenticated.\n", "403: not authenticated"),
        (401, &mozilla, "401: errno 109"),
        (403, r#"{"reason":"BadJwtToken"}"#, "403: BadJwtToken"),
        (400, r#"{"reason":"BadAuthorizationHeader"}"#, "400: BadAuthorizationHeader"),
        (400, r#"{"reason":"BadVapidPublicKey"}"#, "400: BadVapidPublicKey"),
        (401, "https://push.example.com/w/secret is no good", "401"),
    ];
    told(&rows, K::Throttled, W::CredentialRefused);
}

#[test]
fn a_request_that_is_not_taken() {
    let rows = [
        (400, r#"{"reason":"BadWebPushTopic"}"#, "400: BadWebPushTopic"),
        (400, r#"{"code":400,"errno":110}"#, "400: errno 110"),
        (400, "https://push.example.com/w/secret is no good", "400"),
    ];
    told(&rows, K::Refused, W::ContentRefused);
}

#[test]
fn words_count_only_where_a_request_was_refused() {
    assert_eq!(by(Service::Known, 410, "VapidPkHashMismatch").kind(), K::RecipientGone);
    assert_eq!(by(Service::Known, 500, "token has expired").kind(), K::Unknown);
    assert_eq!(by(Service::Known, 201, "token has expired").kind(), K::Accepted);
}

#[test]
fn every_word_is_found_and_closed() {
    for (said, word, about) in WORDS {
        assert_eq!(said, said.to_ascii_lowercase());
        assert_eq!(found(said.to_uppercase().as_bytes()), Some((word, about)), "{said}");
    }
    assert_eq!(found(b"\xff"), None);
}

fn scope(outcome: &Outcome) -> Option<ThrottleScope> {
    if let Outcome::Throttled { scope, .. } = outcome { Some(*scope) } else { None }
}

#[test]
fn one_service_stops_nobody_elses_push() {
    for status in [429, 503] {
        for service in [Service::Known, Service::Other] {
            let told = classify(&answer(status, &[("retry-after", "86400")], ""), service, NOW);
            assert_ne!(scope(&told), Some(ThrottleScope::Provider));
            assert_ne!(scope(&told), Some(ThrottleScope::Credential));
        }
    }
    for words in ["token has expired", "invalid JWT provided"] {
        assert_eq!(scope(&by(Service::Known, 403, words)), Some(ThrottleScope::Credential));
        assert_eq!(scope(&by(Service::Other, 403, words)), Some(ThrottleScope::Recipient));
    }
    // Without a word it may be about this subscription alone.
    assert_eq!(scope(&by(Service::Known, 401, "")), Some(ThrottleScope::Recipient));
}

#[test]
fn the_known_services() {
    for (host, called) in [
        ("fcm.googleapis.com", "fcm.googleapis.com"),
        ("updates.push.services.mozilla.com", "push.services.mozilla.com"),
        ("web.push.apple.com", "push.apple.com"),
        ("wns2-par02p.notify.windows.com", "notify.windows.com"),
    ] {
        assert_eq!((Service::at(host), name(host)), (Service::Known, called), "{host}");
    }
    for host in [
        "",
        "evil-fcm.googleapis.com",
        "fcm.googleapis.com.example.com",
        "push.services.mozilla.com.example",
        "evilpush.apple.com",
        "fcm.googleapis.com:81",
        "web.push.apple.com:8443",
        "notify.windows.com.evil.example",
        "127.0.0.1",
    ] {
        assert_eq!((Service::at(host), name(host)), (Service::Other, "another push service"), "{host}");
    }
}

#[test]
fn case_43_how_long_to_wait() {
    let after =
        |status, headers: &[(&'static str, &str)]| match classify(&answer(status, headers, ""), Service::Known, NOW) {
            Outcome::Throttled { after, .. } => Some(after),
            Outcome::NotAccepted { retry_after, .. } => retry_after,
            Outcome::Accepted { .. }
            | Outcome::Refused { .. }
            | Outcome::RecipientGone { .. }
            | Outcome::Unknown { .. } => None,
        };
    let secs = |count| Some(Duration::from_secs(count));
    assert_eq!(after(429, &[("retry-after", "120")]), secs(120));
    assert_eq!(after(429, &[("retry-after", "Tue, 14 Nov 2023 22:15:20 GMT")]), secs(120));
    assert_eq!(after(429, &[("retry-after", "Tue, 14 Nov 2023 22:00:00 GMT")]), secs(0));
    assert_eq!(after(429, &[("retry-after", "soon")]), secs(60));
    assert_eq!(after(429, &[]), secs(60));
    assert_eq!(after(503, &[("retry-after", "120")]), secs(120));
    assert_eq!(after(503, &[]), None);
}

#[test]
fn what_windows_says_in_headers() {
    let told = |status, word| {
        let outcome = classify(&answer(status, &[("x-wns-notificationstatus", word)], ""), Service::Known, NOW);
        (outcome.kind(), outcome.why().code)
    };
    assert_eq!(told(201, "received"), (K::Accepted, W::Ok));
    assert_eq!(told(200, "channelThrottled"), (K::Throttled, W::RateLimited));
    assert_eq!(told(201, "dropped"), (K::Refused, W::PolicyRefused));
    assert_eq!(told(406, "appthrottled"), (K::Throttled, W::RateLimited));
    assert_eq!(told(406, "dropped"), (K::NotAccepted, W::Unrecognised));
    let asked = answer(406, &[("x-wns-status", "appthrottled"), ("retry-after", "900")], "");
    let Outcome::Throttled { after, scope, .. } = classify(&asked, Service::Known, NOW) else {
        panic!("not throttled")
    };
    assert_eq!((after, scope), (Duration::from_secs(900), ThrottleScope::Recipient));
}

#[test]
fn calls_without_an_answer() {
    for (fault, kind, code) in [
        (Fault::LeaseLost, K::NotAccepted, W::LeaseLost),
        (Fault::NotTaken { code: W::TlsFailed, detail: Some("bad certificate".into()) }, K::NotAccepted, W::TlsFailed),
        (Fault::Unknown { code: W::TimedOutAfter }, K::Unknown, W::TimedOutAfter),
        (Fault::Unknown { code: W::CutAfter }, K::Unknown, W::CutAfter),
    ] {
        let outcome = fault.outcome();
        assert_eq!((outcome.kind(), outcome.why()), (kind, &Why::new(code)));
    }
}
