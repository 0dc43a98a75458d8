//! What people do to deliveries: redrive, send again, resolve. Each is loaded, decided by the domain, and written
//! where nothing moved meanwhile.

use belfry_domain::delivery::StateName;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::step::Rejected;
use belfry_domain::timeline::Hop;
use belfry_domain::{
    Action, Asked, Class, Delivery, DeliveryId, Env, Event, Key, KeyKind, Transition, child_key, step,
};

use super::accept::Intake;
use super::caller::Caller;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::Written;

/// How often a decision is taken anew because the record moved meanwhile.
pub(super) const MOST_TRIES: u32 = 16;

/// What became of what a person asked for.
#[derive(Clone, Debug)]
pub enum Acted {
    Done {
        delivery: Box<Delivery>,
        /// The same was asked under the same key before.
        replayed: bool,
    },
    /// No such delivery, or another owner's.
    Absent,
    /// Not possible in this state.
    NotNow(StateName),
    /// The person saw an older send.
    SendMoved { current: u32 },
    /// The key was used before, to ask for something else of this delivery.
    Reused { verb: &'static str, differing: &'static [&'static str] },
    /// The message is no longer kept.
    ContentPurged,
}

/// One decision carried out.
pub(super) enum Step {
    Written(Box<Delivery>),
    Rejected(Rejected, Box<Delivery>),
    Gone,
}

impl Intake {
    /// Carries out what is asked of one delivery; `key` makes its repeat recognisable.
    ///
    /// # Errors
    /// [`StoreError`]: the same under the same key may be asked again.
    pub async fn act(&self, caller: &Caller, id: DeliveryId, key: &str, asked: Asked) -> Result<Acted, StoreError> {
        let Some(record) = self.ports.deliveries.read_by_delivery(&caller.owner(), id).await? else {
            return Ok(Acted::Absent);
        };
        let Some(delivery) = record.deliveries.iter().find(|one| one.id == id) else { return Ok(Acted::Absent) };
        let sends = matches!(asked, Asked::Redrive { .. } | Asked::SendAgain { .. });
        let action = Action { key: action_key(caller, key, id), asked };
        let event = Event::Act { by: caller.key.clone(), action };
        if sends
            && self.decide(delivery, event.clone()).is_ok()
            && self.ports.deliveries.inputs(record.notification.id).await?.is_none()
        {
            return Ok(Acted::ContentPurged);
        }
        Ok(match self.carry_out(delivery.clone(), &event).await? {
            Step::Written(delivery) => Acted::Done { delivery, replayed: false },
            Step::Rejected(Rejected::Repeat, delivery) => {
                let age = self.ports.clock.now().since(delivery.created_at);
                let window = record.notification.remembered_until.since(record.notification.created_at);
                let notification = record.notification.id;
                self.ports.facts.record(&Fact::RepeatCaught { notification, hop: Hop::Action, age, window });
                Acted::Done { delivery, replayed: true }
            }
            Step::Rejected(Rejected::Reused { verb, differing }, _) => {
                let notification = record.notification.id;
                self.ports.facts.record(&Fact::FingerprintMismatch { notification, hop: Hop::Action });
                Acted::Reused { verb, differing }
            }
            Step::Rejected(Rejected::SendMoved { current }, _) => Acted::SendMoved { current },
            Step::Rejected(Rejected::NotNow(state), _) => Acted::NotNow(state),
            // Said of receipts only.
            Step::Rejected(Rejected::Early, delivery) => Acted::NotNow(delivery.state.name()),
            Step::Gone => Acted::Absent,
        })
    }

    pub(super) fn decide(&self, delivery: &Delivery, event: Event) -> Result<Transition, Rejected> {
        let policy = (self.ports.policy)();
        let configured = policy.classes.get(&delivery.class).cloned();
        let class = configured.unwrap_or_else(|| Class::unconfigured(&delivery.class, delivery.lease));
        let provider = policy.providers.get(&delivery.lane.provider);
        let env = Env {
            now: self.ports.clock.now(),
            jitter: self.ports.dice.roll(),
            receipts: provider.is_some_and(|provider| provider.channel.receipts()),
            guard: provider.map_or(RepeatGuard::None, |provider| provider.channel.repeat_guard()),
        };
        step(delivery, &class, event, env)
    }

    pub(super) async fn load(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        Ok(self.ports.deliveries.load(vec![id]).await?.pop())
    }

    pub(super) async fn carry_out(&self, mut delivery: Delivery, event: &Event) -> Result<Step, StoreError> {
        for _ in 0..MOST_TRIES {
            let Transition { next, facts } = match self.decide(&delivery, event.clone()) {
                Ok(transition) => transition,
                Err(rejected) => {
                    // A repeat is answered like the first: not before what it repeats is safe.
                    self.ports.deliveries.durable().await?;
                    return Ok(Step::Rejected(rejected, Box::new(delivery)));
                }
            };
            match self.ports.deliveries.apply(vec![next.clone()]).await?.pop() {
                Some(Written::Done) => {
                    for fact in facts {
                        self.ports.facts.record(&stepped(&next, fact));
                    }
                    return Ok(Step::Written(Box::new(next)));
                }
                Some(Written::Moved(current)) => delivery = *current,
                // A claim is out and the write would have ended it: see what it has become.
                Some(Written::Stale) => match self.load(delivery.id).await? {
                    Some(current) => delivery = current,
                    None => return Ok(Step::Gone),
                },
                Some(Written::Away) => break,
                Some(Written::Gone) | None => return Ok(Step::Gone),
            }
        }
        Err(StoreError::Unavailable("the delivery kept moving, or could not be asked for".into()))
    }
}

pub(super) fn stepped(delivery: &Delivery, fact: belfry_domain::step::StepFact) -> Fact {
    Fact::Stepped {
        notification: delivery.notification,
        delivery: delivery.id,
        class: delivery.class.clone(),
        channel: delivery.channel,
        provider: delivery.lane.provider.clone(),
        fact,
    }
}

fn action_key(caller: &Caller, key: &str, delivery: DeliveryId) -> Key {
    let delivery = delivery.to_string();
    let parts = [&caller.tenant, &caller.environment, &caller.namespace, key, &delivery].map(str::as_bytes);
    child_key(KeyKind::Action, &parts)
}
