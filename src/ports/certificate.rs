//! How long a certificate that we log in with is still good.

use std::time::Duration;

use belfry_domain::UnixMs;

/// Long enough for a person to have a new one made.
const SOON: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateEnd {
    pub at: UnixMs,
    pub left: Left,
}

/// What is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Nothing,
    /// Less than 30 days.
    Little,
    Enough,
}

impl CertificateEnd {
    /// As it stands at `now`; `at` is the last moment that it is good (RFC 5280 4.1.2.5).
    #[must_use]
    pub fn seen(at: UnixMs, now: UnixMs) -> Self {
        let left = match at.since(now) {
            _ if now > at => Left::Nothing,
            left if left < SOON => Left::Little,
            _ => Left::Enough,
        };
        Self { at, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left() {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        let at = UnixMs(2_000_000_000_000);
        for (before, left) in [
            (365 * DAY, Left::Enough),
            (30 * DAY, Left::Enough),
            (30 * DAY - 1, Left::Little),
            (0, Left::Little),
            (-1, Left::Nothing),
            (-365 * DAY, Left::Nothing),
        ] {
            assert_eq!(CertificateEnd::seen(at, UnixMs(at.0 - before)), CertificateEnd { at, left });
        }
    }
}
