//! What is decided at accept already: to whom nothing of the kind may go. Before every call it is asked again.

use std::time::Duration;

use belfry_domain::admission::{Known, Rules, Verdict};
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::step::StepFact;
use belfry_domain::subject::Subject;
use belfry_domain::{Class, Delivery, Env, Event, Notification, step};

use super::accept::Intake;
use super::actions::stepped;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::NewNotification;
use crate::ports::wishes::{self, Asked, Said};

/// How long a look at the accept may take.
const PATIENCE: Duration = Duration::from_millis(500);

impl Intake {
    /// Ends what nothing may be sent of, with one look for all. Where the store does not answer that look nothing is
    /// decided here: whoever makes the call asks as well. What there is to tell of each item once it is kept.
    pub(super) async fn end_unwanted(&self, batch: &mut [NewNotification]) -> Vec<Vec<Fact>> {
        let policy = (self.ports.policy)();
        let (mut slots, mut questions) = (Vec::new(), Vec::new());
        for (item, new) in batch.iter().enumerate() {
            let Some(class) = policy.classes.get(&new.notification.class) else { continue };
            for (slot, delivery) in new.deliveries.iter().enumerate() {
                let asked = Asked::of(delivery, &new.notification, class.required);
                if !asked.is_nothing() || policy.rules_of(&class.name).defaults.turns_off() {
                    slots.push((item, slot, class));
                    questions.push(asked);
                }
            }
        }
        let mut told = vec![Vec::new(); batch.len()];
        if questions.is_empty() {
            return told;
        }
        let mut away = None;
        for ((item, slot, class), said) in slots.into_iter().zip(self.look(questions).await) {
            let said = match said {
                Ok(said) => said,
                Err(why) => {
                    away = Some(why);
                    continue;
                }
            };
            let new = &mut batch[item];
            let rules = policy.rules_of(&class.name);
            if let Some((next, facts)) = unwanted(&new.deliveries[slot], &new.notification, (class, rules), &said) {
                told[item].extend(facts.into_iter().map(|fact| stepped(&next, fact)));
                new.deliveries[slot] = next;
            }
        }
        if let Some(why) = away {
            self.ports.facts.record(&Fact::StoreUnavailable { verb: "wishes", why });
        }
        told
    }

    /// Not for long: a part of the store that hangs must not hold up what goes to another.
    async fn look(&self, asked: Vec<Asked>) -> Vec<Result<Said, StoreError>> {
        let (ports, count) = (&self.ports, asked.len());
        tokio::select! {
            biased;
            said = wishes::look((&*ports.suppressions, &*ports.preferences), asked) => said,
            () = ports.clock.sleep_until(ports.clock.boot() + PATIENCE) => {
                vec![Err(StoreError::Unavailable("no answer in time".into())); count]
            }
        }
    }
}

/// The delivery as it ends, where it does.
fn unwanted(
    delivery: &Delivery,
    notification: &Notification,
    (class, rules): (&Class, &Rules),
    said: &Said,
) -> Option<(Delivery, Vec<StepFact>)> {
    let now = delivery.created_at;
    let known = Known {
        subject: Subject::of(delivery, notification, class),
        rules,
        suppressions: &said.suppressions,
        preferences: &said.preferences,
        time_zone: None,
        pauses: &[],
    };
    // What is over by the time that it is due holds nothing back.
    let why = known.blocked(delivery.due_at.max(now))?;
    let env = Env { now, jitter: 0, receipts: false, guard: RepeatGuard::None };
    let ended = step(delivery, class, Event::Admitted(Verdict::Suppress(why)), env).ok()?;
    Some((ended.next, ended.facts))
}
