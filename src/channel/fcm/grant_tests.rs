use belfry_domain::WhyCode as W;
use belfry_domain::outcome::OutcomeKind as K;
use http::StatusCode;
use http::header::RETRY_AFTER;
use secrecy::ExposeSecret as _;

use super::*;

/// 2023-11-14T22:13:20Z.
const NOW: UnixMs = UnixMs(1_700_000_000_000);

fn answer(status: u16, body: &str) -> Answer {
    let body = Some(Bytes::copy_from_slice(body.as_bytes()));
    Answer { status: StatusCode::from_u16(status).unwrap(), headers: HeaderMap::new(), body }
}

fn refused_with(answer: &Answer) -> (K, W) {
    let Err(outcome) = read(answer, NOW) else { panic!("granted") };
    (outcome.kind(), outcome.why().code)
}

#[test]
fn a_token_and_its_life() {
    for (body, lives) in [
        (r#"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer"}"#, 3599),
        (r#"{"access_token":"ya29.x","token_type":"bearer"}"#, 3600),
        (r#"{"access_token":"ya29.x","expires_in":99999999,"token_type":"Bearer","scope":"x"}"#, 86400),
    ] {
        let granted = read(&answer(200, body), NOW).ok().unwrap();
        assert_eq!((granted.token.expose_secret(), granted.lives), ("ya29.x", Duration::from_secs(lives)));
    }
    for odd in ["", "{}", r#"{"id_token":"x"}"#, r#"{"access_token":"x","token_type":"MAC"}"#, "<html>"] {
        assert_eq!(refused_with(&answer(200, odd)), (K::NotAccepted, W::TryLater), "{odd}");
    }
    assert_eq!(refused_with(&Answer { body: None, ..answer(200, "") }), (K::NotAccepted, W::TryLater));
}

#[test]
fn refusals() {
    for (status, body, kind, code) in [
        (400, r#"{"error":"invalid_grant","error_description":"a secret"}"#, K::Throttled, W::CredentialRefused),
        (401, r#"{"error":"invalid_client"}"#, K::Throttled, W::CredentialRefused),
        (403, "<html>", K::Throttled, W::CredentialRefused),
        (404, "", K::Throttled, W::CredentialRefused),
        (302, "", K::NotAccepted, W::TryLater),
        (408, "", K::NotAccepted, W::TryLater),
        (429, "", K::NotAccepted, W::TryLater),
        (500, r#"{"error":"internal_failure"}"#, K::NotAccepted, W::TryLater),
        (503, "", K::NotAccepted, W::TryLater),
    ] {
        assert_eq!(refused_with(&answer(status, body)), (kind, code), "{status} {body}");
    }
    let Err(outcome) = read(&answer(400, r#"{"error":"invalid_grant","error_description":"a secret"}"#), NOW) else {
        panic!("granted")
    };
    let why = Why::said(W::CredentialRefused, "token endpoint: 400 invalid_grant");
    assert_eq!(outcome, Outcome::Throttled { after: AFTER_REFUSED, scope: ThrottleScope::Credential, why });
}

#[test]
fn a_grant_refused_by_a_server_of_another_time_is_our_clock() {
    for (date, code) in [
        ("Tue, 14 Nov 2023 22:13:20 GMT", W::CredentialRefused),
        ("Tue, 14 Nov 2023 22:14:20 GMT", W::CredentialRefused),
        ("Tue, 14 Nov 2023 22:14:21 GMT", W::ClockSkew),
        ("Tue, 14 Nov 2023 22:12:19 GMT", W::ClockSkew),
        ("yesterday", W::CredentialRefused),
    ] {
        let mut answer = answer(400, r#"{"error":"invalid_grant"}"#);
        answer.headers.insert(DATE, date.parse().unwrap());
        assert_eq!(refused_with(&answer), (K::Throttled, code), "{date}");
        answer.body = Some(Bytes::from_static(br#"{"error":"invalid_client"}"#));
        assert_eq!(refused_with(&answer), (K::Throttled, W::CredentialRefused), "{date}");
    }
}

#[test]
fn the_wait_that_is_asked_for_is_passed_on() {
    let mut answer = answer(503, "");
    answer.headers.insert(RETRY_AFTER, "120".parse().unwrap());
    let Err(Outcome::NotAccepted { retry_after, .. }) = read(&answer, NOW) else { panic!("something else") };
    assert_eq!(retry_after, Some(Duration::from_secs(120)));
}

#[test]
fn the_request_is_a_form() {
    let request = request("https://oauth2.googleapis.com/token", "aa.bb-_.cc").unwrap();
    assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/token"));
    assert_eq!(request.headers()[CONTENT_TYPE], "application/x-www-form-urlencoded");
    let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=aa.bb-_.cc";
    assert_eq!(request.body(), form);
}
