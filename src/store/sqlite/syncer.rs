//! The thread that brings the log to the disk. One sync covers all that was committed before it
//! began; meanwhile the writer goes on.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::writer::{Together, refuse};
use crate::ports::StoreError;

/// Transactions that may wait for a sync; the writer waits then.
const QUEUE: usize = 16;

/// What has to be on the disk.
pub trait Log: Send {
    /// # Errors
    /// What the operating system says; nothing that was written since the sync before is certain then.
    fn sync(&self) -> io::Result<()>;
}

impl Log for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

enum Work {
    Committed(Together),
    LookAt(Box<dyn Log>),
}

/// Called after each sync.
pub type Woken = Box<dyn Fn() + Send>;

/// The writer's end.
pub struct Syncing {
    queue: SyncSender<Work>,
    /// Transactions that are not on the disk yet.
    pending: Arc<AtomicUsize>,
    failed: Arc<AtomicBool>,
}

impl Syncing {
    /// Hands over a committed transaction; its operations are answered once it is on the disk.
    pub fn committed(&self, operations: Together) {
        self.pending.fetch_add(1, Ordering::SeqCst);
        self.send(Work::Committed(operations));
    }

    /// A sync is under way or about to begin: what is committed now waits for the next one anyway.
    pub fn busy(&self) -> bool {
        self.pending.load(Ordering::SeqCst) > 0
    }

    /// The log of a new connection, to be trusted from here on.
    pub fn look_at(&self, log: Box<dyn Log>) {
        self.failed.store(false, Ordering::SeqCst);
        self.send(Work::LookAt(log));
    }

    /// A sync failed, and no log has been given since.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    fn send(&self, work: Work) {
        // A syncer that is gone drops what it is given, and the callers find their replies dropped.
        drop(self.queue.send(work));
    }
}

pub struct Syncer {
    log: Box<dyn Log>,
    queue: Receiver<Work>,
    woken: Woken,
    pending: Arc<AtomicUsize>,
    failed: Arc<AtomicBool>,
    /// Not after a failed sync: the next may succeed without what the failed one has lost.
    trusted: bool,
}

impl Syncer {
    pub fn new(log: Box<dyn Log>, woken: Woken) -> (Self, Syncing) {
        let (sender, queue) = sync_channel(QUEUE);
        let (pending, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let syncing = Syncing { queue: sender, pending: pending.clone(), failed: failed.clone() };
        (Self { log, queue, woken, pending, failed, trusted: true }, syncing)
    }

    /// Until the writer has ended.
    pub fn run(mut self) {
        while let Ok(first) = self.queue.recv() {
            let (mut waiting, mut transactions) = (Together::new(), 0);
            let mut next = Some(first);
            while let Some(work) = next {
                match work {
                    Work::Committed(operations) => {
                        waiting.extend(operations);
                        transactions += 1;
                    }
                    Work::LookAt(log) => {
                        self.sync(std::mem::take(&mut waiting));
                        self.log = log;
                        self.trusted = true;
                    }
                }
                next = self.queue.try_recv().ok();
            }
            self.sync(waiting);
            self.pending.fetch_sub(transactions, Ordering::SeqCst);
            (self.woken)();
        }
    }

    fn sync(&mut self, waiting: Together) {
        if self.trusted && self.log.sync().is_err() {
            self.trusted = false;
            self.failed.store(true, Ordering::SeqCst);
        }
        if self.trusted {
            waiting.into_iter().for_each(|operation| operation.finish(Ok(())));
        } else {
            refuse(waiting, &StoreError::Unavailable("the disk did not take it".into()));
        }
    }
}
