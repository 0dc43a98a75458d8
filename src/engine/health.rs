//! Circuits and retry budgets of this node's providers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::breaker::{Breaker, Change};
use belfry_domain::budget::RetryBudget;
use belfry_domain::{Lane, Outcome};

use crate::ports::channel::Service;
use crate::ports::clock::Boot;

/// So many services behind one provider are remembered that do not work: addresses may name made-up ones without
/// end. Of more, the one is forgotten that has been due for a trial the longest.
const SERVICES: usize = 256;

#[derive(Default)]
pub(super) struct Health {
    circuits: Mutex<BTreeMap<String, Circuits>>,
    budgets: Mutex<BTreeMap<Lane, RetryBudget>>,
}

/// A service whose trial has been due for so long has nothing to send: its circuit is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(10 * 60);

/// Those of one provider.
#[derive(Default)]
struct Circuits {
    own: Breaker,
    services: BTreeMap<Service, Breaker>,
}

/// What an outcome did to its circuit, and which other services' open ones were forgotten meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub change: Change,
    pub forgotten: Vec<Service>,
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

impl Gate {
    fn of(breaker: &Breaker, now: Boot) -> Self {
        match breaker.open_until() {
            None => breaker.at_most(now).map_or(Self::Open, Self::AtMost),
            Some((until, _)) if now < until => Self::Shut { until },
            Some(_) => Self::Trial,
        }
    }
}

impl Circuits {
    fn record_of(&mut self, service: &Service, outcome: &Outcome, now: Boot) -> Heard {
        let mut breaker = self.services.remove(service).unwrap_or_default();
        let change = breaker.record(outcome, now);
        let mut forgotten = self.forget_old(now);
        if !breaker.is_at_rest(now) {
            forgotten.extend(if self.services.len() < SERVICES { None } else { self.forget_one() });
            self.services.insert(service.clone(), breaker);
        }
        Heard { change, forgotten }
    }

    /// Those that nothing has gone to for long.
    fn forget_old(&mut self, now: Boot) -> Vec<Service> {
        let is_old = |it: &Breaker| it.open_until().is_some_and(|(until, _)| now.saturating_sub(until) >= FORGOTTEN);
        self.services.extract_if(.., |_, breaker| is_old(breaker)).map(|(service, _)| service).collect()
    }

    /// Which, if its circuit was open.
    fn forget_one(&mut self) -> Option<Service> {
        let due = |breaker: &Breaker| breaker.open_until().map(|(until, _)| until);
        let longest =
            self.services.iter().min_by_key(|(_, breaker)| due(breaker)).map(|(service, _)| service.clone())?;
        let was = self.services.remove(&longest)?;
        was.on_trial().then_some(longest)
    }

    /// The circuits that were open for what may be mended.
    fn mend(&mut self, now: Boot) -> impl Iterator<Item = Option<Service>> {
        let mended = move |breaker: &mut Breaker| {
            let was_open = breaker.on_trial();
            breaker.mended(now);
            was_open && !breaker.on_trial()
        };
        let own = mended(&mut self.own).then_some(None);
        let services =
            self.services.iter_mut().filter_map(move |(service, it)| mended(it).then(|| Some(service.clone())));
        own.into_iter().chain(services)
    }
}

impl Health {
    fn circuits(&self) -> MutexGuard<'_, BTreeMap<String, Circuits>> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gate(&self, provider: &str, now: Boot) -> Gate {
        self.circuits().get(provider).map_or(Gate::Open, |of| Gate::of(&of.own, now))
    }

    /// The same of one of the services behind it.
    pub(super) fn gate_of(&self, provider: &str, service: &Service, now: Boot) -> Gate {
        let circuits = self.circuits();
        let breaker = circuits.get(provider).and_then(|of| of.services.get(service));
        breaker.map_or(Gate::Open, |breaker| Gate::of(breaker, now))
    }

    /// `service`: the one that was called, where the provider has several.
    pub(super) fn record(&self, provider: &str, service: Option<&Service>, outcome: &Outcome, now: Boot) -> Heard {
        let mut circuits = self.circuits();
        let of = circuits.entry(provider.to_owned()).or_default();
        match service {
            Some(service) => of.record_of(service, outcome, now),
            None => Heard { change: of.own.record(outcome, now), forgotten: Vec::new() },
        }
    }

    /// The circuits that were open for what may be mended are closed again. Which.
    pub(super) fn mended(&self, now: Boot) -> Vec<(String, Option<Service>)> {
        let mut mended = Vec::new();
        for (provider, of) in self.circuits().iter_mut() {
            mended.extend(of.mend(now).map(|service| (provider.clone(), service)));
        }
        mended
    }

    /// Whether the provider's circuit is open because most tokens are refused.
    pub(super) fn refuses_tokens(&self, provider: &str) -> bool {
        self.circuits().get(provider).is_some_and(|of| of.own.refuses_tokens())
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

#[cfg(test)]
mod tests {
    use belfry_domain::breaker::OpenWhy;
    use belfry_domain::outcome::{ThrottleScope, Why, WhyCode};

    use super::*;

    const fn at(seconds: u64) -> Boot {
        Duration::from_secs(seconds)
    }

    fn service(number: usize) -> Service {
        Service { key: format!("https://push{number:04}.example"), name: "another", known: false }
    }

    fn refused() -> Outcome {
        let why = Why::new(WhyCode::CredentialRefused);
        Outcome::Throttled { after: at(1), scope: ThrottleScope::Credential, why }
    }

    fn accepted() -> Outcome {
        Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) }
    }

    #[test]
    fn a_services_circuit_is_nobody_elses() {
        let health = Health::default();
        let opened = Change::Opened(OpenWhy::Credential);
        assert_eq!(health.record("web", Some(&service(1)), &refused(), at(9)).change, opened);
        assert_eq!(health.gate_of("web", &service(1), at(9)), Gate::Shut { until: at(10) });
        assert_eq!((health.gate_of("web", &service(2), at(9)), health.gate("web", at(9))), (Gate::Open, Gate::Open));
        // What works is not remembered.
        health.record("web", Some(&service(2)), &accepted(), at(9));
        assert_eq!(health.circuits()["web"].services.len(), 1);
        assert_eq!(health.mended(at(9)), [("web".to_owned(), Some(service(1)))]);
        assert_eq!(health.gate_of("web", &service(1), at(9)), Gate::AtMost(2));
    }

    #[test]
    fn a_circuit_that_nobody_tries_any_more_is_forgotten() {
        let health = Health::default();
        health.record("web", Some(&service(1)), &refused(), at(9));
        // Its trial was due at 10 s.
        assert_eq!(health.record("web", Some(&service(2)), &accepted(), at(609)).forgotten, []);
        assert_eq!(health.record("web", Some(&service(2)), &accepted(), at(610)).forgotten, [service(1)]);
        assert_eq!(health.gate_of("web", &service(1), at(610)), Gate::Open);
    }

    #[test]
    fn made_up_services_are_not_remembered_without_end() {
        let health = Health::default();
        for number in 0..SERVICES {
            let heard = health.record("web", Some(&service(number)), &refused(), at(9 + number as u64));
            assert_eq!(heard.forgotten, []);
        }
        let heard = health.record("web", Some(&service(9999)), &refused(), at(9));
        assert_eq!(heard, Heard { change: Change::Opened(OpenWhy::Credential), forgotten: vec![service(0)] });
        assert_eq!(health.gate_of("web", &service(0), at(9)), Gate::Open);
        assert_eq!(health.circuits()["web"].services.len(), SERVICES);
    }
}
