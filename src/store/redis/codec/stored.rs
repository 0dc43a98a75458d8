//! A delivery's body: what only Belfry reads of it. CBOR with numbers for names, so that two versions side by
//! side read each other's: what one does not know it passes over, what it misses is as it was before there
//! was such a thing. A number is never given to anything else; everything that is added is optional.
//!
//! What a head already says is not said again.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use belfry_domain::action::{Action, Asked};
use belfry_domain::delivery::{ByHand, Stop};
use belfry_domain::device::DeviceApp;
use belfry_domain::gather::{Gathering, Slot};
use belfry_domain::outcome::{Why, WhyCode};
use belfry_domain::timeline::Timeline;
use belfry_domain::{Delivery, Key, NotificationId, State, UnixMs};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::event::Event;
use super::hex::Hex;
use super::{Result, corrupt};

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredDelivery<'a> {
    #[n(0)]
    id: ByteArray<12>,
    #[b(1)]
    channel: &'a str,
    #[b(2)]
    slot: &'a str,
    #[b(3)]
    class: &'a str,
    /// Of a state that has one.
    #[n(4)]
    until: Option<i64>,
    #[b(5)]
    state_why: Option<&'a str>,
    #[n(6)]
    send: u32,
    #[n(7)]
    attempts: Option<u32>,
    #[n(8)]
    unknowns: Option<u32>,
    #[n(9)]
    first_unknown_at: Option<i64>,
    #[n(10)]
    maybe_sent: Option<bool>,
    #[n(11)]
    reached: Option<bool>,
    #[n(12)]
    twice: Option<bool>,
    #[n(13)]
    lapses: Option<u32>,
    #[n(14)]
    lapses_alone: Option<u32>,
    #[b(15)]
    stop: Option<StoredStop<'a>>,
    #[n(16)]
    created_at: i64,
    #[n(17)]
    expires_at: i64,
    #[n(18)]
    receipt_until: Option<i64>,
    #[b(19)]
    provider_ref: Option<&'a str>,
    #[b(20)]
    content_hash: Hex<'a>,
    #[b(21)]
    address_mask: &'a str,
    #[b(22)]
    address_hash: Hex<'a>,
    #[b(23)]
    last: Option<StoredWhy<'a>>,
    #[b(24)]
    resolved: Option<StoredByHand<'a>>,
    #[b(25)]
    actions: Option<Vec<StoredAction<'a>>>,
    #[b(26)]
    timeline: Vec<Event<'a>>,
    #[n(27)]
    left_out: Option<u32>,
    #[b(28)]
    first_hash: Option<Hex<'a>>,
    #[b(29)]
    device_app: Option<&'a str>,
    #[b(30)]
    device_environment: Option<&'a str>,
    #[b(31)]
    suppressed_at_accept: Option<&'a str>,
    #[n(32)]
    gathering: Option<StoredGathering>,
}

/// Of an item: its slot, and the digest that it is about to be part of.
#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredGathering {
    #[n(0)]
    group: ByteArray<12>,
    #[n(1)]
    until: i64,
    #[n(2)]
    into: Option<ByteArray<12>>,
}

#[derive(Encode, Decode)]
#[cbor(map)]
pub struct StoredWhy<'a> {
    #[b(0)]
    code: &'a str,
    #[b(1)]
    answer: Option<&'a str>,
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredByHand<'a> {
    #[b(0)]
    by: &'a str,
    #[b(1)]
    why: &'a str,
}

/// By a version, for a digest, or by somebody.
#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredStop<'a> {
    #[n(0)]
    version: Option<i64>,
    #[b(1)]
    by: Option<&'a str>,
    #[b(2)]
    why: Option<&'a str>,
    #[n(3)]
    into: Option<ByteArray<12>>,
}

/// A resolution has a `to`, and a send again says that it is one.
#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredAction<'a> {
    #[n(0)]
    key: ByteArray<12>,
    #[n(1)]
    after_send: Option<u32>,
    #[n(2)]
    again: Option<bool>,
    #[b(3)]
    to: Option<&'a str>,
    #[b(4)]
    why: Option<&'a str>,
}

/// What of a delivery stands in its value's head.
pub struct InHead {
    pub notification: NotificationId,
    pub tenant: String,
    pub lane: belfry_domain::Lane,
    pub state: belfry_domain::delivery::StateName,
    pub fence: u64,
    pub rev: u64,
    pub spent: bool,
    pub due_at: UnixMs,
    pub lease: Duration,
    pub ended_at: Option<UnixMs>,
}

/// `None` for none, as nearly all are.
fn some<T: Default + PartialEq>(value: T) -> Option<T> {
    Some(value).filter(|value| *value != T::default())
}

pub(super) fn ms(at: Option<UnixMs>) -> Option<i64> {
    at.map(|at| at.0)
}

/// A member of a closed set.
pub(super) fn named<T: FromStr>(name: &str) -> Result<T> {
    name.parse().map_err(|_| corrupt("a name"))
}

pub(super) fn bytes<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(384);
    // Into a vector nothing can fail to be written.
    minicbor::encode(value, &mut out).unwrap_or_default();
    out
}

pub fn write_delivery(it: &Delivery) -> Vec<u8> {
    let (until, state_why) = match it.state {
        State::Scheduled { until } => (Some(until.0), None),
        State::Deferred { until, why } => (Some(until.0), Some(why.name())),
        State::Parked { why } => (None, Some(why.name())),
        _ => (None, None),
    };
    bytes(&StoredDelivery {
        id: (*it.id.0.as_bytes()).into(),
        channel: it.channel.name(),
        slot: &it.slot,
        class: &it.class,
        until,
        state_why,
        send: it.send,
        attempts: some(it.attempts),
        unknowns: some(it.unknowns),
        first_unknown_at: ms(it.first_unknown_at),
        maybe_sent: some(it.maybe_sent),
        reached: some(it.reached),
        twice: some(it.twice),
        lapses: some(it.lapses),
        lapses_alone: some(it.lapses_alone),
        stop: it.stop.as_ref().map(StoredStop::of),
        created_at: it.created_at.0,
        expires_at: it.expires_at.0,
        receipt_until: ms(it.receipt_until),
        provider_ref: it.provider_ref.as_deref(),
        content_hash: Hex(Cow::Borrowed(&it.content_hash)),
        address_mask: &it.address_mask,
        address_hash: Hex(Cow::Borrowed(&it.address_hash)),
        last: it.last.as_ref().map(StoredWhy::of),
        resolved: it.resolved.as_ref().map(|hand| StoredByHand { by: &hand.by, why: &hand.why }),
        actions: Some(it.actions.iter().map(StoredAction::of).collect()).filter(|all: &Vec<_>| !all.is_empty()),
        timeline: it.timeline.entries.iter().map(Event::of).collect(),
        left_out: some(it.timeline.left_out),
        first_hash: it.first_hash.as_deref().map(|hash| Hex(Cow::Borrowed(hash))),
        device_app: it.device.as_ref().and_then(|device| device.app.as_deref()),
        device_environment: it.device.as_ref().and_then(|device| device.environment.as_deref()),
        suppressed_at_accept: it.suppressed_at_accept.map(WhyCode::name),
        gathering: it.gathering.as_ref().map(StoredGathering::of),
    })
}

pub fn read_delivery(body: &[u8], head: InHead) -> Result<Delivery> {
    let it: StoredDelivery<'_> = minicbor::decode(body).map_err(|_| corrupt("a delivery"))?;
    Ok(Delivery {
        id: belfry_domain::DeliveryId(Key::from_bytes(it.id.into())),
        notification: head.notification,
        channel: named(it.channel)?,
        slot: it.slot.to_owned(),
        class: it.class.to_owned(),
        lane: head.lane,
        tenant: head.tenant,
        state: super::event::state_of(head.state, head.fence, it.until, it.state_why)?,
        rev: head.rev,
        send: it.send,
        attempts: it.attempts.unwrap_or_default(),
        unknowns: it.unknowns.unwrap_or_default(),
        first_unknown_at: it.first_unknown_at.map(UnixMs),
        maybe_sent: it.maybe_sent.unwrap_or_default(),
        reached: it.reached.unwrap_or_default(),
        twice: it.twice.unwrap_or_default(),
        lapses: it.lapses.unwrap_or_default(),
        lapses_alone: it.lapses_alone.unwrap_or_default(),
        spent: head.spent,
        stop: it.stop.map(StoredStop::read),
        gathering: it.gathering.map(StoredGathering::read),
        created_at: UnixMs(it.created_at),
        due_at: head.due_at,
        expires_at: UnixMs(it.expires_at),
        lease: head.lease,
        ended_at: head.ended_at,
        receipt_until: it.receipt_until.map(UnixMs),
        provider_ref: it.provider_ref.map(str::to_owned),
        content_hash: it.content_hash.0.into_owned(),
        address_mask: it.address_mask.to_owned(),
        address_hash: it.address_hash.0.into_owned(),
        first_hash: it.first_hash.map(|hash| hash.0.into_owned()),
        device: DeviceApp::said(it.device_app, it.device_environment),
        last: it.last.map(|why| why.read()),
        suppressed_at_accept: it.suppressed_at_accept.map(|code| code.parse().unwrap_or(WhyCode::Unrecognised)),
        resolved: it.resolved.map(|hand| ByHand { by: hand.by.to_owned(), why: hand.why.to_owned() }),
        actions: it.actions.unwrap_or_default().into_iter().map(StoredAction::read).collect::<Result<_>>()?,
        timeline: timeline(it.timeline, it.left_out.unwrap_or_default()),
    })
}

/// Entries that a newer version has are left out, and counted.
fn timeline(events: Vec<Event<'_>>, left_out: u32) -> Timeline {
    let count = events.len();
    let entries: Vec<_> = events.into_iter().filter_map(Event::read).collect();
    let strange = u32::try_from(count - entries.len()).unwrap_or(u32::MAX);
    Timeline { entries, left_out: left_out.saturating_add(strange) }
}

impl<'a> StoredWhy<'a> {
    pub fn of(why: &'a Why) -> Self {
        Self { code: why.code.name(), answer: why.answer.as_deref() }
    }

    /// A code of a newer version's is one that this one does not know.
    pub fn read(&self) -> Why {
        let code = self.code.parse().unwrap_or(WhyCode::Unrecognised);
        Why { code, answer: self.answer.map(str::to_owned) }
    }
}

pub(super) fn id(it: NotificationId) -> ByteArray<12> {
    (*it.0.as_bytes()).into()
}

pub(super) fn read_id(it: ByteArray<12>) -> NotificationId {
    NotificationId(Key::from_bytes(it.into()))
}

impl StoredGathering {
    fn of(it: &Gathering) -> Self {
        let Slot { group, until } = it.slot;
        Self { group: (*group.as_bytes()).into(), until: until.0, into: it.into.map(id) }
    }

    fn read(self) -> Gathering {
        let slot = Slot { group: Key::from_bytes(self.group.into()), until: UnixMs(self.until) };
        Gathering { slot, into: self.into.map(read_id) }
    }
}

impl<'a> StoredStop<'a> {
    fn of(stop: &'a Stop) -> Self {
        match stop {
            Stop::Cancel { by, why } => Self { version: None, by: Some(by), why: Some(why), into: None },
            Stop::Supersede { by_version } => Self { version: Some(*by_version), by: None, why: None, into: None },
            Stop::Fold { into } => Self { version: None, by: None, why: None, into: Some(id(*into)) },
        }
    }

    fn read(self) -> Stop {
        let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
        match (self.version, self.into) {
            (Some(by_version), _) => Stop::Supersede { by_version },
            (None, Some(into)) => Stop::Fold { into: read_id(into) },
            (None, None) => Stop::Cancel { by: owned(self.by), why: owned(self.why) },
        }
    }
}

impl<'a> StoredAction<'a> {
    fn of(action: &'a Action) -> Self {
        let mut it = Self { key: (*action.key.as_bytes()).into(), after_send: None, again: None, to: None, why: None };
        match &action.asked {
            Asked::Redrive { after_send } => it.after_send = Some(*after_send),
            Asked::SendAgain { after_send } => (it.after_send, it.again) = (Some(*after_send), Some(true)),
            Asked::Resolve { to, why } => (it.to, it.why) = (Some(to.name()), Some(why.as_str())),
        }
        it
    }

    fn read(self) -> Result<Action> {
        let after_send = self.after_send.unwrap_or_default();
        let asked = match (self.to, self.again) {
            (Some(to), _) => Asked::Resolve { to: named(to)?, why: self.why.unwrap_or_default().to_owned() },
            (None, Some(true)) => Asked::SendAgain { after_send },
            (None, _) => Asked::Redrive { after_send },
        };
        Ok(Action { key: Key::from_bytes(self.key.into()), asked })
    }
}
