//! What is suppressed for what was claimed: read after the claim, once for all of a claim call, so that whatever was
//! acknowledged before is seen and a call costs no round trip of its own. And what a bounce adds to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use belfry_domain::suppression::{Suppression, SuppressionKind};
use belfry_domain::{ChannelKind, Delivery, DeliveryId, Event, Outcome};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Shared;
use super::settle::SharedRef;
use crate::facts::Fact;
use crate::ports::deliveries::{Claim, Owner};
use crate::ports::policy::OUTBOX;
use crate::ports::suppressions::{Addressee, Suppressed, takes};

/// By delivery, of those that anything is suppressed for, or of which the store did not say it.
#[derive(Default)]
pub(super) struct Known(BTreeMap<DeliveryId, Option<Vec<Suppression>>>);

impl Known {
    /// What is suppressed; `None` where the store did not say.
    pub(super) fn of(&self, delivery: DeliveryId) -> Option<&[Suppression]> {
        match self.0.get(&delivery) {
            None => Some(&[]),
            Some(found) => found.as_deref(),
        }
    }
}

/// One look for all that a call claimed; begun by whoever needs it first.
pub(super) type Look = futures::future::Shared<BoxFuture<'static, Arc<Known>>>;

pub(super) fn owner_of(claim: &Claim) -> Owner {
    let it = &claim.notification;
    Owner { tenant: it.tenant.clone(), environment: it.environment.clone() }
}

pub(super) fn look(shared: &SharedRef, claims: &[Claim]) -> Look {
    let asked = claims.iter().map(|claim| &claim.delivery).zip(claims).filter(|(one, _)| takes(one.channel));
    let (ids, whom): (Vec<DeliveryId>, Vec<Addressee>) = asked
        .map(|(one, claim)| {
            let (owner, address_hash) = (owner_of(claim), one.address_hash.clone());
            (one.id, Addressee { owner, channel: one.channel, address_hash })
        })
        .unzip();
    let (suppressions, facts) = (shared.deps.suppressions.clone(), shared.deps.facts.clone());
    let looking = async move {
        if whom.is_empty() {
            return Arc::default();
        }
        let (mut known, mut away) = (Known::default(), None);
        for (id, found) in ids.into_iter().zip(suppressions.find(whom).await) {
            match found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => drop(known.0.insert(id, Some(found.iter().map(Suppressed::rule).collect()))),
                Err(why) => {
                    known.0.insert(id, None);
                    away = Some(why);
                }
            }
        }
        if let Some(why) = away {
            facts.record(&Fact::StoreUnavailable { verb: "suppressions", why });
        }
        Arc::new(known)
    };
    looking.boxed().shared()
}

/// The entry that follows from a call: no such mailbox, of this one address. What the outbox plays is nobody's word.
pub(super) fn bounced(shared: &Shared, delivery: &Delivery, event: &Event) -> Option<Suppressed> {
    let Event::Called { outcome: Outcome::RecipientGone { .. }, .. } = event else { return None };
    let is_mail = delivery.channel == ChannelKind::Email && delivery.lane.provider != OUTBOX;
    is_mail.then(|| Suppressed {
        channel: delivery.channel,
        address_hash: delivery.address_hash.clone(),
        address_mask: delivery.address_mask.clone(),
        kind: SuppressionKind::HardBounce,
        category: None,
        sender: None,
        since: shared.deps.clock.now(),
        until: None,
        origin: delivery.id.to_string(),
        note: None,
    })
}

impl Shared {
    /// One try: where the store is away, the next message bounces as well.
    pub(super) async fn suppress(&self, owner: &Owner, entry: &Suppressed) {
        if let Err(why) = self.deps.suppressions.put(owner, entry).await {
            self.deps.facts.record(&Fact::StoreUnavailable { verb: "suppress", why });
        }
    }
}
