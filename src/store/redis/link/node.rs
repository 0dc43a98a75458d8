//! One server: a connection for calls that wait for durability and one for all others, each made
//! anew when it was closed or gave no answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::{Instant, timeout_at};

use super::batches::Batches;
use super::dial::{Connection, Dialer, checked};
use super::errors::Trouble;
use super::settings::{Address, Durability};
use super::{Call, Need, OTHER_SERVER};

/// Connecting, login and role included: leaves a call the time to run.
const CONNECT: Duration = Duration::from_millis(800);
/// How long what a server is set to may have been otherwise unnoticed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How this server makes durable what it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It answers no earlier.
    ByItself,
    /// `WAIT` for so many replicas.
    Replicas(u8),
    /// `WAITAOF` for its own disk.
    Disk,
}

/// What all connections to one server share.
pub struct Server {
    pub address: Address,
    pub dialer: Arc<Dialer>,
    pub durability: Durability,
    /// Whether it must say itself that it is a primary: a demoted one keeps its sockets open.
    pub must_lead: bool,
    /// Before the keys of our own.
    pub prefix: String,
    /// Raised where this server turns out to have been started anew.
    pub generation: Arc<AtomicU64>,
    /// The run that was connected to last.
    pub run: Mutex<String>,
}

#[derive(Clone)]
pub struct Open {
    pub connection: Arc<Connection>,
    pub way: Way,
}

/// A place for one connection.
#[derive(Default)]
pub struct Lane {
    open: Mutex<Option<Open>>,
    dialing: tokio::sync::Mutex<()>,
}

pub struct Node {
    pub server: Arc<Server>,
    plain: Lane,
    durable: Lane,
    batches: Batches,
    looked: Mutex<Option<Instant>>,
}

impl Lane {
    /// The open connection, or a new one.
    ///
    /// # Errors
    /// It could not be made.
    pub async fn open(&self, server: &Server, until: Instant) -> Result<Open, Trouble> {
        if let Some(open) = self.living() {
            return Ok(open);
        }
        let _one = timeout_at(until, self.dialing.lock()).await.map_err(|_| Trouble::Late)?;
        if let Some(open) = self.living() {
            return Ok(open);
        }
        let open = server.open(until.min(Instant::now() + CONNECT)).await?;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(open.clone());
        Ok(open)
    }

    fn living(&self) -> Option<Open> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|open| open.connection.is_closed()) {
            *open = None;
        }
        open.clone()
    }

    /// Uses `connection` no more: whatever else waits on it is cut.
    pub fn leave(&self, connection: &Arc<Connection>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.connection, connection)) {
            *open = None;
        }
    }

    /// Uses whatever is open no more.
    pub fn leave_any(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// All in one write. A connection that gave no answer is left: a frozen server must not pin
    /// whoever comes next.
    ///
    /// # Errors
    /// [`Trouble::Cut`], [`Trouble::Late`] and whatever connecting brings; errors of single commands
    /// stand among the answers.
    pub async fn ask_all(&self, server: &Server, commands: Vec<Cmd>, until: Instant) -> Result<Vec<Value>, Trouble> {
        let open = self.open(server, until).await?;
        let answers = open.connection.ask_all(commands, until).await;
        if answers.is_err() {
            self.leave(&open.connection);
        }
        answers
    }
}

impl Server {
    async fn open(&self, until: Instant) -> Result<Open, Trouble> {
        let connection = self.dialer.connect(&self.address, until).await?;
        if self.must_lead {
            confirm(&connection, until).await?;
        }
        self.note_run(&connection, until).await?;
        let way = match self.durability {
            Durability::Ack => Way::ByItself,
            Durability::Replicas(number) => Way::Replicas(number),
            Durability::Fsync => disk_way(&connection, until).await?,
        };
        Ok(Open { connection: Arc::new(connection), way })
    }
}

impl Server {
    /// A server that was started anew may have come back with less, and have been written to by others since:
    /// what is asked of it on the old understanding is refused once.
    async fn note_run(&self, connection: &Connection, until: Instant) -> Result<(), Trouble> {
        let answer = match connection.ask(redis::cmd("INFO").arg("server"), until).await {
            Ok(answer) => redis::from_redis_value::<String>(answer).unwrap_or_default(),
            Err(lost @ (Trouble::Cut | Trouble::Late)) => return Err(lost),
            // Whoever may not ask finds out by the sequences alone.
            Err(_) => return Ok(()),
        };
        let Some(run) = answer.lines().find_map(|line| line.trim_end().strip_prefix("run_id:")) else { return Ok(()) };
        let before = std::mem::replace(&mut *self.run.lock().unwrap_or_else(PoisonError::into_inner), run.to_owned());
        if before.is_empty() || before == run {
            return Ok(());
        }
        self.generation.fetch_add(1, Ordering::SeqCst);
        Err(Trouble::Ours(OTHER_SERVER.into()))
    }
}

/// # Errors
/// [`Trouble::NotPrimary`], or the server's.
async fn confirm(connection: &Connection, until: Instant) -> Result<(), Trouble> {
    match connection.ask(&redis::cmd("ROLE"), until).await? {
        Value::Array(items) if items.first() == Some(&Value::BulkString(b"master".to_vec())) => Ok(()),
        _ => Err(Trouble::NotPrimary),
    }
}

/// With `appendfsync always` an answer follows the fsync of what it answers (Redis flushes the file
/// before it writes to its clients); later servers can be waited for.
async fn disk_way(connection: &Connection, until: Instant) -> Result<Way, Trouble> {
    let setting = async |name: &str| {
        let answer = connection.ask(redis::cmd("CONFIG").arg("GET").arg(name), until).await;
        match answer {
            Ok(value) => {
                Ok(redis::from_redis_value::<Vec<String>>(value).ok().and_then(|pair| pair.into_iter().nth(1)))
            }
            Err(lost @ (Trouble::Cut | Trouble::Late)) => Err(lost),
            // Managed servers forbid CONFIG.
            Err(_) => Ok(None),
        }
    };
    let known = connection.ask(redis::cmd("COMMAND").arg("INFO").arg("WAITAOF"), until).await?;
    let waits = matches!(known, Value::Array(ref items) if items.iter().any(|item| matches!(item, Value::Array(_))));
    match (setting("appendonly").await?.as_deref(), setting("appendfsync").await?.as_deref()) {
        (Some("yes"), Some("always")) => Ok(Way::ByItself),
        (Some("yes") | None, _) if waits => Ok(Way::Disk),
        (None, _) | (_, None) => Err(Trouble::Unfit(
            "store.redis.durability = \"fsync\" cannot be shown to hold: the server tells no CONFIG and has no WAITAOF",
        )),
        (Some("yes"), _) => Err(Trouble::Unfit(
            "store.redis.durability = \"fsync\" needs appendfsync always on the Redis server, or Redis 7.2 or later",
        )),
        _ => Err(Trouble::Unfit("store.redis.durability = \"fsync\" needs appendonly yes on the Redis server")),
    }
}

impl Node {
    #[must_use]
    pub fn new(server: Server) -> Self {
        let server = Arc::new(server);
        let batches = Batches::new(server.clone());
        Self { server, plain: Lane::default(), durable: Lane::default(), batches, looked: Mutex::default() }
    }

    /// # Errors
    /// Whatever went wrong; see [`Trouble`] for what may have run.
    pub async fn run(&self, call: &Call<'_>, until: Instant) -> Result<Value, Trouble> {
        if let Some(generation) = call.generation {
            // Whoever has just connected may have found it started anew, after this call was let through.
            self.plain.open(&self.server, until).await?;
            if generation != self.server.generation.load(Ordering::SeqCst) {
                return Err(Trouble::Ours(OTHER_SERVER.into()));
            }
        }
        let lane = match call.need {
            Need::Done => &self.plain,
            Need::Durable => match self.way(until).await? {
                Way::ByItself => &self.durable,
                way @ (Way::Replicas(_) | Way::Disk) => return self.run_in_batch(call, way, until).await,
            },
        };
        match self.ask_on(lane, call.by_hash(), until).await {
            Err(Trouble::NoScript) => self.ask_on(lane, call.by_text(), until).await,
            other => other,
        }
    }

    async fn run_in_batch(&self, call: &Call<'_>, way: Way, until: Instant) -> Result<Value, Trouble> {
        let tag = super::slot::tag_of(call.keys.first().map_or(&[][..], Vec::as_slice));
        match self.batches.run(Some(call.by_hash()), tag, way, until).await {
            // Of a batch, only the one that the server did not know.
            Err(Trouble::NoScript) => self.batches.run(Some(call.by_text()), tag, way, until).await,
            other => other,
        }
    }

    /// Returns once everything that this server had done when it was asked is durable. `tag`: a hash
    /// tag that lies here.
    ///
    /// # Errors
    /// [`Trouble::NotDurable`], or whatever keeps it from being known.
    pub async fn settled(&self, tag: &[u8], until: Instant) -> Result<(), Trouble> {
        match self.way(until).await? {
            Way::ByItself => Ok(()),
            way @ (Way::Replicas(_) | Way::Disk) => self.batches.run(None, tag, way, until).await.map(|_| ()),
        }
    }

    /// How it makes durable what it has done.
    ///
    /// # Errors
    /// [`Trouble::Unfit`] where it cannot, or it could not be asked.
    pub async fn way(&self, until: Instant) -> Result<Way, Trouble> {
        match self.server.durability {
            Durability::Replicas(number) => Ok(Way::Replicas(number)),
            Durability::Ack => Ok(Way::ByItself),
            Durability::Fsync => {
                let open = self.durable.open(&self.server, until).await?;
                if open.way != Way::ByItself || !self.is_to_look() {
                    return Ok(open.way);
                }
                // What the server is set to may change under an open connection, and nothing would say so.
                let way = disk_way(&open.connection, until).await;
                if way != Ok(open.way) {
                    self.durable.leave(&open.connection);
                }
                way
            }
        }
    }

    /// Whether the settings of a server that is trusted to be durable by itself are to be read again.
    fn is_to_look(&self) -> bool {
        let now = Instant::now();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = looked.is_none_or(|at| now.saturating_duration_since(at) >= LOOK_AGAIN);
        if due {
            *looked = Some(now);
        }
        due
    }

    async fn ask_on(&self, lane: &Lane, command: Cmd, until: Instant) -> Result<Value, Trouble> {
        let mut answers = lane.ask_all(&self.server, vec![command], until).await?;
        answers.pop().map_or(Err(Trouble::Cut), checked)
    }

    /// One command beside the calls.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub async fn ask(&self, command: Cmd, until: Instant) -> Result<Value, Trouble> {
        self.ask_on(&self.plain, command, until).await
    }

    /// Asks whether it still leads, and leaves its connections where it does not or says nothing.
    ///
    /// # Errors
    /// [`Trouble::NotPrimary`], or it said nothing.
    pub async fn still_leads(&self, until: Instant) -> Result<(), Trouble> {
        let open = self.plain.open(&self.server, until).await?;
        let role = confirm(&open.connection, until).await;
        if role.is_err() {
            self.leave();
        }
        role
    }

    /// Closes its connections; what waits on them is cut.
    pub fn leave(&self) {
        self.plain.leave_any();
        self.durable.leave_any();
        self.batches.leave();
    }

    /// Makes the next durable call look again how this server makes things durable.
    pub fn look_again(&self) {
        self.durable.leave_any();
    }
}
