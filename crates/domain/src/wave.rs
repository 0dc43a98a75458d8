//! Telling one bad token from a wrong setting: where most of the tokens of late are refused, it is the
//! gateway (sandbox or production), the topic or the project that is wrong, and not one token is. The same of
//! mailboxes: where most are said not to exist, it is the server that says so of everybody.

use std::collections::VecDeque;
use std::time::Duration;

/// What a provider said of the tokens that it was called with, the latest word on each.
#[derive(Clone, Debug, Default)]
pub struct Wave {
    /// The oldest first.
    heard: VecDeque<Heard>,
}

#[derive(Clone, Debug)]
struct Heard {
    at: Duration,
    /// Of its hash: told apart without keeping text for every call.
    token: u64,
    refused: bool,
}

impl Wave {
    /// Words older than this count no more.
    pub const WINDOW: Duration = Duration::from_secs(10 * 60);
    /// So many different tokens have to be refused,
    pub const REFUSED: usize = 5;
    /// and they have to be so much of a hundred of all different tokens in the window.
    pub const PER_CENT: usize = 50;
    /// So many tokens are remembered.
    const KEPT: usize = 256;

    /// The provider takes tokens again: what it refused until now makes no wave any more. What it took still counts,
    /// or a few bad tokens would be a wave again, and again.
    pub fn begin_anew(&mut self) {
        self.heard.retain(|one| !one.refused);
    }

    /// Notes a word about `token` (its hash). True where the tokens are a wave of refusals now. Times are on a
    /// monotonic clock.
    pub fn hear(&mut self, token: &str, refused: bool, now: Duration) -> bool {
        let token = short(token);
        self.heard.retain(|one| one.token != token && now.saturating_sub(one.at) < Self::WINDOW);
        if self.heard.len() == Self::KEPT {
            self.heard.pop_front();
        }
        self.heard.push_back(Heard { at: now, token, refused });
        // What is taken, which is nearly everything, makes no wave.
        if !refused {
            return false;
        }
        let bad = self.heard.iter().filter(|one| one.refused).count();
        bad >= Self::REFUSED && bad * 100 >= self.heard.len() * Self::PER_CENT
    }
}

/// FNV-1a, 64 bits: what it is of is a keyed hash already.
fn short(token: &str) -> u64 {
    token.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn case_11_some_bad_tokens_are_no_wave_and_most_are() {
        let mut wave = Wave::default();
        for good in 0..6 {
            assert!(!wave.hear(&format!("good {good}"), false, at(1)));
        }
        let told: Vec<_> = (0..6).map(|bad| wave.hear(&format!("bad {bad}"), true, at(2))).collect();
        // The sixth makes it half of twelve.
        assert_eq!(told, [false, false, false, false, false, true]);
        assert!(!wave.hear("good 0", false, at(3)));
    }

    #[test]
    fn what_was_taken_still_counts_when_it_begins_anew() {
        let mut wave = Wave::default();
        for good in 0..6 {
            wave.hear(&format!("good {good}"), false, at(1));
        }
        let bad = |wave: &mut Wave| (0..6).map(|bad| wave.hear(&format!("bad {bad}"), true, at(2))).collect::<Vec<_>>();
        assert!(bad(&mut wave)[5]);
        wave.begin_anew();
        wave.hear("good 6", false, at(3));
        assert!(!bad(&mut wave).contains(&true), "six of thirteen");
    }

    #[test]
    fn one_token_refused_often_is_one_token() {
        let mut wave = Wave::default();
        assert!((0..50).all(|_| !wave.hear("bad", true, at(1))));
    }

    #[test]
    fn old_words_count_no_more() {
        let mut wave = Wave::default();
        assert!((0..4).all(|bad| !wave.hear(&bad.to_string(), true, at(0))));
        assert!(!wave.hear("4", true, Wave::WINDOW));
        assert!(wave.heard.len() == 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut wave = Wave::default();
        for token in 0..1000 {
            wave.hear(&token.to_string(), false, at(1));
        }
        assert_eq!(wave.heard.len(), Wave::KEPT);
    }
}
