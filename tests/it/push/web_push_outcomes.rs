//! What comes of a call.

use belfry_domain::device::TokenFault;
use belfry_domain::outcome::{OutcomeKind, ThrottleScope};

use crate::peers::web_push_sim::Act;

use super::*;

#[tokio::test]
async fn every_answer_has_its_outcome() {
    for speaks in [Speaks::Http2, Speaks::Http1] {
        let bed = Bed::speaking(speaks, |_| {}).await;
        let address = bed.browser();
        for (act, kind, why) in [
            (Act::status(201), OutcomeKind::Accepted, WhyCode::Ok),
            (Act::status(404), OutcomeKind::RecipientGone, WhyCode::NoSuchRecipient),
            (
                Act::saying(410, "push subscription has unsubscribed or expired.\n"),
                OutcomeKind::RecipientGone,
                WhyCode::NoSuchRecipient,
            ),
            (Act::status(413), OutcomeKind::Refused, WhyCode::TooLarge),
            (Act::status(400), OutcomeKind::Refused, WhyCode::ContentRefused),
            (Act::status(429), OutcomeKind::Throttled, WhyCode::RateLimited),
            (Act::status(500), OutcomeKind::Unknown, WhyCode::ProviderFailed),
            (Act::status(503), OutcomeKind::NotAccepted, WhyCode::TryLater),
            (Act::status(418), OutcomeKind::NotAccepted, WhyCode::Unrecognised),
            (Act::saying(403, r#"{"reason":"VapidPkHashMismatch"}"#), OutcomeKind::Refused, WhyCode::WrongApp),
        ] {
            bed.service.next(act.clone());
            let outcome = bed.send(&outgoing("a", &address, "{}")).await;
            assert_eq!((outcome.kind(), code(&outcome)), (kind, why), "{act:?}");
        }
        assert_eq!((bed.service.requests(), bed.service.connections()), (10, 1));
    }
}

#[tokio::test]
async fn case_43_a_rate_limit_names_its_wait_and_stops_that_recipient_alone() {
    let bed = Bed::new().await;
    let address = bed.browser();
    for wait in ["120", "Tue, 14 Nov 2023 22:15:20 GMT"] {
        bed.service.next(Act::with(429, "retry-after", wait));
        let Outcome::Throttled { after, scope, .. } = bed.send(&outgoing("a", &address, "{}")).await else {
            panic!("not throttled")
        };
        assert_eq!((after, scope), (Duration::from_secs(120), ThrottleScope::Recipient));
    }
    bed.service.next(Act::with(503, "retry-after", "120"));
    let Outcome::NotAccepted { retry_after, .. } = bed.send(&outgoing("a", &address, "{}")).await else {
        panic!("not put off")
    };
    assert_eq!(retry_after, Some(Duration::from_secs(120)));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let bed = Bed::new().await;
    let [address, other] = [bed.browser(), bed.browser()];
    let other: serde_json::Value = serde_json::from_str(&other).unwrap();
    for status in [301, 302, 307, 308] {
        bed.service.next(Act::with(status, "location", other["endpoint"].as_str().unwrap()));
        let outcome = bed.send(&outgoing("a", &address, "{}")).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::Unrecognised));
    }
    assert_eq!((bed.service.requests(), bed.service.taken().len()), (4, 0));
}

#[tokio::test]
async fn a_subscription_of_another_key_is_set_aside_and_stops_no_other() {
    let bed = Bed::new().await;
    let other = bed.service.subscribe(&vapid::generate().public);
    let outcome = bed.send(&outgoing("a", &other, "{}")).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::WrongApp));
    assert_eq!(TokenFault::of(&outcome).map(TokenFault::may_be_ours), Some(true));
    assert_eq!(bed.service.refusals(), ["key"]);
    assert_eq!(bed.send(&outgoing("a", &bed.browser(), "{}")).await.kind(), OutcomeKind::Accepted);
}

#[tokio::test]
async fn silence_after_the_request_is_unknown() {
    for speaks in [Speaks::Http2, Speaks::Http1] {
        let bed = Bed::speaking(speaks, |config| config.timeouts.answer = "1s".parse().unwrap()).await;
        bed.service.next(Act::Stall);
        let outcome = bed.send(&outgoing("a", &bed.browser(), "{}")).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Unknown, WhyCode::TimedOutAfter));
        assert_eq!((bed.service.requests(), bed.service.taken().len()), (1, 1));
    }
}

#[tokio::test]
async fn a_body_without_an_end_leaves_the_status_to_count() {
    for speaks in [Speaks::Http2, Speaks::Http1] {
        let bed = Bed::speaking(speaks, |_| {}).await;
        let address = bed.browser();
        for (status, kind) in
            [(201, OutcomeKind::Accepted), (410, OutcomeKind::RecipientGone), (503, OutcomeKind::NotAccepted)]
        {
            bed.service.next(Act::Endless(status));
            assert_eq!(bed.send(&outgoing("a", &address, "{}")).await.kind(), kind);
        }
        assert_eq!(bed.service.requests(), 3);
    }
}

#[tokio::test]
async fn nobody_there_is_not_accepted() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let Bed { service, channel, .. } = bed;
    // Bound and never listened on: nobody else gets the port, and every connection is refused.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let place = format!("https://{}", closed.local_addr().unwrap());
    let out = outgoing("a", &address.replace(service.origin(), &place), "{}");
    let outcome = send(&channel, &out, &call()).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::Unreachable));
}
