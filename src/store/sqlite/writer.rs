//! The thread that owns the core. What has queued up while one transaction was being made durable
//! goes into the next together: one fsync for all, and nobody is answered before it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use belfry_domain::UnixMs;
use tokio::sync::{mpsc, oneshot};

use super::core::{Core, Result};
use super::due::DueSignal;
use super::file::DatabaseFile;
use crate::ports::StoreError;
use crate::ports::clock::Clock;

/// Most operations in one transaction.
const MOST_TOGETHER: usize = 256;

/// Tells the caller how it went, once that is known: `Err` where the transaction was not kept.
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

/// A verb and where its result goes.
pub trait Operation: Send {
    /// Runs it. The answer is held back until the transaction is durable.
    fn run(self: Box<Self>, core: &mut Core, now: UnixMs) -> Answer;
    fn refuse(self: Box<Self>, error: StoreError);
}

pub struct Write<T, F> {
    pub verb: F,
    pub reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Operation for Write<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut Core, UnixMs) -> Result<T> + Send + 'static,
{
    fn run(self: Box<Self>, core: &mut Core, now: UnixMs) -> Answer {
        let Self { verb, reply } = *self;
        let done = core.operation(|core| verb(core, now));
        Box::new(move |kept| answer(reply, done.and_then(|done| kept.map(|()| done))))
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        answer(self.reply, Err(error));
    }
}

/// A caller that is gone is no loss: what was written stands, and its repeat finds it.
pub fn answer<T>(reply: oneshot::Sender<T>, with: T) {
    drop(reply.send(with));
}

pub enum Command {
    Run(Box<dyn Operation>),
    /// Finish what is queued, move the log into the database, end.
    Close,
}

pub struct Writer {
    core: Core,
    file: Arc<DatabaseFile>,
    clock: Arc<dyn Clock>,
    due: Arc<DueSignal>,
    /// The connection failed: it is made anew before the next transaction.
    broken: bool,
}

impl Writer {
    pub fn new(core: Core, file: Arc<DatabaseFile>, clock: Arc<dyn Clock>, due: Arc<DueSignal>) -> Self {
        Self { core, file, clock, due, broken: false }
    }

    /// Until it is closed, or nobody is left to send anything.
    pub fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(first) = commands.blocking_recv() {
            let mut operations = Vec::new();
            let mut next = Some(first);
            while let Some(command) = next {
                match command {
                    Command::Run(operation) => operations.push(operation),
                    // Nothing new comes in; what is queued already is still done.
                    Command::Close => commands.close(),
                }
                next = if operations.len() < MOST_TOGETHER { commands.try_recv().ok() } else { None };
            }
            if !operations.is_empty() {
                self.together(operations);
            }
        }
        self.core.checkpoint();
    }

    fn together(&mut self, operations: Vec<Box<dyn Operation>>) {
        if let Err(error) = self.connect().and_then(|()| self.core.begin()) {
            self.broken = true;
            operations.into_iter().for_each(|operation| operation.refuse(error.clone()));
            return;
        }
        let (core, clock) = (&mut self.core, &self.clock);
        // A panic gives up all of the transaction: what the core knows of it is not to be trusted.
        // The callers find their replies dropped.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            operations.into_iter().map(|operation| operation.run(core, clock.now())).collect::<Vec<Answer>>()
        }));
        let Ok(answers) = ran else {
            self.core.rollback();
            return;
        };
        let given_up = self.core.given_up();
        let kept = self.core.commit();
        self.broken = kept.is_err() && !given_up;
        if matches!(kept, Ok(true)) {
            self.due.raise();
        }
        let kept = kept.map(|_| ());
        answers.into_iter().for_each(|answer| answer(kept.clone()));
        self.core.give_back_pages();
    }

    fn connect(&mut self) -> Result<()> {
        if self.broken {
            let conn = self.file.reopen()?;
            self.core.replace_connection(conn)?;
            self.broken = false;
        }
        Ok(())
    }
}
