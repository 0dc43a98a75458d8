//! Caps: in no window of a cap's length do more calls reach somebody than its limit says.
//!
//! A call takes a place with each cap that it comes under, right before it. The place is given back where the
//! provider definitely did not take the message, and counts where the person may have got it. When in the
//! call's time that was nobody knows, so a take counts up to the latest moment at which it may have been:
//! until the call has ended, the moment by which it will have. So nothing has to happen for a cap to be kept.
//! Whatever crashes or gets lost between the take and the word about its end costs room for a while and
//! never lets one too many through.
//!
//! [`Ledger`] is the model that every store follows. How a store keeps one, so that each verb is short:
//!
//! - Redis: one sorted set for each cap key, alone on its slot; members are reservations (12 bytes), scores
//!   their latest moments. *Take* is one script that reads the server's `TIME`. A member that is there and
//!   still counts is raised (`ZADD XX GT`): a repeat. Otherwise `ZCOUNT` of what still counts decides. Below the
//!   limit: `ZADD`, and an expiry at the highest score plus the window as they are then. At it: the answer is `ZREVRANGE` at rank
//!   `limit - 1`, a count of what has ended, and the first score that lies ahead. Each take removes at most 128
//!   members that count no more, by rank: more than it adds, so a key holds little more than its limit.
//!   *Count* is `ZADD XX LT` with the server's time, *give back* is `ZREM`.
//! - SQLite: rows of (cap key, reservation, latest moment), unique by the first two, indexed by the first and
//!   last. All takes of a call are one transaction: where one refuses, none is written.
//!
//! Moments are the store's, so that nodes whose clocks differ share one count. Verbs are idempotent, and a
//! reservation is never used by another call: a late *give back* gives back nothing of somebody else's.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::class::Contradiction;
use crate::delivery::Delivery;
use crate::key::{Key, KeyKind, child_key};
use crate::lane::{ChannelKind, named_enum};
use crate::outcome::Outcome;
use crate::subject::Subject;
use crate::time::UnixMs;
use crate::timeline::Happened;

/// Of what there may be so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each stored recipient, over all of their addresses; each address where the request names no recipient.
    Recipient,
    Address,
    /// Each scope of the request, such as an order. Requests without one are not counted.
    Scope,
    /// All telephone numbers with the same first digits, country code included: a fraud sends to a range.
    Prefix {
        digits: u8,
    },
}

named_enum!(
    /// What becomes of what is too many.
    Then {
        /// It waits until it fits.
        Defer = "defer",
        /// It ends suppressed.
        Suppress = "suppress",
    }
);

/// At most `limit` calls in any window of a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// In the configuration; what was taken under it is remembered by it.
    pub name: String,
    pub per: Per,
    pub limit: u32,
    pub window: Duration,
    pub then: Then,
    /// Counts these classes only; empty: all. The same for the others.
    pub classes: Vec<String>,
    pub channels: Vec<ChannelKind>,
    pub templates: Vec<String>,
}

impl Cap {
    /// An exact window remembers every call in it.
    pub const MOST: u32 = 10_000;
    pub const LONGEST: Duration = Duration::from_secs(31 * 24 * 3600);
    /// No whole telephone number is so short: a range must not be a person.
    pub const MOST_DIGITS: u8 = 6;

    /// Everything about it that cannot be kept; start is refused unless empty.
    #[must_use]
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        let mut refuse = |key, problem: String| found.push(Contradiction { key, problem });
        if self.limit == 0 || self.limit > Self::MOST {
            refuse("limit", format!("must be from 1 to {}", Self::MOST));
        }
        if self.window < Duration::from_secs(1) || self.window > Self::LONGEST {
            refuse("window", "must be from 1s to 31d".into());
        }
        match self.per {
            Per::Prefix { digits } if digits == 0 || digits > Self::MOST_DIGITS => {
                refuse(
                    "digits",
                    format!("must be from 1 to {}: a longer one may be a whole number", Self::MOST_DIGITS),
                );
            }
            Per::Prefix { .. } | Per::Recipient | Per::Address | Per::Scope => {}
        }
        found
    }

    /// Under which key its ledger for this call is kept; none where the cap does not count it. Holds no
    /// address: of a number only the range, of others the keyed hash.
    #[must_use]
    pub fn key(&self, subject: &Subject) -> Option<Key> {
        let any_or = |list: &[String], one: Option<&str>| {
            list.is_empty() || one.is_some_and(|one| list.iter().any(|listed| listed == one))
        };
        let counted = any_or(&self.classes, Some(subject.class))
            && any_or(&self.templates, subject.template)
            && (self.channels.is_empty() || self.channels.contains(&subject.channel));
        if !counted {
            return None;
        }
        let (kind, of) = match self.per {
            Per::Recipient => match subject.recipient {
                Some(recipient) => ("recipient", recipient),
                None => ("address", subject.address_hash),
            },
            Per::Address => ("address", subject.address_hash),
            Per::Scope => ("scope", subject.scope?),
            // The plus sign and the digits.
            Per::Prefix { digits } => ("prefix", subject.number?.get(..=usize::from(digits))?),
        };
        let parts = [subject.tenant, subject.environment, &self.name, kind, of].map(str::as_bytes);
        Some(child_key(KeyKind::Cap, &parts))
    }
}

/// One cap's take for one call.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a> {
    /// Of the ledger.
    pub key: Key,
    pub cap: &'a Cap,
}

/// What a call has to take, in the order in which it is taken: of two calls under the same caps one gets all.
#[must_use]
pub fn takes<'a>(caps: &'a [Cap], subject: &Subject) -> Vec<Take<'a>> {
    let mut all: Vec<_> = caps.iter().filter_map(|cap| Some(Take { key: cap.key(subject)?, cap })).collect();
    all.sort_by_key(|take| take.key);
    all
}

/// Under which one call's takes are kept: of its delivery, its send and the claim it is made under. A claim
/// makes one call at the most, and its fence is never given out again, which the number of an attempt is
/// after a throttle or a worker's death.
#[must_use]
pub fn reservation(delivery: &Delivery, fence: u64) -> Key {
    child_key(KeyKind::Take, &[delivery.id.0.as_bytes(), &delivery.send.to_be_bytes(), &fence.to_be_bytes()])
}

/// What becomes of a call's takes at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It may have reached the person.
    Counts,
    GivenBack,
}

impl Fate {
    #[must_use]
    pub const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Accepted { .. } | Outcome::Unknown { .. } => Self::Counts,
            Outcome::Refused { .. }
            | Outcome::RecipientGone { .. }
            | Outcome::NotAccepted { .. }
            | Outcome::Throttled { .. } => Self::GivenBack,
        }
    }
}

/// Under which the claims of this send took that lapsed before a call can have been made: their worker died between
/// the take and *spent*. To be given back by the next claim, which knows the ledgers. Those of the others stand: at
/// least once nobody knows whether the call was made, and it may still go on.
pub fn left_behind(delivery: &Delivery) -> impl Iterator<Item = Key> {
    delivery.timeline.of_send(delivery.send).iter().filter_map(|entry| {
        let Happened::Lapsed { claim, may_have_sent: false } = &entry.happened else { return None };
        Some(reservation(delivery, claim.fence))
    })
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The first moment at which there is, if nothing else happens.
    pub until: UnixMs,
    /// Where calls that are under way still may give back what makes it full: when the first of them has to
    /// have ended.
    pub open_until: Option<UnixMs>,
}

/// What was taken of one cap for one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// By reservation, the latest moment at which its call may have had its effect.
    latest: BTreeMap<Key, UnixMs>,
}

impl Ledger {
    /// Takes a place for a call that will have ended when `longest` has passed. Again under the same
    /// reservation, it only lasts longer.
    ///
    /// # Errors
    /// [`Full`].
    pub fn take(&mut self, now: UnixMs, cap: &Cap, reservation: Key, longest: Duration) -> Result<(), Full> {
        let ends_by = now.plus(longest);
        self.latest.retain(|_, latest| latest.plus(cap.window) > now);
        if let Some(latest) = self.latest.get_mut(&reservation) {
            *latest = ends_by.max(*latest);
            return Ok(());
        }
        let limit = usize::try_from(cap.limit).unwrap_or(usize::MAX);
        if self.latest.len() < limit {
            self.latest.insert(reservation, ends_by);
            return Ok(());
        }
        let mut moments: Vec<_> = self.latest.values().copied().collect();
        moments.sort_unstable();
        // With this one out of the window, one less than the limit are left in it.
        let until = moments.get(moments.len() - limit).map_or(now, |latest| latest.plus(cap.window));
        let ended = moments.partition_point(|latest| *latest <= now);
        Err(Full { until, open_until: moments.get(ended).filter(|_| ended < limit).copied() })
    }

    /// The call has ended and may have reached the person: by now at the latest.
    pub fn count(&mut self, now: UnixMs, reservation: Key) {
        if let Some(latest) = self.latest.get_mut(&reservation) {
            *latest = now.min(*latest);
        }
    }

    /// The call reached nobody, or was not made.
    pub fn give_back(&mut self, reservation: Key) {
        self.latest.remove(&reservation);
    }
}

/// All ledgers: the model of what a store does with a call's takes together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledgers(BTreeMap<Key, Ledger>);

impl Ledgers {
    /// Takes all or none.
    ///
    /// # Errors
    /// The first cap that is full.
    pub fn take<'a>(
        &mut self,
        now: UnixMs,
        takes: &[Take<'a>],
        reservation: Key,
        longest: Duration,
    ) -> Result<(), (&'a Cap, Full)> {
        for (at, take) in takes.iter().enumerate() {
            if let Err(full) = self.0.entry(take.key).or_default().take(now, take.cap, reservation, longest) {
                self.give_back(&takes[..at], reservation);
                return Err((take.cap, full));
            }
        }
        Ok(())
    }

    pub fn count(&mut self, now: UnixMs, takes: &[Take], reservation: Key) {
        for take in takes {
            self.0.entry(take.key).or_default().count(now, reservation);
        }
    }

    pub fn give_back(&mut self, takes: &[Take], reservation: Key) {
        for take in takes {
            self.0.entry(take.key).or_default().give_back(reservation);
        }
    }
}
