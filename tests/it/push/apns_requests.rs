//! What is sent, and what comes of single answers.

use belfry::ports::message::{PushType, Urgency};
use belfry_domain::outcome::{RepeatGuard, ThrottleScope, Why};

use super::*;
use crate::peers::apns_sim::Act;

#[tokio::test]
async fn every_header_is_as_apple_wants_it() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let out = push_to("order-42", &token(1));
    let outcome = send(&channel, &out).await;
    let expected = Outcome::Accepted { provider_ref: Some(out.uuid()), why: Why::new(WhyCode::Ok) };
    assert_eq!(outcome, expected);
    let [seen] = bed.sim.effects().try_into().unwrap();
    assert_eq!(seen.token, token(1));
    assert_eq!(seen.header("apns-id"), out.uuid());
    assert_eq!(seen.header("apns-collapse-id"), out.send_key.to_string());
    assert_eq!(seen.header("apns-expiration"), (START + 3601).to_string(), "rounded up: never before it expires");
    assert_eq!(seen.header("apns-priority"), "10");
    assert_eq!(seen.header("apns-push-type"), "alert");
    assert_eq!(seen.header("apns-topic"), TOPIC);
    let added = format!(r#","belfry":{{"id":"{}","seen":"seen-1"}}}}"#, out.delivery);
    let payload = r#"{"aps":{"alert":{"title":"Order 42","body":"It is on its way."}}"#;
    assert_eq!(seen.text(), format!("{payload}{added}"));
    assert_eq!((channel.repeat_guard(), channel.receipts()), (RepeatGuard::Collapse, false));
    assert_eq!(format!("https://{}", channel.place()), bed.sim.url());
}

#[tokio::test]
async fn each_push_type_has_its_topic_and_its_priority() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let rows = [
        (PushType::Alert, Urgency::High, "alert", "", "10"),
        (PushType::Alert, Urgency::Normal, "alert", "", "5"),
        (PushType::Alert, Urgency::Low, "alert", "", "1"),
        (PushType::Background, Urgency::High, "background", "", "5"),
        (PushType::Background, Urgency::Low, "background", "", "5"),
        (PushType::Voip, Urgency::High, "voip", ".voip", "10"),
        (PushType::Complication, Urgency::High, "complication", ".complication", "10"),
        (PushType::FileProvider, Urgency::Normal, "fileprovider", ".pushkit.fileprovider", "5"),
        (PushType::LiveActivity, Urgency::High, "liveactivity", ".push-type.liveactivity", "10"),
        (PushType::Location, Urgency::Normal, "location", ".location-query", "5"),
        (PushType::PushToTalk, Urgency::High, "pushtotalk", ".voip-ptt", "10"),
    ];
    for (at, (push_type, urgency, name, suffix, priority)) in rows.into_iter().enumerate() {
        let mut out = push_to(&at.to_string(), &token(1));
        let payload = r#"{"aps":{"content-available":1}}"#.to_owned();
        out.message = Rendered::Push { payload, settings: PushSettings { urgency, push_type } };
        assert!(is_accepted(&send(&channel, &out).await), "{push_type:?} {urgency:?}");
        let seen = bed.sim.effects().pop().unwrap();
        let found = ["apns-push-type", "apns-topic", "apns-priority"].map(|header| seen.header(header).to_owned());
        assert_eq!(found, [name.to_owned(), format!("{TOPIC}{suffix}"), priority.to_owned()]);
    }
}

#[tokio::test]
async fn the_mark_goes_into_any_object_and_into_nothing_else() {
    let bed = Bed::with(|options| Options { topics: vec![TOPIC.to_owned()], ..options }).await;
    let channel = bed.channel();
    let mut out = push_of("a", &token(1), " {\n \"aps\" : { } } \n");
    out.seen_token = None;
    assert!(is_accepted(&send(&channel, &out).await));
    let mark = format!(r#""belfry":{{"id":"{}"}}"#, out.delivery);
    assert_eq!(bed.sim.effects().pop().unwrap().text(), format!("{{\n \"aps\" : {{ }} ,{mark}}}"));
    // The simulator wants `aps`; the form is what counts here.
    let empty = push_of("b", &token(1), "{ }");
    assert_eq!(code(&send(&channel, &empty).await), WhyCode::ContentRefused);
    let text = bed.sim.requests().pop().unwrap().text();
    assert_eq!(text, format!(r#"{{ "belfry":{{"id":"{}","seen":"seen-1"}}}}"#, empty.delivery));
    for bad in ["", "[]", "null", "{", "}", "\"{}\""] {
        let outcome = send(&channel, &push_of("c", &token(1), bad)).await;
        assert_eq!(outcome, Outcome::Refused { why: Why::said(WhyCode::RenderFailed, "the message is no push") });
    }
    assert_eq!(bed.sim.requests().len(), 2);
}

#[tokio::test]
async fn what_is_larger_than_apple_takes_is_not_sent() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let sized = |push_type, size: usize| {
        let mut out = push_to("a", &token(1));
        let around =
            r#"{"aps":{"alert":""}}"#.len() + format!(r#","belfry":{{"id":"{}","seen":"seen-1"}}"#, out.delivery).len();
        // Two bytes each: what is counted is UTF-8.
        let rest = size - around;
        let text = format!("{}{}", "é".repeat(rest / 2), if rest.is_multiple_of(2) { "" } else { "x" });
        let payload = format!(r#"{{"aps":{{"alert":"{text}"}}}}"#);
        out.message = Rendered::Push { payload, settings: PushSettings { push_type, ..PushSettings::default() } };
        out
    };
    for (push_type, most) in [(PushType::Alert, 4096), (PushType::LiveActivity, 4096), (PushType::Voip, 5120)] {
        assert!(is_accepted(&send(&channel, &sized(push_type, most)).await), "{push_type:?}");
        assert_eq!(bed.sim.effects().pop().unwrap().body.len(), most);
        let said = format!("{} bytes where {most} are allowed", most + 1);
        let outcome = send(&channel, &sized(push_type, most + 1)).await;
        assert_eq!(outcome, Outcome::Refused { why: Why::said(WhyCode::TooLarge, said) });
    }
    assert_eq!(bed.sim.requests().len(), 3);
}

#[tokio::test]
async fn an_answer_is_told_with_its_reason_and_never_with_the_token() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let told = async |act| {
        bed.sim.next(1, &act);
        send(&channel, &push_to("a", &token(0xabc_def0))).await
    };
    let busy = told(Act::busy("TooManyRequests", "17")).await;
    let why = Why::said(WhyCode::RateLimited, "429 TooManyRequests");
    let after = Duration::from_secs(17);
    assert_eq!(busy, Outcome::Throttled { after, scope: ThrottleScope::Recipient, why });
    let new = told(Act::refusal(400, "Something\\u0000 New\\u00e9")).await;
    let why = Why::said(WhyCode::Unrecognised, "400 SomethingNew");
    assert_eq!(new, Outcome::NotAccepted { retry_after: None, why });
    let long = told(Act::refusal(400, &"A".repeat(1000))).await;
    assert_eq!(long.why().answer.as_deref(), Some(format!("400 {}", "A".repeat(64)).as_str()));
    let quoted = told(Act::refusal(400, &format!("Bad:{}", token(0xabc_def0).to_uppercase()))).await;
    assert_eq!(quoted, Outcome::NotAccepted { retry_after: None, why: Why::said(WhyCode::Unrecognised, "400") });
    assert!(!format!("{channel:?} {busy:?} {quoted:?}").contains("abcdef0"));
}

#[tokio::test]
async fn doctor_learns_whether_login_and_topic_are_right() {
    let bed = Bed::with(|options| Options { keys: vec![options.keys[0].clone()], ..options }).await;
    bed.sim.always(&"0".repeat(64), Act::refusal(400, "BadDeviceToken"));
    bed.channel().check().await.unwrap();
    let why = async |config: &ApnsConfig| {
        let problem = bed.channel_of(config).check().await.unwrap_err();
        (problem.why.code, problem.to_string())
    };
    let topic = ApnsConfig { topic: "com.example.other".to_owned(), ..bed.config() };
    let said = "a setting here or at the provider is wrong: 400 TopicDisallowed";
    assert_eq!(why(&topic).await.0, WhyCode::SetupRefused, "{said}");
    let stranger = SimKey::new(TEAM, KEY_ID);
    let key = ApnsConfig { key: Some(stranger.pem.into()), ..bed.config() };
    let said = "the provider refused our login: 403 InvalidProviderToken".to_owned();
    assert_eq!(why(&key).await, (WhyCode::CredentialRefused, said));
    let nobody = ApnsConfig { url: Some("https://127.0.0.1:1".to_owned()), ..bed.config() };
    let (code, said) = why(&nobody).await;
    assert_eq!(code, WhyCode::Unreachable);
    assert_eq!(said, "the provider could not be reached: Connection refused (os error 111)");
    assert_eq!(bed.sim.effects(), []);
}

#[tokio::test]
async fn case_50_what_apple_has_is_accepted_and_no_receipt_is_promised() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    // Apple answers 200 for the tokens of deleted apps for days.
    let outcome = send(&channel, &push_to("a", &token(1))).await;
    assert_eq!(outcome.kind(), belfry_domain::outcome::OutcomeKind::Accepted);
    assert!(!channel.receipts());
}
