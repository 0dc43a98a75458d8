//! A fresh store and the clock it goes by.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belfry::ports::admin::{ApiKeys, Installation};
use belfry::ports::caps::Caps;
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::deliveries::Deliveries;
use belfry::ports::holds::Holds;
use belfry::ports::outbox::OutboxMessages;
use belfry::ports::paces::Paces;
use belfry::ports::pauses::Pauses;
use belfry::ports::preferences::PreferenceBook;
use belfry::ports::recipients::Recipients;
use belfry::ports::store_news::Unwatched;
use belfry::ports::suppressions::Suppressions;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::{Durability, Link, LinkSettings};
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry::store::sqlite::{InlineStore, SqliteStore};
use belfry_domain::UnixMs;
use tempfile::TempDir;

/// When every test begins.
pub const START: UnixMs = UnixMs(1_800_000_000_000);

/// Stands still until it is moved, in either direction.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(START.0)))
    }

    pub fn step(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> UnixMs {
        UnixMs(self.0.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Boot {
        Duration::ZERO
    }

    async fn sleep_until(&self, _until: Boot) {
        panic!("a store waits for nothing");
    }
}

/// All ports of one store.
pub trait Ports:
    Deliveries
    + Caps
    + Holds
    + Paces
    + Pauses
    + ApiKeys
    + Installation
    + OutboxMessages
    + Recipients
    + Suppressions
    + PreferenceBook
{
}

impl<S> Ports for S where
    S: Deliveries
        + Caps
        + Holds
        + Paces
        + Pauses
        + ApiKeys
        + Installation
        + OutboxMessages
        + Recipients
        + Suppressions
        + PreferenceBook
{
}

pub struct Harness {
    pub store: Arc<dyn Ports>,
    pub clock: Arc<ManualClock>,
    _place: Option<TempDir>,
}

impl Harness {
    pub fn now(&self) -> UnixMs {
        self.clock.now()
    }

    /// Over a store of the test's own.
    pub fn over(store: Arc<dyn Ports>, clock: &Arc<ManualClock>) -> Self {
        Self { store, clock: clock.clone(), _place: None }
    }
}

pub fn in_memory() -> Harness {
    let clock = ManualClock::new();
    Harness { store: InlineStore::open(clock.clone()), clock, _place: None }
}

pub fn in_a_file() -> Harness {
    let clock = ManualClock::new();
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&place.path().join("belfry.db"), clock.clone()).unwrap();
    Harness { store, clock, _place: Some(place) }
}

pub fn in_redis() -> Harness {
    in_redis_at(Link::to(&crate::redis::shared()).unwrap(), 4)
}

/// A newer server, whose disk every answer waits for (WAITAOF); `None` where there is none.
pub fn on_valkey_s_disk() -> Option<Harness> {
    let plain = LinkSettings::for_url(&crate::redis::shared_valkey()?).unwrap();
    Some(in_redis_at(Link::with(LinkSettings { durability: Durability::Fsync, ..plain }).unwrap(), 4))
}

/// Three primaries: case 94.
pub fn in_a_cluster() -> Harness {
    in_redis_at(Link::to(&crate::redis::shared_cluster()).unwrap(), 16)
}

/// What is claimed comes in one order there, and not in one of several.
pub fn in_one_shard() -> Harness {
    in_redis_at(Link::to(&crate::redis::shared()).unwrap(), 1)
}

/// Under names of its own on a server that all tests share.
fn in_redis_at(link: Link, shards: u16) -> Harness {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let clock = ManualClock::new();
    let prefix = format!("t{}", NEXT.fetch_add(1, Ordering::SeqCst));
    let names = Names::new(prefix, shards);
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    Harness {
        store: RedisStore::new(link, names, clocks, Arc::new(Unwatched), crate::redis::mark()),
        clock,
        _place: None,
    }
}
