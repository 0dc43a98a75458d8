//! The thread that owns the core. What has queued up while one transaction was written goes into the
//! next together. It waits for no disk: answers that must not be given before the log is there are
//! handed to the syncer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use belfry_domain::UnixMs;
use tokio::sync::{mpsc, oneshot};

use super::core::{Core, Result};
use super::file::DatabaseFile;
use super::syncer::Syncing;
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::store::due::DueSignal;

/// Most operations in one transaction.
const MOST_TOGETHER: usize = 256;

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Once a power cut cannot take it back.
    OnDisk,
    /// Once a crash of this process cannot; on the disk a moment later, and before anything that was
    /// written after it. For writes whose loss leaves a claim standing, which then lapses.
    Committed,
}

/// A verb and where its result goes.
pub trait Operation: Send {
    /// Runs it and keeps its result. Run again after the transaction was rolled back.
    ///
    /// # Errors
    /// Its own: nothing of it may be kept then.
    fn run(&mut self, core: &mut Core, now: UnixMs) -> Result<()>;

    /// Runs it so that its failure takes no neighbour with it.
    fn run_guarded(&mut self, core: &mut Core, now: UnixMs);

    fn answered(&self) -> Answered;

    /// Answers: with its result where the transaction was `kept`.
    fn finish(self: Box<Self>, kept: Result<()>);
}

pub struct Write<T, F> {
    verb: F,
    answered: Answered,
    reply: oneshot::Sender<Result<T>>,
    done: Option<Result<T>>,
}

impl<T, F> Write<T, F> {
    pub const fn new(answered: Answered, verb: F, reply: oneshot::Sender<Result<T>>) -> Self {
        Self { verb, answered, reply, done: None }
    }
}

impl<T, F> Operation for Write<T, F>
where
    T: Send + 'static,
    F: Fn(&mut Core, UnixMs) -> Result<T> + Send + 'static,
{
    fn run(&mut self, core: &mut Core, now: UnixMs) -> Result<()> {
        let done = (self.verb)(core, now);
        let failed = done.as_ref().err().cloned();
        self.done = Some(done);
        failed.map_or(Ok(()), Err)
    }

    fn run_guarded(&mut self, core: &mut Core, now: UnixMs) {
        self.done = Some(core.operation(|core| (self.verb)(core, now)));
    }

    fn answered(&self) -> Answered {
        self.answered
    }

    fn finish(self: Box<Self>, kept: Result<()>) {
        let Self { reply, done, .. } = *self;
        let with = match done {
            // Its own failure says more than what became of the transaction.
            Some(Err(own)) => Err(own),
            Some(Ok(done)) => kept.map(|()| done),
            None => Err(kept.err().unwrap_or_else(given_up)),
        };
        answer(reply, with);
    }
}

fn given_up() -> StoreError {
    StoreError::Unavailable("it gave the operation up".into())
}

/// A caller that is gone is no loss: what was written stands, and its repeat finds it.
pub fn answer<T>(reply: oneshot::Sender<T>, with: T) {
    drop(reply.send(with));
}

pub enum Command {
    Run(Box<dyn Operation>),
    /// A sync has ended: nothing to do but to look.
    Synced,
    /// Finish what is queued, move the log into the database, end.
    Close,
}

/// Operations of one transaction, in order.
pub type Together = Vec<Box<dyn Operation>>;

pub struct Writer {
    core: Core,
    file: Arc<DatabaseFile>,
    clock: Arc<dyn Clock>,
    due: Arc<DueSignal>,
    syncing: Syncing,
    /// The connection failed: it is made anew before the next transaction.
    broken: bool,
}

impl Writer {
    pub fn new(
        core: Core,
        file: Arc<DatabaseFile>,
        clock: Arc<dyn Clock>,
        due: Arc<DueSignal>,
        syncing: Syncing,
    ) -> Self {
        Self { core, file, clock, due, syncing, broken: false }
    }

    /// Until it is closed, or nobody is left to send anything.
    pub fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(first) = commands.blocking_recv() {
            let mut operations = Together::new();
            take(first, &mut operations, &mut commands);
            if !operations.is_empty() {
                self.together(operations, &mut commands);
            }
        }
        self.core.checkpoint();
    }

    fn together(&mut self, mut operations: Together, commands: &mut mpsc::Receiver<Command>) {
        if let Err(error) = self.connect().and_then(|()| self.core.begin()) {
            self.broken = true;
            refuse(operations, &error);
            return;
        }
        // A panic gives up all of the transaction: what the core knows of it is not to be trusted.
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_all(&mut operations, commands)));
        if let Err(error) = ran.unwrap_or_else(|_| Err(given_up())) {
            self.core.rollback();
            refuse(operations, &error);
            return;
        }
        let given_up = self.core.given_up();
        let kept = self.core.commit();
        self.broken = kept.is_err() && !given_up;
        match kept {
            Ok(due) => {
                if due {
                    self.due.raise();
                }
                self.answer(operations);
            }
            Err(error) => refuse(operations, &error),
        }
        self.core.give_back_pages();
    }

    /// Runs them, and whatever else comes while a sync is under way: to commit before it has ended
    /// would be to wait for the next one with less. Where one fails, all are run again, each so that it
    /// takes no neighbour with it.
    fn run_all(&mut self, operations: &mut Together, commands: &mut mpsc::Receiver<Command>) -> Result<()> {
        let (mut done, mut guarded) = (0, false);
        loop {
            let now = self.clock.now();
            let core = &mut self.core;
            if !guarded && !operations[done..].iter_mut().all(|operation| operation.run(core, now).is_ok()) {
                core.rollback();
                core.begin()?;
                (done, guarded) = (0, true);
            }
            if guarded {
                operations[done..].iter_mut().for_each(|operation| operation.run_guarded(core, now));
            }
            done = operations.len();
            if done >= MOST_TOGETHER || !self.syncing.busy() {
                return Ok(());
            }
            let Some(next) = commands.blocking_recv() else { return Ok(()) };
            take(next, operations, commands);
        }
    }

    fn answer(&self, operations: Together) {
        let (wait, go): (Together, Together) =
            operations.into_iter().partition(|operation| operation.answered() == Answered::OnDisk);
        for operation in go {
            operation.finish(Ok(()));
        }
        // Those for whom nobody waits go to the disk as well.
        self.syncing.committed(wait);
    }

    fn connect(&mut self) -> Result<()> {
        self.file.in_place()?;
        let unsynced = self.syncing.failed();
        if self.broken || unsynced {
            let conn = self.file.reopen()?;
            self.core.replace_connection(conn)?;
            if unsynced {
                // What the log says is on the disk no sync can tell any more: the file takes its place.
                self.core.checkpoint_whole()?;
            }
            self.syncing.look_at(Box::new(self.file.log()?));
            self.broken = false;
        }
        Ok(())
    }
}

/// Takes `first` and what else has queued up.
fn take(first: Command, operations: &mut Together, commands: &mut mpsc::Receiver<Command>) {
    let mut next = Some(first);
    while let Some(command) = next {
        match command {
            Command::Run(operation) => operations.push(operation),
            Command::Synced => {}
            // Nothing new comes in; what is queued already is still done.
            Command::Close => commands.close(),
        }
        next = if operations.len() < MOST_TOGETHER { commands.try_recv().ok() } else { None };
    }
}

/// None of them happened.
pub fn refuse(operations: Together, error: &StoreError) {
    for operation in operations {
        operation.finish(Err(error.clone()));
    }
}
