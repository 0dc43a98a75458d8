//! Calls that wait for replicas or for the disk. `WAIT` blocks its connection, so that calls which
//! come together share one: a batch of scripts, a write of our own, and the wait behind them.
//!
//! The write is what makes the wait cover whatever the scripts read: newer servers wait for the
//! connection's own last write only, and a script that recognised a repeat wrote nothing.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::dial::checked;
use super::errors::Trouble;
use super::node::{Lane, Server, Way};

/// Callers that may wait to be taken into a batch; the rest wait in their calls.
const WAITING: usize = 1_024;
const MOST_IN_BATCH: usize = 128;
/// A batch's own limit above what it waits for.
const MARGIN: Duration = Duration::from_millis(200);
/// How long our own key outlives its use.
const MARK_KEPT: Duration = Duration::from_secs(60);

/// How a way of waiting is used.
struct Pace {
    /// So many batches may wait at once, each on its own connection.
    connections: usize,
    /// Between the starts of two, while one waits: with one fsync a second, the first callers would
    /// take all connections for the second, and the rest wait two.
    apart: Duration,
    wait: Duration,
}

impl Way {
    const fn pace(self) -> Pace {
        match self {
            Self::ByItself | Self::Replicas(_) => {
                Pace { connections: 2, apart: Duration::ZERO, wait: Duration::from_millis(500) }
            }
            Self::Disk => {
                Pace { connections: 10, apart: Duration::from_millis(120), wait: Duration::from_millis(1_150) }
            }
        }
    }
}

/// One caller.
struct Ask {
    /// `None`: only the wait.
    command: Option<Cmd>,
    tag: Vec<u8>,
    answer: oneshot::Sender<Result<Value, Trouble>>,
}

pub struct Batches {
    server: Arc<Server>,
    lanes: Arc<[Lane]>,
    queue: OnceLock<mpsc::Sender<Ask>>,
    /// Aborted with the node.
    tasks: Mutex<JoinSet<()>>,
}

impl Batches {
    pub fn new(server: Arc<Server>) -> Self {
        let lanes = (0..Way::Disk.pace().connections).map(|_| Lane::default()).collect();
        Self { server, lanes, queue: OnceLock::new(), tasks: Mutex::new(JoinSet::new()) }
    }

    /// Runs `command` with whoever else waits, and returns its answer once it is durable.
    ///
    /// # Errors
    /// The command's own; [`Trouble::NotDurable`] where it ran; else as any call.
    pub async fn run(&self, command: Option<Cmd>, tag: &[u8], way: Way, until: Instant) -> Result<Value, Trouble> {
        let (answer, answered) = oneshot::channel();
        let ask = Ask { command, tag: tag.to_owned(), answer };
        let queue = self.queue.get_or_init(|| self.start(way));
        timeout_at(until, queue.send(ask)).await.map_err(|_| Trouble::Late)?.map_err(|_| Trouble::Cut)?;
        timeout_at(until, answered).await.map_err(|_| Trouble::Late)?.map_err(|_| Trouble::Cut)?
    }

    fn start(&self, way: Way) -> mpsc::Sender<Ask> {
        let (queue, asks) = mpsc::channel(WAITING);
        let dispatch = Dispatch { server: self.server.clone(), lanes: self.lanes.clone(), way };
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(dispatch.run(asks));
        queue
    }

    pub fn leave(&self) {
        self.lanes.iter().for_each(Lane::leave_any);
    }
}

struct Dispatch {
    server: Arc<Server>,
    lanes: Arc<[Lane]>,
    way: Way,
}

impl Dispatch {
    async fn run(self, mut asks: mpsc::Receiver<Ask>) {
        let pace = self.way.pace();
        let mut idle: Vec<usize> = (0..pace.connections).collect();
        let mut waiting: JoinSet<usize> = JoinSet::new();
        let mut next_at = Instant::now();
        loop {
            let mut batch = Vec::new();
            if asks.recv_many(&mut batch, MOST_IN_BATCH).await == 0 {
                return;
            }
            while let Some(done) = waiting.try_join_next() {
                idle.extend(done);
            }
            while !waiting.is_empty() && (idle.is_empty() || Instant::now() < next_at) {
                tokio::select! {
                    biased;
                    done = waiting.join_next() => idle.extend(done.into_iter().flatten()),
                    () = sleep_until(next_at), if !idle.is_empty() => {}
                }
            }
            while batch.len() < MOST_IN_BATCH
                && let Ok(ask) = asks.try_recv()
            {
                batch.push(ask);
            }
            // A batch that panicked took its place along; with none under way all are free.
            let lane = idle.pop().unwrap_or(0);
            next_at = Instant::now() + pace.apart;
            waiting.spawn(run_batch(self.server.clone(), self.lanes.clone(), lane, batch, self.way));
        }
    }
}

/// Runs one batch on one connection and answers everybody in it.
async fn run_batch(server: Arc<Server>, lanes: Arc<[Lane]>, lane: usize, batch: Vec<Ask>, way: Way) -> usize {
    let wait = way.pace().wait;
    let until = Instant::now() + wait + MARGIN;
    let tag = batch.first().map(|ask| ask.tag.clone()).unwrap_or_default();
    let mut batch = batch;
    let with_command: Vec<bool> = batch.iter().map(|ask| ask.command.is_some()).collect();
    let mut commands: Vec<Cmd> = batch.iter_mut().filter_map(|ask| ask.command.take()).collect();
    commands.push(mark(&server.prefix, &tag));
    commands.push(wait_command(way, wait));
    let answers = lanes[lane].ask_all(&server, commands, until).await;
    match answers {
        Err(trouble) => batch.into_iter().for_each(|ask| reply(ask, Err(trouble.clone()))),
        Ok(mut answers) => {
            let durable = durable(answers.pop(), answers.pop(), way);
            let mut own = answers.into_iter();
            for (ask, has) in batch.into_iter().zip(with_command) {
                let answer = if has { own.next().map_or(Err(Trouble::Cut), checked) } else { Ok(Value::Nil) };
                reply(ask, answer.and_then(|value| durable.clone().map(|()| value)));
            }
        }
    }
    lane
}

fn reply(ask: Ask, answer: Result<Value, Trouble>) {
    // A caller that has given up meanwhile needs no answer.
    drop(ask.answer.send(answer));
}

/// A write in the slot of `tag`, so that the wait behind it covers everything before it.
fn mark(prefix: &str, tag: &[u8]) -> Cmd {
    let key = [prefix.as_bytes(), b":{", tag, b"}:waited"].concat();
    let mut command = redis::cmd("SET");
    command.arg(key).arg(1).arg("PX").arg(MARK_KEPT.as_millis() as u64);
    command
}

fn wait_command(way: Way, wait: Duration) -> Cmd {
    let millis = wait.as_millis() as u64;
    match way {
        Way::Disk => redis::cmd("WAITAOF").arg(1).arg(0).arg(millis).to_owned(),
        Way::Replicas(number) => redis::cmd("WAIT").arg(number).arg(millis).to_owned(),
        Way::ByItself => redis::cmd("PING"),
    }
}

/// Whether the wait was long enough.
fn durable(waited: Option<Value>, marked: Option<Value>, way: Way) -> Result<(), Trouble> {
    match checked(marked.unwrap_or(Value::Nil)) {
        Ok(_) => {}
        // Its slot is on its way; whoever's own slot is not has run, and must not be sent after it.
        Err(Trouble::Moved { .. } | Trouble::Ask | Trouble::TryAgain) => return Err(Trouble::NotDurable),
        Err(trouble) => return Err(trouble),
    }
    let waited = checked(waited.unwrap_or(Value::Nil))?;
    let enough = match (way, waited) {
        (Way::ByItself, _) => true,
        (Way::Replicas(wanted), Value::Int(number)) => number >= i64::from(wanted),
        (Way::Disk, Value::Array(numbers)) => matches!(numbers.first(), Some(Value::Int(1..))),
        _ => false,
    };
    if enough { Ok(()) } else { Err(Trouble::NotDurable) }
}
