//! Calls to the services behind a provider whose addresses name one each. A service that goes silent must not
//! hold the places that the others' messages need: each has at most half of them, and whoever waits for a
//! silent one gives up his place.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::delivery::DeferWhy;
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::{Event, Lane, Outcome, WhyCode};

use super::attempt::Work;
use super::calls::{Calls, Slot};
use super::health::Gate;
use crate::ports::channel::Service;
use crate::ports::clock::Boot;

/// A service that has all of its places taken and has not answered for so long is silent.
const SILENT: Duration = Duration::from_secs(1);
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// What waits for a service that does not work is looked at again so seldom at the most.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Services {
    calls: Calls,
    /// When each that is being called answered last, or was called first.
    heard: Mutex<BTreeMap<String, Boot>>,
}

/// A place among the calls to one service, until dropped.
pub(super) struct Place<'a> {
    of: &'a Services,
    door: String,
    slot: Option<Slot>,
    pub service: Service,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        drop(self.slot.take());
        self.of.leave(&self.door);
    }
}

fn door(provider: &str, service: &Service) -> String {
    format!("{provider} {}", service.key)
}

impl Services {
    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Boot>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, door: &str) {
        let mut heard = self.heard();
        if self.calls.forget_idle(door) {
            heard.remove(door);
        }
    }

    /// Since when nothing was heard of it.
    fn silent_since(&self, door: &str, now: Boot) -> Boot {
        *self.heard().entry(door.to_owned()).or_insert(now)
    }

    /// After a call: whether the service had anything to say.
    pub(super) fn hear(&self, provider: &str, service: &Service, outcome: &Outcome, now: Boot) {
        let said_nothing = match outcome.kind() {
            OutcomeKind::Unknown => outcome.why().code == WhyCode::TimedOutAfter,
            OutcomeKind::NotAccepted => outcome.why().code == WhyCode::TimedOutBefore,
            OutcomeKind::Accepted | OutcomeKind::Refused | OutcomeKind::RecipientGone | OutcomeKind::Throttled => false,
        };
        if !said_nothing && let Some(at) = self.heard().get_mut(&door(provider, service)) {
            *at = now;
        }
    }
}

impl Work<'_> {
    /// A place among the calls to the service that the address names; nothing where the provider is one service.
    ///
    /// # Errors
    /// What to settle instead: its circuit is open, or it is silent and has its share of the calls already.
    pub(super) async fn at_service(&self, lane: &Lane, service: Option<Service>) -> Result<Option<Place<'_>>, Event> {
        let Some(service) = service else { return Ok(None) };
        let shared = self.shared;
        let (services, now) = (&shared.services, shared.deps.clock.boot());
        let door = door(&lane.provider, &service);
        let most = (self.provider.concurrency / 2).max(1);
        let most = match shared.health.gate_of(&lane.provider, &service, now) {
            Gate::Shut { until } => return Err(self.behind_circuit(until.saturating_sub(now))),
            Gate::Trial => {
                let slot = services.calls.enter_alone(&Lane::new(door.clone(), lane.priority));
                let slot = slot.ok_or_else(|| self.behind_circuit(SHORTEST_WAIT))?;
                services.silent_since(&door, now);
                return Ok(Some(Place { of: services, door, slot: Some(slot), service }));
            }
            Gate::AtMost(few) => few.min(most),
            Gate::Open => most,
        };
        let slot = self.turn_at(&Lane::new(door.clone(), lane.priority), most).await?;
        Ok(Some(Place { of: services, door, slot: Some(slot), service }))
    }

    /// Waits while the service answers others.
    async fn turn_at(&self, door: &Lane, most: u16) -> Result<Slot, Event> {
        let (services, clock) = (&self.shared.services, &self.shared.deps.clock);
        let mut since = services.silent_since(&door.provider, clock.boot());
        if services.calls.under_way(&door.provider) >= most && clock.boot() >= since + SILENT {
            return Err(self.behind_silence(since));
        }
        let turn = services.calls.enter(door, most);
        tokio::pin!(turn);
        loop {
            // Looked at first: where a place is free nobody waits.
            tokio::select! {
                biased;
                slot = &mut turn => return Ok(slot),
                () = clock.sleep_until(since + SILENT) => {}
            }
            let last = services.silent_since(&door.provider, clock.boot());
            if last == since {
                return Err(self.behind_silence(since));
            }
            since = last;
        }
    }

    /// The longer it lasts the more seldom.
    fn behind_silence(&self, since: Boot) -> Event {
        let silent = self.shared.deps.clock.boot().saturating_sub(since);
        self.shared.hold_for(silent.clamp(SHORTEST_WAIT, LONGEST_WAIT), DeferWhy::Pace)
    }

    /// Not all come back at the moment when it is tried again: one is enough for a trial, and the others would be
    /// claimed for nothing.
    fn behind_circuit(&self, left: Duration) -> Event {
        let left = left.max(SHORTEST_WAIT);
        let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
        let spread = Duration::from_millis(self.shared.deps.dice.roll() % millis);
        self.shared.hold_for((left + spread).min(LONGEST_WAIT), DeferWhy::Breaker)
    }
}
