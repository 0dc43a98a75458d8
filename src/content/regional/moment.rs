//! What a caller may write for a time, read so that no other time can be meant.

use jiff::Timestamp;
use jiff::civil::Date;
use minijinja::value::{Value, ValueKind};

/// A time, or a day on everybody's calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Instant(Timestamp),
    Day(Date),
}

/// What is told of anything else.
const UNREAD: &str = "no time that can be read: RFC 3339 with its offset (2026-12-01T14:05:00Z), a day \
    (2026-12-01), or a whole number of 10 digits (seconds since 1970) or 13 (milliseconds)";

/// # Errors
/// For whatever could mean two times, or none.
pub fn read(value: &Value) -> Result<Moment, &'static str> {
    match value.kind() {
        ValueKind::String => text(value.as_str().unwrap_or_default()),
        ValueKind::Number => number(value),
        _ => None,
    }
    .ok_or(UNREAD)
}

fn text(text: &str) -> Option<Moment> {
    let day = text.get(..10).filter(|day| has_form(day, "9999-99-99"))?;
    if text.len() == 10 {
        return day.parse().ok().map(Moment::Day);
    }
    let time = text.get(10..19).filter(|time| has_form(&time[1..], "99:99:99"))?;
    let rest = text[19..].strip_prefix('.').map_or(Some(&text[19..]), |fraction| {
        let digits = fraction.find(|c: char| !c.is_ascii_digit())?;
        (1..=9).contains(&digits).then(|| &fraction[digits..])
    })?;
    let has_offset =
        matches!(rest, "Z" | "z") || rest.strip_prefix(['+', '-']).is_some_and(|offset| has_form(offset, "99:99"));
    if !time.starts_with(['T', 't', ' ']) || !has_offset {
        return None;
    }
    text.parse().ok().map(Moment::Instant)
}

/// Whether `text` has a digit for each `9` of `form`, and the rest as it is there.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(found, wanted): (u8, u8)| if wanted == b'9' { found.is_ascii_digit() } else { found == wanted };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

/// Seconds from September 2001 to 2286, or milliseconds of these: nothing is both.
fn number(value: &Value) -> Option<Moment> {
    let number = i64::try_from(value.clone()).ok().filter(|_| value.is_integer())?;
    let instant = match number {
        1_000_000_000..=9_999_999_999 => Timestamp::from_second(number),
        1_000_000_000_000..=9_999_999_999_999 => Timestamp::from_millisecond(number),
        _ => return None,
    };
    instant.ok().map(Moment::Instant)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_that_can_mean_one_thing_are_read() {
        let at = |text: &str| Moment::Instant(text.parse().unwrap());
        for (value, moment) in [
            (Value::from("2026-12-01T14:05:00Z"), at("2026-12-01T14:05:00Z")),
            (Value::from("2026-12-01 14:05:00.250+05:30"), at("2026-12-01T08:35:00.25Z")),
            (Value::from("2026-12-01t14:05:59z"), at("2026-12-01T14:05:59Z")),
            (Value::from("2026-12-01"), Moment::Day(jiff::civil::date(2026, 12, 1))),
            (Value::from(1_796_133_900), at("2026-12-01T14:05:00Z")),
            (Value::from(1_796_133_900_000_i64), at("2026-12-01T14:05:00Z")),
        ] {
            assert_eq!(read(&value), Ok(moment), "{value}");
        }
    }

    #[test]
    fn whatever_else_is_refused() {
        for text in [
            "",
            "2026-12-01T14:05:00",
            "2026-12-01T14:05Z",
            "2026-13-01",
            "2026-02-30",
            "01.12.2026",
            "12/01/2026",
            "20261201",
            "20261201T140500Z",
            "2026-12-01T25:00:00Z",
            "2026-12-01T14:05:00+5",
            "2026-12-01T14:05:00.Z",
            "2026-12-01T14:05:00Z ",
            "2026-12-01T14:05:00[Europe/Berlin]",
            "yesterday",
            "1796133900",
            "é026-12-01",
        ] {
            assert_eq!(read(&Value::from(text)), Err(UNREAD), "{text}");
        }
        for number in
            [0, 20_261_201, 999_999_999, 10_000_000_000_i64, 999_999_999_999, 10_000_000_000_000, -1_796_133_900]
        {
            assert_eq!(read(&Value::from(number)), Err(UNREAD), "{number}");
        }
        for value in [Value::from(1_796_133_900.5), Value::from(()), Value::from(true), Value::from(vec![1])] {
            assert_eq!(read(&value), Err(UNREAD), "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}", form in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]?[0-9:]{0,8}[.0-9]{0,4}[Zz+-]?[0-9:]{0,5}") {
            for text in [text, form] {
                if let Ok(Moment::Instant(_)) = read(&Value::from(text.as_str())) {
                    prop_assert!(text.len() >= 20);
                }
            }
        }
    }
}
