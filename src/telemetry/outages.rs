//! While the store is away every verb fails many times a second. Each reason is one line, and one more
//! each minute for as long as it goes on: the log has to be readable when it is needed most.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::clock::{Boot, Clock};

const AGAIN: Duration = Duration::from_secs(60);
/// Reasons remembered; a store that finds more is away in more ways than anybody reads.
const REASONS: usize = 16;

pub(super) struct Outages {
    clock: Arc<dyn Clock>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// When each reason was told of last.
    at: Vec<(StoreError, Boot)>,
    /// A failure was told of, and not yet that it is over.
    open: bool,
}

impl Outages {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, told: Mutex::default() }
    }

    /// Whether there is to be a line about it.
    pub fn is_news(&self, fact: &Fact) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match fact {
            Fact::StoreUnavailable { verb: _, why } => {
                let now = self.clock.boot();
                told.at.retain(|(_, at)| now.saturating_sub(*at) < AGAIN);
                let news = told.at.len() < REASONS && told.at.iter().all(|(known, _)| known != why);
                if news {
                    told.at.push((why.clone(), now));
                    told.open = true;
                }
                news
            }
            Fact::StoreRecovered => std::mem::take(&mut told.open),
            _ => true,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Stands still until it is set.
    #[derive(Default)]
    pub struct At(Mutex<Duration>);

    #[async_trait::async_trait]
    impl Clock for At {
        fn now(&self) -> belfry_domain::UnixMs {
            belfry_domain::UnixMs(0)
        }

        fn boot(&self) -> Boot {
            *self.0.lock().unwrap()
        }

        async fn sleep_until(&self, _until: Boot) {}
    }

    #[test]
    fn an_outage_is_a_line_for_each_reason_and_one_a_minute() {
        let clock = Arc::new(At(Mutex::new(Duration::from_secs(9))));
        let outages = Outages::new(clock.clone());
        let fails = |why: &str| {
            outages.is_news(&Fact::StoreUnavailable { verb: "claim", why: StoreError::Unavailable(why.into()) })
        };
        assert!(!outages.is_news(&Fact::StoreRecovered), "it was never away");
        assert!(fails("refused") && !fails("refused") && fails("loading") && !fails("refused"));
        assert!(outages.is_news(&Fact::StoreRecovered) && !outages.is_news(&Fact::StoreRecovered));
        assert!(!fails("refused"), "in and out again");
        *clock.0.lock().unwrap() += AGAIN;
        assert!(fails("refused") && outages.is_news(&Fact::StoreRecovered));
    }

    #[test]
    fn reasons_without_end_are_not_remembered_nor_told() {
        let outages = Outages::new(Arc::new(At(Mutex::default())));
        let fails = |number: usize| {
            outages.is_news(&Fact::StoreUnavailable { verb: "claim", why: StoreError::Unavailable(number.to_string()) })
        };
        assert_eq!((0..100).filter(|number| fails(*number)).count(), REASONS);
    }
}
