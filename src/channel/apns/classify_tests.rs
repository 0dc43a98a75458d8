use belfry_domain::outcome::OutcomeKind;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::*;
use crate::channel::https::Fault;

const TOKEN: &str = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0";

fn told(status: u16, body: &str) -> Told {
    let mut headers = HeaderMap::new();
    headers.insert("apns-id", "eabeae54-14a8-11e5-b60b-1697f925ec7b".parse().unwrap());
    answered(status, headers, Some(body))
}

fn answered(status: u16, headers: HeaderMap, body: Option<&str>) -> Told {
    let body = body.map(|body| Bytes::copy_from_slice(body.as_bytes()));
    let answer = Answer { status: StatusCode::from_u16(status).unwrap(), headers, body };
    Told::read(&answer, UnixMs(1_700_000_000_000), TOKEN)
}

fn refused(status: u16, reason: &str) -> Told {
    told(status, &format!(r#"{{"reason":"{reason}"}}"#))
}

/// An outcome in one line.
fn brief(outcome: &Outcome) -> String {
    let code = outcome.why().code.name();
    match outcome {
        Outcome::Throttled { after, scope, .. } => format!("throttled {} {}s {code}", scope.name(), after.as_secs()),
        other => format!("{} {code}", other.kind().name()),
    }
}

#[test]
fn every_reason_of_apples() {
    let rows = [
        (400, "BadCollapseId", "refused content_refused"),
        (400, "BadDeviceToken", "refused bad_token"),
        (400, "BadExpirationDate", "refused content_refused"),
        (400, "BadMessageId", "refused content_refused"),
        (400, "BadPriority", "refused content_refused"),
        (400, "BadTopic", "throttled credential 60s setup_refused"),
        (400, "DeviceTokenNotForTopic", "refused wrong_app"),
        (400, "DuplicateHeaders", "refused content_refused"),
        (400, "IdleTimeout", "not_accepted try_later"),
        (400, "InvalidPushType", "refused content_refused"),
        (400, "MissingDeviceToken", "refused content_refused"),
        (400, "MissingTopic", "throttled credential 60s setup_refused"),
        (400, "PayloadEmpty", "refused content_refused"),
        (400, "TopicDisallowed", "throttled credential 60s setup_refused"),
        (403, "BadCertificate", "throttled credential 60s credential_refused"),
        (403, "BadCertificateEnvironment", "throttled credential 60s setup_refused"),
        (403, "ExpiredProviderToken", "throttled credential 60s clock_skew"),
        (403, "Forbidden", "refused policy_refused"),
        (403, "InvalidProviderToken", "throttled credential 60s credential_refused"),
        (403, "MissingProviderToken", "throttled credential 60s credential_refused"),
        (403, "UnrelatedKeyIdInToken", "throttled credential 60s credential_refused"),
        (403, "BadEnvironmentKeyIdInToken", "throttled credential 60s setup_refused"),
        (403, "BadEnvironmentKeyInToken", "throttled credential 60s setup_refused"),
        (404, "BadPath", "throttled credential 60s setup_refused"),
        (405, "MethodNotAllowed", "throttled credential 60s setup_refused"),
        (410, "ExpiredToken", "recipient_gone no_such_recipient"),
        (410, "Unregistered", "recipient_gone no_such_recipient"),
        (413, "PayloadTooLarge", "refused too_large"),
        (429, "TooManyProviderTokenUpdates", "throttled provider 60s rate_limited"),
        (429, "TooManyRequests", "throttled recipient 60s rate_limited"),
        (500, "InternalServerError", "unknown provider_failed"),
        (503, "ServiceUnavailable", "not_accepted try_later"),
        (503, "Shutdown", "not_accepted try_later"),
    ];
    assert_eq!(
        rows.map(|(status, reason, _)| (status, reason)),
        REASONS.iter().map(|(status, reason, _)| (*status, *reason)).collect::<Vec<_>>()[..]
    );
    for (status, reason, expected) in rows {
        let outcome = classify(&refused(status, reason), Topic::App);
        assert_eq!(brief(&outcome), expected, "{reason}");
        assert_eq!(outcome.why().answer.as_deref(), Some(format!("{status} {reason}").as_str()));
    }
}

#[test]
fn a_status_without_a_reason_says_what_it_says_by_itself() {
    let rows = [
        (200, "accepted ok"),
        (201, "unknown unrecognised"),
        (204, "unknown unrecognised"),
        (302, "not_accepted unrecognised"),
        (400, "not_accepted unrecognised"),
        (403, "not_accepted unrecognised"),
        (404, "not_accepted unrecognised"),
        (405, "not_accepted unrecognised"),
        (410, "recipient_gone no_such_recipient"),
        (413, "refused too_large"),
        (418, "not_accepted unrecognised"),
        (429, "throttled recipient 60s rate_limited"),
        (500, "unknown provider_failed"),
        (502, "unknown provider_failed"),
        (503, "unknown provider_failed"),
        (504, "unknown provider_failed"),
    ];
    for (status, expected) in rows {
        for body in [None, Some(""), Some("{}"), Some("<html>"), Some("[1]"), Some(r#"{"reason":7}"#)] {
            let outcome = classify(&answered(status, HeaderMap::new(), body), Topic::App);
            assert_eq!(brief(&outcome), expected, "{status} {body:?}");
            let said = (status != 200).then(|| status.to_string());
            assert_eq!(outcome.why().answer, said);
        }
        let odd = classify(&refused(status, "Whatever"), Topic::App);
        assert_eq!(brief(&odd), expected, "an unknown reason changes nothing: {status}");
    }
}

#[test]
fn a_reason_counts_under_a_status_of_its_kind_only() {
    for (status, reason, expected) in [
        (400, "Unregistered", "recipient_gone no_such_recipient"),
        (403, "BadDeviceToken", "refused bad_token"),
        (500, "BadDeviceToken", "unknown provider_failed"),
        (503, "Unregistered", "unknown provider_failed"),
        (500, "Shutdown", "not_accepted try_later"),
        (400, "Shutdown", "not_accepted unrecognised"),
        (410, "InternalServerError", "recipient_gone no_such_recipient"),
        (400, "baddevicetoken", "not_accepted unrecognised"),
        (200, "BadDeviceToken", "accepted ok"),
    ] {
        assert_eq!(brief(&classify(&refused(status, reason), Topic::App)), expected, "{status} {reason}");
    }
}

#[test]
fn what_a_message_asked_for_pauses_nobody_else() {
    for (reason, expected) in [
        ("TopicDisallowed", "refused setup_refused"),
        ("BadTopic", "refused setup_refused"),
        ("DeviceTokenNotForTopic", "refused setup_refused"),
        ("MissingTopic", "throttled credential 60s setup_refused"),
        ("BadDeviceToken", "refused bad_token"),
    ] {
        assert_eq!(brief(&classify(&refused(400, reason), Topic::Service)), expected, "{reason}");
    }
}

#[test]
fn ids_times_and_waits_are_read() {
    let accepted = classify(&told(200, ""), Topic::App);
    let provider_ref = Some("eabeae54-14a8-11e5-b60b-1697f925ec7b".to_owned());
    assert_eq!(accepted, Outcome::Accepted { provider_ref, why: Why::new(WhyCode::Ok) });
    let since = |timestamp: &str| {
        let body = format!(r#"{{"reason":"Unregistered","timestamp":{timestamp}}}"#);
        match classify(&told(410, &body), Topic::App) {
            Outcome::RecipientGone { since, .. } => since,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(since("1700000000123"), Some(UnixMs(1_700_000_000_123)), "milliseconds");
    assert_eq!((since("0"), since("-5"), since("null")), (None, None, None));
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "7".parse().unwrap());
    for (status, reason, expected) in [
        (429, "TooManyRequests", "throttled recipient 7s rate_limited"),
        (429, "TooManyProviderTokenUpdates", "throttled provider 7s rate_limited"),
        (429, "Other", "throttled recipient 7s rate_limited"),
    ] {
        let told = answered(status, headers.clone(), Some(&format!(r#"{{"reason":"{reason}"}}"#)));
        assert_eq!(brief(&classify(&told, Topic::App)), expected);
    }
    let later = answered(503, headers, Some(r#"{"reason":"Shutdown"}"#));
    let why = Why::said(WhyCode::TryLater, "503 Shutdown");
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(classify(&later, Topic::App), Outcome::NotAccepted { retry_after, why });
}

/// Apple's guide asks for 15 minutes after any 5xx that names no time. A code would be dead by then, and the other
/// servers of a gateway that shuts one down work: the class's own backoff counts.
#[test]
fn after_a_5xx_only_what_the_answer_itself_asks_for_is_waited() {
    let waits = |outcome: Outcome| match outcome {
        Outcome::NotAccepted { retry_after, .. } | Outcome::Unknown { retry_after, .. } => retry_after,
        other => panic!("{other:?}"),
    };
    for (status, reason) in [
        (500, "InternalServerError"),
        (503, "ServiceUnavailable"),
        (503, "Shutdown"),
        (500, ""),
        (504, "Whatever"),
        (400, "IdleTimeout"),
        (418, ""),
    ] {
        let body = format!(r#"{{"reason":"{reason}"}}"#);
        let silent = classify(&answered(status, HeaderMap::new(), Some(&body)), Topic::App);
        assert_eq!(waits(silent), None, "{status} {reason}");
        let asking = HeaderMap::from_iter([(http::header::RETRY_AFTER, "7".parse().unwrap())]);
        let asked = waits(classify(&answered(status, asking, Some(&body)), Topic::App));
        assert_eq!(asked, Some(Duration::from_secs(7)), "{status} {reason}");
    }
}

#[test]
fn no_answer_is_told_as_what_is_known_of_it() {
    let not_taken = |code| Fault::NotTaken { code, detail: Some("the machine's words".to_owned()) };
    for (fault, expected) in [
        (Fault::LeaseLost, "not_accepted lease_lost"),
        (not_taken(WhyCode::Unreachable), "not_accepted unreachable"),
        (not_taken(WhyCode::TlsFailed), "not_accepted tls_failed"),
        (not_taken(WhyCode::TimedOutBefore), "not_accepted timed_out_before"),
        (not_taken(WhyCode::TryLater), "not_accepted try_later"),
        (Fault::Internal, "not_accepted unreachable"),
        (Fault::Unknown { code: WhyCode::TimedOutAfter }, "unknown timed_out_after"),
        (Fault::Unknown { code: WhyCode::CutAfter }, "unknown cut_after"),
    ] {
        assert_eq!(brief(&fault.outcome()), expected);
    }
}

#[test]
fn nothing_but_200_is_success() {
    for status in 100..1000 {
        for reason in REASONS.iter().map(|(_, reason, _)| *reason).chain(["", "Ok", "Success"]) {
            let Ok(_) = StatusCode::from_u16(status) else { continue };
            let outcome = classify(&refused(status, reason), Topic::App);
            assert_eq!(outcome.kind() == OutcomeKind::Accepted, status == 200, "{status} {reason}");
        }
    }
}
