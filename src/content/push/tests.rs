use belfry_domain::ChannelKind::{Apns, Fcm, WebPush};

use super::super::json::Json;
use super::*;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn payload(push: &str, channel: ChannelKind) -> String {
    let push = json(push);
    assert_eq!(check(&push), []);
    made(&push, channel).unwrap().payload
}

#[test]
fn one_push_in_the_words_of_each_platform() {
    let push = r#"{"title":"Shipped","body":"Order 42","badge":3,"sound":"ding.caf","link":"https://shop.example/42",
        "image":"https://shop.example/42.png","category":"ORDER","thread":"order-42","data":{"order":"42"},
        "actions":[{"id":"track","title":"Track"}]}"#;
    assert_eq!(
        payload(push, Apns),
        concat!(
            r#"{"aps":{"alert":{"title":"Shipped","body":"Order 42"},"badge":3,"sound":"ding.caf","category":"ORDER","#,
            r#""thread-id":"order-42","mutable-content":1},"order":"42","link":"https://shop.example/42","#,
            r#""image":"https://shop.example/42.png","actions":[{"id":"track","title":"Track"}]}"#
        )
    );
    assert_eq!(
        payload(push, Fcm),
        concat!(
            r#"{"notification":{"title":"Shipped","body":"Order 42","image":"https://shop.example/42.png"},"#,
            r#""data":{"order":"42","link":"https://shop.example/42","category":"ORDER","thread":"order-42","#,
            r#""actions":"[{\"id\":\"track\",\"title\":\"Track\"}]"},"#,
            r#""android":{"notification":{"sound":"ding.caf","notification_count":3}},"#,
            r#""apns":{"payload":{"aps":{"badge":3,"sound":"ding.caf","category":"ORDER","thread-id":"order-42","#,
            r#""mutable-content":1}}},"webpush":{"fcm_options":{"link":"https://shop.example/42"}}}"#
        )
    );
    assert_eq!(payload(push, WebPush), json(push).to_string());
}

#[test]
fn texts_by_key_are_translated_on_the_device() {
    let push = r#"{"title_key":"T","title_args":["42"],"body_key":"B","body_args":["Ann"]}"#;
    let alert = r#"{"title-loc-key":"T","title-loc-args":["42"],"loc-key":"B","loc-args":["Ann"]}"#;
    assert_eq!(payload(push, Apns), format!(r#"{{"aps":{{"alert":{alert}}}}}"#));
    assert_eq!(
        payload(push, Fcm),
        format!(
            r#"{{"android":{{"notification":{{"title_loc_key":"T","title_loc_args":["42"],"body_loc_key":"B","body_loc_args":["Ann"]}}}},"apns":{{"payload":{{"aps":{{"alert":{alert}}}}}}}}}"#
        )
    );
}

#[test]
fn a_platforms_own_part_goes_over_the_common_one() {
    let push = r#"{"title":"T","body":"B","sound":"default","data":{"a":"1"},
        "apns":{"push_type":"voip","aps":{"sound":{"critical":1,"name":"x"},"interruption-level":"critical"},"n":9007199254740993},
        "fcm":{"android":{"notification":{"channel_id":"orders","sound":null}},"data":{"b":"2"}},
        "web_push":{"tag":"t","body":null}}"#;
    assert_eq!(
        payload(push, Apns),
        r#"{"aps":{"alert":{"title":"T","body":"B"},"sound":{"critical":1,"name":"x"},"interruption-level":"critical"},"a":"1","n":9007199254740993}"#
    );
    assert_eq!(made(&json(push), Apns).unwrap().settings.push_type, PushType::Voip);
    assert_eq!(made(&json(push), Fcm).unwrap().settings.push_type, PushType::Alert);
    assert_eq!(
        payload(push, Fcm),
        r#"{"notification":{"title":"T","body":"B"},"data":{"a":"1","b":"2"},"android":{"notification":{"channel_id":"orders"}},"apns":{"payload":{"aps":{"sound":"default"}}}}"#
    );
    assert_eq!(payload(push, WebPush), r#"{"title":"T","sound":"default","data":{"a":"1"},"tag":"t"}"#);
}

#[test]
fn what_nobody_sees_is_a_background_push_of_normal_urgency() {
    for push in [r#"{"silent":true,"data":{"sync":"1"}}"#, r#"{"data":{"sync":"1"}}"#] {
        let apns = made(&json(push), Apns).unwrap();
        assert_eq!(apns.payload, r#"{"aps":{"content-available":1},"sync":"1"}"#);
        assert_eq!((apns.settings.push_type, apns.settings.urgency), (PushType::Background, Urgency::Normal));
    }
    for (push, kind, payload) in [
        (r#"{"apns":{"aps":{"alert":"Hi"}}}"#, PushType::Alert, r#"{"aps":{"alert":"Hi"}}"#),
        (r#"{"data":{"call":"1"},"apns":{"push_type":"voip"}}"#, PushType::Voip, r#"{"aps":{},"call":"1"}"#),
    ] {
        let made = made(&json(push), Apns).unwrap();
        assert_eq!(
            (made.payload.as_str(), made.settings.push_type, made.settings.urgency),
            (payload, kind, Urgency::High)
        );
    }
    assert_eq!(made(&json(r#"{"fcm":{"notification":{"title":"T"}}}"#), Fcm).unwrap().settings.urgency, Urgency::High);
    let usual = made(&json(r#"{"title":"T"}"#), Apns).unwrap().settings;
    assert_eq!((usual.push_type, usual.urgency), (PushType::Alert, Urgency::High));
    assert_eq!(made(&json(r#"{"title":"T","urgency":"low"}"#), WebPush).unwrap().settings.urgency, Urgency::Low);
}

#[test]
fn case_110_sizes_are_bytes_of_utf8_and_nothing_is_escaped() {
    let of = |letters: usize| json(&format!(r#"{{"title":"{}"}}"#, "你".repeat(letters)));
    let apns = made(&of(800), Apns).unwrap().payload;
    assert_eq!((apns.contains("\\u"), apns.len()), (false, r#"{"aps":{"alert":{"title":""}}}"#.len() + 2400));
    // 31 bytes of frame, three for each letter, and room for the delivery's own id.
    assert_eq!(made(&of(1000), Apns).unwrap().payload.len(), 3030);
    let large = json(&format!(r#"{{"body":"{}"}}"#, "x".repeat(3990)));
    assert_eq!(made(&large, Apns), Err(TooLarge { bytes: 3990 + 29 + ADDED, most: 4096 }));
    assert_eq!(made(&large, Fcm), Err(TooLarge { bytes: 3990 + 11 + ADDED, most: 4096 }));
    assert_eq!(made(&large, WebPush), Err(TooLarge { bytes: 3990 + 11 + ADDED, most: 3993 }));
    let voip = json(&format!(r#"{{"body":"{}","apns":{{"push_type":"voip"}}}}"#, "x".repeat(3990)));
    assert!(made(&voip, Apns).is_ok());
}

#[test]
fn what_is_added_at_the_call_has_room() {
    let id = "dlv_000000000000000000000000";
    let seen = "0".repeat(32);
    assert!(format!(r#","belfry":{{"id":"{id}","seen":"{seen}"}}"#).len() <= ADDED);
    assert!(format!(r#","data":{{"belfry_id":"{id}","belfry_seen":"{seen}"}}"#).len() <= ADDED + 8);
}

#[test]
fn every_fault_is_told_at_its_place() {
    for (push, pointers) in [
        ("[]", vec![""]),
        ("{}", vec![""]),
        (r#"{"sound":"x"}"#, vec![""]),
        (r#"{"title":"T","colour":"red"}"#, vec!["/colour"]),
        (r#"{"title":1,"body":"a\u0000b"}"#, vec!["/title", "/body"]),
        (r#"{"title":"T","badge":-1}"#, vec!["/badge"]),
        (r#"{"title":"T","badge":"+1"}"#, vec!["/badge"]),
        (r#"{"title":"T","badge":1.5}"#, vec!["/badge"]),
        (
            r#"{"data":{"a":1,"from":"x","google.x":"y","aps":"z","belfry_id":"b"}}"#,
            vec!["/data/a", "/data/from", "/data/google.x", "/data/aps", "/data/belfry_id"],
        ),
        (r#"{"title":"T","silent":true}"#, vec!["/title"]),
        (r#"{"title":"T","silent":"yes"}"#, vec!["/silent"]),
        (r#"{"title":"T","urgency":"urgent"}"#, vec!["/urgency"]),
        (r#"{"title":"T","title_args":["a"]}"#, vec!["/title_args"]),
        (r#"{"title_key":"T","title_args":[1]}"#, vec!["/title_args"]),
        (
            r#"{"title":"T","actions":[{"id":"a"},{"id":"b","title":"B","do":1},3]}"#,
            vec!["/actions/0/title", "/actions/1/do", "/actions/2"],
        ),
        (r#"{"apns":{"push_type":"loud","aps":[],"belfry":1}}"#, vec!["/apns/push_type", "/apns/aps", "/apns/belfry"]),
        (
            r#"{"fcm":{"token":"t","data":{"gcm.x":"1"},"android":1}}"#,
            vec!["/fcm/token", "/fcm/data/gcm.x", "/fcm/android"],
        ),
        (r#"{"web_push":[]}"#, vec!["/web_push"]),
        (r#"{"title":"T","apns":{"push_type":"background"}}"#, vec!["/apns/push_type"]),
        (
            r#"{"fcm":{"android":{"data":{"n":1}},"webpush":{"data":{"from":"x"}}}}"#,
            vec!["/fcm/android/data/n", "/fcm/webpush/data/from"],
        ),
        (r#"{"web_push":{"belfry":1}}"#, vec!["/web_push/belfry"]),
    ] {
        let found = check_written(&json(push));
        assert_eq!(found.iter().map(|wrong| wrong.pointer.as_str()).collect::<Vec<_>>(), pointers, "{push}");
    }
}
