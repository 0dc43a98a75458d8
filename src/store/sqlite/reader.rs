//! Threads with connections that only read: a search over many records delays no accept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use belfry_domain::UnixMs;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::core::Result;
use super::file::DatabaseFile;
use super::read::Reads;
use super::writer::answer;
use crate::ports::StoreError;
use crate::ports::clock::Clock;

/// A verb that only reads, and where its result goes.
pub trait Look: Send {
    fn run(self: Box<Self>, reads: Reads<'_>, now: UnixMs);
    fn refuse(self: Box<Self>, error: StoreError);
}

pub struct Read<T, F> {
    pub verb: F,
    pub reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Look for Read<T, F>
where
    T: Send + 'static,
    F: FnOnce(Reads<'_>, UnixMs) -> Result<T> + Send + 'static,
{
    fn run(self: Box<Self>, reads: Reads<'_>, now: UnixMs) {
        answer(self.reply, (self.verb)(reads, now));
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        answer(self.reply, Err(error));
    }
}

pub enum Command {
    Run(Box<dyn Look>),
    Close,
}

/// One of the threads that share a queue.
pub struct Reader {
    pub queue: Arc<Mutex<mpsc::Receiver<Command>>>,
    pub file: Arc<DatabaseFile>,
    pub clock: Arc<dyn Clock>,
}

impl Reader {
    /// Until the queue is closed, or nobody is left to send anything.
    pub fn run(self) {
        // Made at the first need, and again after a failure.
        let mut connection: Option<Connection> = None;
        while let Some(look) = self.next() {
            let conn = match connection.take().map_or_else(|| self.file.reader(), Ok) {
                Ok(conn) => conn,
                Err(error) => {
                    look.refuse(error.into());
                    continue;
                }
            };
            let now = self.clock.now();
            // One transaction: all statements of one verb see one state.
            if let Err(error) = conn.execute_batch("BEGIN") {
                look.refuse(error.into());
                continue;
            }
            let ran = catch_unwind(AssertUnwindSafe(|| look.run(Reads::new(&conn), now)));
            let ended = conn.execute_batch("COMMIT");
            if ran.is_ok() && ended.is_ok() {
                connection = Some(conn);
            }
        }
    }

    fn next(&self) -> Option<Box<dyn Look>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match queue.blocking_recv()? {
                Command::Run(look) => return Some(look),
                Command::Close => queue.close(),
            }
        }
    }
}
