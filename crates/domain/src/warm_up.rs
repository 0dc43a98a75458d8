//! How a new sending domain or address comes to its pace. Mailbox providers take one that they have never heard of,
//! and that sends at full rate at once, for a spammer's: they put its mail off, then into the spam folder.

use std::time::Duration;

use crate::pace::{NoPace, Pace};
use crate::time::UnixMs;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How many calls are made on each day of the first ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUp {
    starts: UnixMs,
    days: Vec<u32>,
}

/// How often a provider may be called, from day to day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacePlan {
    full: Pace,
    warm_up: Option<WarmUp>,
}

/// What a plan comes to at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceNow {
    pub pace: Pace,
    /// Where the warm-up is what slows it.
    pub warming: Option<WarmDay>,
}

/// A day of a warm-up, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmDay {
    pub day: u32,
    pub of: u32,
}

impl WarmUp {
    pub const MOST_DAYS: usize = 90;
    const MOST_CALLS: u32 = 100_000_000;

    /// `days`: the calls of each day, of which the first begins at `starts` and lasts, as all others, 24 hours.
    ///
    /// # Errors
    /// [`NoPace`].
    pub fn new(starts: UnixMs, days: Vec<u32>) -> Result<Self, NoPace> {
        let no = |problem| Err(NoPace { key: "warm_up.days", problem });
        if days.is_empty() || days.len() > Self::MOST_DAYS {
            return no("must have from 1 to 90 numbers, the calls of each day");
        }
        if days.iter().any(|calls| *calls == 0 || *calls > Self::MOST_CALLS) {
            return no("must each be from 1 to 100000000");
        }
        // A nought that is missing in the middle.
        if days.is_sorted() { Ok(Self { starts, days }) } else { no("must not fall from one day to the next") }
    }

    /// Before it starts as on the first day; `None` once it is over.
    fn at(&self, now: UnixMs) -> Option<(WarmDay, u32)> {
        let past = usize::try_from(now.since(self.starts).as_nanos() / DAY.as_nanos()).unwrap_or(usize::MAX);
        let calls = *self.days.get(past)?;
        let short = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some((WarmDay { day: short(past) + 1, of: short(self.days.len()) }, calls))
    }
}

impl PacePlan {
    #[must_use]
    pub const fn new(full: Pace, warm_up: Option<WarmUp>) -> Self {
        Self { full, warm_up }
    }

    /// A day's calls are spread over the day, at most an hour's together; never more than the pace allows. A clock
    /// that is ahead is a day too far.
    #[must_use]
    pub fn at(&self, now: UnixMs) -> PaceNow {
        let day = self.warm_up.as_ref().and_then(|warm_up| warm_up.at(now));
        let slower = day.and_then(|(day, calls)| Some((day, self.full.slowed(calls, DAY)?)));
        PaceNow { pace: slower.map_or(self.full, |(_, pace)| pace), warming: slower.map(|(day, _)| day) }
    }
}

impl From<Pace> for PacePlan {
    fn from(full: Pace) -> Self {
        Self::new(full, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: UnixMs = UnixMs(1_764_547_200_000);

    fn plan(days: &[u32]) -> PacePlan {
        let full = Pace::new(10, Duration::from_secs(1), Some(100)).unwrap();
        PacePlan::new(full, Some(WarmUp::new(START, days.to_vec()).unwrap()))
    }

    #[test]
    fn lists_that_make_no_warm_up_are_refused() {
        let many = vec![1; 91];
        for days in [&[][..], &many, &[0, 5], &[5, 100_000_001], &[50, 500, 100]] {
            assert_eq!(WarmUp::new(START, days.to_vec()).map_err(|no| no.key), Err("warm_up.days"), "{days:?}");
        }
        for days in [&[5][..], &[5, 5, 6], &many[1..]] {
            assert!(WarmUp::new(START, days.to_vec()).is_ok());
        }
    }

    #[test]
    fn every_day_has_its_own_pace_until_the_full_one() {
        let plan = plan(&[50, 4_800, 864_000, 1_000_000]);
        let day = |number: i64| UnixMs(START.0 + number * 86_400_000);
        for (now, expected, warming) in [
            (day(-300), (50, DAY, 2), Some(1)),
            (day(0), (50, DAY, 2), Some(1)),
            (UnixMs(day(1).0 - 1), (50, DAY, 2), Some(1)),
            // An hour's calls, no more than the pace's own burst.
            (day(1), (4_800, DAY, 100), Some(2)),
            // As much as the pace, and more than it.
            (day(2), (10, Duration::from_secs(1), 100), None),
            (day(3), (10, Duration::from_secs(1), 100), None),
            (day(4), (10, Duration::from_secs(1), 100), None),
            (UnixMs(i64::MAX), (10, Duration::from_secs(1), 100), None),
        ] {
            let PaceNow { pace, warming: found } = plan.at(now);
            assert_eq!((pace.rate(), pace.per(), pace.burst()), expected, "{now:?}");
            assert_eq!(found, warming.map(|day| WarmDay { day, of: 4 }), "{now:?}");
        }
    }

    #[test]
    fn without_a_warm_up_it_is_always_the_same() {
        let full = Pace::new(1, DAY, None).unwrap();
        assert_eq!(PacePlan::from(full).at(START), PaceNow { pace: full, warming: None });
    }
}
