//! Quiet hours: between two times of the recipient's own day nothing goes out.
//!
//! An hour is quiet where the recipient's clock shows one. So where clocks jump over the end of the quiet
//! hours, they end with the jump; where clocks are put back into them, they are quiet once more; and a day
//! that is left out altogether ends nothing early.

use std::time::Duration;

use crate::time::UnixMs;
use crate::zone::Zone;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// Quiet from one local time up to another, which is no longer quiet; past midnight where the second is
/// the earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// Milliseconds into the local day.
    from: i64,
    to: i64,
    fallback: Zone,
}

/// Why texts make no quiet hours; of which key, and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoQuietHours {
    pub key: &'static str,
    pub problem: &'static str,
}

impl QuietHours {
    /// `from` and `to` as in `22:00`. `fallback`: the zone of recipients whose own is missing or not known.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn read(from: &str, to: &str, fallback: &str) -> Result<Self, Vec<NoQuietHours>> {
        let mut wrong = Vec::new();
        let mut refuse = |key, problem| wrong.push(NoQuietHours { key, problem });
        let times = [("from", from), ("to", to)].map(|(key, text)| {
            let time = time_of_day(text);
            if time.is_none() {
                refuse(key, "must be a time from 00:00 to 23:59");
            }
            time
        });
        if times[0].is_some() && times[0] == times[1] {
            refuse("to", "must differ from from: it would be quiet always or never");
        }
        let zone = fallback.parse();
        if zone.is_err() {
            refuse("zone", "must be an IANA time zone such as Europe/Stockholm");
        }
        match (times, zone) {
            ([Some(from), Some(to)], Ok(fallback)) if wrong.is_empty() => Ok(Self { from, to, fallback }),
            _ => Err(wrong),
        }
    }

    /// As [`Self::read`].
    ///
    /// # Errors
    /// The first of all that is wrong.
    pub fn new(from: &str, to: &str, fallback: &str) -> Result<Self, NoQuietHours> {
        let unnamed = NoQuietHours { key: "from", problem: "must be a time from 00:00 to 23:59" };
        Self::read(from, to, fallback).map_err(|wrong| wrong.first().copied().unwrap_or(unnamed))
    }

    /// How long they are on a day without a change of clocks.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_millis((self.to - self.from).rem_euclid(DAY).unsigned_abs())
    }

    /// When something may go out to a recipient in the zone named `zone`: `now`, or the first moment after
    /// it that is not quiet there.
    #[must_use]
    pub fn open_at(&self, now: UnixMs, zone: Option<&str>) -> UnixMs {
        let own = zone.and_then(|name| name.parse().ok());
        let zone = own.as_ref().unwrap_or(&self.fallback);
        let mut at = now;
        // Past the year 9999 there are no zones and no quiet hours.
        while let Some((offset, change)) = zone.stretch(at) {
            let left = self.left((at.0 + offset).rem_euclid(DAY));
            let end = UnixMs(at.0 + left);
            match change {
                // What clocks show from then on is told by another offset.
                Some(change) if left > 0 && change <= end => at = change,
                _ => return end,
            }
        }
        at
    }

    /// How much of the quiet hours is left at a time of day; 0 where it is not quiet.
    fn left(&self, time: i64) -> i64 {
        let length = (self.to - self.from).rem_euclid(DAY);
        let passed = (time - self.from).rem_euclid(DAY);
        (length - passed).max(0)
    }
}

/// `HH:MM` as milliseconds into the day.
fn time_of_day(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |digits: &str| {
        (digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse::<i64>().ok())?
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * MINUTE)
}
