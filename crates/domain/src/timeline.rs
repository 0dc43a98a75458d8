//! What happened to a delivery, in order, for people to read. Bounded: a timeline keeps its
//! beginning and its end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::delivery::{DeferWhy, StateName};
use crate::key::NotificationId;
use crate::lane::named_enum;
use crate::outcome::{OutcomeKind, Why};
use crate::time::{UnixMs, duration_ms};

named_enum!(
    /// Where a repeat was caught, or an intent came in.
    Hop {
        /// The same request over HTTP again.
        Http = "http",
        /// The same item in a batch.
        Batch = "batch",
        /// The same row of a broadcast's audience.
        Broadcast = "broadcast",
        /// The same business key under a fresh header key.
        Unique = "unique",
        /// The same redrive, send-again or other action.
        Action = "action",
        /// A worker whose claim had been taken over.
        Fence = "fence",
        /// A provider's callback again.
        Receipt = "receipt",
        /// A digest, made of what gathered.
        Digest = "digest",
        /// The same slot of a schedule, on another node or after a crash.
        Schedule = "schedule",
    }
);

named_enum!(
    /// A provider's later word.
    ReceiptKind {
        Delivered = "delivered",
        Bounced = "bounced",
        Seen = "seen",
        Complained = "complained",
    }
);

named_enum!(
    /// What a person decided about an unknown or parked delivery.
    Resolution {
        Delivered = "delivered",
        Failed = "failed",
    }
);

/// Whose claim an entry speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimMark {
    pub worker: String,
    pub fence: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Happened {
    /// The request; *accepted* is the provider's word.
    #[serde(alias = "accepted")]
    Received {
        via: Hop,
    },
    /// One call to the provider. `attempt` counts from 1; a throttled call does not count, so the next
    /// has the same number.
    Attempt {
        send: u32,
        attempt: u32,
        claim: ClaimMark,
        outcome: OutcomeKind,
        why: Why,
        #[serde(with = "duration_ms")]
        took: Duration,
    },
    /// A claim lapsed. `may_have_sent` unless the record proves that no call was made.
    Lapsed {
        claim: ClaimMark,
        may_have_sent: bool,
    },
    /// A worker whose claim had been taken over reported; evidence, not a settle.
    StaleReport {
        claim: ClaimMark,
        outcome: OutcomeKind,
        why: Why,
    },
    /// Put off, `times` in a row for the same reason: first then, and at last until `until`.
    Deferred {
        until: UnixMs,
        why: DeferWhy,
        /// Which is full.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<String>,
        #[serde(default = "once", skip_serializing_if = "is_once")]
        times: u32,
    },
    /// Not sent because a cap is full that suppresses. There is no room in it before `opens`.
    CapFull {
        cap: String,
        opens: UnixMs,
    },
    LookedUp {
        found: bool,
    },
    /// It goes out as part of this digest.
    Folded {
        into: NotificationId,
    },
    /// The device has another token since: the calls that follow go to that.
    Readdressed,
    StopAsked {
        by: String,
        why: String,
    },
    Receipt {
        kind: ReceiptKind,
    },
    Redriven {
        by: String,
    },
    SentAgain {
        by: String,
        send: u32,
    },
    Resolved {
        by: String,
        to: Resolution,
        why: String,
    },
    Ended {
        state: StateName,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub at: UnixMs,
    #[serde(flatten)]
    pub happened: Happened,
}

/// At most [`Timeline::LIMIT`] entries; what falls out of the middle is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    pub entries: Vec<Entry>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_once(count: &u32) -> bool {
    *count == 1
}

impl Happened {
    /// Whether it says that somebody may have got a message, or what a person or the provider said of it.
    const fn is_evidence(&self) -> bool {
        match self {
            Self::Attempt { outcome, .. } | Self::StaleReport { outcome, .. } => {
                matches!(outcome, OutcomeKind::Accepted | OutcomeKind::Unknown)
            }
            Self::Lapsed { may_have_sent, .. } => *may_have_sent,
            Self::LookedUp { found } => *found,
            Self::Receipt { .. } | Self::SentAgain { .. } | Self::Redriven { .. } | Self::Resolved { .. } => true,
            Self::Received { .. }
            | Self::Deferred { .. }
            | Self::CapFull { .. }
            | Self::Folded { .. }
            | Self::Readdressed
            | Self::StopAsked { .. }
            | Self::Ended { .. } => false,
        }
    }
}

impl Timeline {
    pub const LIMIT: usize = 64;
    const HEAD: usize = 16;

    /// Where it is full the oldest of the middle falls out that nobody has to know of: not what may have reached
    /// somebody, as long as there is anything else.
    pub fn push(&mut self, at: UnixMs, happened: Happened) {
        if self.entries.len() >= Self::LIMIT {
            let of = |from: usize| self.entries[from..].iter().position(|it| !it.happened.is_evidence());
            let falls_out = of(Self::HEAD).map(|at| Self::HEAD + at).or_else(|| of(1).map(|at| 1 + at));
            self.entries.remove(falls_out.unwrap_or(Self::HEAD));
            self.left_out += 1;
        }
        self.entries.push(Entry { at, happened });
    }

    /// Put off until then. In a row and for the same reason it is one entry: what waits for long is looked at often,
    /// and would push out what happened before.
    pub fn put_off(&mut self, at: UnixMs, until: UnixMs, why: DeferWhy, cap: Option<String>) {
        match self.entries.last_mut().map(|entry| &mut entry.happened) {
            Some(Happened::Deferred { until: last, why: same, cap: of, times }) if *same == why && *of == cap => {
                (*last, *times) = (until, times.saturating_add(1));
            }
            _ => self.push(at, Happened::Deferred { until, why, cap, times: 1 }),
        }
    }

    /// What is kept of the time since `send` was opened: an earlier sending's receipts are no
    /// repeats of this one's.
    #[must_use]
    pub fn of_send(&self, send: u32) -> &[Entry] {
        let opens =
            |entry: &Entry| matches!(entry.happened, Happened::SentAgain { send: opened, .. } if opened == send);
        let from = match self.entries.iter().rposition(opens) {
            Some(at) => at + 1,
            None if send == 1 => 0,
            // It fell out of the middle: what stands after the gap is younger.
            None => Self::HEAD.min(self.entries.len()),
        };
        &self.entries[from..]
    }

    /// How many outcomes are on record after which a person may see a further copy of `send`: unknown calls,
    /// and claims that lapsed when a call may have been made.
    #[must_use]
    pub fn unknowns(&self, send: u32) -> usize {
        let unknown = |entry: &&Entry| match &entry.happened {
            Happened::Attempt { send: of, outcome, .. } => *of == send && *outcome == OutcomeKind::Unknown,
            Happened::Lapsed { may_have_sent, .. } => *may_have_sent,
            _ => false,
        };
        self.entries.iter().filter(unknown).count()
    }
}
