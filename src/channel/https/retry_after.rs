//! `Retry-After` (RFC 9110 10.2.3): seconds or a date.

use std::time::{Duration, UNIX_EPOCH};

use belfry_domain::UnixMs;
use http::HeaderMap;
use http::header::RETRY_AFTER;

/// How long the other side asks to wait. A date that has passed is no wait; what is neither a number of
/// seconds nor a date is no answer. Not bounded: the retry policy does that.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: UnixMs) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a wait beyond every bound.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    Some(date.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14T22:13:20Z, a Tuesday.
    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    fn read(value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        retry_after(&headers, NOW)
    }

    #[test]
    fn seconds_and_dates() {
        for (value, wait) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999", Some(u64::MAX)),
            ("Tue, 14 Nov 2023 22:14:20 GMT", Some(60)),
            ("Tuesday, 14-Nov-23 22:14:20 GMT", Some(60)),
            ("Tue Nov 14 22:14:20 2023", Some(60)),
            ("Tue, 14 Nov 2023 22:12:20 GMT", Some(0)),
            ("", None),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("soon", None),
            ("Tue, 14 Nov 2023", None),
        ] {
            assert_eq!(read(value), wait.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), NOW), None);
    }
}
