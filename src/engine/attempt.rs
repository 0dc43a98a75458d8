//! One claim, from admission to settle: admit, look up, make the message, spend, call, settle.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use belfry_domain::admission::{Verdict, admit};
use belfry_domain::caps::Cap;
use belfry_domain::delivery::DeferWhy;
use belfry_domain::outcome::{Looked, RepeatGuard};
use belfry_domain::timeline::ClaimMark;
use belfry_domain::{Class, Delivery, Event, Lane, Outcome, UnixMs, Why, WhyCode};
use futures::FutureExt;

use super::calls::Slot;
use super::caps::Places;
use super::devices::Aimed;
use super::health::Gate;
use super::ledger::{Live, Place};
use super::look::{Look, Seen};
use super::pacer::PacedCall;
use super::permits::Permit;
use super::settle::{Held, Settled, SharedRef};
use super::{RenderFault, Shared, suppressions};
use crate::content::stamped;
use crate::facts::Fact;
use crate::ports::channel::{Call, Service};
use crate::ports::deliveries::{Claim, Owner, Spend, Written};
use crate::ports::message::{Outgoing, Rendered};
use crate::ports::policy::{DeviceOf, Provider};

/// How long a delivery is put off whose class or provider is not configured (any more).
const UNCONFIGURED: std::time::Duration = std::time::Duration::from_secs(30);
const BEHIND_CIRCUIT: std::time::Duration = std::time::Duration::from_secs(1);
/// How long after a store fault the newest version is asked for again.
const VERSION_AWAY: std::time::Duration = std::time::Duration::from_secs(1);
/// How long after a store fault it is asked again what those have said whom it goes to.
const WISHES_AWAY: std::time::Duration = std::time::Duration::from_secs(1);
/// How long after a store fault a frozen template, or what is attached, is asked for again.
const TEMPLATE_AWAY: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs one attempt to its end. The permit goes with the call, the claim's place in the ledger with
/// the record of its outcome.
pub(super) async fn run(
    shared: SharedRef,
    (claim, look): (Claim, Look),
    place: Place,
    (permit, paced): (Permit, Option<PacedCall>),
) {
    let policy = shared.policy();
    let class = shared.class_of(&claim.delivery);
    let provider = policy.providers.get(&claim.delivery.lane.provider);
    let held = Held { delivery: claim.delivery.clone(), token: claim.token, class: &class, provider };
    let configured = policy.classes.contains_key(&claim.delivery.class);
    let to_settle = match provider {
        Some(provider) if configured => {
            let caps = policy.caps.get(&claim.delivery.class).map(Vec::as_slice);
            let work = Work { shared: &shared, claim: &claim, look, class: &class, caps, provider, live: &place.live };
            work.run(held, paced).await
        }
        _ => {
            let named = claim
                .inputs
                .as_deref()
                .and_then(|inputs| shared.deps.render.named_device(inputs, &claim.delivery.slot));
            let (app, environment) = named.unwrap_or_default();
            let device = DeviceOf { app: app.as_deref(), environment: environment.as_deref() };
            let present = policy.reroute(claim.delivery.channel, device);
            let event = match (verdict(&claim, shared.deps.clock.now()), present) {
                (Verdict::Call, Some(present)) if provider.is_none() => {
                    Event::Rerouted(Lane::new(present, claim.delivery.lane.priority))
                }
                (Verdict::Call, _) => shared.hold_for(UNCONFIGURED, DeferWhy::Unconfigured),
                (refused, _) => Event::Admitted(refused),
            };
            Some((held, event))
        }
    };
    // The provider is free for the next while this is written.
    let settling = shared.permits.settling();
    drop(permit);
    if let Some((held, event)) = to_settle {
        let bounced = suppressions::bounced(&shared, &held.delivery, &event);
        let settled = shared.settle(held, event).await;
        if let (Some(entry), Settled::Done(_)) = (bounced, settled) {
            shared.suppress(&Owner::of(&claim.notification), entry).await;
        }
    }
    drop((place, settling));
}

fn verdict(claim: &Claim, now: UnixMs) -> Verdict {
    let (own, newest) = claim.versions();
    admit(&claim.delivery, own, newest, now)
}

impl Shared {
    pub(super) fn hold_for(&self, wait: std::time::Duration, why: DeferWhy) -> Event {
        Event::Held { until: self.deps.clock.now().plus(wait), why }
    }
}

pub(super) struct Work<'a> {
    pub(super) shared: &'a Shared,
    pub(super) claim: &'a Claim,
    pub(super) look: Look,
    pub(super) class: &'a Class,
    /// Those of the class, where it has any.
    pub(super) caps: Option<&'a [Cap]>,
    pub(super) provider: &'a Provider,
    pub(super) live: &'a Arc<Live>,
}

/// What to settle, under which record.
type ToSettle<'a> = Option<(Held<'a>, Event)>;

impl<'a> Work<'a> {
    async fn run(&self, mut held: Held<'a>, mut paced: Option<PacedCall>) -> ToSettle<'a> {
        // Before its turn: a provider need not wait while a replica hears of the claim.
        if self.claim.unconfirmed && !self.class.at_most_once() && !self.confirmed().await {
            return Some((held, Event::Released));
        }
        // While it waits for its turn.
        let seen = self.look.clone().await;
        let mut turn = self.turn().await;
        if *self.shared.cut_off.borrow() {
            // Had no turn before the end.
            return Some((held, Event::Released));
        }
        let decided = self.shared.deps.clock.boot();
        if let Some(event) = self.waits(&held.delivery, &seen).await {
            return Some((held, event));
        }
        if held.delivery.maybe_sent && self.provider.channel.repeat_guard() == RepeatGuard::Lookup {
            held = self.look_up(held).await?;
        }
        let aimed = match self.aim(&held.delivery).await {
            Ok(aimed) => aimed,
            Err(event) => return Some((held, event)),
        };
        if let Some(aimed) = &aimed {
            held = self.readdress(held, aimed).await?;
        }
        let mut out = match self.make(&mut held).await {
            Ok(out) => out,
            Err(event) => return Some((held, event)),
        };
        if let Some(aimed) = &aimed {
            out.address = aimed.address().clone();
        }
        let place = match self.at_service(&held.delivery, &out.address).await {
            Ok(place) => place,
            Err(event) => return Some((held, event)),
        };
        let mut places = match self.take_places(&held.delivery, &out.address).await {
            Ok(places) => places,
            Err(event) => return event.map(|event| (held, event)),
        };
        if let Some(event) = self.beyond_budget(&held.delivery) {
            return Some((held, event));
        }
        if self.class.at_most_once() {
            held = self.spend(held).await?;
        }
        if self.records_first() {
            turn = self.shared.calls.enter(&held.delivery.lane, self.provider.concurrency).await;
        }
        if let Err(event) = self.begins(&held.delivery, (&seen, decided), &places, paced.as_mut()).await {
            return Some((held, event));
        }
        let service = place.as_ref().map(|place| &place.service);
        places.iter_mut().for_each(Places::call_begins);
        let event = self.call(&out, &held, (aimed.as_ref(), service), places.as_ref()).await;
        places.iter_mut().for_each(|places| places.call_ended(&event));
        drop((turn, place));
        Some((held, event))
    }

    /// Something is on record before the call: that it is spent, or its places.
    fn records_first(&self) -> bool {
        self.class.at_most_once() || self.caps.is_some()
    }

    /// At least once: the turn to call. At most once and under caps: the turn to spend first, so that a provider
    /// need not wait while that is recorded; as many as may call may have spent before their call,
    /// and that is what a crash costs at the most.
    async fn turn(&self) -> Slot {
        let calls = if self.records_first() { &self.shared.spending } else { &self.shared.calls };
        calls.enter(&self.claim.delivery.lane, self.provider.concurrency).await
    }

    /// Why no call is made now: for what was read with the claim, or because it is an item and its digest is made instead.
    async fn waits(&self, delivery: &Delivery, seen: &Seen) -> Option<Event> {
        let not_now = if delivery.folding().is_none() { self.not_now(delivery, seen) } else { None };
        match (not_now, delivery.gathers()) {
            (Some(event), _) => Some(event),
            (None, Some(gathering)) => Some(self.gathers_still(delivery, gathering.slot).await),
            (None, None) => None,
        }
    }

    /// Whether it may be called at all now, on what was read with the claim.
    fn not_now(&self, delivery: &Delivery, seen: &Seen) -> Option<Event> {
        let Some(said) = seen.of(delivery.id) else {
            return Some(self.shared.hold_for(WISHES_AWAY, DeferWhy::Retry));
        };
        match self.admitted(delivery, said) {
            Verdict::Call => {}
            refused => return Some(Event::Admitted(refused)),
        }
        if self.claim.newest_away {
            return Some(self.shared.hold_for(VERSION_AWAY, DeferWhy::Retry));
        }
        let (health, boot) = (&self.shared.health, self.shared.deps.clock.boot());
        if let Gate::Shut { .. } = health.gate(&delivery.lane.provider, boot) {
            // Claimed before the circuit opened. Not put off until it may close: no claim is made
            // until then anyway, and it closes earlier when the provider is reconfigured.
            return Some(self.shared.hold_for(BEHIND_CIRCUIT, DeferWhy::Breaker));
        }
        let alone = self.shared.tokens.left_alone(&delivery.lane.provider, &delivery.address_hash, boot);
        alone.map(|wait| self.shared.hold_for(wait, DeferWhy::Pace))
    }

    /// Counts the call that is about to be made, or says why it has to wait. Only right before it: what is put off
    /// for another reason must neither count as traffic nor use the budget up.
    fn beyond_budget(&self, delivery: &Delivery) -> Option<Event> {
        let (health, boot) = (&self.shared.health, self.shared.deps.clock.boot());
        if delivery.attempts == 0 {
            health.first_attempt(&delivery.lane, boot);
        } else if !self.class.budget_exempt && !health.take_retry(&delivery.lane, boot) {
            let wait = belfry_domain::retry::wait(&self.class.retry, 1, None, self.shared.deps.dice.roll());
            return Some(self.shared.hold_for(wait.max(std::time::Duration::from_millis(100)), DeferWhy::Budget));
        }
        None
    }

    /// Asks the provider about the earlier call before making another.
    async fn look_up(&self, mut held: Held<'a>) -> Option<Held<'a>> {
        let out = match self.make(&mut held).await {
            Ok(out) => out,
            Err(event) => {
                self.shared.settle(held, event).await;
                return None;
            }
        };
        let looked = self.provider.channel.look_up(&out).await;
        let absent = looked == Looked::Absent;
        let (token, class, provider) = (held.token, held.class, held.provider);
        match self.shared.settle(held, Event::LookedUp(looked)).await {
            // Its record now says so, and the claim goes on.
            Settled::Done(delivery) if absent => Some(Held { delivery: *delivery, token, class, provider }),
            Settled::Done(_) | Settled::Not => None,
        }
    }

    /// The message, the same as before where an earlier one may have arrived.
    async fn make(&self, held: &mut Held<'a>) -> Result<Outgoing, Event> {
        let delivery = &held.delivery;
        let Some(inputs) = &self.claim.inputs else {
            return Err(Event::Uncallable(Why::said(WhyCode::RenderFailed, "its content is no longer kept")));
        };
        let render = &self.shared.deps.render;
        let made = match render.render(delivery.notification, inputs, delivery.channel, &delivery.slot).await {
            Ok(made) => made,
            Err(RenderFault::Broken(place)) => return Err(Event::Uncallable(Why::said(WhyCode::RenderFailed, place))),
            Err(RenderFault::Store(_)) => return Err(self.shared.hold_for(TEMPLATE_AWAY, DeferWhy::Retry)),
        };
        let hash = stamped(&made.hash, self.provider.channel.stamp());
        if hash != delivery.content_hash {
            // What was accepted before there were stamps has none.
            if delivery.this_send_may_have_arrived() && made.hash != delivery.content_hash {
                return Err(Event::Drifted);
            }
            held.delivery.content_hash = hash;
        }
        let (delivery, notification) = (&held.delivery, &self.claim.notification);
        Ok(Outgoing {
            channel: delivery.channel,
            tenant: notification.tenant.clone(),
            environment: notification.environment.clone(),
            notification: notification.id,
            delivery: delivery.id,
            send: delivery.send,
            send_key: delivery.id.send_key(delivery.send),
            message_key: notification.id.message_key(delivery.send),
            created_at: notification.created_at,
            expires_at: delivery.expires_at,
            address: made.address,
            seen_token: matches!(made.message, Rendered::Push { .. })
                .then(|| (self.shared.deps.seen_token)(delivery.id)),
            message: made.message,
            collapse: notification.collapse.as_ref().map(|collapse| collapse.key.clone()),
        })
    }

    /// At most once: the call is on record before it is made, as late as possible.
    async fn spend(&self, mut held: Held<'a>) -> Option<Held<'a>> {
        let spend = Spend { id: held.delivery.id, token: held.token, rev: held.delivery.rev };
        match self.shared.settler.spend(spend).await? {
            Written::Done => {
                held.delivery.spent = true;
                held.delivery.rev += 1;
                Some(held)
            }
            Written::Moved(current) => {
                // Somebody asked to stop it: nothing was spent, so nothing is called.
                held.delivery = *current;
                self.shared.settle(held, Event::Released).await;
                None
            }
            Written::Stale | Written::Gone | Written::Away => None,
        }
    }

    async fn call(
        &self,
        out: &Outgoing,
        held: &Held<'_>,
        (aimed, service): (Option<&Aimed>, Option<&Service>),
        places: Option<&Places<'_>>,
    ) -> Event {
        let clock = &self.shared.deps.clock;
        let started = clock.boot();
        let call = Call::new(self.gate(&held.delivery));
        let mut cut_off = self.shared.cut_off.subscribe();
        let sending = AssertUnwindSafe(self.send(out, &call, places)).catch_unwind();
        let outcome = tokio::select! {
            biased;
            sent = sending => sent.unwrap_or_else(|_| {
                self.shared.deps.facts.record(&Fact::TaskPanicked { task: "attempt" });
                Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::Panicked) }
            }),
            _ = cut_off.wait_for(|cut| *cut) => {
                if !call.committed() {
                    return Event::Released;
                }
                Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::ShutDown) }
            }
        };
        let took = clock.boot().saturating_sub(started);
        self.shared.calls.took(&held.delivery.lane.provider, took);
        let outcome = self.heard(outcome, &held.delivery, (&out.address, aimed)).await;
        self.note_health(&held.delivery.lane.provider, service, &outcome);
        if matches!(&outcome, Outcome::NotAccepted { why, .. } if why.code == WhyCode::LeaseLost) {
            return Event::Released;
        }
        let claim = ClaimMark { worker: self.shared.settings.worker.clone(), fence: held.token.fence };
        Event::Called { claim, outcome, took }
    }

    /// A call that began before a reload says nothing of what was put in its place.
    pub(super) fn is_current(&self, provider: &str) -> bool {
        let current = self.shared.policy().providers.get(provider).map(|now| now.channel.clone());
        current.is_some_and(|now| Arc::ptr_eq(&now, &self.provider.channel))
    }

    fn note_health(&self, provider: &str, service: Option<&Service>, outcome: &Outcome) {
        let (shared, now) = (self.shared, self.shared.deps.clock.boot());
        if let Some(service) = service {
            shared.services.hear(provider, service, outcome, now);
        }
        if !self.is_current(provider) {
            return;
        }
        let heard = shared.health.record(provider, service, outcome, now);
        for forgotten in heard.forgotten {
            shared.circuit_closed(provider, Some(forgotten));
        }
        shared.circuit_changed(provider, service, (heard.change, outcome.why().code));
    }
}
