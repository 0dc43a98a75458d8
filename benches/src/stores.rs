//! Which store lies under what is measured, and where it lives. The one place here that names
//! concrete stores.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use belfry::machine::{MachineClock, MachineDice};
use belfry::ports::admin::{ApiKeys, Installation};
use belfry::ports::caps::Caps;
use belfry::ports::clock::Dice;
use belfry::ports::deliveries::Deliveries;
use belfry::ports::gatherings::Gatherings;
use belfry::ports::holds::Holds;
use belfry::ports::outbox::OutboxMessages;
use belfry::ports::paces::Paces;
use belfry::ports::pauses::Board;
use belfry::ports::preferences::PreferenceBook;
use belfry::ports::recipients::Recipients;
use belfry::ports::schedules::Schedules;
use belfry::ports::store_news::Unwatched;
use belfry::ports::suppressions::Suppressions;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry::store::sqlite::SqliteStore;
use tempfile::TempDir;

use crate::redis_server::{Persistence, RedisServer};

/// As many as a first start makes.
const SHARDS: u16 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Sqlite,
    Redis,
}

impl FromStr for StoreKind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "redis" => Ok(Self::Redis),
            other => bail!("no store is called {other}: sqlite or redis"),
        }
    }
}

impl StoreKind {
    /// As an option names it.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Redis => "Redis",
        }
    }
}

/// One store, as each room sees it.
pub(crate) struct Opened {
    pub deliveries: Arc<dyn Deliveries>,
    pub holds: Arc<dyn Holds>,
    pub paces: Arc<dyn Paces>,
    pub caps: Arc<dyn Caps>,
    pub api_keys: Arc<dyn ApiKeys>,
    pub installation: Arc<dyn Installation>,
    pub outbox: Arc<dyn OutboxMessages>,
    pub recipients: Arc<dyn Recipients>,
    pub suppressions: Arc<dyn Suppressions>,
    pub preferences: Arc<dyn PreferenceBook>,
    pub gatherings: Arc<dyn Gatherings>,
    pub pauses: Arc<Board>,
    pub schedules: Arc<dyn Schedules>,
    file: Option<Arc<SqliteStore>>,
}

impl Opened {
    /// Opens what is at `at`: a file's path, or a Redis server's `redis://…`.
    pub(crate) fn at(kind: StoreKind, at: &str) -> Result<Self> {
        match kind {
            StoreKind::Sqlite => {
                let store = SqliteStore::open(Path::new(at), Arc::new(MachineClock))?;
                Ok(Self {
                    deliveries: store.clone(),
                    holds: store.clone(),
                    paces: store.clone(),
                    caps: store.clone(),
                    api_keys: store.clone(),
                    installation: store.clone(),
                    outbox: store.clone(),
                    recipients: store.clone(),
                    suppressions: store.clone(),
                    preferences: store.clone(),
                    gatherings: store.clone(),
                    pauses: Arc::new(Board::new(store.clone())),
                    schedules: store.clone(),
                    file: Some(store),
                })
            }
            StoreKind::Redis => open_redis(at),
        }
    }

    pub(crate) async fn close(self) {
        if let Some(store) = self.file {
            store.close().await;
        }
    }
}

fn open_redis(at: &str) -> Result<Opened> {
    let clock = Arc::new(MachineClock);
    let names = Names::new("belfry".into(), SHARDS);
    let clocks = Clocks { node: clock, store: StoreClock::Server };
    let store = RedisStore::new(Link::to(at)?, names, clocks, Arc::new(Unwatched), MachineDice.roll());
    Ok(Opened {
        deliveries: store.clone(),
        holds: store.clone(),
        paces: store.clone(),
        caps: store.clone(),
        api_keys: store.clone(),
        installation: store.clone(),
        outbox: store.clone(),
        recipients: store.clone(),
        suppressions: store.clone(),
        pauses: Arc::new(Board::new(store.clone())),
        gatherings: store.clone(),
        schedules: store.clone(),
        preferences: store,
        file: None,
    })
}

/// Whether a key of the Redis store holds nothing but what search looks through.
pub(crate) fn is_search_index(key: &[u8]) -> bool {
    let after_tag = key.windows(2).position(|two| two == b"}:").map_or(key.len(), |at| at + 2);
    let name = &key[after_tag..];
    name.starts_with(b"x") || [&b"epochs"[..], b"live", b"ord"].contains(&name)
}

/// The `[store]` of a configuration that uses what is at `at`.
pub(crate) fn config(kind: StoreKind, at: &str) -> String {
    match kind {
        StoreKind::Sqlite => format!("[store]\nkind = \"sqlite\"\n[store.sqlite]\npath = \"{at}\"\n"),
        StoreKind::Redis => format!("[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{at}\"\n"),
    }
}

/// Where one store lives while it is measured: a folder, and for Redis a server of its own.
pub(crate) struct Place {
    pub kind: StoreKind,
    pub folder: TempDir,
    pub redis: Option<RedisServer>,
}

impl Place {
    pub(crate) async fn new(kind: StoreKind, persistence: Persistence) -> Result<Self> {
        let folder = tempfile::tempdir_in(crate::child::target())?;
        let redis = match kind {
            StoreKind::Sqlite => None,
            StoreKind::Redis => Some(RedisServer::start(persistence).await?),
        };
        Ok(Self { kind, folder, redis })
    }

    /// As [`Opened::at`] takes it.
    pub(crate) fn at(&self) -> Result<String> {
        match &self.redis {
            Some(redis) => Ok(redis.url()),
            None => Ok(self.folder.path().join("belfry.db").to_str().context("a path that is no text")?.to_owned()),
        }
    }

    pub(crate) fn open(&self) -> Result<Opened> {
        Opened::at(self.kind, &self.at()?)
    }

    pub(crate) fn config(&self) -> Result<String> {
        Ok(config(self.kind, &self.at()?))
    }

    pub(crate) async fn stop(self) -> Result<()> {
        match self.redis {
            Some(redis) => redis.stop().await,
            None => Ok(()),
        }
    }
}
