//! Moments as people write them in a configuration: a day, or a date-time with its offset.

use std::fmt;

use belfry_domain::UnixMs;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const EXPECTED: &str = "expected a day such as \"2026-12-01\" (it begins at midnight UTC) or a date and time such as \
                        \"2026-12-01T08:00:00+01:00\"";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub UnixMs);

fn read(text: &str) -> Option<UnixMs> {
    let midnight = |day: Date| TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok();
    let of_day = text.parse::<Date>().ok().filter(|day| day.to_string() == text).and_then(midnight);
    of_day
        .map(|day| UnixMs(day.as_millisecond()))
        .or_else(|| text.parse::<Timestamp>().ok().map(|at| UnixMs(at.as_millisecond())))
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let at = Timestamp::from_millisecond(self.0.0).map_err(serde::ser::Error::custom)?;
        out.collect_str(&at)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Moment;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(EXPECTED.trim_start_matches("expected "))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Moment, E> {
        read(text).map(Moment).ok_or_else(|| E::custom(EXPECTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_are_read() {
        for (text, expected) in [
            ("2026-12-01", Some(1_796_083_200_000)),
            ("2026-12-01T08:00:00+01:00", Some(1_796_108_400_000)),
            ("2026-12-01T07:00:00Z", Some(1_796_108_400_000)),
            ("2026-12-01T07:00:00", None),
            ("2026-02-30", None),
            ("20261201", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected.map(UnixMs), "{text}");
        }
    }
}
