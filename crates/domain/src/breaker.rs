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
    /// Calls are taken and then nothing is said any more.
    Silent,
    /// The provider asked everybody to wait.
    Throttled,
    /// A setting of ours or at the provider is wrong.
    Setup,
    /// Logins made by our clock are refused.
    ClockSkew,
    /// Most tokens are refused: it is not the tokens ([`crate::wave`]).
    Tokens,
}

impl OpenWhy {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::Throttled => "throttled",
            Self::Setup => "setup",
            Self::ClockSkew => "clock_skew",
            Self::Tokens => "tokens",
        }
    }

    /// What an operator should look at.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Credential => "our login is refused: look at the key or password and at its file",
            Self::Unreachable => "nothing answers",
            Self::Silent => "calls are taken and never answered",
            Self::Throttled => "the provider asked everybody to wait",
            Self::Setup => {
                "a setting here or at the provider is wrong: topic, project, or a key that the provider needs"
            }
            Self::ClockSkew => "logins that were made just now are refused as too old or too new: look at this clock",
            Self::Tokens => {
                "most device tokens are refused: sandbox and production, the topic or the project are mixed up; \
                 no token was dropped for it"
            }
        }
    }

    /// Of a call that was refused for what is our own.
    const fn of(why: WhyCode) -> Self {
        match why {
            WhyCode::SetupRefused => Self::Setup,
            WhyCode::ClockSkew => Self::ClockSkew,
            WhyCode::BadToken | WhyCode::WrongApp => Self::Tokens,
            _ => Self::Credential,
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
    /// When it closed last: what piled up behind it goes out at a growing rate.
    closed_at: Option<Duration>,
}

impl Breaker {
    /// So many calls in a row that reached nobody open the circuit.
    pub const FAILURES: u32 = 5;
    const FIRST_WAIT: Duration = Duration::from_secs(1);
    const LONGEST_WAIT: Duration = Duration::from_secs(60);
    const LONGEST_AMONG_TOKENS: Duration = Duration::from_secs(5);
    /// Calls at once right after it closed; twice as many after every [`Self::STEP`].
    const FIRST_CALLS: u16 = 2;
    const STEP: Duration = Duration::from_secs(1);
    /// Then nothing is held back any more.
    const STEPS: u32 = 10;

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

    /// Most calls at once while what piled up behind it drains: a provider that has just come back is not
    /// met by all of it at once.
    #[must_use]
    pub fn at_most(&self, now: Duration) -> Option<u16> {
        let steps = now.saturating_sub(self.closed_at?).as_millis() / Self::STEP.as_millis();
        let steps = u32::try_from(steps).ok().filter(|steps| *steps < Self::STEPS)?;
        Some(Self::FIRST_CALLS << steps)
    }

    /// Somebody mended what was wrong: the next call is not a trial, but it comes alone.
    pub fn mended(&mut self, now: Duration) {
        if matches!(self.open, Some((_, OpenWhy::Throttled))) {
            // Nothing of ours was wrong: the provider asked for the wait.
            return;
        }
        let was_open = self.open.is_some();
        *self = Self { closed_at: if was_open { Some(now) } else { self.closed_at }, ..Self::default() };
    }

    /// How many calls may be under way: one while it tries itself out.
    #[must_use]
    pub const fn on_trial(&self) -> bool {
        self.open.is_some()
    }

    /// What an outcome says against the provider where it comes several times in a row.
    const fn fault(outcome: &Outcome) -> Option<OpenWhy> {
        match outcome {
            Outcome::NotAccepted { why, .. } => match why.code {
                WhyCode::Unreachable | WhyCode::TlsFailed | WhyCode::TimedOutBefore => Some(OpenWhy::Unreachable),
                _ => None,
            },
            // Each such call holds its place for the whole of its deadline.
            Outcome::Unknown { why, .. } if matches!(why.code, WhyCode::TimedOutAfter) => Some(OpenWhy::Silent),
            Outcome::Accepted { .. }
            | Outcome::Refused { .. }
            | Outcome::RecipientGone { .. }
            | Outcome::Throttled { .. }
            | Outcome::Unknown { .. } => None,
        }
    }

    /// Whether there is nothing to remember of it.
    #[must_use]
    pub fn is_at_rest(&self, now: Duration) -> bool {
        self.open.is_none() && self.failures == 0 && self.at_most(now).is_none()
    }

    /// Whether it is open because most tokens are refused.
    #[must_use]
    pub const fn refuses_tokens(&self) -> bool {
        matches!(self.open, Some((_, OpenWhy::Tokens)))
    }

    pub fn record(&mut self, outcome: &Outcome, now: Duration) -> Change {
        if let Some(why) = Self::fault(outcome).filter(|_| !self.refuses_tokens()) {
            self.failures = self.failures.saturating_add(1);
            let trips = self.failures >= Self::FAILURES || self.on_trial();
            return if trips { self.trip(now, why, None) } else { Change::None };
        }
        match outcome {
            Outcome::Throttled { after, scope: ThrottleScope::Provider, .. } => {
                self.trip(now, OpenWhy::Throttled, Some(*after))
            }
            Outcome::Throttled { scope: ThrottleScope::Credential, why, .. } => {
                self.trip(now, OpenWhy::of(why.code), None)
            }
            // What opened it is disproved by nothing but a token that is taken.
            _ if self.refuses_tokens() && !matches!(outcome, Outcome::Accepted { .. }) => match outcome.why().code {
                WhyCode::BadToken | WhyCode::WrongApp => self.trip(now, OpenWhy::Tokens, None),
                _ => Change::None,
            },
            // Nobody was asked.
            Outcome::Refused { why }
                if matches!(why.code, WhyCode::TokenMalformed | WhyCode::InternalEndpoint | WhyCode::RenderFailed) =>
            {
                Change::None
            }
            // Any other unknown outcome says nothing about the provider's health either way.
            Outcome::Unknown { .. } => Change::None,
            Outcome::NotAccepted { why, .. } if why.code == WhyCode::LeaseLost => Change::None,
            Outcome::Accepted { .. }
            | Outcome::Refused { .. }
            | Outcome::RecipientGone { .. }
            | Outcome::NotAccepted { .. }
            | Outcome::Throttled { scope: ThrottleScope::Recipient, .. } => self.answered(now),
        }
    }

    fn trip(&mut self, now: Duration, why: OpenWhy, asked: Option<Duration>) -> Change {
        let news = self.open.is_none_or(|(_, before)| before != why);
        // Each trial tries one token: among many bad ones a good one has to be come upon soon.
        let longest = if why == OpenWhy::Tokens { Self::LONGEST_AMONG_TOKENS } else { Self::LONGEST_WAIT };
        let wait = Self::FIRST_WAIT.saturating_mul(1 << self.reopened.min(6)).min(longest);
        let until = now + asked.map_or(wait, |asked| asked.min(crate::retry::LONGEST_RETRY_AFTER));
        // Several calls under way when it tripped are one trip, not several.
        if self.lets_through(now) {
            self.reopened += 1;
        }
        self.open = Some((self.open.map_or(until, |(before, _)| before.max(until)), why));
        if news { Change::Opened(why) } else { Change::None }
    }

    fn answered(&mut self, now: Duration) -> Change {
        self.failures = 0;
        self.reopened = 0;
        if self.open.take().is_none() {
            return Change::None;
        }
        self.closed_at = Some(now);
        Change::Closed
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
    fn five_calls_in_a_row_that_nobody_answers_open_it_as_well() {
        let silent = Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::TimedOutAfter) };
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.record(&silent, at(10));
        }
        breaker.record(&accepted(), at(10));
        assert!(breaker.is_at_rest(at(10)), "an answer in between");
        let heard: Vec<_> = (0..5).map(|_| breaker.record(&silent, at(10))).collect();
        assert_eq!(heard[3..], [Change::None, Change::Opened(OpenWhy::Silent)]);
        // A cut comes at once, and holds no place.
        let cut = Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) };
        let mut cuts = Breaker::default();
        assert!((0..9).all(|_| cuts.record(&cut, at(10)) == Change::None));
        // On trial, one is enough, whichever of the two it is.
        assert_eq!(breaker.record(&unreachable(), at(11)), Change::Opened(OpenWhy::Unreachable));
        assert!(!breaker.lets_through(at(12)) && !breaker.is_at_rest(at(12)));
        assert_eq!(breaker.record(&accepted(), at(13)), Change::Closed);
        assert_eq!((breaker.is_at_rest(at(13)), breaker.is_at_rest(at(23))), (false, true), "while it drains");
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
    fn what_piled_up_goes_out_at_a_growing_rate() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.at_most(at(1)), None);
        let refused = |code| Outcome::Throttled { after: at(0), scope: ThrottleScope::Credential, why: Why::new(code) };
        assert_eq!(breaker.record(&refused(WhyCode::SetupRefused), at(1)), Change::Opened(OpenWhy::Setup));
        assert_eq!(breaker.record(&accepted(), at(20)), Change::Closed);
        let most: Vec<_> = [20, 21, 22, 29, 30].map(|second| breaker.at_most(at(second))).to_vec();
        assert_eq!(most, [Some(2), Some(4), Some(8), Some(1024), None]);
        // The same where an operator mended it.
        assert_eq!(breaker.record(&refused(WhyCode::BadToken), at(40)), Change::Opened(OpenWhy::Tokens));
        breaker.mended(at(50));
        assert!(breaker.lets_through(at(50)) && !breaker.on_trial());
        assert_eq!(breaker.at_most(at(51)), Some(4));
        // What was not open has nothing to drain.
        let mut closed = Breaker::default();
        closed.mended(at(50));
        assert_eq!(closed.at_most(at(50)), None);
    }

    #[test]
    fn what_was_refused_without_a_call_says_nothing_of_the_provider() {
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            breaker.record(&unreachable(), at(1));
        }
        for code in [WhyCode::TokenMalformed, WhyCode::InternalEndpoint] {
            assert_eq!(breaker.record(&Outcome::Refused { why: Why::new(code) }, at(1)), Change::None);
        }
        assert!(!breaker.lets_through(at(1)));
    }

    #[test]
    fn case_11_only_a_token_that_is_taken_closes_what_refused_tokens_opened() {
        let refused = |code| Outcome::Refused { why: Why::new(code) };
        let mut breaker = Breaker::default();
        let wave =
            Outcome::Throttled { after: at(0), scope: ThrottleScope::Credential, why: Why::new(WhyCode::BadToken) };
        assert_eq!(breaker.record(&wave, at(1)), Change::Opened(OpenWhy::Tokens));
        // Long after the words that made the wave.
        for other in [refused(WhyCode::TooLarge), refused(WhyCode::BadToken), unreachable()] {
            assert_eq!(breaker.record(&other, at(10_000)), Change::None);
            assert!(breaker.refuses_tokens());
        }
        assert_eq!(breaker.record(&accepted(), at(10_000)), Change::Closed);
    }

    #[test]
    fn a_reload_ends_no_wait_that_the_provider_asked_for() {
        let mut breaker = Breaker::default();
        let busy =
            Outcome::Throttled { after: at(3600), scope: ThrottleScope::Provider, why: Why::new(WhyCode::RateLimited) };
        assert_eq!(breaker.record(&busy, at(1)), Change::Opened(OpenWhy::Throttled));
        breaker.mended(at(2));
        assert!(!breaker.lets_through(at(3600)));
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
