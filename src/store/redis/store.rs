//! The store itself: what all verbs share.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use belfry_domain::{DeliveryId, Lane, UnixMs};
use redis::Value;
use thiserror::Error;
use tokio::task::{AbortHandle, JoinSet};

use super::accept::{self, Doors};
use super::answers;
use super::codec::{Result, corrupt};
use super::keys::Names;
use super::link::{Call, Link, Need, Wake, wakes};
use super::mend;
use super::presence::{Timepiece, is_skewed};
use super::script::Script;
use super::scripts::Scripts;
use super::shard::Shard;
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::store_news::{StoreNews, StoreWatch};
use crate::store::due::DueSignal;

/// Version of the layout that the scripts write. Another is refused.
pub(super) const LAYOUT: u64 = 2;

/// So many unreadable deliveries are told of; whoever has read that many looks for himself.
const UNREADABLE: usize = 256;

/// Questions of the latest claims: a repeat of one of them looks for what it was given.
const ASKED: usize = 256;

/// Whose clock leases go by. What is due is said by the nodes', which set the due times.
#[derive(Clone)]
pub enum StoreClock {
    /// The server's: all nodes go by one.
    Server,
    /// A clock of the test's own, that stands still or jumps as it is told.
    Own(Arc<dyn Clock>),
}

/// The node's own clock, and the one that the store goes by.
pub struct Clocks {
    pub node: Arc<dyn Clock>,
    pub store: StoreClock,
}

/// Why this node does not work on an installation.
#[derive(Debug, Error)]
pub enum PrepareError {
    #[error("store.redis.shards: {asked} asked for, but this installation has {fixed} since its first start")]
    Shards { fixed: u16, asked: u16 },
    #[error("this Redis was written by another version of Belfry (layout {found}; this one knows layout {known})")]
    Layout { found: u64, known: u64 },
    /// A replica is away, or the disk; it passes.
    #[error("what is written now would not be as durable as store.redis.durability asks for: {0}")]
    NotDurable(StoreError),
    #[error(transparent)]
    Store(#[from] StoreError),
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
    asked: Mutex<VecDeque<(String, u64)>>,
    pub(super) doors: Doors,
    /// Versions of templates that this node has kept, and so may use.
    pub(super) templates: Mutex<BTreeSet<String>>,
    /// Ends with the store.
    pub(super) tasks: Mutex<JoinSet<()>>,
    pub(super) this: Weak<Self>,
    pub(super) watch: Arc<dyn StoreWatch>,
    /// Drawn anew by every node.
    pub(super) mark: u64,
    /// The two clocks were found too far apart, and that was told.
    skewed: AtomicBool,
    pub(super) timepiece: Mutex<Timepiece>,
    /// Says that this node is there, until it leaves.
    pub(super) staying: Mutex<Option<AbortHandle>>,
    /// Which unreadable deliveries have been told of.
    unreadable: Mutex<BTreeSet<DeliveryId>>,
    /// The installation's, once it was asked for.
    pub(super) secret: OnceLock<[u8; 32]>,
    /// This node has seen that the installation was begun.
    pub(super) begun: AtomicBool,
    /// Another installation has been begun where this node's was.
    pub(super) elsewhere: AtomicBool,
}

/// How far a node has seen a shard come.
pub(super) struct Seen {
    sequence: u64,
    era: String,
}

impl Seen {
    fn of(shard: &Shard) -> Self {
        Self { sequence: shard.sequence(), era: shard.era().unwrap_or_else(|| "?".into()) }
    }

    /// Asks in any era, however early.
    pub(super) fn nothing() -> Self {
        Self { sequence: 0, era: "?".into() }
    }
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
    /// To be called within a runtime, on which it gathers what it is asked. `mark`: drawn anew by every node,
    /// so that it knows its own wakes.
    #[must_use]
    pub fn new(link: Link, names: Names, clocks: Clocks, watch: Arc<dyn StoreWatch>, mark: u64) -> Arc<Self> {
        let (doors, parts) = accept::doors(names.shards());
        let Clocks { node: clock, store: store_clock } = clocks;
        let store = Arc::new_cyclic(|this| Self {
            link,
            shards: (0..names.shards()).map(|_| Shard::default()).collect(),
            names,
            scripts: Scripts::new(),
            clock,
            store_clock,
            due: DueSignal::default(),
            turn: AtomicUsize::new(0),
            position: AtomicU64::new(0),
            asked: Mutex::default(),
            doors,
            templates: Mutex::default(),
            tasks: Mutex::default(),
            this: this.clone(),
            watch,
            mark,
            skewed: AtomicBool::new(false),
            timepiece: Mutex::default(),
            staying: Mutex::default(),
            unreadable: Mutex::default(),
            secret: OnceLock::new(),
            begun: AtomicBool::new(false),
            elsewhere: AtomicBool::new(false),
        });
        let mut tasks = store.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for (shard, parts) in (0..).zip(parts) {
            tasks.spawn(accept::gather(Arc::downgrade(&store), shard, parts));
        }
        drop(tasks);
        let this = Arc::downgrade(&store);
        store.link.wakes(Arc::new(move |wake| {
            let Some(store) = this.upgrade() else { return };
            match wake {
                // What this node did itself it knows already; to look again would find nothing.
                Wake::Shard { by, .. } if by == store.mark => {}
                Wake::Shard { shard, .. } => store.woken(shard),
                Wake::Missed => (0..store.names.shards()).for_each(|shard| store.woken(shard)),
            }
        }));
        store
    }

    /// Whether the installation is one that this node can work on: the layout, and how many shards
    /// there are, fixed by the first node that ever came.
    ///
    /// # Errors
    /// It is not, or the store is away.
    pub async fn prepare(&self) -> std::result::Result<(), PrepareError> {
        self.link.settled().await.map_err(PrepareError::NotDurable)?;
        self.fits(self.layout(LAYOUT, self.names.shards()).await?)?;
        self.begun.store(true, Ordering::SeqCst);
        // Where a shard is away the others have it, and whoever is to hold waits for all of them.
        self.spread_hold().await.ok();
        Ok(())
    }

    /// As [`Self::prepare`], for whoever only looks: begins nothing where no node ever came. Whether one did.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub async fn is_begun(&self) -> std::result::Result<bool, PrepareError> {
        let Some(fixed) = self.fixed().await? else { return Ok(false) };
        self.fits(fixed)?;
        Ok(true)
    }

    fn fits(&self, (layout, shards): (u64, u16)) -> std::result::Result<(), PrepareError> {
        if layout != LAYOUT {
            return Err(PrepareError::Layout { found: layout, known: LAYOUT });
        }
        if shards != self.names.shards() {
            return Err(PrepareError::Shards { fixed: shards, asked: self.names.shards() });
        }
        Ok(())
    }

    /// Runs a script of a shard, and notes the sequence that it answers first. All that follows the
    /// sequence is the verb's own.
    pub(super) async fn run(&self, ask: Ask<'_>) -> Result<Vec<Value>> {
        self.same_installation()?;
        let shard = &self.shards[usize::from(ask.shard)];
        let generation = self.link.generation();
        if shard.era().is_none() {
            self.arrive(ask.shard).await?;
        }
        shard.led_by(generation);
        let (keys, args) = self.framed(ask.shard, &Seen::of(shard), ask.keys, ask.args);
        let mut call = Call { script: ask.script, keys, args, need: ask.need, generation: Some(generation) };
        let mut answer = self.link.attempt(&call).await;
        if answer.as_ref().is_err_and(mend::is_past) {
            call.generation = Some(self.link.generation());
            shard.led_by(self.link.generation());
            self.mended(ask.shard).await?;
            let seen = Seen::of(shard);
            call.args[0] = decimal(seen.sequence);
            call.args[1] = seen.era.into_bytes();
            answer = self.link.attempt(&call).await;
        }
        let mut answer = answers::list(answer.map_err(|trouble| self.link.explain(&call, &trouble))?)?;
        if answer.is_empty() {
            return Err(corrupt("an answer"));
        }
        shard.saw(u64::try_from(answers::number(&answer.remove(0))?).unwrap_or(0));
        Ok(answer)
    }

    /// What every script of a shard takes first.
    pub(super) fn framed(
        &self,
        shard: u16,
        seen: &Seen,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut all_keys = Vec::with_capacity(keys.len() + 1);
        all_keys.push(self.names.sequence(shard));
        all_keys.extend(keys);
        let mut all = Vec::with_capacity(args.len() + 5);
        all.extend([decimal(seen.sequence), seen.era.clone().into_bytes(), self.time_arg()]);
        all.extend([self.names.wake_channel().into_bytes(), wakes::written(shard, self.mark)]);
        all.extend(args);
        (all_keys, all)
    }

    /// The time as scripts take it.
    pub(super) fn time_arg(&self) -> Vec<u8> {
        match &self.store_clock {
            StoreClock::Server => b"-1".to_vec(),
            StoreClock::Own(clock) => signed(clock.now().0),
        }
    }

    /// What was read, where it can be: a record that cannot must not hold up those that were read with it.
    /// It stays as it is, and is told of once.
    pub(super) fn readable<T>(&self, id: DeliveryId, read: Result<T>) -> Option<T> {
        let problem = match read {
            Ok(read) => return Some(read),
            Err(problem) => problem,
        };
        let mut told = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < UNREADABLE && told.insert(id) {
            self.watch.tell(StoreNews::Unreadable { delivery: id, what: problem.to_string() });
        }
        None
    }

    /// Something may be due in a shard.
    pub(super) fn woken(&self, shard: u16) {
        if let Some(shard) = self.shards.get(usize::from(shard)) {
            shard.wake(self.clock.now());
        }
        self.due.raise();
    }

    /// These wait in a shard now, or may.
    pub(super) fn coming<'a>(&self, shard: u16, waiting: impl Iterator<Item = (&'a Lane, bool, UnixMs)>) {
        let Some(here) = self.shards.get(usize::from(shard)) else { return };
        let now = self.clock.now();
        let sooner = waiting.fold(false, |sooner, (lane, alone, due)| here.comes((lane, alone), due, now) || sooner);
        if sooner {
            self.due.raise();
        }
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

    /// An answer told the store's time.
    pub(super) fn saw_time(&self, now: UnixMs) {
        let ms = now.0 - self.clock.now().0;
        if self.skewed.swap(is_skewed(ms), Ordering::Relaxed) != is_skewed(ms) {
            self.watch.tell(StoreNews::ClockSkew { ms });
        }
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

/// What the shards that answered said: one that cannot be asked must not hold up the others.
///
/// # Errors
/// None did.
pub(super) fn those_that_answered<T>(answers: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut error = None;
    let mut said = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Ok(answer) => said.push(answer),
            Err(other) => error = Some(other),
        }
    }
    match error {
        Some(error) if said.is_empty() => Err(error),
        _ => Ok(said),
    }
}

pub(super) fn decimal(number: impl Into<u64>) -> Vec<u8> {
    number.into().to_string().into_bytes()
}

pub(super) fn signed(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}
