//! A scripted provider: it takes the message or not, answers or not, stalls past the lease, breaks
//! the worker, and keeps its own count of what people saw.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry::ports::channel::{Call, Channel, Receipt};
use belfry::ports::deliveries::Deliveries;
use belfry::ports::message::Outgoing;
use belfry_domain::outcome::{Looked, RepeatGuard, ThrottleScope};
use belfry_domain::subject::Subject;
use belfry_domain::timeline::ReceiptKind;
use belfry_domain::{Outcome, Why, WhyCode};
use futures::FutureExt;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::bugs::Bug;
use super::executor::NodeId;
use super::world::{Effect, LEASE, Phase, World};

/// A message with this in its text kills the worker that sends it.
pub const POISON: &str = "poison";

pub struct ScriptedProvider {
    pub world: World,
    /// Whose calls these are.
    pub node: NodeId,
    /// The truth, read without faults.
    pub store: Arc<dyn Deliveries>,
    pub guard: RepeatGuard,
    /// Where receipts go, for providers that send them.
    pub receipts: Option<mpsc::Sender<Receipt>>,
    pub bug: Option<Bug>,
    /// How long it takes before it answers.
    pub slow: Duration,
}

impl ScriptedProvider {
    /// Trouble before the provider has anything.
    async fn trouble_before(&self) -> Option<Outcome> {
        let sim = &self.world.sim;
        if !self.world.faults() {
            return None;
        }
        match sim.below(100) {
            0..8 => Some(Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::Unreachable) }),
            8..14 => Some(Outcome::NotAccepted {
                retry_after: Some(Duration::from_secs(sim.below(5))),
                why: Why::new(WhyCode::TryLater),
            }),
            14..16 => Some(Outcome::Throttled {
                after: Duration::from_secs(1),
                scope: ThrottleScope::Provider,
                why: Why::new(WhyCode::RateLimited),
            }),
            16..18 => Some(Outcome::Refused { why: Why::new(WhyCode::PolicyRefused) }),
            18..22 => {
                sim.sleep(Duration::from_millis(sim.below(4 * LEASE.as_millis() as u64))).await;
                None
            }
            _ => None,
        }
    }

    fn effect(&self, out: &Outgoing) {
        let load = self.store.load(vec![out.delivery]).now_or_never().expect("the inline store never waits");
        let stored = load.unwrap().into_iter().next();
        let unknowns_recorded = stored.map_or(0, |delivery| delivery.timeline.unknowns(out.send));
        let key = match self.bug {
            Some(Bug::NewKeyOnRetry) => format!("{}-{}", out.send_key, self.world.told().calls),
            _ => out.send_key.to_string(),
        };
        let hash = belfry_domain::hex(&Sha256::digest(serde_json::to_vec(&out.message).unwrap()));
        let at = self.world.now();
        let mut told = self.world.told();
        told.effects.push(Effect { at, delivery: out.delivery, send: out.send, key, hash, unknowns_recorded });
        told.phase = Some(Phase::HadEffect);
    }

    /// Nothing is called that the node has read to be paused, and nothing before it has read what is.
    fn obeys_pauses(&self, out: &Outgoing) {
        let load = self.store.load(vec![out.delivery]).now_or_never().expect("the inline store never waits");
        let Some(it) = load.unwrap().into_iter().next() else { return };
        let now = self.world.now();
        let mut told = self.world.told();
        let subject = Subject { tenant: &it.tenant, ..Subject::of_any(&it.class, it.channel, &it.lane.provider) };
        let exempt = told.pause_exempt.contains(&it.class);
        let broken = match told.pauses_read.get(&self.node) {
            None => "called before anything was read of pauses",
            Some(read) if read.iter().any(|pause| pause.holds(&subject, exempt, now)) => "called while paused",
            Some(_) => return,
        };
        told.broken.push(format!("{broken}: {} of {}", it.id, it.class));
    }

    async fn tell_receipts(&self, out: &Outgoing) {
        let Some(receipts) = &self.receipts else { return };
        for _ in 0..=self.world.sim.below(3) {
            // A full queue loses a receipt, as a lost callback would.
            drop(receipts.try_send(Receipt { delivery: out.delivery, kind: ReceiptKind::Delivered }));
        }
    }

    /// What the worker hears, after the effect or without one.
    async fn answer(&self, had_effect: bool) -> Outcome {
        let sim = &self.world.sim;
        sim.yields(sim.below(3)).await;
        let trouble = self.world.faults();
        if trouble && sim.chance(2) {
            sim.sleep(Duration::from_millis(sim.below(4 * LEASE.as_millis() as u64))).await;
        }
        if trouble && sim.chance(2) {
            // Unwinds without the panic hook's noise.
            std::panic::resume_unwind(Box::new("scripted"));
        }
        let outcome = if !had_effect || (trouble && sim.chance(15)) {
            Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::TimedOutAfter) }
        } else {
            Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) }
        };
        match (self.bug, outcome) {
            (Some(Bug::TimeoutIsNotSent), Outcome::Unknown { why, .. }) => {
                Outcome::NotAccepted { retry_after: None, why }
            }
            (_, outcome) => outcome,
        }
    }
}

#[async_trait]
impl Channel for ScriptedProvider {
    fn repeat_guard(&self) -> RepeatGuard {
        self.guard
    }

    fn receipts(&self) -> bool {
        self.receipts.is_some()
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        let sim = &self.world.sim;
        self.obeys_pauses(out);
        {
            let mut told = self.world.told();
            told.calls += 1;
            told.called_at.push(sim.now());
            told.phase = Some(Phase::InCall);
        }
        sim.yields(sim.below(2)).await;
        if serde_json::to_string(&out.message).unwrap().contains(POISON) {
            sim.crash_before(self.node, sim.polls(self.node) + 1);
        }
        sim.sleep(Duration::from_millis(sim.below(20))).await;
        if let Some(outcome) = self.trouble_before().await {
            self.world.reach(Phase::Answered);
            return outcome;
        }
        if call.commit().is_err() {
            return Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::LeaseLost) };
        }
        sim.yields(sim.below(2)).await;
        if self.world.faults() && sim.chance(2) {
            // Stopped right between the check and the last byte.
            sim.sleep(Duration::from_millis(sim.below(4 * LEASE.as_millis() as u64))).await;
        }
        let taken = !self.world.faults() || sim.chance(94);
        if taken {
            self.effect(out);
            self.tell_receipts(out).await;
        }
        sim.sleep(self.slow).await;
        let outcome = self.answer(taken).await;
        self.world.reach(Phase::Answered);
        outcome
    }

    async fn look_up(&self, out: &Outgoing) -> Looked {
        self.world.sim.yields(1).await;
        let told = self.world.told();
        if told.effects.iter().any(|effect| effect.delivery == out.delivery && effect.send == out.send) {
            Looked::Found { provider_ref: None }
        } else {
            Looked::NotYet
        }
    }
}
