//! What leaves, and what must not.

use std::collections::BTreeSet;

use belfry::channel::web_push::MOST_PLAINTEXT;
use belfry::channel::web_push::config::WebPushConfig;
use belfry::ports::message::{PushType, Urgency};
use belfry_domain::outcome::{OutcomeKind, RepeatGuard};
use serde_json::json;

use super::*;

const PAYLOAD: &str = r#"{"title":"Your order 42","body":"It is on its way."}"#;

#[tokio::test]
async fn a_message_arrives_as_it_was_meant() {
    for speaks in [Speaks::Http2, Speaks::Http1] {
        let bed = Bed::speaking(speaks, |_| {}).await;
        let out = outgoing("order-42", &bed.browser(), PAYLOAD);
        let outcome = bed.send(&out).await;
        assert_eq!(bed.service.refusals(), [""; 0]);
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Accepted, WhyCode::Ok));
        let taken = bed.service.taken();
        assert_eq!(taken.len(), 1);
        assert_eq!(
            taken[0].json(),
            json!({
                "title": "Your order 42",
                "body": "It is on its way.",
                "belfry": { "id": out.delivery.to_string(), "seen": "seen.token" },
            })
        );
        assert_eq!((taken[0].header("ttl"), taken[0].header("urgency")), ("3600", "high"));
        assert_eq!(taken[0].header("topic"), out.send_key.to_string());
    }
}

#[tokio::test]
async fn case_50_the_word_of_the_service_is_accepted_and_nothing_more() {
    let bed = Bed::new().await;
    let Outcome::Accepted { provider_ref, .. } = bed.send(&outgoing("a", &bed.browser(), "{}")).await else {
        panic!("not accepted")
    };
    // The message's address at the service is a bearer secret.
    assert_eq!(provider_ref, None);
    assert!(!bed.channel.receipts());
    assert_eq!(bed.channel.repeat_guard(), RepeatGuard::None);
}

#[tokio::test]
async fn case_46_one_damaged_subscription_stops_no_other() {
    let bed = Bed::new().await;
    let good = [bed.browser(), bed.browser()];
    let damaged = bed.browser().replace("\"p256dh\":\"B", "\"p256dh\":\"A");
    let endpoint =
        serde_json::from_str::<serde_json::Value>(&good[0]).unwrap()["endpoint"].as_str().unwrap().to_owned();
    let mut told = Vec::new();
    for address in [&good[0], &damaged, &endpoint, "", &good[1]] {
        let outcome = bed.send(&outgoing("a", address, "{}")).await;
        told.push((outcome.kind(), code(&outcome)));
    }
    let refused = (OutcomeKind::Refused, WhyCode::TokenMalformed);
    let accepted = (OutcomeKind::Accepted, WhyCode::Ok);
    assert_eq!(told, [accepted, refused, refused, refused, accepted]);
    assert_eq!((bed.service.taken().len(), bed.service.requests()), (2, 2));
}

#[tokio::test]
async fn a_public_key_off_the_curve_is_found_before_the_call() {
    let bed = Bed::new().await;
    let mut written: serde_json::Value = serde_json::from_str(&bed.browser()).unwrap();
    written["keys"]["p256dh"] = json!(format!("B{}", "A".repeat(86)));
    let outcome = bed.send(&outgoing("a", &written.to_string(), "{}")).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::TokenMalformed));
    assert_eq!(bed.service.requests(), 0);
}

#[tokio::test]
async fn case_52_a_long_collapse_key_becomes_a_short_topic_of_its_own() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let prefix = "x".repeat(64);
    let long = [format!("{prefix}{}", "a".repeat(136)), format!("{prefix}{}", "b".repeat(136)), "注文".repeat(40)];
    let mut topics = Vec::new();
    for key in [&long[0], &long[1], &long[2], &long[0]] {
        let out = Outgoing { collapse: Some(key.clone()), ..outgoing(&topics.len().to_string(), &address, "{}") };
        assert_eq!(bed.send(&out).await.kind(), OutcomeKind::Accepted);
        topics.push(bed.service.taken().last().unwrap().header("topic").to_owned());
    }
    assert_eq!(topics[0], topics[3]);
    assert_eq!(topics.iter().collect::<BTreeSet<_>>().len(), 3);
    assert!(topics.iter().all(|topic| topic.len() == 24), "{topics:?}");
}

#[tokio::test]
async fn case_53_only_repeats_of_one_message_replace_each_other() {
    let bed = Bed::new().await;
    let address = bed.browser();
    for key in ["one", "other", "one"] {
        assert_eq!(bed.send(&outgoing(key, &address, PAYLOAD)).await.kind(), OutcomeKind::Accepted);
    }
    let topics: Vec<_> = bed.service.taken().iter().map(|taken| taken.header("topic").to_owned()).collect();
    assert_ne!(topics[0], topics[1]);
    assert_eq!(topics[0], topics[2]);
}

#[tokio::test]
async fn case_110_the_browser_gets_the_text_in_utf_8() {
    let bed = Bed::new().await;
    let payload = r#"{"title":"طلبك في الطريق","body":"您的订单已发货 🎉"}"#;
    bed.send(&outgoing("a", &bed.browser(), payload)).await;
    let plaintext = &bed.service.taken()[0].plaintext;
    assert!(plaintext.starts_with(payload.strip_suffix('}').unwrap()), "{plaintext}");
    assert!(!plaintext.contains("\\u"));
}

#[tokio::test]
async fn what_is_too_large_is_measured_and_not_sent() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let own = r#","belfry":{"id":"dlv_000000000000000000000000","seen":"seen.token"}"#.len();
    let room = MOST_PLAINTEXT - own - r#"{"t":""}"#.len();
    let payload = |length: usize| format!(r#"{{"t":"{}"}}"#, "x".repeat(length));
    assert_eq!(bed.send(&outgoing("a", &address, &payload(room))).await.kind(), OutcomeKind::Accepted);
    assert_eq!(bed.service.taken()[0].plaintext.len(), 3993);
    let outcome = bed.send(&outgoing("a", &address, &payload(room + 1))).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::TooLarge));
    assert_eq!(outcome.why().answer.as_deref(), Some("3994 bytes, of which 3993 fit"));
    // Two bytes each.
    let outcome = bed.send(&outgoing("a", &address, &format!(r#"{{"t":"{}"}}"#, "é".repeat(room)))).await;
    assert_eq!(code(&outcome), WhyCode::TooLarge);
    assert_eq!(bed.service.requests(), 1);
}

#[tokio::test]
async fn what_is_no_payload_is_not_sent() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let out = outgoing("a", &address, "{}");
    let not_a_push = Outgoing { message: Rendered::Sms { text: "Hello".to_owned() }, ..out.clone() };
    let taken_name = outgoing("a", &address, r#"{"belfry":{}}"#);
    for bad in [not_a_push, taken_name, outgoing("a", &address, "[]"), outgoing("a", &address, "Hello")] {
        let outcome = bed.send(&bad).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::RenderFailed));
    }
    assert_eq!(bed.service.requests(), 0);
}

#[tokio::test]
async fn urgency_time_to_live_and_the_word_for_seen() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let usual = outgoing("a", &address, "{}");
    for (urgency, expires_at, headers) in [
        (Urgency::High, START.plus(Duration::from_millis(59_001)), ("high", "60")),
        (Urgency::Normal, START.plus(60 * 24 * HOUR), ("normal", "2419200")),
        (Urgency::Low, START.minus(HOUR), ("low", "0")),
    ] {
        let settings = PushSettings { urgency, push_type: PushType::Alert };
        let message = Rendered::Push { payload: "{}".to_owned(), settings };
        let out = Outgoing { expires_at, message, seen_token: None, ..usual.clone() };
        assert_eq!(bed.send(&out).await.kind(), OutcomeKind::Accepted);
        let taken = bed.service.taken().pop().unwrap();
        assert_eq!((taken.header("urgency"), taken.header("ttl")), headers);
        assert_eq!(taken.json(), json!({ "belfry": { "id": out.delivery.to_string() } }));
    }
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_sends_nothing() {
    let bed = Bed::new().await;
    let call = lapsed_call();
    let outcome = send(&bed.channel, &outgoing("a", &bed.browser(), PAYLOAD), &call).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::LeaseLost));
    assert_eq!((call.committed(), bed.service.requests()), (false, 0));
}

#[tokio::test]
async fn the_lease_is_asked_for_before_the_call() {
    let bed = Bed::new().await;
    let call = call();
    send(&bed.channel, &outgoing("a", &bed.browser(), PAYLOAD), &call).await;
    assert!(call.committed());
}

#[tokio::test]
async fn nothing_goes_to_an_internal_address_however_it_is_written() {
    let outside = |config: &mut WebPushConfig| config.allow_internal = false;
    let bed = Bed::speaking(Speaks::Http2, outside).await;
    let (_, port) = bed.service.origin().rsplit_once(':').unwrap();
    let address = bed.browser();
    for host in ["127.0.0.1", "localhost", "2130706433", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let written = address.replace(bed.service.origin(), &format!("https://{host}:{port}"));
        let outcome = bed.send(&outgoing("a", &written, PAYLOAD)).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::InternalEndpoint), "{host}");
        assert!(!outcome.why().answer.as_deref().unwrap_or_default().contains(host), "{host}");
    }
    // Plain http is for this machine alone, and only where that is allowed at all.
    let plain = address.replace("https://", "http://");
    assert_eq!(code(&bed.send(&outgoing("a", &plain, PAYLOAD)).await), WhyCode::TokenMalformed);
    assert_eq!(bed.service.connections(), 0);
}

#[tokio::test]
async fn a_service_that_cannot_prove_who_it_is_gets_nothing() {
    let bed = Bed::new().await;
    let stranger = PushService::start(Speaks::Http2, START.0).await;
    let address = stranger.subscribe(bed.channel.application_server_key());
    let outcome = bed.send(&outgoing("a", &address, PAYLOAD)).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TlsFailed));
    assert_eq!(stranger.requests(), 0);
}

#[tokio::test]
async fn calls_share_connections() {
    let bed = Bed::new().await;
    let browsers: Vec<String> = (0..20).map(|_| bed.browser()).collect();
    let outs: Vec<Outgoing> = browsers.iter().map(|address| outgoing("a", address, PAYLOAD)).collect();
    let outcomes = futures::future::join_all(outs.iter().map(|out| bed.send(out))).await;
    assert!(outcomes.iter().all(|outcome| outcome.kind() == OutcomeKind::Accepted));
    assert_eq!((bed.service.connections(), bed.service.taken().len()), (1, 20));
}

#[tokio::test]
async fn what_doctor_is_told() {
    let bed = Bed::new().await;
    assert!(bed.channel.check().contains(bed.channel.application_server_key()));
    assert_eq!(bed.service.connections(), 0);
}
