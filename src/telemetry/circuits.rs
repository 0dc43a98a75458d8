//! The circuits that are open, by what was told of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::facts::Fact;
use crate::ports::channel::Service;
use crate::ports::circuits::OpenCircuit;
use crate::ports::clock::Clock;

/// Bounded as the engine's own memory of them is: it closes what it forgets.
pub(super) struct Circuits {
    clock: Arc<dyn Clock>,
    open: Mutex<BTreeMap<(String, Option<Service>), OpenCircuit>>,
}

impl Circuits {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, open: Mutex::default() }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<(String, Option<Service>), OpenCircuit>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(&self) -> Vec<OpenCircuit> {
        self.locked().values().cloned().collect()
    }

    /// After a fact about `service`: how many of that name are open behind its provider.
    pub fn of_that_name(&self, provider: &str, service: &Service) -> usize {
        let is_one = |it: &&OpenCircuit| it.provider == provider && it.service == Some(service.name);
        self.locked().values().filter(is_one).count()
    }

    pub fn hear(&self, fact: &Fact) {
        match fact {
            Fact::CircuitOpened { provider, service, why, cause } => {
                let now = self.clock.now();
                let mut open = self.locked();
                let it = open.entry((provider.clone(), service.clone())).or_insert_with(|| OpenCircuit {
                    provider: provider.clone(),
                    service: service.as_ref().map(|service| service.name),
                    why: *why,
                    cause: *cause,
                    since: now,
                });
                // Open all the while, but for another reason now.
                (it.why, it.cause) = (*why, *cause);
            }
            Fact::CircuitClosed { provider, service } => {
                self.locked().remove(&(provider.clone(), service.clone()));
            }
            _ => {}
        }
    }

    /// Those of providers that are no longer configured are nobody's.
    pub fn keep(&self, configured: impl Fn(&str) -> bool) {
        self.locked().retain(|(provider, _), _| configured(provider));
    }
}
