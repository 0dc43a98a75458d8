use std::time::Duration;

use belfry_domain::delivery::{NewDelivery, StateName};
use belfry_domain::notification::{Fingerprint, Notification, least_finished};
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, Delivery, Lane, NotificationId, Priority, State, UnixMs};

use super::text::{packed_json, unpack};
use super::*;

const NOW: UnixMs = UnixMs(1_800_000_000_000);

fn intent() -> NewNotification {
    let id = NotificationId::http("acme", "live", "keys", "order-42/shipped");
    let parts = ["/class", "/to/email", "/template", "/data/order", "/reference"];
    let hex =
        |seed: u32| (0..8).map(|word| format!("{:08x}", seed.wrapping_mul(2_654_435_761 ^ word))).collect::<String>();
    let notification = Notification {
        id,
        tenant: "acme".into(),
        environment: "live".into(),
        class: "receipt".into(),
        created_at: NOW,
        remembered_until: NOW.plus(Duration::from_secs(15 * 86_400)),
        via: Hop::Http,
        template: None,
        scope: None,
        reference: Some("crm-7".into()),
        group: None,
        collapse: None,
        send_at: None,
        expires_at: NOW.plus(Duration::from_secs(3 * 86_400)),
        traceparent: None,
        metadata: None,
        fingerprint: Fingerprint {
            whole: hex(7),
            parts: (0..).zip(parts).map(|(n, part)| (part.to_owned(), hex(n)[..8].to_owned())).collect(),
        },
        keep_content_ms: 259_200_000,
    };
    let delivery = Delivery::new(NewDelivery {
        notification: id,
        channel: ChannelKind::Email,
        slot: "to".into(),
        class: "receipt".into(),
        lane: Lane::new("main", Priority::Normal),
        tenant: "acme".into(),
        created_at: NOW,
        send_at: None,
        expires_at: notification.expires_at,
        lease: Duration::from_secs(30),
        content_hash: hex(11),
        address_mask: "a…@example.com".into(),
        address_hash: hex(13)[..32].to_owned(),
        via: Hop::Http,
    });
    let group = CollapseGroup { group: "g".into(), version: -3 };
    NewNotification {
        notification,
        deliveries: vec![delivery],
        inputs: format!("{{\"to\":{{}},\"source\":\"{}\"}}", "words of a mail. ".repeat(20)),
        collapse_groups: vec![Some(group)],
    }
}

/// As `accept.lua` completes it.
fn values(intent: &NewNotification) -> (Vec<u8>, Vec<u8>) {
    let values = NewValues::of(intent).unwrap();
    let notification = [&[0; N_GIVEN][..], &values.notification].concat();
    let delivery = [&[0; D_GIVEN][..], &values.deliveries[0].1].concat();
    (notification, delivery)
}

#[test]
fn what_is_written_reads_back() {
    let intent = intent();
    let (notification, delivery) = values(&intent);
    let read = read_notification(&notification).unwrap();
    assert_eq!((read.notification, read.inputs, read.repeats), (intent.notification, Some(intent.inputs), 0));
    let read = read_delivery(&delivery).unwrap();
    assert_eq!((read.delivery, read.collapse), (intent.deliveries[0].clone(), intent.collapse_groups[0].clone()));
}

#[test]
fn what_is_cut_or_strange_is_an_error() {
    let (notification, delivery) = values(&intent());
    for length in 0..notification.len() {
        // Without its last part it is a record whose inputs are purged.
        drop(read_notification(&notification[..length]));
    }
    for length in 0..delivery.len() {
        assert!(read_delivery(&delivery[..length]).is_err(), "{length}");
    }
    assert!(unpack(&[2, 0]).is_err());
    assert!(unpack(&[1, 255, 255, 255, 255, 0]).is_err());
    assert!(state_of(14).is_err());
    assert!(worker_name(&"w".repeat(25)).is_err());
}

/// What all records have in common costs little. §13 has what a whole pending delivery may take.
#[test]
fn a_record_packs_well() {
    let intent = intent();
    let plain = serde_json::to_vec(&intent.notification).unwrap().len();
    let packed = packed_json(&intent.notification).unwrap().len();
    assert!(packed * 100 < plain * 55, "{packed} of {plain}");
    let plain = serde_json::to_vec(&intent.deliveries[0]).unwrap().len();
    let packed = body(&intent.deliveries[0]).unwrap().len();
    assert!(packed * 100 < plain * 45, "{packed} of {plain}");
    assert_eq!(pack(b"{}"), b"\0{}");
}

#[test]
fn codes_are_in_the_order_of_least_finished() {
    for pair in CODES.windows(2) {
        assert_eq!(least_finished(pair.iter().copied()), pair[0]);
    }
    assert_eq!(CODES.iter().copied().collect::<std::collections::BTreeSet<_>>().len(), StateName::ALL.len());
}

#[test]
fn versions_sort_as_their_texts() {
    let versions = [i64::MIN, -5, -1, 0, 1, 9_007_199_254_740_993, i64::MAX];
    let texts = versions.map(version_text);
    assert!(texts.is_sorted());
    assert_eq!(texts.map(|text| version_of(text.as_bytes()).unwrap()), versions);
}

#[test]
fn a_spent_mark_and_a_claim_overrule_the_body() {
    let intent = intent();
    let (_, mut delivery) = values(&intent);
    delivery[D_GIVEN] = state_code(StateName::Sending);
    delivery[D_GIVEN + 1] |= SPENT;
    delivery[20] = 4;
    delivery[26] = 9;
    let read = read_delivery(&delivery).unwrap().delivery;
    let expected = Delivery { state: State::Sending { fence: 9 }, spent: true, rev: 4, ..intent.deliveries[0].clone() };
    assert_eq!(read, expected);
}
