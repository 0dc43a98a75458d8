//! What a bounce adds to what is suppressed.

use belfry_domain::suppression::SuppressionKind;
use belfry_domain::{ChannelKind, Delivery, Event, Outcome};

use super::Shared;
use crate::facts::Fact;
use crate::ports::deliveries::{Claim, Owner};
use crate::ports::policy::OUTBOX;
use crate::ports::suppressions::Suppressed;

pub(super) fn owner_of(claim: &Claim) -> Owner {
    let it = &claim.notification;
    Owner { tenant: it.tenant.clone(), environment: it.environment.clone() }
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
