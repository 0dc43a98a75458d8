//! A fresh store and the clock it goes by.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belfry::ports::admin::{ApiKeys, Installation};
use belfry::ports::broadcasts::Broadcasts;
use belfry::ports::caps::Caps;
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::deliveries::Deliveries;
use belfry::ports::gatherings::Gatherings;
use belfry::ports::holds::Holds;
use belfry::ports::outbox::OutboxMessages;
use belfry::ports::paces::Paces;
use belfry::ports::pauses::Pauses;
use belfry::ports::preferences::PreferenceBook;
use belfry::ports::recipients::Recipients;
use belfry::ports::schedules::Schedules;
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
    + Broadcasts
    + ApiKeys
    + Installation
    + OutboxMessages
    + Recipients
    + Suppressions
    + PreferenceBook
    + Schedules
    + Gatherings
{
}

impl<S> Ports for S where
    S: Deliveries
        + Caps
        + Holds
        + Paces
        + Pauses
        + Broadcasts
        + ApiKeys
        + Installation
        + OutboxMessages
        + Recipients
        + Suppressions
        + PreferenceBook
        + Schedules
        + Gatherings
{
}

pub struct Harness {
    pub store: Arc<dyn Ports>,
    pub clock: Arc<ManualClock>,
    look: Look,
    _place: Option<TempDir>,
}

/// Past the store, at what it keeps.
enum Look {
    Nowhere,
    File(PathBuf),
    Redis { url: String, prefix: String },
}

impl Harness {
    pub fn now(&self) -> UnixMs {
        self.clock.now()
    }

    /// Over a store of the test's own.
    pub fn over(store: Arc<dyn Ports>, clock: &Arc<ManualClock>) -> Self {
        Self { store, clock: clock.clone(), look: Look::Nowhere, _place: None }
    }

    /// Deletes what is attached, as somebody's own hand would. Whether that can be done.
    pub fn take_attachments_away(&self) -> bool {
        match &self.look {
            Look::Nowhere => return false,
            Look::File(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.execute_batch("PRAGMA busy_timeout = 2000; DELETE FROM attachments").unwrap();
            }
            Look::Redis { url, prefix } => {
                let mut server = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
                for key in attachment_keys(&mut server, prefix) {
                    redis::cmd("DEL").arg(key).exec(&mut server).unwrap();
                }
            }
        }
        true
    }

    /// How long each content of an attachment is that is kept, by length, where that can be seen.
    pub fn attachments_kept(&self) -> Option<Vec<usize>> {
        let mut kept: Vec<usize> = match &self.look {
            Look::Nowhere => return None,
            Look::File(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                let mut lengths = conn.prepare("SELECT length(content) FROM attachments").unwrap();
                lengths
                    .query_map([], |row| row.get(0))
                    .unwrap()
                    .map(|length: rusqlite::Result<i64>| length.unwrap() as usize)
                    .collect()
            }
            Look::Redis { url, prefix } => {
                let mut server = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
                let keys = attachment_keys(&mut server, prefix);
                let mut length = |key| redis::cmd("HSTRLEN").arg(key).arg("content").query(&mut server).unwrap();
                keys.iter().map(&mut length).collect()
            }
        };
        kept.sort_unstable();
        Some(kept)
    }
}

fn attachment_keys(server: &mut redis::Connection, prefix: &str) -> Vec<Vec<u8>> {
    redis::cmd("KEYS").arg(format!("{prefix}:{{*}}:att*")).query(server).unwrap()
}

pub fn in_memory() -> Harness {
    let clock = ManualClock::new();
    Harness { store: InlineStore::open(clock.clone()), clock, look: Look::Nowhere, _place: None }
}

pub fn in_a_file() -> Harness {
    let clock = ManualClock::new();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("belfry.db");
    let store = SqliteStore::open(&path, clock.clone()).unwrap();
    Harness { store, clock, look: Look::File(path), _place: Some(place) }
}

pub fn in_redis() -> Harness {
    on_server(&crate::redis::shared(), 4)
}

/// A newer server, whose disk every answer waits for (WAITAOF); `None` where there is none.
pub fn on_valkey_s_disk() -> Option<Harness> {
    let url = crate::redis::shared_valkey()?;
    let plain = LinkSettings::for_url(&url).unwrap();
    let link = Link::with(LinkSettings { durability: Durability::Fsync, ..plain }).unwrap();
    Some(in_redis_at(link, 4, Some(&url)))
}

/// Three primaries: case 94.
pub fn in_a_cluster() -> Harness {
    in_redis_at(Link::to(&crate::redis::shared_cluster()).unwrap(), 16, None)
}

/// What is claimed comes in one order there, and not in one of several.
pub fn in_one_shard() -> Harness {
    on_server(&crate::redis::shared(), 1)
}

fn on_server(url: &str, shards: u16) -> Harness {
    in_redis_at(Link::to(url).unwrap(), shards, Some(url))
}

/// Under names of its own on a server that all tests share. `url`: of the one server.
fn in_redis_at(link: Link, shards: u16, url: Option<&str>) -> Harness {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let clock = ManualClock::new();
    let prefix = format!("t{}", NEXT.fetch_add(1, Ordering::SeqCst));
    let names = Names::new(prefix.clone(), shards);
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    Harness {
        store: RedisStore::new(link, names, clocks, Arc::new(Unwatched), crate::redis::mark()),
        clock,
        look: url.map_or(Look::Nowhere, |url| Look::Redis { url: url.to_owned(), prefix }),
        _place: None,
    }
}
