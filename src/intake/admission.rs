//! What is decided at accept already: to whom nothing of the kind may go. Before every call it is asked again.

use std::time::Duration;

use belfry_domain::admission::{Known, Rules, Verdict};
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::preferences::Preferences;
use belfry_domain::step::StepFact;
use belfry_domain::subject::Subject;
use belfry_domain::suppression::Suppression;
use belfry_domain::{Class, Delivery, Env, Event, Notification, UnixMs, step};

use super::accept::Intake;
use super::actions::stepped;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::{NewNotification, Owner};
use crate::ports::suppressions::{Addressee, Found, Suppressed, takes};

/// How long a look at the accept may take.
const PATIENCE: Duration = Duration::from_millis(500);

impl Intake {
    /// Ends what nothing may be sent of, with one look for all. Where the store does not answer that look nothing is
    /// decided here: whoever makes the call asks as well. What there is to tell of each item once it is kept.
    pub(super) async fn end_suppressed(&self, batch: &mut [NewNotification]) -> Vec<Vec<Fact>> {
        let policy = (self.ports.policy)();
        let mut slots = Vec::new();
        let mut whom = Vec::new();
        for (item, new) in batch.iter().enumerate() {
            let Some(class) = policy.classes.get(&new.notification.class) else { continue };
            let it = &new.notification;
            let owner = Owner { tenant: it.tenant.clone(), environment: it.environment.clone() };
            for (slot, delivery) in new.deliveries.iter().enumerate().filter(|(_, one)| takes(one.channel)) {
                slots.push((item, slot, class));
                let (owner, address_hash) = (owner.clone(), delivery.address_hash.clone());
                whom.push(Addressee { owner, channel: delivery.channel, address_hash });
            }
        }
        let mut told = vec![Vec::new(); batch.len()];
        if whom.is_empty() {
            return told;
        }
        let mut away = None;
        for ((item, slot, class), found) in slots.into_iter().zip(self.look(whom).await) {
            let found = match found {
                Ok(found) => found,
                Err(why) => {
                    away = Some(why);
                    continue;
                }
            };
            let new = &mut batch[item];
            let rules: Vec<Suppression> = found.iter().map(Suppressed::rule).collect();
            if let Some((next, facts)) = suppressed(&new.deliveries[slot], &new.notification, class, &rules) {
                told[item].extend(facts.into_iter().map(|fact| stepped(&next, fact)));
                new.deliveries[slot] = next;
            }
        }
        if let Some(why) = away {
            self.ports.facts.record(&Fact::StoreUnavailable { verb: "suppressions", why });
        }
        told
    }

    /// Not for long: a part of the store that hangs must not hold up what goes to another.
    async fn look(&self, whom: Vec<Addressee>) -> Vec<Found> {
        let (clock, count) = (&self.ports.clock, whom.len());
        tokio::select! {
            biased;
            found = self.ports.suppressions.find(whom) => found,
            () = clock.sleep_until(clock.boot() + PATIENCE) => {
                vec![Err(StoreError::Unavailable("no answer in time".into())); count]
            }
        }
    }
}

/// The delivery as it ends, where it does.
fn suppressed(
    delivery: &Delivery,
    notification: &Notification,
    class: &Class,
    suppressions: &[Suppression],
) -> Option<(Delivery, Vec<StepFact>)> {
    let now: UnixMs = delivery.created_at;
    let known = Known {
        subject: Subject::of(delivery, notification, class),
        rules: &Rules::default(),
        suppressions,
        preferences: &Preferences::default(),
        time_zone: None,
        pauses: &[],
    };
    let why = known.blocked(now)?;
    let env = Env { now, jitter: 0, receipts: false, guard: RepeatGuard::None };
    let ended = step(delivery, class, Event::Admitted(Verdict::Suppress(why)), env).ok()?;
    Some((ended.next, ended.facts))
}
