//! What those whom claimed messages go to have a say in: read after the claim, once for all of a claim call, so that
//! whatever was acknowledged before is seen and a call costs no round trip of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use belfry_domain::DeliveryId;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::settle::SharedRef;
use crate::facts::Fact;
use crate::ports::deliveries::Claim;
use crate::ports::wishes::{self, Asked, Said};

static NOTHING: LazyLock<Said> = LazyLock::new(Said::default);

/// By delivery, of those of whom anything was said, or of which the store did not say it.
#[derive(Default)]
pub(super) struct Seen(BTreeMap<DeliveryId, Option<Said>>);

impl Seen {
    /// What was said; `None` where the store did not tell.
    pub(super) fn of(&self, delivery: DeliveryId) -> Option<&Said> {
        match self.0.get(&delivery) {
            None => Some(&NOTHING),
            Some(said) => said.as_ref(),
        }
    }
}

/// One look for all that a call claimed; begun by whoever needs it first.
pub(super) type Look = futures::future::Shared<BoxFuture<'static, Arc<Seen>>>;

pub(super) fn look(shared: &SharedRef, claims: &[Claim]) -> Look {
    let policy = shared.policy();
    let asked = claims.iter().filter_map(|claim| {
        let required = policy.classes.get(&claim.delivery.class).is_some_and(|class| class.required);
        let asked = Asked::of(&claim.delivery, &claim.notification, required);
        (!asked.is_nothing()).then_some((claim.delivery.id, asked))
    });
    let (ids, asked): (Vec<DeliveryId>, Vec<Asked>) = asked.unzip();
    let deps = &shared.deps;
    let (suppressions, book, facts) = (deps.suppressions.clone(), deps.preferences.clone(), deps.facts.clone());
    let looking = async move {
        let (mut seen, mut away) = (Seen::default(), None);
        for (id, said) in ids.into_iter().zip(wishes::look((&*suppressions, &*book), asked).await) {
            match said {
                Ok(said) if said == *NOTHING => {}
                Ok(said) => drop(seen.0.insert(id, Some(said))),
                Err(why) => {
                    seen.0.insert(id, None);
                    away = Some(why);
                }
            }
        }
        if let Some(why) = away {
            facts.record(&Fact::StoreUnavailable { verb: "wishes", why });
        }
        Arc::new(seen)
    };
    looking.boxed().shared()
}
