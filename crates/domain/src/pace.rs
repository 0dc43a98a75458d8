//! How often a provider may be called: a bucket that fills at a steady rate. The pace belongs to the
//! installation; [`crate::share`] says how its nodes split it.

use std::time::Duration;

/// `rate` calls per `per`, and `burst` of them at once after a rest: in any time `t` no more than
/// `rate * t / per + burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    rate: u32,
    per: Duration,
    burst: u32,
}

/// Why numbers make no pace; of which key, and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPace {
    pub key: &'static str,
    pub problem: &'static str,
}

impl Pace {
    pub const MOST_PER: Duration = Duration::from_secs(24 * 3600);
    /// A burst that takes longer to save up is a mistake in one of the numbers.
    const LONGEST_REST: u128 = Self::MOST_PER.as_nanos();
    /// Without a burst, what comes in while a call is on its way: the calls of so long a time.
    const REST: u128 = Duration::from_millis(100).as_nanos();

    /// `burst` absent: the calls of a tenth of a second, at least one.
    ///
    /// # Errors
    /// [`NoPace`].
    pub fn new(rate: u32, per: Duration, burst: Option<u32>) -> Result<Self, NoPace> {
        let no = |key, problem| Err(NoPace { key, problem });
        if rate == 0 || rate > 1_000_000 {
            return no("rate", "must be from 1 to 1000000");
        }
        if per < Duration::from_millis(1) || per > Self::MOST_PER {
            return no("per", "must be from 1ms to 1d");
        }
        if u128::from(rate) > per.as_micros() {
            return no("rate", "is more than one call in a microsecond");
        }
        let rested = Self::REST * u128::from(rate) / per.as_nanos();
        let burst = burst.unwrap_or_else(|| u32::try_from(rested).unwrap_or(u32::MAX).max(1));
        if burst == 0 {
            return no("burst", "must be at least 1");
        }
        if u128::from(burst) * per.as_nanos() / u128::from(rate) > Self::LONGEST_REST {
            return no("burst", "would take more than a day to save up at this rate");
        }
        Ok(Self { rate, per, burst })
    }

    #[must_use]
    pub const fn rate(&self) -> u32 {
        self.rate
    }

    #[must_use]
    pub const fn per(&self) -> Duration {
        self.per
    }

    /// Also into how many parts nodes split it: a node with one part may make one call at once.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// The same with no more than so many calls in `per`, at most a twenty-fourth of them at once; `None` where it is
    /// no faster by itself.
    pub(crate) fn slowed(&self, calls: u32, per: Duration) -> Option<Self> {
        let (own, other) = (u128::from(self.rate) * per.as_nanos(), u128::from(calls) * self.per.as_nanos());
        (other < own).then(|| Self { rate: calls, per, burst: (calls / 24).clamp(1, self.burst) })
    }

    /// Between two calls of whoever has `parts` (1 or more) of [`Self::burst`]; rounded up, so that all
    /// parts together never make more than the rate.
    fn period(&self, parts: u32) -> Duration {
        let nanos = (self.per.as_nanos() * u128::from(self.burst)).div_ceil(u128::from(self.rate) * u128::from(parts));
        // At most LONGEST_REST.
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What one node may call, by a monotonic clock. A call is set aside before it is claimed and made out of
/// what was set aside; what is set aside is not lost to the rate while nothing comes of it.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// How many may be made at once after a rest.
    parts: u32,
    period: Duration,
    /// When it will be full.
    full_at: Duration,
    set_aside: u32,
}

impl Bucket {
    /// Empty: whoever had this share before may just have used it up. `parts`: 1 or more.
    #[must_use]
    pub fn new(pace: &Pace, parts: u32, now: Duration) -> Self {
        let period = pace.period(parts);
        Self { parts, period, full_at: now + period * parts, set_aside: 0 }
    }

    /// Calls that may be made now, those set aside among them.
    fn level(&self, now: Duration) -> u32 {
        let missing = self.full_at.saturating_sub(now).as_nanos().div_ceil(self.period.as_nanos().max(1));
        self.parts.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX))
    }

    /// Calls that may still be set aside.
    #[must_use]
    pub fn room(&self, now: Duration) -> u32 {
        self.level(now).saturating_sub(self.set_aside)
    }

    /// When there is room for so many, if nothing more is set aside until then; never sooner than it has been
    /// filled so far.
    #[must_use]
    pub fn room_at(&self, count: u32) -> Duration {
        let level = self.set_aside.saturating_add(count).min(self.parts);
        self.full_at.saturating_sub(self.period * (self.parts - level))
    }

    /// How many are filled in within `time`.
    #[must_use]
    pub fn filled_in(&self, time: Duration) -> u32 {
        u32::try_from(time.as_nanos() / self.period.as_nanos().max(1)).unwrap_or(u32::MAX)
    }

    pub fn set_aside(&mut self) {
        self.set_aside = self.set_aside.saturating_add(1);
    }

    /// Nothing came of one that was set aside.
    pub fn put_back(&mut self) {
        self.set_aside = self.set_aside.saturating_sub(1);
    }

    /// Makes a call of one that was set aside.
    ///
    /// # Errors
    /// When it may be made, where the share has changed since and it may not be made now; it stays set aside.
    pub fn call(&mut self, now: Duration) -> Result<(), Duration> {
        if self.level(now) == 0 {
            return Err(self.full_at.saturating_sub(self.period * (self.parts - 1)));
        }
        self.full_at = self.full_at.max(now) + self.period;
        self.put_back();
        Ok(())
    }

    #[must_use]
    pub const fn parts(&self) -> u32 {
        self.parts
    }

    /// Another share of the same or another pace; what was set aside stays so.
    pub fn share(&mut self, pace: &Pace, parts: u32, now: Duration) {
        *self = Self { set_aside: self.set_aside, ..Self::new(pace, parts, now) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn numbers_that_make_no_pace_are_named() {
        for (rate, per, burst, key) in [
            (0, SECOND, None, "rate"),
            (1_000_001, SECOND, None, "rate"),
            (5, Duration::ZERO, None, "per"),
            (5, SECOND * 86_401, None, "per"),
            (2_000, ms(1), None, "rate"),
            (5, SECOND, Some(0), "burst"),
            (1, SECOND * 3600, Some(25), "burst"),
        ] {
            assert_eq!(Pace::new(rate, per, burst).map_err(|no| no.key), Err(key), "{rate} {per:?} {burst:?}");
        }
        for (rate, per, burst) in [(50, SECOND, 5), (1_000, SECOND, 100), (1, SECOND, 1), (100, SECOND * 3600, 1)] {
            assert_eq!(Pace::new(rate, per, None).unwrap().burst(), burst);
        }
        assert_eq!(Pace::new(1, SECOND * 3600, Some(24)).unwrap().burst(), 24);
    }

    #[test]
    fn it_begins_empty_fills_up_and_holds_no_more_than_the_burst() {
        let pace = Pace::new(10, SECOND, Some(3)).unwrap();
        let bucket = Bucket::new(&pace, 3, SECOND);
        for (at, room) in [(1_000, 0), (1_099, 0), (1_100, 1), (1_200, 2), (1_300, 3), (60_000, 3)] {
            assert_eq!(bucket.room(ms(at)), room, "{at}");
        }
        assert_eq!((bucket.room_at(1), bucket.room_at(3)), (ms(1_100), ms(1_300)));
    }

    #[test]
    fn what_is_set_aside_can_be_called_or_put_back() {
        let pace = Pace::new(10, SECOND, Some(2)).unwrap();
        let mut bucket = Bucket::new(&pace, 2, Duration::ZERO);
        bucket.set_aside();
        bucket.set_aside();
        assert_eq!((bucket.room(SECOND), bucket.call(SECOND)), (0, Ok(())));
        bucket.put_back();
        assert_eq!((bucket.room(SECOND), bucket.room_at(2)), (1, ms(1_100)));
        bucket.set_aside();
        bucket.share(&pace, 1, SECOND);
        assert_eq!(bucket.call(SECOND), Err(ms(1_200)), "it begins empty, at half the rate");
        assert_eq!(bucket.call(ms(1_200)), Ok(()));
    }

    #[test]
    fn all_parts_together_are_never_faster_than_the_pace() {
        for (rate, per, burst) in [(3, SECOND, 7), (7, ms(13), 5), (999_999, SECOND, 1_000), (1, SECOND * 86_400, 1)] {
            let pace = Pace::new(rate, per, Some(burst)).unwrap();
            for parts in 1..=burst {
                let period = pace.period(parts);
                // Calls per `per`, as fractions: 1 / period <= rate / per * parts / burst.
                let (own, whole) = (per.as_nanos() * u128::from(burst), period.as_nanos() * u128::from(rate));
                assert!(own <= whole * u128::from(parts), "{rate} {per:?} {parts}/{burst}");
            }
        }
    }
}
