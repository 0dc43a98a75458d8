//! How long to wait before the next attempt.

use std::time::Duration;

use crate::class::RetryPolicy;

/// A provider's Retry-After is honoured up to this long; beyond it is a mistake or a prank.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Exponential backoff with full jitter, never shorter than what the provider asked for.
///
/// `failed` counts the attempts so far (1 after the first); `jitter` is uniform over all of `u64`.
/// Full jitter (uniform between nothing and the bound) spreads a herd best; see "Exponential
/// Backoff And Jitter", AWS Architecture Blog, 2015.
#[must_use]
pub fn wait(policy: &RetryPolicy, failed: u32, asked: Option<Duration>, jitter: u64) -> Duration {
    let doublings = failed.saturating_sub(1).min(30);
    let bound = policy.base.saturating_mul(1 << doublings).min(policy.cap);
    let spread = scale(bound, jitter);
    match asked {
        None => spread,
        // Jitter on top, so that everybody told "120" does not come back in the same second.
        Some(asked) => asked.min(LONGEST_RETRY_AFTER) + scale(policy.base, jitter),
    }
}

/// `span` × (`jitter` ÷ 2⁶⁴).
fn scale(span: Duration, jitter: u64) -> Duration {
    let millis = (span.as_millis() * u128::from(jitter)) >> 64;
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: RetryPolicy =
        RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(60), max_attempts: 9 };

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let bounds: Vec<u64> = (1..8).map(|n| wait(&POLICY, n, None, u64::MAX).as_millis() as u64 + 1).collect();
        assert_eq!(bounds, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    }

    proptest! {
        #[test]
        fn never_beyond_the_cap_and_never_before_what_was_asked(n in 0u32.., jitter: u64, asked in 0u64..400_000) {
            prop_assert!(wait(&POLICY, n, None, jitter) < POLICY.cap);
            let asked = Duration::from_secs(asked);
            let waited = wait(&POLICY, n, Some(asked), jitter);
            prop_assert!(waited >= asked.min(LONGEST_RETRY_AFTER));
            prop_assert!(waited < LONGEST_RETRY_AFTER + POLICY.base);
        }
    }
}
