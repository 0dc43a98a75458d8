//! The claims this worker holds, and until when by its own clock. Counted from before the store
//! was asked, so that this worker stops trusting a lease before the store does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belfry_domain::DeliveryId;

use crate::ports::channel::LeaseGate;
use crate::ports::clock::{Boot, Clock};
use crate::ports::deliveries::Token;

/// One claim that is held.
pub(super) struct Live {
    pub id: DeliveryId,
    pub token: Token,
    /// When the store was asked for it.
    pub asked_at: Boot,
    lease: Duration,
    /// Milliseconds on the boot clock.
    covered_until: AtomicU64,
    lost: AtomicBool,
    clock: Arc<dyn Clock>,
}

impl LeaseGate for Live {
    fn covers(&self) -> bool {
        !self.lost.load(Ordering::SeqCst) && millis(self.clock.boot()) < self.covered_until.load(Ordering::SeqCst)
    }
}

impl Live {
    /// Renewed at a third of the lease, so that two renewals may fail before it lapses.
    fn wants_renewal(&self, now: Boot) -> bool {
        let covered = Duration::from_millis(self.covered_until.load(Ordering::SeqCst));
        !self.lost.load(Ordering::SeqCst) && now + self.lease * 2 / 3 >= covered
    }

    pub(super) fn renewed(&self, asked_at: Boot) {
        self.covered_until.fetch_max(millis(asked_at + self.lease), Ordering::SeqCst);
    }

    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }
}

fn millis(boot: Boot) -> u64 {
    u64::try_from(boot.as_millis()).unwrap_or(u64::MAX)
}

/// A claim's place in the ledger, given up however its attempt ends: an attempt that panicked must
/// not leave a claim behind that is renewed for ever.
pub(super) struct Place {
    pub live: Arc<Live>,
    all: Arc<Mutex<BTreeMap<DeliveryId, Arc<Live>>>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&self.live.id).is_some_and(|held| held.token == self.live.token) {
            all.remove(&self.live.id);
        }
    }
}

pub(super) struct Ledger {
    clock: Arc<dyn Clock>,
    live: Arc<Mutex<BTreeMap<DeliveryId, Arc<Live>>>>,
}

impl Ledger {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, live: Arc::default() }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<DeliveryId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(&self, id: DeliveryId, token: Token, lease: Duration, asked_at: Boot) -> Place {
        let live = Arc::new(Live {
            id,
            token,
            asked_at,
            lease,
            covered_until: AtomicU64::new(millis(asked_at + lease)),
            lost: AtomicBool::new(false),
            clock: self.clock.clone(),
        });
        // This worker may itself have lapsed and claimed anew: the older claim is lost.
        if let Some(older) = self.locked().insert(id, live.clone()) {
            older.lose();
        }
        Place { live, all: self.live.clone() }
    }

    pub(super) fn wanting_renewal(&self) -> Vec<Arc<Live>> {
        let now = self.clock.boot();
        self.locked().values().filter(|live| live.wants_renewal(now)).cloned().collect()
    }
}
