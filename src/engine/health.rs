//! Circuits and retry budgets of this node's providers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use belfry_domain::breaker::{Breaker, Change};
use belfry_domain::budget::RetryBudget;
use belfry_domain::{Lane, Outcome};

use crate::ports::clock::Boot;

#[derive(Default)]
pub(super) struct Health {
    breakers: Mutex<BTreeMap<String, Breaker>>,
    budgets: Mutex<BTreeMap<Lane, RetryBudget>>,
}

/// What the claimer may ask of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// One call at a time, to see whether it works again.
    Trial,
    /// It works again, and what piled up goes out at a growing rate.
    AtMost(u16),
    Shut {
        until: Boot,
    },
}

impl Health {
    fn breakers(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Breaker>> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gate(&self, provider: &str, now: Boot) -> Gate {
        let breakers = self.breakers();
        let Some(breaker) = breakers.get(provider) else { return Gate::Open };
        match breaker.open_until() {
            None => breaker.at_most(now).map_or(Gate::Open, Gate::AtMost),
            Some((until, _)) if now < until => Gate::Shut { until },
            Some(_) => Gate::Trial,
        }
    }

    pub(super) fn record(&self, provider: &str, outcome: &Outcome, now: Boot) -> Change {
        self.breakers().entry(provider.to_owned()).or_default().record(outcome, now)
    }

    /// The circuits that were open for what may be mended are closed again. Which.
    pub(super) fn mended(&self, now: Boot) -> Vec<String> {
        let mut mended = Vec::new();
        for (provider, breaker) in self.breakers().iter_mut() {
            let was_open = breaker.on_trial();
            breaker.mended(now);
            if was_open && !breaker.on_trial() {
                mended.push(provider.clone());
            }
        }
        mended
    }

    /// Whether the provider's circuit is open because most tokens are refused.
    pub(super) fn refuses_tokens(&self, provider: &str) -> bool {
        self.breakers().get(provider).is_some_and(Breaker::refuses_tokens)
    }

    pub(super) fn first_attempt(&self, lane: &Lane, now: Boot) {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.entry(lane.clone()).or_insert_with(|| RetryBudget::new(now)).first_attempt();
    }

    /// Whether a retry may be made now.
    pub(super) fn take_retry(&self, lane: &Lane, now: Boot) -> bool {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.entry(lane.clone()).or_insert_with(|| RetryBudget::new(now)).take(now)
    }
}
