//! Schedules: when something repeats, and which of the times that were missed are made up for.
//!
//! A schedule names local times. Each of them is one slot, at the one moment that [`crate::zone`] says, also where
//! clocks jump over it or show it twice; times that become the same moment are one slot. A schedule of **every hour**
//! names no hour that could be missing or come twice: it has a slot whenever the clock shows one of its minutes, so that
//! "every 15 minutes" is that in the night in which an hour is left out or repeated as well.

mod cron;

use std::collections::VecDeque;
use std::time::Duration;

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use cron::{Cron, CronField, MOST_CRON, NoCron};

use crate::time::UnixMs;
use crate::zone::Zone;

/// Most slots that are made up for at once.
pub const MOST_CAUGHT_UP: u16 = 100;
/// Slots that are no later than this are on time.
pub const GRACE: Duration = Duration::from_secs(5 * 60);
/// Slots before that are never made up for, and not counted one by one.
pub const LOOKED_BACK: Duration = Duration::from_secs(7 * 24 * 3600);

/// What becomes of slots at which nobody was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Missed {
    /// Nothing. Of several that are due at once only the latest is sent, within [`GRACE`].
    Skip,
    /// The latest `most` of those that are due are sent, the oldest first; none from before [`LOOKED_BACK`].
    CatchUp { most: u16 },
}

impl Missed {
    /// How many are sent, and how late at the most.
    fn bounds(self) -> (usize, Duration) {
        match self {
            Self::Skip => (1, GRACE),
            Self::CatchUp { most } => (usize::from(most.clamp(1, MOST_CAUGHT_UP)), LOOKED_BACK),
        }
    }
}

/// When something repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rhythm {
    pub cron: Cron,
    pub zone: Zone,
    /// The last moment at which there may be a slot.
    pub until: Option<UnixMs>,
}

/// What a look at a schedule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Slots to send, the oldest first.
    pub send: Vec<UnixMs>,
    /// Slots that are let go, of those within [`LOOKED_BACK`].
    pub missed: u32,
    /// There may have been more before.
    pub and_older: bool,
    /// The first slot after now.
    pub next: Option<UnixMs>,
}

impl Rhythm {
    /// The first slot after `at`; none: there is none any more.
    #[must_use]
    pub fn after(&self, at: UnixMs) -> Option<UnixMs> {
        let next = if self.cron.is_of_every_hour() { self.shown_after(at) } else { self.named_after(at) };
        next.filter(|next| self.until.is_none_or(|until| *next <= until))
    }

    /// The next `count` after `at`.
    #[must_use]
    pub fn runs(&self, at: UnixMs, count: usize) -> Vec<UnixMs> {
        std::iter::successors(self.after(at), |at| self.after(*at)).take(count).collect()
    }

    /// What is due at `now` from the slot `next` on, which has not been looked at before.
    #[must_use]
    pub fn due(&self, next: UnixMs, missed: Missed, now: UnixMs) -> Due {
        let horizon = now.minus(LOOKED_BACK);
        let and_older = next < horizon;
        let (most, latest) = missed.bounds();
        let (mut send, mut let_go) = (VecDeque::new(), 0);
        let mut slot = if and_older { self.after(horizon) } else { Some(next) };
        while let Some(at) = slot.filter(|at| *at <= now) {
            send.push_back(at);
            if send.len() > most {
                send.pop_front();
                let_go += 1;
            }
            slot = self.after(at);
        }
        while send.front().is_some_and(|at| now.since(*at) > latest) {
            send.pop_front();
            let_go += 1;
        }
        Due { send: send.into(), missed: let_go, and_older, next: slot }
    }

    /// By the moments that local times are.
    fn named_after(&self, at: UnixMs) -> Option<UnixMs> {
        // A time that is not after what is shown at `at` is a moment not after `at`.
        let mut local = self.zone.shown(at)?;
        loop {
            local = self.cron.next(local)?;
            // In an hour that is shown again, these were moments of the first time.
            let moment = self.zone.first(local)?;
            if moment > at {
                return Some(moment);
            }
        }
    }

    /// By what clocks show.
    fn shown_after(&self, at: UnixMs) -> Option<UnixMs> {
        let mut from = at;
        loop {
            let (offset, change) = self.zone.stretch(from)?;
            let shown = self.zone.shown(from)?;
            // A minute that begins with the change is one of those after it.
            let shown = if from > at { shown.checked_sub(SignedDuration::from_millis(1)).ok()? } else { shown };
            let moment = self.cron.next(shown).and_then(|local| {
                let local = Offset::UTC.to_timestamp(local).ok()?.as_millisecond();
                let moment = Timestamp::from_millisecond(local.checked_sub(offset)?).ok()?;
                Some(UnixMs(moment.as_millisecond()))
            });
            match (moment, change) {
                (moment, Some(change)) if moment.is_none_or(|moment| moment >= change) => from = change,
                (moment, _) => return moment,
            }
        }
    }
}
