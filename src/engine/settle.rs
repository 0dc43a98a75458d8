//! Writing what came of a claim: decide, write under the fence, tell the facts, and decide again
//! where the record has moved on meanwhile.

use std::sync::Arc;

use belfry_domain::outcome::OutcomeKind;
use belfry_domain::step::{Rejected, StepFact};
use belfry_domain::timeline::{ClaimMark, Hop};
use belfry_domain::{Class, Delivery, Event, Outcome, Priority, step};

use super::batcher::{Answer, Batcher, Batches};
use super::{Deps, Shared};
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::{Settle, Spend, Token, Written};
use crate::ports::policy::Provider;

pub(super) struct Settler {
    settles: Batcher<Settle, Written>,
    spends: Batcher<Spend, Written>,
}

/// What has to run for a [`Settler`] to be answered.
pub(super) struct Loops {
    pub settles: Arc<Batches<Settle, Written>>,
    pub spends: Arc<Batches<Spend, Written>>,
}

impl Settler {
    pub(super) fn new(deps: Deps) -> (Self, Loops) {
        let settle = deps.clone();
        let told = deps.facts.clone();
        let (settles, run_settles) = Batcher::new(
            deps.clock.clone(),
            move |batch| {
                let store = settle.deliveries.clone();
                async move { store.settle(batch).await }
            },
            move |why| told.record(&Fact::StoreUnavailable { verb: "settle", why }),
        );
        let spend = deps.clone();
        let told = deps.facts.clone();
        let (spends, run_spends) = Batcher::new(
            deps.clock.clone(),
            move |batch| {
                let store = spend.deliveries.clone();
                async move { store.spend(batch).await }
            },
            move |why| told.record(&Fact::StoreUnavailable { verb: "spend", why }),
        );
        (Self { settles, spends }, Loops { settles: run_settles, spends: run_spends })
    }

    pub(super) async fn spend(&self, spend: Spend) -> Option<Written> {
        // A provider waits for it.
        self.spends.write(spend, true).await
    }
}

impl Answer for Written {
    fn is_away(&self) -> bool {
        matches!(self, Self::Away)
    }
}

/// A delivery under this worker's claim, with what decisions about it need.
pub(super) struct Held<'a> {
    pub delivery: Delivery,
    pub token: Token,
    pub class: &'a Class,
    pub provider: Option<&'a Provider>,
}

/// What became of a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Done(Box<Delivery>),
    /// The claim was lost, or nothing follows from the event.
    Not,
}

impl Shared {
    /// Writes what follows from `event`. A refusal by the fence keeps the outcome as evidence.
    pub(super) async fn settle(&self, mut held: Held<'_>, event: Event) -> Settled {
        let urgent = held.delivery.lane.priority == Priority::High;
        loop {
            let Ok(transition) = step(&held.delivery, held.class, event.clone(), self.env(held.provider)) else {
                return Settled::Not;
            };
            let write = Settle { next: transition.next.clone(), token: held.token };
            match self.settler.settles.write(write, urgent).await {
                Some(Written::Done) => {
                    self.tell(&transition.next, transition.facts);
                    return Settled::Done(Box::new(transition.next));
                }
                Some(Written::Moved(current)) => {
                    // Somebody asked to stop it meanwhile; what this worker knows of the message stays.
                    let content_hash = held.delivery.content_hash;
                    held.delivery = Delivery { content_hash, ..*current };
                }
                Some(Written::Stale) => {
                    if let Event::Called { claim, outcome, .. } = event {
                        self.keep_evidence(&held, claim, outcome).await;
                    }
                    return Settled::Not;
                }
                Some(Written::Gone | Written::Away) | None => return Settled::Not,
            }
        }
    }

    pub(super) fn tell(&self, delivery: &Delivery, facts: Vec<StepFact>) {
        for fact in facts {
            self.deps.facts.record(&Fact::Stepped {
                notification: delivery.notification,
                delivery: delivery.id,
                class: delivery.class.clone(),
                channel: delivery.channel,
                provider: delivery.lane.provider.clone(),
                fact,
            });
        }
    }

    /// A stale worker settles nothing, but what it saw of its own call is kept.
    async fn keep_evidence(&self, held: &Held<'_>, claim: ClaimMark, outcome: Outcome) {
        let kind: OutcomeKind = outcome.kind();
        let (notification, delivery) = (held.delivery.notification, held.delivery.id);
        self.deps.facts.record(&Fact::SettleRefused { notification, delivery, outcome: kind });
        let event = Event::Stale { send: held.delivery.send, claim, outcome };
        let applied = self.apply_until_done(held.delivery.id, event, |_| held.class.clone(), held.provider).await;
        if let Err(Unapplied::StoreAway(why)) = applied {
            self.deps.facts.record(&Fact::StoreUnavailable { verb: "apply", why });
        }
    }

    /// Load, decide, write without a claim; again while others write in between, a bounded number
    /// of times.
    pub(super) async fn apply_until_done(
        &self,
        id: belfry_domain::DeliveryId,
        event: Event,
        class: impl Fn(&Delivery) -> Class,
        provider: Option<&Provider>,
    ) -> Result<(), Unapplied> {
        for _ in 0..16 {
            let loaded = self.deps.deliveries.load(vec![id]).await.map_err(Unapplied::StoreAway)?;
            let Some(delivery) = loaded.into_iter().next() else { return Ok(()) };
            let transition = match step(&delivery, &class(&delivery), event.clone(), self.env(provider)) {
                Ok(transition) => transition,
                Err(Rejected::Early) => return Err(Unapplied::Early),
                Err(Rejected::Repeat) => {
                    self.caught_receipt_repeat(&delivery, &event);
                    return Ok(());
                }
                Err(Rejected::NotNow(_) | Rejected::SendMoved { .. } | Rejected::Reused { .. }) => return Ok(()),
            };
            match self.deps.deliveries.apply(vec![transition.next.clone()]).await {
                Ok(written) if written.first() == Some(&Written::Done) => {
                    self.tell(&transition.next, transition.facts);
                    return Ok(());
                }
                Ok(_) => {}
                Err(why) => return Err(Unapplied::StoreAway(why)),
            }
        }
        let why = StoreError::Unavailable("the delivery kept moving, or its part of the store is away".into());
        Err(Unapplied::StoreAway(why))
    }

    fn caught_receipt_repeat(&self, delivery: &Delivery, event: &Event) {
        if matches!(event, Event::Receipt(_)) {
            self.deps.facts.record(&Fact::RepeatCaught {
                notification: delivery.notification,
                hop: Hop::Receipt,
                age: self.deps.clock.now().since(delivery.created_at),
                window: self.policy().classes.get(&delivery.class).map_or_else(Default::default, |class| class.window),
            });
        }
    }
}

/// Why an event could not be applied yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unapplied {
    /// It came before the record of its own call.
    Early,
    StoreAway(StoreError),
}

/// The shared state is handed to tasks.
pub(super) type SharedRef = Arc<Shared>;
