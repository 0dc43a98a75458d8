//! What this node knows of a shard: how far it has come, and what may be due there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use belfry_domain::{Lane, UnixMs};

/// When the longest due of a lane is due, as last heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Not asked since something may have changed.
    Nothing,
    Empty,
    DueAt(UnixMs),
}

impl Heard {
    /// Whether asking may bring something.
    #[must_use]
    pub fn may_be_due(self, now: UnixMs) -> bool {
        match self {
            Self::Nothing => true,
            Self::Empty => false,
            Self::DueAt(at) => at <= now,
        }
    }

    #[must_use]
    pub fn is_due(self, now: UnixMs) -> bool {
        matches!(self, Self::DueAt(at) if at <= now)
    }
}

#[derive(Default)]
struct Lanes {
    /// Raised whenever something may have come due: what was asked before says nothing any more.
    woken: u64,
    heard: HashMap<(Lane, bool), Heard>,
}

#[derive(Default)]
pub struct Shard {
    /// The highest sequence that any answer has shown.
    sequence: AtomicU64,
    lanes: Mutex<Lanes>,
}

impl Shard {
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::SeqCst)
    }

    pub fn saw(&self, sequence: u64) {
        self.sequence.fetch_max(sequence, Ordering::SeqCst);
    }

    /// Something may have come due in any lane.
    pub fn wake(&self) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.woken += 1;
        lanes.heard.clear();
    }

    /// To be taken before a question whose answer goes to [`Self::hear`].
    #[must_use]
    pub fn woken(&self) -> u64 {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).woken
    }

    /// Keeps what was answered, unless something has changed since the question.
    pub fn hear(&self, woken: u64, heard: impl Iterator<Item = ((Lane, bool), Heard)>) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.woken == woken {
            lanes.heard.extend(heard);
        }
    }

    #[must_use]
    pub fn heard(&self, lane: &Lane, alone: bool) -> Heard {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.heard.get(&(lane.clone(), alone)).copied().unwrap_or(Heard::Nothing)
    }
}
