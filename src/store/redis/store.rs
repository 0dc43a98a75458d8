//! The store itself: what all verbs share.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::UnixMs;
use redis::Value;
use tokio::task::JoinSet;

use super::accept::{self, Doors};
use super::answers;
use super::codec::{Result, corrupt};
use super::keys::Names;
use super::link::{Call, Link, Need};
use super::script::Script;
use super::scripts::Scripts;
use super::shard::Shard;
use crate::ports::clock::Clock;
use crate::store::due::DueSignal;

/// Questions of the latest claims: a repeat of one of them looks for what it was given.
const ASKED: usize = 256;

/// Whose clock says what is due and what has lapsed.
#[derive(Clone)]
pub enum StoreClock {
    /// The server's: all nodes go by one.
    Server,
    /// A clock of the test's own, that stands still or jumps as it is told.
    Own(Arc<dyn Clock>),
}

/// One installation on one Redis, as a node sees it.
pub struct RedisStore {
    pub(super) link: Link,
    pub(super) names: Names,
    pub(super) scripts: Scripts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) store_clock: StoreClock,
    pub(super) shards: Vec<Shard>,
    pub(super) due: DueSignal,
    /// Where the next claim begins to look.
    pub(super) turn: AtomicUsize,
    /// The newest position that this node has given out or seen.
    position: AtomicU64,
    /// How far the server's clock is ahead of this node's, in milliseconds.
    ahead: AtomicI64,
    asked: Mutex<VecDeque<(String, u64)>>,
    pub(super) doors: Doors,
    /// Versions of templates that this node has kept, and so may use.
    pub(super) templates: Mutex<BTreeSet<String>>,
    /// What gathers accepts; ends with the store.
    gathering: Mutex<JoinSet<()>>,
}

/// A call as a verb has it.
pub(super) struct Ask<'a> {
    pub shard: u16,
    pub script: &'a Script,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
    pub need: Need,
}

impl RedisStore {
    /// To be called within a runtime, on which it gathers what it is asked.
    #[must_use]
    pub fn new(link: Link, names: Names, clock: Arc<dyn Clock>, store_clock: StoreClock) -> Arc<Self> {
        let (doors, parts) = accept::doors(names.shards());
        let store = Arc::new(Self {
            link,
            shards: (0..names.shards()).map(|_| Shard::default()).collect(),
            names,
            scripts: Scripts::new(),
            clock,
            store_clock,
            due: DueSignal::default(),
            turn: AtomicUsize::new(0),
            position: AtomicU64::new(0),
            ahead: AtomicI64::new(0),
            asked: Mutex::default(),
            doors,
            templates: Mutex::default(),
            gathering: Mutex::default(),
        });
        let mut gathering = store.gathering.lock().unwrap_or_else(PoisonError::into_inner);
        for (shard, parts) in (0..).zip(parts) {
            gathering.spawn(accept::gather(Arc::downgrade(&store), shard, parts));
        }
        drop(gathering);
        store
    }

    /// Runs a script of a shard, and notes the sequence that it answers first. All that follows the
    /// sequence is the verb's own.
    pub(super) async fn run(&self, ask: Ask<'_>) -> Result<Vec<Value>> {
        let shard = &self.shards[usize::from(ask.shard)];
        let mut keys = Vec::with_capacity(ask.keys.len() + 1);
        keys.push(self.names.sequence(ask.shard));
        keys.extend(ask.keys);
        let mut args = Vec::with_capacity(ask.args.len() + 4);
        args.push(decimal(shard.sequence()));
        args.push(match &self.store_clock {
            StoreClock::Server => b"-1".to_vec(),
            StoreClock::Own(clock) => clock.now().0.to_string().into_bytes(),
        });
        args.push(self.names.wake_channel().into_bytes());
        args.push(decimal(ask.shard));
        args.extend(ask.args);
        let answer = self.link.run(Call { script: ask.script, keys, args, need: ask.need }).await?;
        let mut answer = answers::list(answer)?;
        if answer.is_empty() {
            return Err(corrupt("an answer"));
        }
        shard.saw(u64::try_from(answers::number(&answer.remove(0))?).unwrap_or(0));
        Ok(answer)
    }

    /// Something may be due in a shard.
    pub(super) fn woken(&self, shard: u16) {
        if let Some(shard) = self.shards.get(usize::from(shard)) {
            shard.wake();
        }
        self.due.raise();
    }

    /// `count` positions, newer than all that this node knows of; the first of them. By the clock, so
    /// that nodes agree on what is newer, and never back with it.
    pub(super) fn positions(&self, count: u64) -> u64 {
        const PER_MS: u64 = 1 << 11;
        let by_clock = u64::try_from(self.clock.now().0).unwrap_or(0) * PER_MS;
        let next = |newest: u64| Some(newest.max(by_clock) + count);
        let before = self.position.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap_or_default();
        before.max(by_clock) + 1
    }

    pub(super) fn saw_position(&self, position: u64) {
        self.position.fetch_max(position, Ordering::SeqCst);
    }

    /// The store's time, as of its latest answer.
    pub(super) fn now(&self) -> UnixMs {
        match &self.store_clock {
            StoreClock::Server => UnixMs(self.clock.now().0 + self.ahead.load(Ordering::Relaxed)),
            StoreClock::Own(clock) => clock.now(),
        }
    }

    pub(super) fn saw_time(&self, now: UnixMs) {
        self.ahead.store(now.0 - self.clock.now().0, Ordering::Relaxed);
    }

    /// Whether this worker has asked with this nonce before; notes that it has now.
    pub(super) fn asked_before(&self, worker: &str, nonce: u64) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.iter().any(|(by, with)| by == worker && *with == nonce) {
            return true;
        }
        if asked.len() == ASKED {
            asked.pop_front();
        }
        asked.push_back((worker.to_owned(), nonce));
        false
    }
}

pub(super) fn decimal(number: impl Into<u64>) -> Vec<u8> {
    number.into().to_string().into_bytes()
}

pub(super) fn signed(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}
