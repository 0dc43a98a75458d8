//! What this node knows of a shard: how far it has come, and what may be due there.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use belfry_domain::{Lane, UnixMs};

use super::memory::Memory;
use super::presence::HELP_AFTER;
use crate::ports::clock::Boot;

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

/// A claim that this node does not know the answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    pub worker: String,
    pub nonce: u64,
    pub alone: bool,
}

struct Lanes {
    /// Raised whenever something may have come due: what was asked before says nothing any more.
    woken: u64,
    woken_at: UnixMs,
    /// The oldest of `heard`.
    heard_at: Boot,
    heard: HashMap<(Lane, bool), Heard>,
    /// Since when something was due that was heard of before the last wake: a node that leaves a shard to
    /// others must not take it for new, or it would never help where something is always woken.
    due_before: HashMap<(Lane, bool), UnixMs>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { woken: 0, woken_at: UnixMs(0), heard_at: Boot::ZERO, heard: HashMap::new(), due_before: HashMap::new() }
    }
}

/// How long nothing having been said means that nothing has changed.
const BELIEVED: Duration = Duration::from_secs(1);

/// For how many seconds a shard is left alone that gave no answer once, twice and so on.
const SILENT: [u64; 3] = [1, 2, 4];

/// Of so many claims that gave no answer a shard is asked again; what older ones took waits for its lapse.
const UNANSWERED: usize = 4;

/// At the end of an era's name it makes it that of no shard.
pub const DOUBTED: &str = "!";

#[derive(Default)]
pub struct Shard {
    /// The highest sequence that any answer has shown.
    sequence: AtomicU64,
    /// As the shard is known to be in; `None` before anything was done there.
    era: Mutex<Option<String>>,
    /// Of the servers that it was last asked at.
    generation: AtomicU64,
    paused: Mutex<Boot>,
    /// How often in a row it gave no answer.
    silent: AtomicUsize,
    lanes: Mutex<Lanes>,
    /// Claims that gave no answer: they may have been made all the same.
    unanswered: Mutex<VecDeque<Unanswered>>,
    /// Others are to take what is due here, unless it waits for long.
    left_to_others: AtomicBool,
    pub memory: Memory,
    /// Held while the shard is mended.
    pub mending: tokio::sync::Mutex<()>,
}

impl Shard {
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::SeqCst)
    }

    #[must_use]
    pub fn era(&self) -> Option<String> {
        self.era.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn enter(&self, era: String) {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = Some(era);
    }

    /// Servers of another generation may not have what is known of the shard: it is asked in an era that
    /// is none, so that nothing is done there before it has been mended.
    pub fn led_by(&self, generation: u64) {
        if self.generation.swap(generation, Ordering::SeqCst) != generation {
            let mut era = self.era.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = era.as_mut().filter(|known| !known.ends_with(DOUBTED)) {
                known.push_str(DOUBTED);
            }
        }
    }

    /// No claims here before then.
    pub fn pause(&self, until: Boot) {
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        *paused = until.max(*paused);
    }

    /// It gave no answer while others did: it is left alone for a while, longer each time. Every look at a
    /// frozen server costs all others a wait.
    pub fn leave_alone(&self, now: Boot) {
        let times = self.silent.fetch_add(1, Ordering::SeqCst).min(SILENT.len() - 1);
        self.pause(now + Duration::from_secs(SILENT[times]));
    }

    /// What was claimed is known, or nothing was.
    pub fn answered(&self, claim: &Unanswered) {
        self.silent.store(0, Ordering::Relaxed);
        self.unheard().retain(|other| other != claim);
    }

    /// Whether `claim` was made, nobody knows yet.
    pub fn unanswered(&self, claim: Unanswered) {
        let mut unheard = self.unheard();
        if unheard.contains(&claim) {
            return;
        }
        if unheard.len() == UNANSWERED {
            unheard.pop_front();
        }
        unheard.push_back(claim);
    }

    /// Claims of a worker, each alone or not, to be asked for again.
    #[must_use]
    pub fn to_be_heard(&self, worker: &str, alone: bool) -> Vec<Unanswered> {
        self.unheard().iter().filter(|claim| claim.worker == worker && claim.alone == alone).cloned().collect()
    }

    fn unheard(&self) -> std::sync::MutexGuard<'_, VecDeque<Unanswered>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn paused(&self, now: Boot) -> bool {
        now < *self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn saw(&self, sequence: u64) {
        self.sequence.fetch_max(sequence, Ordering::SeqCst);
    }

    /// Something may have come due in any lane.
    pub fn wake(&self, now: UnixMs) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.woken += 1;
        if lanes.heard.is_empty() {
            // The earlier wake has not been followed yet.
            lanes.woken_at = lanes.woken_at.min(now);
        } else {
            lanes.woken_at = now;
        }
        for (lane, heard) in std::mem::take(&mut lanes.heard) {
            if let Heard::DueAt(at) = heard {
                lanes.due_before.insert(lane, at);
            }
        }
    }

    /// Something comes due in a lane at `due`. True where whoever waits for the next due has to look again:
    /// what is due later than something that is known of tells nobody anything.
    #[must_use]
    pub fn comes(&self, (lane, alone): (&Lane, bool), due: UnixMs, now: UnixMs) -> bool {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lanes.heard.get(&(lane.clone(), alone));
        if !matches!(known, Some(Heard::DueAt(at)) if *at <= due) {
            drop(lanes);
            self.wake(now);
            return true;
        }
        // What is being asked at this moment may have been answered before this came.
        lanes.woken += 1;
        due <= now
    }

    /// Something has gone that waited in a lane: it may have been the longest due.
    pub fn goes(&self, lane: &Lane) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.woken += 1;
        lanes.heard.retain(|(other, _), _| other != lane);
    }

    /// Whether this node is the one to take what comes due here. True where that has changed.
    pub fn prefer(&self, preferred: bool) -> bool {
        self.left_to_others.swap(!preferred, Ordering::SeqCst) == preferred
    }

    /// How long something has to have been due here before this node takes it.
    #[must_use]
    pub fn patience(&self) -> Duration {
        if self.left_to_others.load(Ordering::SeqCst) { HELP_AFTER } else { Duration::ZERO }
    }

    /// To be taken before a question whose answer goes to [`Self::hear`].
    #[must_use]
    pub fn woken(&self) -> u64 {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).woken
    }

    /// Keeps what was answered, unless something has changed since the question.
    pub fn hear(&self, woken: u64, at: Boot, heard: Vec<((Lane, bool), Heard)>) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.woken != woken {
            return;
        }
        if lanes.heard.is_empty() {
            lanes.heard_at = at;
        }
        for (lane, heard) in heard {
            lanes.due_before.remove(&lane);
            lanes.heard.insert(lane, heard);
        }
    }

    /// A wake may have gone astray: what was heard long ago is asked again.
    pub fn doubt_what_is_old(&self, boot: Boot, now: UnixMs) {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = !lanes.heard.is_empty() && boot.saturating_sub(lanes.heard_at) >= BELIEVED;
        drop(lanes);
        if old {
            self.wake(now);
        }
    }

    #[must_use]
    pub fn heard(&self, lane: &Lane, alone: bool) -> Heard {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = lanes.heard.get(&(lane.clone(), alone)).copied().unwrap_or(Heard::Nothing);
        drop(lanes);
        heard
    }

    /// The same as this node acts on it, which may have to leave things to others for a while.
    #[must_use]
    pub fn expects(&self, lane: &Lane, alone: bool) -> Heard {
        let patience = self.patience();
        match self.heard(lane, alone) {
            heard if patience.is_zero() => heard,
            Heard::Nothing => {
                let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
                let before = lanes.due_before.get(&(lane.clone(), alone)).copied();
                Heard::DueAt(before.unwrap_or(lanes.woken_at).min(lanes.woken_at).plus(patience))
            }
            Heard::DueAt(at) => Heard::DueAt(at.plus(patience)),
            Heard::Empty => Heard::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::Priority;

    use super::*;

    #[test]
    fn what_comes_due_later_than_another_costs_no_look() {
        let (shard, lane, now) = (Shard::default(), Lane::new("main", Priority::Normal), UnixMs(1_000));
        let hear = |woken, heard| shard.hear(woken, Boot::ZERO, vec![((lane.clone(), false), heard)]);
        let comes = |due| shard.comes((&lane, false), UnixMs(due), now);
        for (before, due) in [(Heard::Empty, 9_000), (Heard::DueAt(UnixMs(9_001)), 9_000), (Heard::Empty, 1_000)] {
            assert!(comes(due), "nothing has been heard yet");
            hear(shard.woken(), before);
            assert!(comes(due), "{before:?}");
            assert_eq!(shard.heard(&lane, false), Heard::Nothing);
        }
        hear(shard.woken(), Heard::DueAt(UnixMs(8_000)));
        let asked = shard.woken();
        assert!(!comes(8_000) && !comes(9_000));
        // What was asked before it came knows nothing of it.
        hear(asked, Heard::Empty);
        assert_eq!(shard.heard(&lane, false), Heard::DueAt(UnixMs(8_000)));
        shard.goes(&lane);
        assert_eq!(shard.heard(&lane, false), Heard::Nothing);
    }

    #[test]
    fn a_wake_makes_nothing_new_of_what_waits_for_help() {
        let (shard, lane) = (Shard::default(), Lane::new("main", Priority::Normal));
        let after = |at: i64| Heard::DueAt(UnixMs(at).plus(HELP_AFTER));
        let hear = |heard| shard.hear(shard.woken(), Boot::ZERO, vec![((lane.clone(), false), heard)]);
        shard.prefer(false);
        hear(Heard::DueAt(UnixMs(1_000)));
        for wake in [1_500, 1_600] {
            shard.wake(UnixMs(wake));
            assert_eq!(shard.expects(&lane, false), after(1_000));
        }
        // It was taken meanwhile; what came by the next wake is new.
        hear(Heard::Empty);
        shard.wake(UnixMs(1_700));
        assert_eq!(shard.expects(&lane, false), after(1_700));
    }
}
