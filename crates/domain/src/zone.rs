//! What clocks show where: zones, and local times in them.
//!
//! Zones are the copy of the IANA database in this crate, never the machine's: all nodes decide alike. There is one rule
//! for a local time, whether clocks show it once, never or twice: **it is the first moment at which a clock there shows
//! that time or a later one**. So a time that clocks jump over is the moment of the jump, and one that they show twice is
//! the first of the two.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use crate::time::UnixMs;

/// A zone of the IANA database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// The text names no zone of the IANA database that is in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoZone;

impl fmt::Display for NoZone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not an IANA time zone such as Europe/Stockholm")
    }
}

impl std::error::Error for NoZone {}

impl FromStr for Zone {
    type Err = NoZone;

    /// Upper and lower case are the same.
    fn from_str(name: &str) -> Result<Self, NoZone> {
        match TimeZoneDatabase::bundled().get(name) {
            // "Etc/Unknown" is what some devices send who do not know theirs, and "Factory" what the database has for
            // machines that were not told.
            Ok(zone) if !zone.is_unknown() && zone.iana_name() != Some("Factory") => Ok(Self(zone)),
            _ => Err(NoZone),
        }
    }
}

impl Zone {
    /// The moment that a local time is. `None` beyond the years that there are zones for.
    #[must_use]
    pub fn at(&self, local: LocalTime) -> Option<UnixMs> {
        self.first(local.0)
    }

    /// What a clock there shows at `at`, to the second.
    #[must_use]
    pub fn shows(&self, at: UnixMs) -> Option<LocalTime> {
        let shown = self.shown(at)?;
        Some(LocalTime(shown.date().at(shown.hour(), shown.minute(), shown.second(), 0)))
    }

    /// What the zone's clocks add to UTC at `at` in milliseconds, and when that next changes.
    pub(crate) fn stretch(&self, at: UnixMs) -> Option<(i64, Option<UnixMs>)> {
        let at = Timestamp::from_millisecond(at.0).ok()?;
        let change = self.0.following(at).next().map(|change| UnixMs(change.timestamp().as_millisecond()));
        Some((i64::from(self.0.to_offset(at).seconds()) * 1_000, change))
    }

    /// What a clock there shows.
    pub(crate) fn shown(&self, at: UnixMs) -> Option<DateTime> {
        Some(self.0.to_datetime(Timestamp::from_millisecond(at.0).ok()?))
    }

    /// The first moment at which a clock there shows `local` or later.
    pub(crate) fn first(&self, local: DateTime) -> Option<UnixMs> {
        let at = match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
            // What they add before clocks are put back is more than after it: the earlier of the two.
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
            // By what they add after the jump it would have been before it.
            AmbiguousOffset::Gap { after, .. } => {
                let before = after.to_timestamp(local).ok()?;
                self.0.following(before).next()?.timestamp()
            }
        };
        Some(UnixMs(at.as_millisecond()))
    }
}

/// A date and a time of day, of no zone: `2026-12-24T09:00:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalTime(DateTime);

/// The text is no local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLocalTime;

impl fmt::Display for NoLocalTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not a date and time of day without an offset such as 2026-12-24T09:00:00")
    }
}

impl std::error::Error for NoLocalTime {}

impl FromStr for LocalTime {
    type Err = NoLocalTime;

    /// `YYYY-MM-DDTHH:MM:SS`, and nothing looser. Leap seconds are none.
    fn from_str(text: &str) -> Result<Self, NoLocalTime> {
        let shape = b"dddd-dd-ddTdd:dd:dd";
        let fits = |(byte, shape): (u8, &u8)| if *shape == b'd' { byte.is_ascii_digit() } else { byte == *shape };
        if text.len() != shape.len() || !text.bytes().zip(shape).all(fits) || text.ends_with("60") {
            return Err(NoLocalTime);
        }
        text.parse().map(Self).map_err(|_| NoLocalTime)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_no_zone_is_none() {
        for name in ["Etc/Unknown", "Factory", "factory", "Asia/Tokio", ""] {
            assert_eq!(name.parse::<Zone>(), Err(NoZone), "{name}");
        }
        assert!("europe/stockholm".parse::<Zone>().is_ok() && "UTC".parse::<Zone>().is_ok());
    }
}
