//! The circuit of one provider: while it is open its lanes claim nothing and their messages stay
//! queued, so that a fault of ours or of the provider's costs no message an attempt.

use std::time::Duration;

use crate::outcome::{Outcome, ThrottleScope, WhyCode};

/// Why a circuit opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenWhy {
    /// Our login or key is refused: an operator has to mend it.
    Credential,
    /// Nothing answers.
    Unreachable,
    /// The provider asked everybody to wait.
    Throttled,
}

impl OpenWhy {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
        }
    }
}

/// What an outcome did to the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    Opened(OpenWhy),
    Closed,
}

/// Times are on a monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    failures: u32,
    open: Option<(Duration, OpenWhy)>,
    /// Times it opened without a success since, for the growing wait.
    reopened: u32,
}

impl Breaker {
    /// So many calls in a row that reached nobody open the circuit.
    pub const FAILURES: u32 = 5;
    const FIRST_WAIT: Duration = Duration::from_secs(1);
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    /// Closed, or due for a trial. After the wait, calls go through again; the first failure opens
    /// it anew for longer.
    #[must_use]
    pub fn lets_through(&self, now: Duration) -> bool {
        self.open.is_none_or(|(until, _)| now >= until)
    }

    /// Until when it is open, and why.
    #[must_use]
    pub const fn open_until(&self) -> Option<(Duration, OpenWhy)> {
        self.open
    }

    /// How many calls may be under way: one while it tries itself out.
    #[must_use]
    pub const fn on_trial(&self) -> bool {
        self.open.is_some()
    }

    pub fn record(&mut self, outcome: &Outcome, now: Duration) -> Change {
        match outcome {
            Outcome::Throttled { after, scope: ThrottleScope::Provider, .. } => {
                self.trip(now, OpenWhy::Throttled, Some(*after))
            }
            Outcome::Throttled { scope: ThrottleScope::Credential, .. } => self.trip(now, OpenWhy::Credential, None),
            Outcome::NotAccepted { why, .. }
                if matches!(why.code, WhyCode::Unreachable | WhyCode::TlsFailed | WhyCode::TimedOutBefore) =>
            {
                self.failures = self.failures.saturating_add(1);
                if self.failures >= Self::FAILURES || self.on_trial() {
                    return self.trip(now, OpenWhy::Unreachable, None);
                }
                Change::None
            }
            // An unknown outcome says nothing about the provider's health either way.
            Outcome::Unknown { .. } => Change::None,
            Outcome::NotAccepted { why, .. } if why.code == WhyCode::LeaseLost => Change::None,
            Outcome::Accepted { .. }
            | Outcome::Refused { .. }
            | Outcome::RecipientGone { .. }
            | Outcome::NotAccepted { .. }
            | Outcome::Throttled { scope: ThrottleScope::Recipient, .. } => self.answered(),
        }
    }

    fn trip(&mut self, now: Duration, why: OpenWhy, asked: Option<Duration>) -> Change {
        let news = self.open.is_none_or(|(_, before)| before != why);
        let wait = Self::FIRST_WAIT.saturating_mul(1 << self.reopened.min(6)).min(Self::LONGEST_WAIT);
        let until = now + asked.map_or(wait, |asked| asked.min(crate::retry::LONGEST_RETRY_AFTER));
        // Several calls under way when it tripped are one trip, not several.
        if self.lets_through(now) {
            self.reopened += 1;
        }
        self.open = Some((self.open.map_or(until, |(before, _)| before.max(until)), why));
        if news { Change::Opened(why) } else { Change::None }
    }

    fn answered(&mut self) -> Change {
        self.failures = 0;
        self.reopened = 0;
        if self.open.take().is_some() { Change::Closed } else { Change::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Why;

    fn unreachable() -> Outcome {
        Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::Unreachable) }
    }

    fn accepted() -> Outcome {
        Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) }
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn opens_after_five_in_a_row_and_waits_longer_each_time() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            assert_eq!(breaker.record(&unreachable(), at(10)), Change::None);
        }
        assert_eq!(breaker.record(&unreachable(), at(10)), Change::Opened(OpenWhy::Unreachable));
        assert!(!breaker.lets_through(at(10)));
        assert!(breaker.lets_through(at(11)));
        assert_eq!(breaker.record(&unreachable(), at(11)), Change::None);
        assert!(!breaker.lets_through(at(12)));
        assert!(breaker.lets_through(at(13)));
        assert_eq!(breaker.record(&accepted(), at(13)), Change::Closed);
        assert!(!breaker.on_trial());
    }

    #[test]
    fn case_29_a_refused_login_opens_at_once() {
        let mut breaker = Breaker::default();
        let refused = Outcome::Throttled {
            after: at(60),
            scope: ThrottleScope::Credential,
            why: Why::new(WhyCode::CredentialRefused),
        };
        assert_eq!(breaker.record(&refused, at(1)), Change::Opened(OpenWhy::Credential));
        assert!(!breaker.lets_through(at(1)));
    }

    #[test]
    fn one_refused_recipient_is_an_answer() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.record(&unreachable(), at(1));
        }
        breaker.record(&Outcome::Refused { why: Why::new(WhyCode::PolicyRefused) }, at(1));
        assert_eq!(breaker.record(&unreachable(), at(1)), Change::None);
    }
}
