//! An item that is claimed waits for its digest still: whoever was to make that has not, or what said so is lost.

use std::time::Duration;

use belfry_domain::delivery::DeferWhy;
use belfry_domain::gather::Slot;
use belfry_domain::{Delivery, Event};

use super::attempt::Work;
use crate::facts::Fact;
use crate::ports::deliveries::Owner;
use crate::ports::gatherings::DueSlot;

/// Where its slot does not answer.
const SLOT_AWAY: Duration = Duration::from_secs(5);

impl Work<'_> {
    /// Puts it back into its slot, which is due.
    pub(super) async fn gathers_still(&self, delivery: &Delivery, slot: Slot) -> Event {
        let of = DueSlot { slot, owner: Owner::of(&self.claim.notification) };
        match self.shared.deps.gatherings.rejoin(of, delivery.id).await {
            Ok(()) => Event::Gathered(slot),
            Err(why) => {
                self.shared.deps.facts.record(&Fact::StoreUnavailable { verb: "gatherings", why });
                self.shared.hold_for(SLOT_AWAY, DeferWhy::Gathering)
            }
        }
    }
}
