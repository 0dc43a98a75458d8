//! Durations as people write them in a configuration: `500ms`, `30s`, `5m`, `72h`, `15d`, `1h30m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Span {
    #[must_use]
    pub const fn secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl fmt::Display for Span {
    /// The largest units first, each at most once; zero is `0s`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return out.write_str("0s");
        }
        for (unit, millis) in UNITS {
            if left >= millis {
                write!(out, "{}{unit}", left / millis)?;
                left %= millis;
            }
        }
        Ok(())
    }
}

/// The text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASpan;

impl fmt::Display for NotASpan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("expected a duration such as \"500ms\", \"30s\", \"5m\", \"72h\" or \"15d\"")
    }
}

impl std::error::Error for NotASpan {}

impl FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(NotASpan);
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(NotASpan)?;
            let count: u64 = rest[..digits].parse().map_err(|_| NotASpan)?;
            let after = &rest[digits..];
            let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (_, millis) = UNITS.iter().find(|(name, _)| *name == &after[..unit]).ok_or(NotASpan)?;
            total = count.checked_mul(*millis).and_then(|part| total.checked_add(part)).ok_or(NotASpan)?;
            rest = &after[unit..];
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Span;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a duration such as \"500ms\", \"30s\", \"5m\", \"72h\" or \"15d\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Span, E> {
        Err(E::custom(format!("expected a duration, in quotes and with its unit: \"{number}s\"")))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Span, E> {
        self.visit_u64(number.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("1h30m", 5_400_000), ("15d", 1_296_000_000), ("0s", 0)]
        {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.as_millis(), span.to_string().as_str()), (millis, text));
        }
        for bad in ["", "5", "s", "5 s", "-5s", "5w", "1.5h", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(bad.parse::<Span>(), Err(NotASpan), "{bad}");
        }
    }
}
