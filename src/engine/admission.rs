//! Whether a message may go out now: decided again before every call, on what was read after the claim.

use belfry_domain::Delivery;
use belfry_domain::admission::{Known, Verdict, decide};
use belfry_domain::subject::Subject;

use super::attempt::Work;
use crate::ports::deliveries::Claim;
use crate::ports::wishes::Said;

impl Claim {
    /// The version of its own within its collapse group, and the newest.
    pub(super) fn versions(&self) -> (Option<i64>, Option<i64>) {
        let own = self.notification.collapse.as_ref().and_then(|collapse| collapse.version);
        (own, self.newest_version)
    }
}

impl Work<'_> {
    pub(super) fn admitted(&self, delivery: &Delivery, said: &Said) -> Verdict {
        let policy = self.shared.policy();
        let rules = policy.rules_of(&delivery.class);
        // Most classes have none, and the inputs are not read for nothing.
        let zone = rules.quiet_hours.as_ref().and_then(|_| self.time_zone());
        let paused = self.shared.paused();
        let known = Known {
            subject: Subject::of(delivery, &self.claim.notification, self.class),
            rules,
            suppressions: &said.suppressions,
            preferences: &said.preferences,
            time_zone: zone.as_deref(),
            pauses: paused.rules(),
        };
        decide(delivery, self.claim.versions(), &known, self.shared.deps.clock.now())
    }

    /// The recipient's, by its name.
    pub(super) fn time_zone(&self) -> Option<String> {
        let inputs = self.claim.inputs.as_deref()?;
        self.shared.deps.render.time_zone(inputs)
    }
}
