//! The machine's own clock, dice and tasks: the only place that asks for them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belfry_domain::UnixMs;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

use crate::ports::clock::{Boot, BoxFuture, Clock, Dice, Tasks};

pub struct MachineClock;

#[async_trait::async_trait]
impl Clock for MachineClock {
    #[expect(clippy::disallowed_methods, reason = "this is the shell's clock")]
    fn now(&self) -> UnixMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn boot(&self) -> Boot {
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
    }

    async fn sleep_until(&self, until: Boot) {
        // tokio's timers stand still while the machine is suspended; the boot clock does not.
        loop {
            let left = until.saturating_sub(self.boot());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

pub struct MachineDice;

impl Dice for MachineDice {
    #[expect(clippy::disallowed_methods, reason = "this is the shell's die")]
    fn roll(&self) -> u64 {
        // Without the system's randomness neither nonces nor keys can be trusted.
        getrandom::u64().expect("the system has no random numbers")
    }
}

/// Tasks on the current tokio runtime; all end with this value.
#[derive(Default)]
pub struct MachineTasks {
    running: Mutex<JoinSet<()>>,
}

impl MachineTasks {
    /// Drops every task where it stands, and returns when all are gone.
    pub async fn end(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }
}

impl Tasks for MachineTasks {
    fn start(&self, _name: &'static str, task: BoxFuture) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Ended tasks are let go as new ones start, so that the set stays as small as what runs.
        while running.try_join_next().is_some() {}
        running.spawn(task);
    }
}
