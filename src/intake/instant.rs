//! Instants as callers write and read them: RFC 3339.

use belfry_domain::UnixMs;
use jiff::Timestamp;

/// `2026-11-29T22:06:00.123Z`; always UTC and always milliseconds, so that a replay has the same
/// bytes. An instant outside what RFC 3339 can say becomes the nearest one that it can.
#[must_use]
pub fn rfc3339(at: UnixMs) -> String {
    let instant = Timestamp::from_millisecond(at.0).unwrap_or(if at.0 < 0 { Timestamp::MIN } else { Timestamp::MAX });
    format!("{instant:.3}")
}

/// Reads an RFC 3339 date-time with its offset; nothing looser.
#[must_use]
pub fn read(text: &str) -> Option<UnixMs> {
    if !looks_like_rfc3339(text.as_bytes()) {
        return None;
    }
    text.parse::<Timestamp>().ok().map(|instant| UnixMs(instant.as_millisecond()))
}

/// What would be right in place of a text that [`read`] makes nothing of.
#[must_use]
pub fn wrong(text: &str) -> &'static str {
    if looks_like_rfc3339(text.as_bytes()) {
        "must be a date and time that there is, and no later than 9999-12-30T22:00:00Z"
    } else {
        "must be an RFC 3339 date-time with its offset (23:59 at the most), such as 2026-12-24T18:00:00Z"
    }
}

/// The shape only: the calendar is jiff's.
fn looks_like_rfc3339(text: &[u8]) -> bool {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = |at: usize, byte: u8| match shape[at] {
        b'd' => byte.is_ascii_digit(),
        b'T' => byte.eq_ignore_ascii_case(&b'T'),
        other => byte == other,
    };
    if text.len() < shape.len() + 1 || !(0..shape.len()).all(|at| fits(at, text[at])) {
        return false;
    }
    let mut rest = &text[shape.len()..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return false;
        }
        rest = &fraction[digits..];
    }
    match rest {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let digits = [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit());
            // RFC 3339 5.6: 00 to 23, 00 to 59.
            digits && (*h1, *h2) <= (b'2', b'3') && *m1 <= b'5'
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_moment_is_said_of_it() {
        for (text, says) in [
            ("9999-12-31T23:59:59Z", "no later than 9999-12-30T22:00:00Z"),
            ("2026-02-30T00:00:00Z", "a date and time that there is"),
            ("2026-01-01T00:00:00+25:00", "23:59 at the most"),
            ("2026-01-01T00:00:00+00:60", "23:59 at the most"),
            ("2026-01-01T00:00:00", "with its offset"),
            ("soon", "RFC 3339"),
        ] {
            assert_eq!(read(text), None, "{text}");
            assert!(wrong(text).contains(says), "{text}: {}", wrong(text));
        }
        assert!(read("2026-01-01T00:00:00+23:59").is_some());
        assert!(read("9999-12-30T22:00:00Z").is_some());
    }

    #[test]
    fn reads_rfc_3339_and_nothing_looser() {
        for (text, expected) in [
            ("1970-01-01T00:00:01Z", 1_000),
            ("1970-01-01t01:00:01.5+01:00", 1_500),
            ("1969-12-31T23:59:59.999-00:00", -1),
        ] {
            assert_eq!(read(text), Some(UnixMs(expected)), "{text}");
        }
        for bad in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:01",
            "1970-01-01 00:00:01Z",
            "1970-01-01T00:00Z",
            "1970-02-30T00:00:00Z",
            "1970-01-01T25:00:00Z",
            "1970-01-01T00:00:00Z[UTC]",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00+0100",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn writes_milliseconds_always() {
        assert_eq!(rfc3339(UnixMs(1_500)), "1970-01-01T00:00:01.500Z");
        assert_eq!(rfc3339(UnixMs(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(UnixMs(i64::MAX)), "9999-12-30T22:00:00.999Z");
        assert_eq!(read(&rfc3339(UnixMs(1_764_453_960_123))), Some(UnixMs(1_764_453_960_123)));
    }
}
