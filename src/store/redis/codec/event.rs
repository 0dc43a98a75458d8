//! States and the timeline's entries, as bodies have them.

use std::time::Duration;

use belfry_domain::delivery::{DeferWhy, ParkWhy, StateName};
use belfry_domain::timeline::{ClaimMark, Entry, Happened};
use belfry_domain::{State, UnixMs};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::stored::{StoredWhy, id, read_id};
use super::{Result, corrupt};

/// An entry of the timeline: what it is, and of all that one can say what this one does.
#[derive(Default, Encode, Decode)]
#[cbor(map)]
pub struct Event<'a> {
    #[n(0)]
    at: i64,
    /// One of the constants below. Stored: a number is never given to anything else.
    #[n(1)]
    what: u8,
    #[n(2)]
    send: Option<u32>,
    #[n(3)]
    attempt: Option<u32>,
    #[b(4)]
    worker: Option<&'a str>,
    #[n(5)]
    fence: Option<u64>,
    #[b(6)]
    why: Option<StoredWhy<'a>>,
    #[n(7)]
    took: Option<u64>,
    #[n(8)]
    until: Option<i64>,
    /// A member of the closed set that this kind of entry has one of.
    #[b(9)]
    name: Option<&'a str>,
    #[b(10)]
    by: Option<&'a str>,
    #[b(11)]
    text: Option<&'a str>,
    #[n(12)]
    yes: Option<bool>,
    #[n(13)]
    times: Option<u32>,
    #[n(14)]
    into: Option<ByteArray<12>>,
}

const RECEIVED: u8 = 0;
const ATTEMPT: u8 = 1;
const LAPSED: u8 = 2;
const STALE_REPORT: u8 = 3;
const DEFERRED: u8 = 4;
const LOOKED_UP: u8 = 5;
const STOP_ASKED: u8 = 6;
const RECEIPT: u8 = 7;
const REDRIVEN: u8 = 8;
const SENT_AGAIN: u8 = 9;
const RESOLVED: u8 = 10;
const ENDED: u8 = 11;
const READDRESSED: u8 = 12;
const CAP_FULL: u8 = 13;
const FOLDED: u8 = 14;

impl<'a> Event<'a> {
    pub fn of(entry: &'a Entry) -> Self {
        let it = Self { at: entry.at.0, ..Self::default() };
        let by =
            |claim: &'a ClaimMark| Self { worker: Some(&claim.worker), fence: Some(claim.fence), ..Self::default() };
        match &entry.happened {
            Happened::Received { via } => Self { what: RECEIVED, name: Some(via.name()), ..it },
            Happened::Attempt { send, attempt, claim, outcome, why, took } => Self {
                at: it.at,
                what: ATTEMPT,
                send: Some(*send),
                attempt: Some(*attempt),
                name: Some(outcome.name()),
                why: Some(StoredWhy::of(why)),
                took: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
                ..by(claim)
            },
            Happened::Lapsed { claim, may_have_sent } => {
                Self { at: it.at, what: LAPSED, yes: Some(*may_have_sent), ..by(claim) }
            }
            Happened::StaleReport { claim, outcome, why } => Self {
                at: it.at,
                what: STALE_REPORT,
                name: Some(outcome.name()),
                why: Some(StoredWhy::of(why)),
                ..by(claim)
            },
            Happened::Deferred { until, why, cap, times } => Self {
                what: DEFERRED,
                until: Some(until.0),
                name: Some(why.name()),
                text: cap.as_deref(),
                times: (*times > 1).then_some(*times),
                ..it
            },
            Happened::CapFull { cap, opens } => Self { what: CAP_FULL, until: Some(opens.0), text: Some(cap), ..it },
            Happened::Folded { into } => Self { what: FOLDED, into: Some(id(*into)), ..it },
            Happened::LookedUp { found } => Self { what: LOOKED_UP, yes: Some(*found), ..it },
            Happened::Readdressed => Self { what: READDRESSED, ..it },
            Happened::StopAsked { by, why } => Self { what: STOP_ASKED, by: Some(by), text: Some(why), ..it },
            Happened::Receipt { kind } => Self { what: RECEIPT, name: Some(kind.name()), ..it },
            Happened::Redriven { by } => Self { what: REDRIVEN, by: Some(by), ..it },
            Happened::SentAgain { by, send } => Self { what: SENT_AGAIN, by: Some(by), send: Some(*send), ..it },
            Happened::Resolved { by, to, why } => {
                Self { what: RESOLVED, by: Some(by), name: Some(to.name()), text: Some(why), ..it }
            }
            Happened::Ended { state } => Self { what: ENDED, name: Some(state.name()), ..it },
        }
    }

    /// `None`: a newer version's.
    pub fn read(self) -> Option<Entry> {
        let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let name = self.name.unwrap_or_default();
        let (by, text) = (owned(self.by), owned(self.text));
        let claim = || ClaimMark { worker: owned(self.worker), fence: self.fence.unwrap_or_default() };
        let why = || Some(self.why.as_ref()?.read());
        let (send, yes) = (self.send.unwrap_or_default(), self.yes.unwrap_or_default());
        let happened = match self.what {
            RECEIVED => Happened::Received { via: name.parse().ok()? },
            ATTEMPT => Happened::Attempt {
                send,
                attempt: self.attempt.unwrap_or_default(),
                claim: claim(),
                outcome: name.parse().ok()?,
                why: why()?,
                took: Duration::from_millis(self.took.unwrap_or_default()),
            },
            LAPSED => Happened::Lapsed { claim: claim(), may_have_sent: yes },
            STALE_REPORT => Happened::StaleReport { claim: claim(), outcome: name.parse().ok()?, why: why()? },
            DEFERRED => Happened::Deferred {
                until: UnixMs(self.until.unwrap_or_default()),
                why: name.parse().ok()?,
                cap: self.text.map(str::to_owned),
                times: self.times.unwrap_or(1),
            },
            CAP_FULL => Happened::CapFull { cap: text, opens: UnixMs(self.until.unwrap_or_default()) },
            FOLDED => Happened::Folded { into: read_id(self.into?) },
            LOOKED_UP => Happened::LookedUp { found: yes },
            READDRESSED => Happened::Readdressed,
            STOP_ASKED => Happened::StopAsked { by, why: text },
            RECEIPT => Happened::Receipt { kind: name.parse().ok()? },
            REDRIVEN => Happened::Redriven { by },
            SENT_AGAIN => Happened::SentAgain { by, send },
            RESOLVED => Happened::Resolved { by, to: name.parse().ok()?, why: text },
            ENDED => Happened::Ended { state: name.parse().ok()? },
            _ => return None,
        };
        Some(Entry { at: UnixMs(self.at), happened })
    }
}

/// A state out of its name and what it may say besides.
pub fn state_of(name: StateName, fence: u64, until: Option<i64>, why: Option<&str>) -> Result<State> {
    let until = || until.map(UnixMs).ok_or_else(|| corrupt("a state"));
    let why = why.unwrap_or_default();
    Ok(match name {
        StateName::Scheduled => State::Scheduled { until: until()? },
        StateName::Queued => State::Queued,
        // Whatever a newer version waits for, it is over then; and what it parked, a person has to see.
        StateName::Deferred => State::Deferred { until: until()?, why: why.parse().unwrap_or(DeferWhy::Retry) },
        StateName::Sending => State::Sending { fence },
        StateName::Accepted => State::Accepted,
        StateName::Delivered => State::Delivered,
        StateName::Bounced => State::Bounced,
        StateName::Failed => State::Failed,
        StateName::Expired => State::Expired,
        StateName::Suppressed => State::Suppressed,
        StateName::Cancelled => State::Cancelled,
        StateName::Superseded => State::Superseded,
        StateName::Unknown => State::Unknown,
        StateName::Parked => State::Parked { why: why.parse().unwrap_or(ParkWhy::UnrecognisedAnswer) },
    })
}
