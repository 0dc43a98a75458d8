//! At least once: a call waits until its claim outlives what the store is set to outlive. Else a failover could
//! take it along with the worker, and the next call would follow no unknown outcome.

use std::time::Duration;

use super::attempt::Work;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::channel::LeaseGate;

/// Between two looks whether a claim is durable.
const AGAIN: Duration = Duration::from_millis(200);
/// No server takes another's place within this time of a claim's asking.
const SAME_SERVER: Duration = Duration::from_millis(250);

impl Work<'_> {
    /// Whether the call may be made; else the claim has to be given back.
    pub(super) async fn confirmed(&self) -> bool {
        let (shared, clock) = (self.shared, &self.shared.deps.clock);
        let mut cut_off = shared.cut_off.subscribe();
        // What answers later may be another server, which waits for what it has and need not have this claim.
        let mut doubted = clock.boot() >= self.live.asked_at + SAME_SERVER;
        loop {
            let durable = tokio::select! {
                biased;
                durable = shared.deps.deliveries.durable() => durable,
                _ = cut_off.wait_for(|cut| *cut) => return false,
            };
            let held = match durable {
                Ok(()) if doubted => self.still_holds().await,
                answered => answered.map(|()| true),
            };
            match held {
                Ok(held) => return held,
                Err(why) => shared.deps.facts.record(&Fact::StoreUnavailable { verb: "confirm", why }),
            }
            doubted = true;
            if !self.live.covers() {
                return false;
            }
            shared.pause(AGAIN).await;
        }
    }

    async fn still_holds(&self) -> Result<bool, StoreError> {
        let renewed = self.shared.deps.deliveries.renew(vec![(self.live.id, self.live.token)]).await?;
        // Of a part of the store that is away nothing is said.
        let said = renewed.first().ok_or_else(|| StoreError::Unavailable("it says nothing of the claim".into()))?;
        Ok(said.held)
    }
}
