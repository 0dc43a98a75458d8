use std::time::Duration;

use belfry_domain::action::{Action, Asked};
use belfry_domain::delivery::{ByHand, DeferWhy, NewDelivery as Plan, ParkWhy, StateName, Stop};
use belfry_domain::device::{DeviceApp, LeftOut, LeftOutWhy};
use belfry_domain::gather::{Gathering, Slot};
use belfry_domain::notification::{Fingerprint, Notification, least_finished};
use belfry_domain::outcome::{OutcomeKind, Why, WhyCode};
use belfry_domain::timeline::{ClaimMark, Entry, Happened, Hop, ReceiptKind, Resolution, Timeline};
use belfry_domain::{ChannelKind, Delivery, Lane, NotificationId, Priority, State, UnixMs};

use super::text::{pack, unpack};
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
        recipient: None,
        left_out: Vec::new(),
        digest: None,
        gathered: Vec::new(),
    };
    let delivery = Delivery::new(Plan {
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
        device: None,
        via: Hop::Http,
    });
    let group = CollapseGroup { group: "g".into(), version: -3 };
    NewNotification {
        notification,
        deliveries: vec![delivery],
        attached: Vec::new(),
        inputs: format!("{{\"to\":{{}},\"source\":\"{}\"}}", "words of a mail. ".repeat(20)),
        collapse_groups: vec![Some(group)],
        recipient_hash: None,
    }
}

/// As `accept.lua` completes it.
fn values(intent: &NewNotification) -> (Vec<u8>, Vec<u8>) {
    let values = NewValues::of(intent).unwrap();
    let notification = [&[0; N_GIVEN][..], &values.notification].concat();
    let delivery = [&[0; D_GIVEN][..], &values.deliveries[0].value].concat();
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
fn whom_it_was_for_and_who_was_left_out_reads_back_and_costs_nobody_else_a_byte() {
    let bare = intent();
    let mut named = intent();
    named.recipient_hash = Some("ab".repeat(16));
    named.notification.recipient = Some("user-42".into());
    let why = [LeftOutWhy::Dead, LeftOutWhy::Quarantined];
    named.notification.left_out =
        why.map(|why| LeftOut { device: "phone".into(), kind: ChannelKind::Apns, why, since: NOW }).into();
    named.notification.digest = Some("comments".into());
    named.notification.gathered = ["1", "2"].map(|key| NotificationId::http("acme", "live", "keys", key)).into();
    assert_eq!(read_notification(&values(&named).0).unwrap().notification, named.notification);
    // A person's entry is one more of those that a record has.
    let entries = |of: &NewNotification| NewValues::of(of).unwrap().entries;
    assert_eq!(entries(&named).len(), entries(&bare).len() + 7);
    let without: Vec<u8> = entries(&named).chunks(7).filter(|entry| entry[0] != b'p').flatten().copied().collect();
    assert_eq!(without, entries(&bare));
    let body = intent::write_notification(&bare.notification);
    let last = [&[0x12, 0x1a][..], &259_200_000_u32.to_be_bytes()].concat();
    assert!(body.ends_with(&last), "nothing follows what layouts before had");
    // A reason that only a newer version knows.
    let (mut value, _) = values(&named);
    let at = value.windows(4).position(|part| part == b"dead").unwrap();
    value[at..at + 4].copy_from_slice(b"lost");
    assert_eq!(read_notification(&value).unwrap().notification.left_out, named.notification.left_out[1..]);
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

/// §13 has what a whole pending delivery may take.
#[test]
fn a_record_is_small() {
    let intent = intent();
    let plain = serde_json::to_vec(&intent.notification).unwrap().len();
    let stored = intent::write_notification(&intent.notification).len();
    assert!(stored * 100 < plain * 40, "{stored} of {plain}");
    let plain = serde_json::to_vec(&intent.deliveries[0]).unwrap().len();
    let stored = body(&intent.deliveries[0]).len();
    assert!(stored * 100 < plain * 30, "{stored} of {plain}");
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
    delivery[23] = state_code(StateName::Sending);
    delivery[24] |= SPENT;
    delivery[36] = 4;
    delivery[42] = 9;
    let read = read_delivery(&delivery).unwrap().delivery;
    let expected = Delivery { state: State::Sending { fence: 9 }, spent: true, rev: 4, ..intent.deliveries[0].clone() };
    assert_eq!(read, expected);
}

fn every_entry() -> [Happened; 15] {
    let claim = || ClaimMark { worker: "node-1".into(), fence: 7 };
    let why = || Why::said(WhyCode::TryLater, "450 later");
    [
        Happened::Received { via: Hop::Batch },
        Happened::Attempt {
            send: 2,
            attempt: 3,
            claim: claim(),
            outcome: OutcomeKind::NotAccepted,
            why: why(),
            took: Duration::from_millis(12),
        },
        Happened::Lapsed { claim: claim(), may_have_sent: true },
        Happened::StaleReport { claim: claim(), outcome: OutcomeKind::Accepted, why: Why::new(WhyCode::Ok) },
        Happened::Deferred { until: NOW, why: DeferWhy::Budget, cap: None, times: 1 },
        Happened::Deferred { until: NOW, why: DeferWhy::Cap, cap: Some("hourly".into()), times: 7 },
        Happened::Folded { into: NotificationId::http("acme", "live", "keys", "digest") },
        Happened::LookedUp { found: true },
        Happened::Readdressed,
        Happened::StopAsked { by: "key_1".into(), why: "a mistake".into() },
        Happened::Receipt { kind: ReceiptKind::Complained },
        Happened::Redriven { by: "key_1".into() },
        Happened::SentAgain { by: "key_2".into(), send: 2 },
        Happened::Resolved { by: "key_1".into(), to: Resolution::Failed, why: String::new() },
        Happened::Ended { state: StateName::Bounced },
    ]
}

/// One of each kind of everything that a body can say.
fn everything() -> Vec<Delivery> {
    let base = intent().deliveries[0].clone();
    let asked = [
        Asked::Redrive { after_send: 0 },
        Asked::SendAgain { after_send: 1 },
        Asked::Resolve { to: Resolution::Delivered, why: "seen".into() },
    ];
    let full = Delivery {
        send: 3,
        attempts: 4,
        unknowns: 1,
        first_unknown_at: Some(NOW),
        maybe_sent: true,
        reached: true,
        twice: true,
        lapses: 1,
        lapses_alone: 1,
        stop: Some(Stop::Cancel { by: "key_1".into(), why: "a mistake".into() }),
        receipt_until: Some(NOW),
        provider_ref: Some("ref".into()),
        content_hash: "not hex".into(),
        first_hash: Some("0f".repeat(16)),
        device: DeviceApp::said(Some("com.example.app"), Some("sandbox")),
        last: Some(Why::said(WhyCode::TryLater, "450 later")),
        suppressed_at_accept: Some(WhyCode::BouncedBefore),
        resolved: Some(ByHand { by: "key_1".into(), why: "seen".into() }),
        actions: asked.map(|asked| Action { key: base.id.0, asked }).into(),
        timeline: Timeline { entries: every_entry().map(|happened| Entry { at: NOW, happened }).into(), left_out: 5 },
        ..base.clone()
    };
    let superseded = Delivery { stop: Some(Stop::Supersede { by_version: -4 }), ..base.clone() };
    let slot = Slot { group: base.id.0, until: NOW };
    let folding = Gathering { slot, into: Some(slot.digest(0)) };
    let folding = Delivery { gathering: Some(folding), ..base.clone() };
    let folded = Delivery {
        gathering: Some(Gathering::new(slot)),
        stop: Some(Stop::Fold { into: slot.digest(1) }),
        ..base.clone()
    };
    let states = [
        State::Scheduled { until: NOW },
        State::Queued,
        State::Deferred { until: NOW, why: DeferWhy::Retry },
        State::Accepted,
        State::Delivered,
        State::Bounced,
        State::Failed,
        State::Expired,
        State::Suppressed,
        State::Cancelled,
        State::Superseded,
        State::Unknown,
        State::Parked { why: ParkWhy::Poison },
    ];
    let of_states = states.map(|state| Delivery { state, ended_at: Some(NOW), ..base.clone() });
    [full, superseded, folding, folded].into_iter().chain(of_states).collect()
}

#[test]
fn all_that_a_delivery_can_say_reads_back() {
    for delivery in everything() {
        let value = NewDelivery::of(&delivery, 0, None).unwrap().value;
        let read = read_delivery(&[&[0; D_GIVEN][..], &value].concat()).unwrap().delivery;
        assert_eq!(read, delivery);
    }
}

#[test]
fn what_a_newer_version_adds_is_passed_over() {
    let delivery = &intent().deliveries[0];
    let body = body(delivery);
    // A map of so many, then another one behind: number 99 says "new".
    let (head, rest) = minicbor::Decoder::new(&body).map().map(|count| (count.unwrap(), &body[1..])).unwrap();
    assert!(head < 22, "its length stands in one byte");
    let newer = [&[0xa0 + u8::try_from(head).unwrap() + 1][..], rest, &[0x18, 99, 0x63], b"new"].concat();
    let value = NewDelivery::of(delivery, 0, None).unwrap().value;
    let before = value.len() - body.len();
    let read = read_delivery(&[&[0; D_GIVEN][..], &value[..before], &newer].concat()).unwrap().delivery;
    assert_eq!(read, *delivery);
}

/// Side by side with a newer version: what it says that this one does not know keeps nothing from being read.
#[test]
fn kinds_reasons_and_codes_of_a_newer_version_are_passed_over() {
    let mut delivery = intent().deliveries.remove(0);
    let at = delivery.created_at;
    let why = Why::new(WhyCode::RateLimited);
    delivery.timeline.push(at, Happened::LookedUp { found: true });
    delivery.timeline.push(at, Happened::Redriven { by: "key \"night\"".into() });
    delivery.last = Some(why.clone());
    delivery.state = State::Parked { why: ParkWhy::Drift };
    let mut value = NewDelivery::of(&delivery, 0, None).unwrap().value;
    let replace = |value: &mut Vec<u8>, from: &[u8], to: &[u8]| {
        assert_eq!(from.len(), to.len());
        let at = value.windows(from.len()).position(|part| part == from).unwrap();
        value[at..at + to.len()].copy_from_slice(to);
    };
    replace(&mut value, b"rate_limited", b"rate_by_moon");
    replace(&mut value, b"drift", b"storm");
    // The kind of an entry is what its number 1 says: looked up, and then one that nobody knows yet.
    replace(&mut value, &[0x01, 0x05], &[0x01, 0x17]);
    let read = read_delivery(&[&[0; D_GIVEN][..], &value].concat()).unwrap().delivery;
    assert_eq!(read.last.unwrap().code, WhyCode::Unrecognised);
    assert_eq!(read.state, State::Parked { why: ParkWhy::UnrecognisedAnswer });
    let entries: Vec<_> = read.timeline.entries.iter().map(|entry| entry.happened.clone()).collect();
    assert_eq!(
        entries,
        [delivery.timeline.entries[0].happened.clone(), Happened::Redriven { by: "key \"night\"".into() }]
    );
    assert_eq!(read.timeline.left_out, 1);
}
