//! Spans and instants for people: as much of them as means something, lined up.

use std::time::Duration;

use jiff::Timestamp;

/// `2026-11-29T12:00:00.000Z`: always with three digits, so that they line up.
#[must_use]
pub fn instant(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// An instant and how far from `start` it is: `12:01:05.000Z (+1m 5s)`, with its date where that is
/// another one.
#[must_use]
pub fn moment(start: Timestamp, at: Timestamp) -> String {
    let whole = instant(at);
    let (day, time) = whole.split_once('T').unwrap_or((&whole, ""));
    let shown = if instant(start).starts_with(day) { time } else { &whole };
    format!("{shown} ({})", relative(start, at))
}

/// `+1m 5s`; an instant before the start (a clock that stepped back) as `+0 ms`.
#[must_use]
pub fn relative(start: Timestamp, at: Timestamp) -> String {
    format!("+{}", short(Duration::try_from(at.duration_since(start)).unwrap_or_default()))
}

/// `12 ms`, `1.5 s`, `2m 0s`, `3h 5m`, `2d 1h`.
#[must_use]
pub fn short(span: Duration) -> String {
    let seconds = span.as_secs();
    let two = |unit: u64, name: &str, part: u64, part_name: &str| {
        format!("{}{name} {}{part_name}", seconds / unit, seconds % unit / part)
    };
    match seconds {
        0 => format!("{} ms", span.subsec_millis()),
        1..60 => {
            let tenths = (span.as_millis() + 50) / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        60..3_600 => two(60, "m", 1, "s"),
        3_600..86_400 => two(3_600, "h", 60, "m"),
        _ => two(86_400, "d", 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_show_what_means_something() {
        for (millis, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_397, "1.4 s"),
            (5_008, "5.0 s"),
            (59_999, "60.0 s"),
            (65_000, "1m 5s"),
            (7_500_000, "2h 5m"),
            (176_523_000, "2d 1h"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), shown);
        }
    }

    #[test]
    fn an_instant_of_another_day_has_its_date() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let start = at("2026-11-29T23:59:58Z");
        assert_eq!(moment(start, at("2026-11-29T23:59:59.5Z")), "23:59:59.500Z (+1.5 s)");
        assert_eq!(moment(start, at("2026-11-30T00:00:01Z")), "2026-11-30T00:00:01.000Z (+3.0 s)");
        assert_eq!(relative(start, at("2026-11-29T00:00:00Z")), "+0 ms");
    }
}
