//! The retry budget: retries of a lane stay under a tenth of its traffic, so that a provider in
//! trouble is not hit harder than one in health.

use std::time::Duration;

/// A token bucket in thousandths: each first attempt pays in a tenth of a retry, each retry takes
/// a whole one. A small steady trickle keeps a quiet lane able to retry at all.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    milli_tokens: u64,
    /// When the trickle was last paid in, on a monotonic clock.
    paid_at: Duration,
}

impl RetryBudget {
    const PER_FIRST_ATTEMPT: u64 = 100;
    const PER_RETRY: u64 = 1_000;
    /// Ten retries a second at most while nothing else happens.
    const TRICKLE_PER_MS: u64 = 10;
    const MOST: u64 = 100_000;

    #[must_use]
    pub const fn new(now: Duration) -> Self {
        Self { milli_tokens: 20_000, paid_at: now }
    }

    pub fn first_attempt(&mut self) {
        self.milli_tokens = (self.milli_tokens + Self::PER_FIRST_ATTEMPT).min(Self::MOST);
    }

    /// Takes one retry out, if there is one. `now` is monotonic.
    pub fn take(&mut self, now: Duration) -> bool {
        let passed = u64::try_from(now.saturating_sub(self.paid_at).as_millis()).unwrap_or(u64::MAX);
        self.paid_at = self.paid_at.max(now);
        self.milli_tokens =
            self.milli_tokens.saturating_add(passed.saturating_mul(Self::TRICKLE_PER_MS)).min(Self::MOST);
        if self.milli_tokens < Self::PER_RETRY {
            return false;
        }
        self.milli_tokens -= Self::PER_RETRY;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_stay_under_a_tenth_of_the_traffic() {
        let now = Duration::from_secs(1);
        let mut budget = RetryBudget::new(now);
        while budget.take(now) {}
        for _ in 0..1_000 {
            budget.first_attempt();
        }
        let allowed = std::iter::repeat_with(|| budget.take(now)).take_while(|taken| *taken).count();
        assert_eq!(allowed, 100);
    }

    #[test]
    fn a_quiet_lane_may_still_retry() {
        let mut budget = RetryBudget::new(Duration::ZERO);
        while budget.take(Duration::ZERO) {}
        assert!(!budget.take(Duration::from_millis(99)));
        assert!(budget.take(Duration::from_millis(199)));
    }
}
