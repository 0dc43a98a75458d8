//! Calls to the services behind a provider whose addresses name one each. A service that goes silent must not
//! hold the places that the others' messages need: each has at most half of them, all that are not known and have
//! not answered yet have a quarter together, and whoever waits for a silent one gives up his place.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::delivery::DeferWhy;
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::timeline::Happened;
use belfry_domain::{Delivery, Event, Lane, Outcome, WhyCode};

use super::attempt::Work;
use super::calls::{Calls, Slot};
use super::health::Gate;
use crate::ports::channel::Service;
use crate::ports::clock::Boot;
use crate::ports::message::Address;

/// A service that has all of its places taken and has not answered for so long is silent.
const SILENT: Duration = Duration::from_secs(1);
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// What waits for a service that does not work is looked at again so seldom at the most.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// So many services that have answered are remembered.
const PROVEN: usize = 1024;

#[derive(Default)]
pub(super) struct Services {
    calls: Calls,
    /// When each that is being called answered last, or was called first.
    heard: Mutex<BTreeMap<String, Boot>>,
    /// Those that have answered, not known ones, and when.
    proven: Mutex<BTreeMap<String, Boot>>,
}

/// A place among the calls to one service, until dropped.
pub(super) struct Place<'a> {
    of: &'a Services,
    slots: Vec<(String, Slot)>,
    pub service: Service,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        for (door, slot) in self.slots.drain(..) {
            drop(slot);
            self.of.leave(&door);
        }
    }
}

fn door(provider: &str, service: &Service) -> String {
    format!("{provider} {}", service.key)
}

/// Of all that are not known and have not answered yet.
fn door_of_unproven(provider: &str) -> String {
    format!("{provider} unproven")
}

impl Services {
    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Boot>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn proven(&self) -> MutexGuard<'_, BTreeMap<String, Boot>> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn is_unproven(&self, provider: &str, service: &Service) -> bool {
        !service.known && !self.proven().contains_key(&door(provider, service))
    }

    /// After a call: whether the service had anything to say.
    pub(super) fn hear(&self, provider: &str, service: &Service, outcome: &Outcome, now: Boot) {
        let said_nothing = match outcome.kind() {
            OutcomeKind::Unknown => outcome.why().code == WhyCode::TimedOutAfter,
            OutcomeKind::NotAccepted => outcome.why().code == WhyCode::TimedOutBefore,
            OutcomeKind::Accepted | OutcomeKind::Refused | OutcomeKind::RecipientGone | OutcomeKind::Throttled => false,
        };
        let door = door(provider, service);
        if said_nothing {
            self.proven().remove(&door);
            return;
        }
        for heard_of in [&door, &door_of_unproven(provider)] {
            if let Some(at) = self.heard().get_mut(heard_of) {
                *at = now;
            }
        }
        if !service.known {
            self.prove(door, now);
        }
    }

    fn prove(&self, door: String, now: Boot) {
        let mut proven = self.proven();
        if proven.len() >= PROVEN && !proven.contains_key(&door) {
            let oldest = proven.iter().min_by_key(|(_, at)| **at).map(|(door, _)| door.clone());
            oldest.and_then(|oldest| proven.remove(&oldest));
        }
        proven.insert(door, now);
    }
}

impl Work<'_> {
    /// A place among the calls to the service that the address names; nothing where the provider is one service.
    ///
    /// # Errors
    /// What to settle instead: its circuit is open, or it is silent and has its share of the calls already.
    pub(super) async fn at_service(&self, delivery: &Delivery, address: &Address) -> Result<Option<Place<'_>>, Event> {
        let Some(service) = self.provider.channel.service(address) else { return Ok(None) };
        let shared = self.shared;
        let (services, now) = (&shared.services, shared.deps.clock.boot());
        let (provider, priority) = (&delivery.lane.provider, delivery.lane.priority);
        let concurrency = self.provider.concurrency;
        let mut slots = Vec::with_capacity(2);
        if services.is_unproven(provider, &service) {
            let lane = Lane::new(door_of_unproven(provider), priority);
            let slot = self.turn_at(&lane, (concurrency / 4).max(1)).await;
            slots.push((lane.provider, slot.map_err(|Silent| self.behind(delivery, Duration::ZERO))?));
        }
        let lane = Lane::new(door(provider, &service), priority);
        let most = (concurrency / 2).max(1);
        let slot = match shared.health.gate_of(provider, &service, now) {
            Gate::Shut { until } => Err(until.saturating_sub(now)),
            Gate::Trial => {
                services.silent_since(&lane.provider, now);
                services.calls.enter_alone(&lane).ok_or(Duration::ZERO)
            }
            Gate::AtMost(few) => self.turn_at(&lane, few.min(most)).await.map_err(|Silent| Duration::ZERO),
            Gate::Open => self.turn_at(&lane, most).await.map_err(|Silent| Duration::ZERO),
        };
        let place = |slot| {
            slots.push((lane.provider, slot));
            Some(Place { of: services, slots, service })
        };
        slot.map(place).map_err(|left| self.behind(delivery, left))
    }

    /// Waits while the service answers others.
    async fn turn_at(&self, door: &Lane, most: u16) -> Result<Slot, Silent> {
        let (services, clock) = (&self.shared.services, &self.shared.deps.clock);
        let mut since = services.silent_since(&door.provider, clock.boot());
        if services.calls.under_way(&door.provider) >= most && clock.boot() >= since + SILENT {
            return Err(Silent);
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
                return Err(Silent);
            }
            since = last;
        }
    }

    /// Puts the message off, for `left` at least; twice as long each time in a row, and not all alike: each time
    /// costs a claim and a write, and one is enough to try a service out.
    fn behind(&self, delivery: &Delivery, left: Duration) -> Event {
        let before = match delivery.timeline.entries.last().map(|entry| &entry.happened) {
            Some(Happened::Deferred { why: DeferWhy::Breaker, times, .. }) => (*times).min(6),
            _ => 0,
        };
        let wait = SHORTEST_WAIT.saturating_mul(1 << before).min(LONGEST_WAIT).max(left);
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let spread = Duration::from_millis(self.shared.deps.dice.roll() % millis / 2);
        self.shared.hold_for(wait + spread, DeferWhy::Breaker)
    }
}

/// The service has all of its places taken and answers nobody.
struct Silent;
