//! What was due before the store was restored from a backup, at a start and straight in the store.

use std::sync::Arc;
use std::time::Duration;

use super::Stores;
use crate::facts::{Fact, FactSink};
use crate::intake::restored::Restored;
pub use crate::intake::restored::{SAMPLE, Wish};
use crate::machine::MachineClock;
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::store_news::{StoreNews, StoreWatch};

/// Between two tries at a store that is away.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Of a command that has no log of its own.
struct Untold;

impl FactSink for Untold {
    fn record(&self, _fact: &Fact) {}
}

impl Stores {
    pub(super) fn restored(&self, clock: Arc<dyn Clock>, facts: Arc<dyn FactSink>) -> Restored {
        Restored::new(self.holds.clone(), self.deliveries.clone(), clock, facts)
    }

    /// Straight in the store.
    #[must_use]
    pub fn restored_here(&self) -> Restored {
        self.restored(Arc::new(MachineClock), Arc::new(Untold))
    }
}

/// The hold that counts from here on, told. `begin`: one is to begin unless one stands, in all of the
/// store, which is waited for.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn at_start<R: FactSink + StoreWatch>(
    stores: &Stores,
    clock: &dyn Clock,
    told: &R,
    begin: bool,
) -> anyhow::Result<()> {
    if !begin {
        // Claims obey it whether or not it can be told now.
        if let Ok(Some(at)) = stores.holds.standing().await {
            told.record(&Fact::HeldAfterRestore { at, kept: false });
        }
        return Ok(());
    }
    let now = clock.now();
    let at = loop {
        match stores.holds.hold(now).await {
            Ok(at) => break at,
            Err(StoreError::Unavailable(why)) => told.tell(StoreNews::Awaited { why }),
            Err(corrupt @ StoreError::Corrupt(_)) => return Err(corrupt.into()),
        }
        clock.sleep_until(clock.boot() + TRY_AGAIN).await;
    };
    told.record(&Fact::HeldAfterRestore { at, kept: at != now });
    Ok(())
}
