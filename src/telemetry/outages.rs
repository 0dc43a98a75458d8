//! While the store is away every verb fails many times a second.

use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::WhyCode;

use crate::facts::{Fact, NotKept, ProviderNews};
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::reminders::Reminders;

pub(super) struct Outages {
    clock: Arc<dyn Clock>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    reasons: Reminders<StoreError>,
    setups: Reminders<(String, WhyCode)>,
    waits: Reminders<String>,
    bounces: Reminders<(String, NotKept)>,
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
                let news = told.reasons.is_news(why.clone(), self.clock.boot());
                told.open |= news;
                news
            }
            Fact::StoreRecovered => std::mem::take(&mut told.open),
            // Of every message of an app whose key is missing at the provider.
            Fact::Provider { provider, news: ProviderNews::SetupWrong { why } } => {
                told.setups.is_news((provider.clone(), *why), self.clock.boot())
            }
            Fact::Provider { provider, news: ProviderNews::BounceNotKept { why } } => {
                told.bounces.is_news((provider.clone(), *why), self.clock.boot())
            }
            Fact::Provider { provider, news: ProviderNews::WaitCut { .. } } => {
                told.waits.is_news(provider.clone(), self.clock.boot())
            }
            _ => true,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ports::clock::Boot;

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
    fn what_every_message_meets_is_a_line_for_each_provider_and_one_a_minute() {
        let clock = Arc::new(At(Mutex::new(Duration::from_secs(9))));
        let outages = Outages::new(clock.clone());
        let tells = |provider: &str, news| outages.is_news(&Fact::Provider { provider: provider.into(), news });
        for news in [
            ProviderNews::SetupWrong { why: WhyCode::ThirdPartyRefused },
            ProviderNews::WaitCut { asked: Duration::from_secs(1) },
            ProviderNews::BounceNotKept { why: NotKept::Wave },
        ] {
            assert!(tells("main", news) && !tells("main", news) && tells("other", news));
        }
        *clock.0.lock().unwrap() += Duration::from_secs(60);
        assert!(tells("main", ProviderNews::SetupWrong { why: WhyCode::ThirdPartyRefused }));
        // What is about one device is told each time.
        assert!((0..2).all(|_| tells("main", ProviderNews::TokensSpared { tokens: 1 })));
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
        *clock.0.lock().unwrap() += Duration::from_secs(60);
        assert!(fails("refused") && outages.is_news(&Fact::StoreRecovered));
    }
}
