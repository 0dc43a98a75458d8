//! Which store, behind the ports.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::config::{Config, StoreKind};
use crate::machine::MachineDice;
use crate::ports::StoreError;
use crate::ports::admin::{ApiKeys, Installation};
use crate::ports::clock::{Clock, Dice};
use crate::ports::deliveries::Deliveries;
use crate::ports::holds::Holds;
use crate::ports::outbox::OutboxMessages;
use crate::ports::paces::Paces;
use crate::ports::store_news::{StoreNews, StoreWatch};
use crate::store::redis::keys::Names;
use crate::store::redis::link::{Durability, Link, LinkSettings, RedisConfig};
use crate::store::redis::{Clocks, PrepareError, RedisStore, StoreClock, wipe};
use crate::store::sqlite::{InlineStore, SqliteStore};

/// One store, as each room sees it.
pub struct Stores {
    pub deliveries: Arc<dyn Deliveries>,
    pub holds: Arc<dyn Holds>,
    pub paces: Arc<dyn Paces>,
    pub api_keys: Arc<dyn ApiKeys>,
    pub installation: Arc<dyn Installation>,
    pub outbox: Arc<dyn OutboxMessages>,
    /// One sentence: what a crash of the store can lose.
    pub durability: String,
    place: Place,
}

/// Between two tries at servers that are away.
const TRY_AGAIN: Duration = Duration::from_secs(1);

enum Place {
    Memory,
    File(Arc<SqliteStore>),
    Redis(Arc<RedisStore>),
}

/// What a store goes by, and whom it tells what it finds out.
pub struct Surroundings {
    pub clock: Arc<dyn Clock>,
    pub watch: Arc<dyn StoreWatch>,
    /// Servers that are away are waited for.
    pub patient: bool,
}

impl Stores {
    /// # Errors
    /// The database cannot be opened, another process holds it, or the servers are away or unfit.
    pub async fn open(config: &Config, ephemeral: bool, around: Surroundings) -> anyhow::Result<Self> {
        if ephemeral {
            let store = InlineStore::open(around.clock);
            let durability = "Everything is in memory and gone when this process ends.";
            return Ok(Self::of(store, durability.into(), Place::Memory));
        }
        match config.store.kind {
            StoreKind::Sqlite => Self::open_file(&config.store.sqlite.path, around.clock),
            StoreKind::Redis => Self::open_redis(&config.store.redis, around).await,
        }
    }

    fn of<S>(store: Arc<S>, durability: String, place: Place) -> Self
    where
        S: Deliveries + Holds + Paces + ApiKeys + Installation + OutboxMessages,
    {
        Self {
            deliveries: store.clone(),
            holds: store.clone(),
            paces: store.clone(),
            api_keys: store.clone(),
            installation: store.clone(),
            outbox: store,
            durability,
            place,
        }
    }

    fn open_file(path: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let store = SqliteStore::open(path, clock).with_context(|| format!("store.sqlite.path: {}", path.display()))?;
        let durability = "Every answer waits for the disk (fsync): a crash loses nothing that was acknowledged.";
        Ok(Self::of(store.clone(), durability.into(), Place::File(store)))
    }

    async fn open_redis(config: &RedisConfig, around: Surroundings) -> anyhow::Result<Self> {
        let settings = link_settings(config)?;
        let durability = what_is_lost(settings.durability);
        let mut shards = config.first_shards();
        loop {
            let link = reach(settings.clone(), &around).await?;
            let names = Names::new(settings.prefix.clone(), shards);
            let clocks = Clocks { node: around.clock.clone(), store: StoreClock::Server };
            let store = RedisStore::new(link, names, clocks, around.watch.clone(), MachineDice.roll());
            match store.prepare().await {
                Ok(()) => return Ok(Self::of(store.clone(), durability, Place::Redis(store))),
                // Nobody has asked for another number.
                Err(PrepareError::Shards { fixed, .. }) if config.shards.is_none() && fixed != shards => shards = fixed,
                Err(refused) => return Err(refused.into()),
            }
        }
    }

    #[must_use]
    pub const fn are_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory)
    }

    /// Removes everything under keys that begin with `prefix`, on the Redis that `config` names.
    ///
    /// # Errors
    /// It is away, or was only partly reached.
    pub async fn wipe(config: &Config, prefix: &str) -> anyhow::Result<()> {
        let settings = link_settings(&config.store.redis)?;
        let link = Link::open(settings).await?;
        wipe(&link, prefix, config.store.redis.first_shards()).await?;
        Ok(())
    }

    /// Takes part in the work under this name, where several nodes share it.
    pub fn join(&self, node: &str) {
        if let Place::Redis(store) = &self.place {
            store.join(node);
        }
    }

    /// Leaves it to the others, if it can still be told them.
    pub async fn leave(&self, node: &str) {
        if let Place::Redis(store) = &self.place {
            // They find out by themselves within seconds.
            store.leave(node).await.ok();
        }
    }

    /// What an operator has to look at before trusting it, in words; a store that is only one file has
    /// nothing of the kind.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be asked.
    pub async fn findings(&self) -> Result<Vec<String>, StoreError> {
        match &self.place {
            Place::Redis(store) => store.findings().await,
            Place::Memory | Place::File(_) => Ok(Vec::new()),
        }
    }

    /// Writes everything back into the main file and lets go of it.
    pub async fn close(&self) {
        match &self.place {
            Place::File(store) => store.close().await,
            Place::Memory | Place::Redis(_) => {}
        }
    }
}

/// Connects. Who starts together with the servers, or while they are away, goes on when they are there;
/// what only an operator can mend refuses the start.
async fn reach(settings: LinkSettings, around: &Surroundings) -> anyhow::Result<Link> {
    loop {
        let refused = match Link::connect(settings.clone()).await {
            Ok(link) => return Ok(link),
            Err(refused) => refused,
        };
        anyhow::ensure!(refused.passes && around.patient, refused.error);
        around.watch.tell(StoreNews::Awaited { why: refused.error.to_string() });
        around.clock.sleep_until(around.clock.boot() + TRY_AGAIN).await;
    }
}

fn link_settings(config: &RedisConfig) -> anyhow::Result<LinkSettings> {
    LinkSettings::of(config).map_err(|problems| {
        let each: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", each.join("; "))
    })
}

fn what_is_lost(durability: Durability) -> String {
    match durability {
        Durability::Ack => "An answer waits for Redis' own: what the server has not yet written to its disk or copied \
                            to a replica is lost with it (with appendfsync everysec about a second; without \
                            persistence everything)."
            .into(),
        Durability::Fsync => {
            "Every answer waits for Redis' disk: a crash of the server loses nothing that was acknowledged.".into()
        }
        Durability::Replicas(count) => format!(
            "Every answer waits for {count} of Redis' replicas: nothing that was acknowledged is lost while one of \
             them takes over."
        ),
    }
}
