//! Time as tests set it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belfry::machine::MachineClock;
use belfry::ports::clock::{Boot, Clock};
use belfry_domain::UnixMs;

/// The machine's clock, set forward by tests.
#[derive(Default)]
pub struct ShiftedClock {
    by_ms: AtomicI64,
    /// Where it stands but for that, if it does.
    stands: Option<(UnixMs, Boot)>,
}

impl ShiftedClock {
    pub fn still() -> Self {
        Self { by_ms: AtomicI64::new(0), stands: Some((MachineClock.now(), MachineClock.boot())) }
    }

    pub fn forward(&self, by: Duration) {
        self.by_ms.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for ShiftedClock {
    fn now(&self) -> UnixMs {
        let now = self.stands.map_or_else(|| MachineClock.now(), |(now, _)| now);
        UnixMs(now.0 + self.by_ms.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Boot {
        let boot = self.stands.map_or_else(|| MachineClock.boot(), |(_, boot)| boot);
        boot + Duration::from_millis(u64::try_from(self.by_ms.load(Ordering::SeqCst)).unwrap())
    }

    async fn sleep_until(&self, until: Boot) {
        let left = until.saturating_sub(self.boot());
        MachineClock.sleep_until(MachineClock.boot() + left).await;
    }
}
