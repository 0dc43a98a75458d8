//! The last look before a call. It may have waited for minutes since it was decided that it may be made: for its turn,
//! for a store, for a template; and in its channel, for a connection.

use std::sync::Arc;
use std::time::Duration;

use belfry_domain::admission::Verdict;
use belfry_domain::delivery::DeferWhy;
use belfry_domain::quiet::QuietHours;
use belfry_domain::{Delivery, Event, UnixMs};

use super::attempt::Work;
use super::caps::Places;
use super::ledger::Live;
use super::look::Seen;
use super::pacer::PacedCall;
use crate::ports::channel::LeaseGate;
use crate::ports::clock::{Boot, Clock};

/// Whoever waited longer asks the store whether somebody wants it stopped since.
const LONG: Duration = Duration::from_secs(1);

/// Asked right before the first byte that could have an effect.
struct Gate {
    live: Arc<Live>,
    clock: Arc<dyn Clock>,
    expires_at: UnixMs,
    /// With the recipient's zone.
    quiet: Option<(QuietHours, Option<String>)>,
}

impl LeaseGate for Gate {
    fn covers(&self) -> bool {
        let now = self.clock.now();
        let open = self.quiet.as_ref().is_none_or(|(hours, zone)| hours.open_at(now, zone.as_deref()) <= now);
        self.live.covers() && now < self.expires_at && open
    }
}

impl Work<'_> {
    /// Whether the call begins now; `decided`: when it was last decided that it may, on what was `seen`.
    ///
    /// # Errors
    /// What to settle instead. Mostly the claim is given back: the next one finds the reason, and says it.
    pub(super) async fn begins(
        &self,
        delivery: &Delivery,
        (seen, decided): (&Seen, Boot),
        places: &Option<Places<'_>>,
        paced: Option<&mut PacedCall>,
    ) -> Result<(), Event> {
        let clock = &self.shared.deps.clock;
        let may_begin = self.may_begin(delivery, seen, clock.boot().saturating_sub(decided)).await;
        // Whatever was read with the claim.
        if let Some(paused) = self.paused_meanwhile(delivery) {
            return Err(paused);
        }
        let now = clock.boot();
        if !may_begin || !Places::leave_time(places, now) {
            return Err(Event::Released);
        }
        let paced = paced.map_or(Ok(()), |paced| paced.make(now));
        paced.map_err(|later| self.shared.hold_for(later.saturating_sub(now), DeferWhy::Pace))
    }

    async fn may_begin(&self, delivery: &Delivery, seen: &Seen, waited: Duration) -> bool {
        let admitted = || {
            let said = seen.of(delivery.id);
            self.live.covers() && said.is_some_and(|said| self.admitted(delivery, said) == Verdict::Call)
        };
        admitted() && (waited < LONG || !self.stop_asked(delivery).await && admitted())
    }

    /// Where the store does not answer, what was read with the claim counts.
    async fn stop_asked(&self, delivery: &Delivery) -> bool {
        let found = self.shared.deps.deliveries.load(vec![delivery.id]).await;
        found.is_ok_and(|found| found.iter().any(|one| one.stop.is_some()))
    }

    pub(super) fn gate(&self, delivery: &Delivery) -> Arc<dyn LeaseGate> {
        let policy = self.shared.policy();
        let quiet = policy.rules_of(&delivery.class).quiet_hours.clone();
        Arc::new(Gate {
            live: self.live.clone(),
            clock: self.shared.deps.clock.clone(),
            expires_at: delivery.expires_at,
            quiet: quiet.map(|hours| (hours, self.time_zone())),
        })
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::DeliveryId;
    use belfry_domain::key::{KeyKind, child_key};

    use super::*;
    use crate::engine::ledger::Ledger;
    use crate::ports::deliveries::Token;

    struct At(i64);

    #[async_trait::async_trait]
    impl Clock for At {
        fn now(&self) -> UnixMs {
            UnixMs(self.0)
        }

        fn boot(&self) -> Boot {
            Duration::ZERO
        }

        async fn sleep_until(&self, _until: Boot) {}
    }

    /// A mail that waits for a connection may have been decided on long ago.
    #[test]
    fn nothing_irrevocable_is_done_after_the_expiry_or_in_quiet_hours() {
        const HOUR: i64 = 3_600_000;
        let quiet = || Some((QuietHours::new("02:00", "03:00", "UTC").unwrap(), None));
        let covers = |now: i64, expires_at: i64, quiet: Option<(QuietHours, Option<String>)>| {
            let clock: Arc<dyn Clock> = Arc::new(At(now));
            let id = DeliveryId(child_key(KeyKind::Http, &[b"x"]));
            let ledger = Ledger::new(clock.clone());
            let place = ledger.hold(id, Token { fence: 1, nonce: 1 }, Duration::from_secs(30), Duration::ZERO);
            Gate { live: place.live.clone(), clock, expires_at: UnixMs(expires_at), quiet }.covers()
        };
        assert!(covers(HOUR, 2 * HOUR, None) && covers(HOUR, 2 * HOUR, quiet()));
        assert!(!covers(2 * HOUR, 2 * HOUR, None));
        assert!(!covers(2 * HOUR, 9 * HOUR, quiet()) && covers(3 * HOUR, 9 * HOUR, quiet()));
    }
}
