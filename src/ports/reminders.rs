//! What is told of once for each reason, and again each minute for as long as it goes on: what fails many
//! times a second must leave a log that can be read when it is needed most.

use std::time::Duration;

use super::clock::Boot;

const AGAIN: Duration = Duration::from_secs(60);
/// Reasons remembered; what fails for more fails in more ways than anybody reads.
const REASONS: usize = 16;

pub struct Reminders<R> {
    /// When each reason was told of last.
    told: Vec<(R, Boot)>,
}

impl<R> Default for Reminders<R> {
    fn default() -> Self {
        Self { told: Vec::new() }
    }
}

impl<R: PartialEq> Reminders<R> {
    /// Whether there is to be a line about it; then it counts as told.
    pub fn is_news(&mut self, why: R, now: Boot) -> bool {
        self.told.retain(|(_, at)| now.saturating_sub(*at) < AGAIN);
        let news = self.told.len() < REASONS && self.told.iter().all(|(known, _)| *known != why);
        if news {
            self.told.push((why, now));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_a_minute() {
        let mut reminders = Reminders::default();
        let mut told = |why, at| reminders.is_news(why, Duration::from_secs(at));
        assert!(told("refused", 9) && !told("refused", 9) && told("loading", 20) && !told("refused", 68));
        assert!(told("refused", 69) && !told("loading", 79) && told("loading", 80));
    }

    #[test]
    fn reasons_without_end_are_not_remembered_nor_told() {
        let mut reminders = Reminders::default();
        assert_eq!((0..100).filter(|number| reminders.is_news(*number, Boot::ZERO)).count(), REASONS);
    }
}
