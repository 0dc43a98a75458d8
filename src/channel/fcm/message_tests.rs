use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId};

use super::*;
use crate::ports::message::{Address, Rendered};

/// 2023-11-14T22:13:20Z.
const NOW: UnixMs = UnixMs(1_700_000_000_000);
const USUAL: PushSettings = PushSettings { urgency: Urgency::High, push_type: crate::ports::message::PushType::Alert };

fn out(key: &str) -> Outgoing {
    let notification = NotificationId::http("default", "live", "main", key);
    let delivery = DeliveryId::of(notification, "fcm", "device/1");
    Outgoing {
        channel: ChannelKind::Fcm,
        tenant: "default".to_owned(),
        environment: "live".to_owned(),
        notification,
        delivery,
        send: 1,
        send_key: delivery.send_key(1),
        message_key: child_key(KeyKind::Message, &[b"m"]),
        created_at: NOW,
        expires_at: NOW.plus(Duration::from_millis(3_600_900)),
        address: Address("abc:DEF".to_owned()),
        message: Rendered::Inbox { payload: String::new() },
        collapse: None,
        seen_token: Some("seen1".to_owned()),
    }
}

fn text(payload: &str, urgency: Urgency) -> String {
    let body = body(payload, PushSettings { urgency, ..USUAL }, &out("a"), NOW).unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

/// What stands for the collapse id and the delivery's id in the texts of these tests.
fn marked(text: &str) -> String {
    text.replace(&out("a").collapse_id().to_string(), "COLLAPSE").replace(&out("a").delivery.to_string(), "DELIVERY")
}

#[test]
fn what_the_call_adds() {
    assert_eq!(
        marked(&text(r#"{"notification":{"title":"T"},"data":{"order":"42"}}"#, Urgency::High)),
        concat!(
            r#"{"message":{"notification":{"title":"T"},"#,
            r#""data":{"order":"42","belfry_id":"DELIVERY","belfry_seen":"seen1"},"#,
            r#""android":{"ttl":"3600s","priority":"HIGH","notification":{"tag":"COLLAPSE"}},"#,
            r#""apns":{"headers":{"apns-collapse-id":"COLLAPSE","apns-expiration":"1700003600"}},"#,
            r#""webpush":{"headers":{"TTL":"3600","Urgency":"high","Topic":"COLLAPSE"},"notification":{"tag":"COLLAPSE"}},"#,
            r#""token":"abc:DEF"}}"#
        )
    );
}

#[test]
fn nothing_shown_has_no_tag() {
    assert_eq!(
        marked(&text("{}", Urgency::Low)),
        concat!(
            r#"{"message":{"data":{"belfry_id":"DELIVERY","belfry_seen":"seen1"},"#,
            r#""android":{"ttl":"3600s","priority":"NORMAL"},"#,
            r#""apns":{"headers":{"apns-collapse-id":"COLLAPSE","apns-expiration":"1700003600"}},"#,
            r#""webpush":{"headers":{"TTL":"3600","Urgency":"low","Topic":"COLLAPSE"}},"token":"abc:DEF"}}"#
        )
    );
}

#[test]
fn what_the_caller_gave_stays() {
    let given = concat!(
        r#"{"notification":{"title":"T"},"#,
        r#""android":{"ttl":"5s","priority":"normal","collapse_key":"k","notification":{"tag":"own"},"data":{"a":"1"}},"#,
        r#""apns":{"headers":{"Apns-Collapse-Id":"own","apns-expiration":"0"}},"#,
        r#""webpush":{"headers":{"ttl":"7","urgency":"very-low","topic":"own"},"notification":{"tag":"own"},"data":{"b":"2"}}}"#
    );
    assert_eq!(
        marked(&text(given, Urgency::High)),
        concat!(
            r#"{"message":{"notification":{"title":"T"},"#,
            r#""android":{"ttl":"5s","priority":"normal","collapse_key":"k","notification":{"tag":"own"},"#,
            r#""data":{"a":"1","belfry_id":"DELIVERY","belfry_seen":"seen1"}},"#,
            r#""apns":{"headers":{"Apns-Collapse-Id":"own","apns-expiration":"0"}},"#,
            r#""webpush":{"headers":{"ttl":"7","urgency":"very-low","topic":"own"},"notification":{"tag":"own"},"#,
            r#""data":{"b":"2","belfry_id":"DELIVERY","belfry_seen":"seen1"}},"#,
            r#""data":{"belfry_id":"DELIVERY","belfry_seen":"seen1"},"token":"abc:DEF"}}"#
        )
    );
}

#[test]
fn the_second_android_block_stays_the_only_one() {
    let given = r#"{"androidV2":{"remoteNotification":{"notification":{"title":"T"}}}}"#;
    let made = marked(&text(given, Urgency::High));
    let v2 = r#""androidV2":{"remoteNotification":{"notification":{"title":"T","tag":"COLLAPSE"}},"ttl":"3600s"}"#;
    assert!(made.contains(v2) && !made.contains(r#""android":"#), "{made}");
    let silent = text(r#"{"android_v2":{"background_sync":{}}}"#, Urgency::High);
    assert!(silent.contains(r#""android_v2":{"background_sync":{},"ttl":"3600s"}"#), "{silent}");
}

#[test]
fn a_time_to_live_is_whole_seconds_of_at_most_four_weeks() {
    for (expires_at, ttl) in [
        (NOW.plus(Duration::from_millis(1_999)), "1"),
        (NOW.minus(Duration::from_secs(5)), "0"),
        (UnixMs(i64::MAX), "2419200"),
    ] {
        let out = Outgoing { expires_at, ..out("a") };
        let made = String::from_utf8(body("{}", USUAL, &out, NOW).unwrap().to_vec()).unwrap();
        assert!(made.contains(&format!(r#""ttl":"{ttl}s""#)) && made.contains(&format!(r#""TTL":"{ttl}""#)), "{made}");
    }
}

#[test]
fn case_110_text_and_numbers_keep_their_bytes() {
    let inner = concat!(
        r#""notification":{"title":"طلبك في الطريق","body":"你的订单 ✓"},"#,
        r#""apns":{"payload":{"aps":{"badge":3},"n":18446744073709551617,"f":1.10,"e":1E400,"z":-0}}"#
    );
    let made = text(&format!("{{{inner}}}"), Urgency::High);
    for kept in ["طلبك في الطريق", "你的订单 ✓", r#""n":18446744073709551617,"f":1.10,"e":1E400,"z":-0"#]
    {
        assert!(made.contains(kept), "{made}");
    }
    assert!(!made.contains("\\u"));
}

#[test]
fn the_limit_counts_keys_and_values_in_utf8() {
    // "title", and what names the delivery.
    let frame = 5 + "belfry_id".len() + out("a").delivery.to_string().len() + "belfry_seen".len() + "seen1".len();
    let title = |bytes: usize| format!(r#"{{"notification":{{"title":"{}"}}}}"#, "x".repeat(bytes));
    assert!(body(&title(LARGEST - frame), USUAL, &out("a"), NOW).is_ok());
    let wide = title(LARGEST - frame).replacen("xx", "你", 1);
    let over = MessageError::TooLarge { bytes: LARGEST + 1 };
    assert_eq!(body(&title(LARGEST - frame + 1), USUAL, &out("a"), NOW), Err(over));
    assert_eq!(body(&wide, USUAL, &out("a"), NOW), Err(over));
    // Quotes and backslashes of JSON weigh nothing at FCM.
    let quoted = format!(r#"{{"data":{{"a":"{}"}}}}"#, r#"\""#.repeat(LARGEST - frame - 5));
    assert!(body(&quoted, USUAL, &out("a"), NOW).is_ok());
}

#[test]
fn what_is_no_message_or_is_aimed_elsewhere_is_refused() {
    for (payload, error) in [
        ("", MessageError::NotAMessage),
        ("[]", MessageError::NotAMessage),
        (r#"{"data":"x"}"#, MessageError::NotAMessage),
        (r#"{"android":{"notification":7}}"#, MessageError::NotAMessage),
        (r#"{"data":{"a":"1","a":"2"}}"#, MessageError::NotAMessage),
        (r#"{"token":"x"}"#, MessageError::Aimed),
        (r#"{"topic":"x"}"#, MessageError::Aimed),
        (r#"{"condition":"x"}"#, MessageError::Aimed),
        (r#"{"fid":"x"}"#, MessageError::Aimed),
    ] {
        assert_eq!(body(payload, USUAL, &out("a"), NOW), Err(error), "{payload}");
    }
}

#[test]
fn case_53_collapse_ids_are_of_the_intent_and_a_retry_has_the_same() {
    let payload = r#"{"notification":{"title":"T"}}"#;
    let made = |out: &Outgoing| body(payload, USUAL, out, NOW).unwrap();
    assert_eq!(made(&out("a")), made(&out("a")));
    assert_ne!(out("a").collapse_id(), out("b").collapse_id());
    let keyed = |key: &str| Outgoing { collapse: Some(key.to_owned()), ..out("a") };
    let prefix = "é".repeat(100);
    let (one, other) = (keyed(&format!("{prefix}1")), keyed(&format!("{prefix}2")));
    assert_ne!(one.collapse_id(), other.collapse_id());
    assert_eq!(one.collapse_id(), Outgoing { collapse: one.collapse.clone(), ..out("b") }.collapse_id());
    assert!(one.collapse_id().to_string().len() <= 32, "web push's Topic");
}
