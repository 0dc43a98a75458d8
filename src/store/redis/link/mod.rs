//! The way to the servers: which of them has a shard, one bounded call after the other, and what to
//! wait for before an answer may be given. Knows scripts, keys and answers; nothing of what they mean.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::script::Script;
use crate::ports::StoreError;

mod batches;
mod check;
mod cluster;
mod dial;
mod errors;
mod kept;
mod map;
mod node;
mod sentinel;
mod settings;
mod slot;
pub mod wakes;

pub use check::Finding;
pub use errors::{Remedy, Trouble, classify};
pub use settings::{Address, Durability, LinkSettings, Login, RedisConfig, SettingProblem, Target, Topology};
pub use slot::slot_of;
pub use wakes::Wake;

use map::Map;
use node::Node;

/// What an answer has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The primary has done it.
    Done,
    /// It outlives what the configured durability says it outlives, and so does everything that it
    /// read.
    Durable,
}

/// One script call. All keys share the hash tag of `keys[0]`. It may run a second time where the
/// connection was cut under the first, so that it has to answer the same to the same arguments.
pub struct Call<'a> {
    pub script: &'a Script,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
    pub need: Need,
    /// Only while the servers are those of this [`Link::generation`].
    pub generation: Option<u64>,
}

impl Call<'_> {
    /// The same once more, by a script that has to know.
    fn again(&self) -> Self {
        let mut args = self.args.clone();
        if let Some(said) = self.script.again.and_then(|at| args.get_mut(at)) {
            *said = b"1".to_vec();
        }
        Self { script: self.script, keys: self.keys.clone(), args, need: self.need, generation: self.generation }
    }

    fn by_hash(&self) -> redis::Cmd {
        self.command("EVALSHA", self.script.hash())
    }

    fn by_text(&self) -> redis::Cmd {
        self.command("EVAL", self.script.text())
    }

    fn command(&self, name: &str, script: &str) -> redis::Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}

/// As the scripts say it of a shard that has gone back: it may have.
const OTHER_SERVER: &str = "BELFRYPAST another server has the shard";

/// Whether the file of roots can be used, without connecting.
///
/// # Errors
/// In words why not.
pub fn check_roots(settings: &LinkSettings) -> Result<(), String> {
    dial::Dialer::new(&settings.target, settings.ca_file.as_deref()).map(drop)
}

/// One call, connecting included.
const MOST_WAIT: Duration = Duration::from_millis(1_500);
/// Left for giving up in an orderly way: whoever waits for an answer leaves the connection.
const GIVING_UP: Duration = Duration::from_millis(50);

/// Why there is no link.
#[derive(Debug)]
pub struct Refused {
    pub error: StoreError,
    /// It may pass by itself; else somebody has to change something.
    pub passes: bool,
}

/// The connections of one store. Its tasks end when it is dropped.
pub struct Link {
    map: Arc<Map>,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    watching: bool,
    running: JoinSet<()>,
}

impl Link {
    /// To one server or what else the URL names, with everything else at its default. Connects at
    /// the first call.
    ///
    /// # Errors
    /// The URL is none.
    pub fn to(url: &str) -> Result<Self, StoreError> {
        let settings = LinkSettings::for_url(url).map_err(|problem| StoreError::Unavailable(problem.to_string()))?;
        Self::with(settings)
    }

    /// Connects at the first call.
    ///
    /// # Errors
    /// The file of roots cannot be used.
    pub fn with(settings: LinkSettings) -> Result<Self, StoreError> {
        let map = Map::new(settings).map_err(|why| StoreError::Unavailable(format!("store.redis.ca_file: {why}")))?;
        Ok(Self { map: Arc::new(map), tasks: Mutex::default() })
    }

    /// Connects, and looks whether every primary can give the configured durability.
    ///
    /// # Errors
    /// One cannot, or cannot be reached.
    pub async fn open(settings: LinkSettings) -> Result<Self, StoreError> {
        Self::connect(settings).await.map_err(|refused| refused.error)
    }

    /// As [`Self::open`], and says whether the same may be had later.
    ///
    /// # Errors
    /// See [`Refused`].
    pub async fn connect(settings: LinkSettings) -> Result<Self, Refused> {
        let link = Self::with(settings).map_err(|error| Refused { error, passes: false })?;
        let until = Instant::now() + MOST_WAIT;
        link.watch();
        let passes = |trouble: &Trouble| trouble.remedy() != Remedy::Operator;
        let known = link.map.primaries(until).await;
        for node in known.map_err(|trouble| Refused { passes: passes(&trouble), error: trouble.into() })?.nodes {
            let fit = match node.way(until).await {
                // Who loads its data or lost its disk lets everybody in, and serves nobody.
                Ok(_) => node.ask(redis::cmd("PING"), until).await.map(|_| ()),
                Err(trouble) => Err(trouble),
            };
            fit.map_err(|trouble| Refused { passes: passes(&trouble), error: at(&node.server.address, &trouble) })?;
        }
        Ok(link)
    }

    /// Runs it once, or twice where the server had to be told the script first, where the slot had
    /// moved, or where the connection was cut.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: it may have run all the same.
    pub async fn run(&self, call: Call<'_>) -> Result<Value, StoreError> {
        let answer = match self.attempt(&call).await {
            // Which run of the server answers does not matter to what is asked here.
            Err(Trouble::Ours(text)) if call.generation.is_none() && text == OTHER_SERVER => self.attempt(&call).await,
            answer => answer,
        };
        answer.map_err(|trouble| self.explain(&call, &trouble))
    }

    /// For who looks after the servers: which one it was, and what is wrong.
    #[must_use]
    pub fn explain(&self, call: &Call<'_>, trouble: &Trouble) -> StoreError {
        let key = call.keys.first().map_or(&[][..], Vec::as_slice);
        let target = &self.map.settings.target;
        let place = match self.map.known().holder(key) {
            Some(node) => node.server.address.to_string(),
            None => target.topology.to_string(),
        };
        let what = match trouble {
            Trouble::Moved { .. } if matches!(target.topology, Topology::Single(_)) => {
                "it is part of a Cluster: write redis+cluster:// in store.redis.url".to_owned()
            }
            Trouble::Cut | Trouble::Late if target.tls => format!("{trouble}; does it speak TLS there?"),
            other => other.to_string(),
        };
        StoreError::Unavailable(format!("Redis at {place}: {what}"))
    }

    /// As [`Self::run`], with what went wrong as a value.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub async fn attempt(&self, call: &Call<'_>) -> Result<Value, Trouble> {
        self.watch();
        let end = Instant::now() + MOST_WAIT;
        timeout_at(end, self.run_until(call, end - GIVING_UP)).await.map_err(|_| Trouble::Late)?
    }

    /// Whether a replica is waited for, which takes a round trip; a disk that is synced every second takes
    /// that second.
    #[must_use]
    pub fn waits_for_replicas(&self) -> bool {
        matches!(self.map.settings.durability, Durability::Replicas(_))
    }

    /// Whether a call's keys have to be in one slot.
    #[must_use]
    pub fn has_slots(&self) -> bool {
        matches!(self.map.settings.target.topology, Topology::Cluster(_))
    }

    /// Another number whenever another server than before has any of the keys.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.map.generation()
    }

    async fn holder(&self, call: &Call<'_>, until: Instant) -> Result<Arc<Node>, Trouble> {
        let key = call.keys.first().map_or(&[][..], Vec::as_slice);
        let node = self.map.holder(key, until).await?;
        // After the server is known: one that is found out about later is not called here.
        match call.generation {
            Some(generation) if generation != self.map.generation() => Err(Trouble::Ours(OTHER_SERVER.into())),
            _ => Ok(node),
        }
    }

    async fn run_until(&self, call: &Call<'_>, until: Instant) -> Result<Value, Trouble> {
        let node = self.holder(call, until).await?;
        let first = match node.run(call, until).await {
            Ok(answer) => return Ok(answer),
            Err(trouble) => trouble,
        };
        self.map.note(&first, &node);
        match &first {
            Trouble::Moved { slot, to } => self.map.moved(*slot, to, &node),
            // The server closes idle connections, and one may close while a call is on its way.
            Trouble::Cut => {}
            _ => return Err(first),
        }
        let node = self.holder(call, until).await?;
        let second = node.run(&call.again(), until).await;
        if let Err(trouble) = &second {
            self.map.note(trouble, &node);
        }
        second
    }

    /// Returns once everything that was read before, on whatever connection, is durable on all
    /// primaries.
    ///
    /// # Errors
    /// It is not, or not known to be.
    pub async fn settled(&self) -> Result<(), StoreError> {
        self.watch();
        let until = Instant::now() + MOST_WAIT - GIVING_UP;
        let known = self.map.primaries(until).await?;
        let waits = known.nodes.iter().enumerate().map(async |(place, node)| {
            let Some(tag) = known.tag_at(place) else { return Ok(()) };
            node.settled(&tag, until).await.map_err(|trouble| at(&node.server.address, &trouble))
        });
        futures::future::try_join_all(waits).await.map(|_| ())
    }

    /// What keeps the servers from being used as they should; nothing where all is well.
    pub async fn check(&self) -> Vec<Finding> {
        self.watch();
        check::check(&self.map, Instant::now() + MOST_WAIT - GIVING_UP).await
    }

    /// How many primaries are known.
    pub fn servers(&self) -> usize {
        self.map.servers()
    }

    /// Addresses of servers that are known to keep nothing on disk, where no answer waits for one.
    pub async fn keeping_nothing(&self) -> Vec<String> {
        self.watch();
        kept::keeping_nothing(&self.map, Instant::now() + MOST_WAIT - GIVING_UP).await
    }

    /// Calls `tell` for every wake that is published, and once after every (re)connection, when some
    /// may have been missed. To be called within the runtime.
    pub fn wakes(&self, tell: Arc<dyn Fn(Wake) + Send + Sync>) {
        self.watch();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.running.spawn(wakes::listen(self.map.clone(), tell));
    }

    /// Starts following the primaries, where they can change.
    fn watch(&self) {
        if matches!(self.map.settings.target.topology, Topology::Single(_)) {
            return;
        }
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if !tasks.watching {
            tasks.watching = true;
            tasks.running.spawn(self.map.clone().watch());
        }
    }
}

fn at(address: &Address, trouble: &Trouble) -> StoreError {
    StoreError::Unavailable(format!("Redis at {address}: {trouble}"))
}
