//! The store in a file: one thread that writes, one that syncs, a few that read, bounded queues
//! before them.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belfry_domain::UnixMs;
use tokio::sync::{mpsc, oneshot};

use super::core::{Core, Result};
use super::file::DatabaseFile;
use super::read::Reads;
use super::reader::{self, Read, Reader};
use super::schema::OpenError;
use super::store::{Shell, Store};
use super::syncer::Syncer;
use super::writer::{self, Answered, Write, Writer};
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::store::due::DueSignal;

/// Operations that may wait for the writer, and for the readers.
const QUEUE: usize = 1024;

const READERS: usize = 2;

/// Longest wait for an answer. An operation that is given up on may still be done: every verb can
/// be called again.
const PATIENCE: Duration = Duration::from_secs(2);

pub type SqliteStore = Store<Threads>;

pub struct Threads {
    writes: mpsc::Sender<writer::Command>,
    reads: mpsc::Sender<reader::Command>,
    due: Arc<DueSignal>,
    clock: Arc<dyn Clock>,
    /// Closed once every thread has ended.
    ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl SqliteStore {
    /// Opens or creates the database at `path` and takes its lock. Whatever an earlier process had
    /// claimed lapses at once: the lock proves that it is gone.
    ///
    /// Waits for answers on tokio's clock; of no use under a paused one.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong with the file.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Arc<Self>, OpenError> {
        let io = |why: String| OpenError::Io { path: path.display().to_string(), why };
        let file = Arc::new(DatabaseFile::lock(path)?);
        let core = Core::new(file.writer()?, clock.now()).map_err(|error| io(error.to_string()))?;
        let due = Arc::new(DueSignal::default());
        let (writes, commands) = mpsc::channel(QUEUE);
        let (reads, looks) = mpsc::channel(QUEUE);
        let (alive, ended) = mpsc::channel(1);
        let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let alive = alive.clone();
            let body = move || {
                body();
                drop(alive);
            };
            let started = std::thread::Builder::new().name(name.into()).spawn(body);
            started.map(drop).map_err(|error| io(error.to_string()))
        };
        let log = file.log().map_err(|error| io(error.to_string()))?;
        // Weak: it must not keep the writer waiting for commands when nobody is left to send any.
        let wake = writes.downgrade();
        let woken = move || {
            // Where the queue is full the writer has enough to look at.
            drop(wake.upgrade().map(|writes| writes.try_send(writer::Command::Synced)));
        };
        let (syncer, syncing) = Syncer::new(Box::new(log), Box::new(woken));
        start("store-syncer", Box::new(move || syncer.run()))?;
        let writer = Writer::new(core, Arc::clone(&file), Arc::clone(&clock), Arc::clone(&due), syncing);
        start("store-writer", Box::new(move || writer.run(commands)))?;
        let queue = Arc::new(Mutex::new(looks));
        for _ in 0..READERS {
            let (queue, file, clock) = (Arc::clone(&queue), Arc::clone(&file), Arc::clone(&clock));
            start("store-reader", Box::new(move || Reader { queue, file, clock }.run()))?;
        }
        Ok(Arc::new(Self::new(Threads { writes, reads, due, clock, ended: tokio::sync::Mutex::new(ended) })))
    }

    /// Finishes what is queued, moves the log into the database and gives up the lock. Whatever is
    /// asked afterwards is [`StoreError::Unavailable`].
    pub async fn close(&self) {
        // Where a thread has ended already there is nobody to tell.
        drop(self.shell.writes.send(writer::Command::Close).await);
        drop(self.shell.reads.send(reader::Command::Close).await);
        while self.shell.ended.lock().await.recv().await.is_some() {}
    }
}

impl Shell for Threads {
    async fn write<T, F>(&self, answered: Answered, verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Core, UnixMs) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.writes.try_send(writer::Command::Run(Box::new(Write::new(answered, verb, reply)))).map_err(refused)?;
        wait(answer).await
    }

    async fn read<T, F>(&self, verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(Reads<'_>, UnixMs) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.reads.try_send(reader::Command::Run(Box::new(Read { verb, reply }))).map_err(refused)?;
        wait(answer).await
    }

    fn due(&self) -> &DueSignal {
        &self.due
    }

    fn now(&self) -> UnixMs {
        self.clock.now()
    }
}

fn refused<T>(error: mpsc::error::TrySendError<T>) -> StoreError {
    StoreError::Unavailable(match error {
        mpsc::error::TrySendError::Full(_) => "too much is waiting for it".into(),
        mpsc::error::TrySendError::Closed(_) => "it is closed".into(),
    })
}

async fn wait<T>(answer: oneshot::Receiver<Result<T>>) -> Result<T> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(StoreError::Unavailable("it gave the operation up".into())),
        Err(_) => Err(StoreError::Unavailable(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}
