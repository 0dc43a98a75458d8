//! Which store, behind the ports.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::config::{Config, StoreKind};
use crate::http::Workers;
use crate::machine::MachineDice;
use crate::ports::StoreError;
use crate::ports::admin::{ApiKeys, Installation};
use crate::ports::broadcasts::Broadcasts;
use crate::ports::caps::Caps;
use crate::ports::clock::{Clock, Dice};
use crate::ports::deliveries::Deliveries;
use crate::ports::gatherings::Gatherings;
use crate::ports::holds::Holds;
use crate::ports::outbox::OutboxMessages;
use crate::ports::paces::Paces;
use crate::ports::pauses::Pauses;
use crate::ports::preferences::PreferenceBook;
use crate::ports::recipients::Recipients;
use crate::ports::schedules::Schedules;
use crate::ports::store_news::{StoreNews, StoreWatch};
use crate::ports::suppressions::Suppressions;
use crate::store::redis::keys::Names;
use crate::store::redis::link::{Address, Durability, Link, LinkSettings, RedisConfig, Refused, Target, Topology};
use crate::store::redis::{Clocks, PrepareError, RedisStore, StoreClock, wipe};
use crate::store::sqlite::{InlineStore, SqliteStore};

/// One store, as each room sees it.
pub struct Stores {
    pub deliveries: Arc<dyn Deliveries>,
    pub holds: Arc<dyn Holds>,
    pub paces: Arc<dyn Paces>,
    pub caps: Arc<dyn Caps>,
    pub recipients: Arc<dyn Recipients>,
    pub suppressions: Arc<dyn Suppressions>,
    pub preferences: Arc<dyn PreferenceBook>,
    pub gatherings: Arc<dyn Gatherings>,
    pub pauses: Arc<dyn Pauses>,
    pub schedules: Arc<dyn Schedules>,
    pub broadcasts: Arc<dyn Broadcasts>,
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

/// Servers that do not answer now; the same may be had later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Away(String);

/// Servers on which no node of this installation was ever started.
#[derive(Debug, thiserror::Error)]
#[error("nothing has been started here yet: no keys \"{prefix}:…\" at {at}; `belfry serve` makes them")]
pub struct NotBegun {
    pub at: String,
    pub prefix: String,
    /// Why a start there would not go well, in words.
    pub unfit: Vec<String>,
}

/// What a store goes by, and whom it tells what it finds out.
pub struct Surroundings {
    pub clock: Arc<dyn Clock>,
    pub watch: Arc<dyn StoreWatch>,
    /// Servers that are away are waited for.
    pub patient: bool,
    /// Where nothing was started yet this is the first start; else it is [`NotBegun`].
    pub begins: bool,
}

impl Stores {
    /// # Errors
    /// The database cannot be opened, another process holds it, or the servers are unfit, [`Away`] or
    /// [`NotBegun`].
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
        S: Deliveries
            + Holds
            + Paces
            + Pauses
            + Schedules
            + Broadcasts
            + Caps
            + ApiKeys
            + Installation
            + OutboxMessages
            + Recipients
            + Suppressions
            + PreferenceBook
            + Gatherings,
    {
        Self {
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
            pauses: store.clone(),
            schedules: store.clone(),
            broadcasts: store,
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
            let prepared = match around.begins {
                true => store.prepare().await.map(|()| true),
                false => store.is_begun().await,
            };
            match prepared {
                Ok(true) => {
                    // Whoever only looks puts nothing back.
                    if around.begins {
                        store.look_after_installation();
                    }
                    return Ok(Self::of(store.clone(), durability, Place::Redis(store)));
                }
                Ok(false) => {
                    let (at, prefix) = (place(config), config.prefix.clone());
                    return Err(NotBegun { at, prefix, unfit: store.unfit().await }.into());
                }
                // Nobody has asked for another number.
                Err(PrepareError::Shards { fixed, .. }) if config.shards.is_none() && fixed != shards => shards = fixed,
                // A node that is replaced while a replica is away must not be missing as well.
                Err(PrepareError::NotDurable(why)) if around.patient => wait(&why, &around).await,
                Err(refused) => return Err(refused.into()),
            }
        }
    }

    #[must_use]
    pub const fn are_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory)
    }

    /// Whether `[store.redis]` holds together.
    ///
    /// # Errors
    /// In words what does not.
    pub fn check_redis(config: &Config) -> Result<(), String> {
        link_settings(&config.store.redis).map(drop).map_err(|error| error.to_string())
    }

    /// Whether its servers are there.
    ///
    /// # Errors
    /// [`Away`], or what only an operator can mend.
    pub async fn reach_redis(config: &Config) -> anyhow::Result<()> {
        let settings = link_settings(&config.store.redis)?;
        Link::connect(settings).await.map(drop).map_err(refusal)
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

    /// Takes part under this name where there are several nodes; `works`: in the work as well.
    pub async fn join(&self, node: &str, works: bool) {
        if let Place::Redis(store) = &self.place {
            store.join(node, works).await;
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

    /// Counts the workers that take part, where several nodes share the work: `None` where one does all of it.
    #[must_use]
    pub fn workers(&self) -> Workers {
        match &self.place {
            Place::Redis(store) => {
                let store = store.clone();
                Arc::new(move || {
                    let store = store.clone();
                    Box::pin(async move { Ok(Some(store.nodes().await?.len())) })
                })
            }
            Place::Memory | Place::File(_) => Arc::new(|| Box::pin(async { Ok(None) })),
        }
    }

    /// What an operator should know and need not change.
    pub async fn notes(&self) -> Vec<String> {
        let Place::Redis(store) = &self.place else { return Vec::new() };
        let one = |at: String| {
            format!(
                "Redis at {at} keeps nothing on disk (no save points, appendonly no): when it stops, everything is \
                 lost that no replica has. Turn on appendonly, and see store.redis.durability"
            )
        };
        store.keeping_nothing().await.into_iter().map(one).collect()
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
        if !refused.passes || !around.patient {
            return Err(refusal(refused));
        }
        wait(&refused.error, around).await;
    }
}

async fn wait(why: &StoreError, around: &Surroundings) {
    around.watch.tell(StoreNews::Awaited { why: why.to_string() });
    around.clock.sleep_until(around.clock.boot() + TRY_AGAIN).await;
}

fn refusal(refused: Refused) -> anyhow::Error {
    let Refused { error, passes } = refused;
    if passes { Away(error.to_string()).into() } else { error.into() }
}

/// Where the servers are: hosts and ports, never a login.
#[must_use]
pub fn place(config: &RedisConfig) -> String {
    let list = |all: &[Address]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    match config.url.parse::<Target>().map(|target| target.topology) {
        Ok(Topology::Single(one)) => one.to_string(),
        Ok(Topology::Cluster(seeds)) => list(&seeds),
        Ok(Topology::Sentinel { sentinels, primary }) => format!("{}/{primary}", list(&sentinels)),
        // Refused before anything is connected to.
        Err(_) => String::new(),
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
        Durability::Ack => "Every answer waits until Redis has it in memory, not for its disk or a replica: what a \
                            server has neither written to disk nor copied when it crashes is lost (with appendfsync \
                            everysec about a second; without persistence everything)."
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
