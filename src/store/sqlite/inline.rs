//! The store in memory, run where it is called: for `serve --ephemeral` and for the simulation,
//! which opens thousands and must see every await point be its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belfry_domain::UnixMs;

use super::core::{Core, Result};
use super::read::Reads;
use super::store::{Shell, Store};
use super::writer::Answered;
use crate::ports::clock::Clock;
use crate::store::due::DueSignal;

pub type InlineStore = Store<Inline>;

/// The core behind a lock that is never held across an await.
pub struct Inline {
    core: Mutex<Core>,
    clock: Arc<dyn Clock>,
    due: DueSignal,
}

impl InlineStore {
    /// A fresh, empty store.
    ///
    /// # Panics
    /// Where there is no memory left for one.
    #[must_use]
    pub fn open(clock: Arc<dyn Clock>) -> Arc<Self> {
        match Core::in_memory(clock.now()) {
            Ok(core) => Arc::new(Self::new(Inline { core: Mutex::new(core), clock, due: DueSignal::default() })),
            // Nothing of ours can fail here: the tables are created from a constant.
            Err(error) => panic!("no store in memory: {error}"),
        }
    }
}

impl Inline {
    /// A panic under the lock left a transaction open at worst; the next one rolls it back.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shell for Inline {
    async fn write<T, F>(&self, _answered: Answered, verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Core, UnixMs) -> Result<T> + Send + 'static,
    {
        let now = self.clock.now();
        let mut core = self.core();
        core.begin()?;
        let done = verb(&mut core, now);
        if done.is_err() {
            core.rollback();
            return done;
        }
        let due = core.commit()?;
        drop(core);
        if due {
            self.due.raise();
        }
        done
    }

    async fn read<T, F>(&self, verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(Reads<'_>, UnixMs) -> Result<T> + Send + 'static,
    {
        let now = self.clock.now();
        verb(self.core().reads(), now)
    }

    fn due(&self) -> &DueSignal {
        &self.due
    }

    fn now(&self) -> UnixMs {
        self.clock.now()
    }
}
