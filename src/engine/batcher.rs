//! One round trip for many writers: while a batch is under way the next one gathers, and where
//! nothing in it is urgent it gathers a moment longer. A lone code is recorded at once.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};

use crate::ports::StoreError;
use crate::ports::clock::{Boot, Clock};
use crate::ports::deliveries::MOST_ITEMS;

/// Bound of what may gather; writers beyond it wait their turn.
const QUEUE: usize = 4 * MOST_ITEMS;
/// Between two tries at a store that is away.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// How long a batch without anything urgent gathers at the most. Every transaction writes the same
/// few pages again, however little is new in them.
pub(super) const LINGER: Duration = Duration::from_millis(2);

struct Asked<T, R> {
    item: T,
    urgent: bool,
    answer: oneshot::Sender<R>,
}

/// A writer's end.
pub(super) struct Batcher<T, R> {
    queue: mpsc::Sender<Asked<T, R>>,
}

type Write<T, R> = Box<dyn Fn(Vec<T>) -> BoxFuture<'static, Result<Vec<R>, StoreError>> + Send + Sync>;

/// The loop behind it. Run again after a panic: what had gathered is still there.
pub(super) struct Batches<T, R> {
    asked: Mutex<mpsc::Receiver<Asked<T, R>>>,
    /// What could not be asked for, the longest first. As many as there are writers.
    away: std::sync::Mutex<VecDeque<Asked<T, R>>>,
    some_away: Notify,
    write: Write<T, R>,
    failed: Box<dyn Fn(StoreError) + Send + Sync>,
    clock: Arc<dyn Clock>,
}

impl<T, R> Batcher<T, R>
where
    T: Clone + Send + 'static,
    R: Send + 'static,
{
    /// `write` is called with up to [`MOST_ITEMS`] items and answers each, in order. It is tried
    /// again until the store takes it: an outcome that is known must not be forgotten. `failed` is
    /// told each time it is not taken.
    pub(super) fn new<W, F>(
        clock: Arc<dyn Clock>,
        write: W,
        failed: impl Fn(StoreError) + Send + Sync + 'static,
    ) -> (Self, Arc<Batches<T, R>>)
    where
        W: Fn(Vec<T>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<R>, StoreError>> + Send + 'static,
    {
        let (queue, asked) = mpsc::channel(QUEUE);
        let write: Write<T, R> = Box::new(move |batch| Box::pin(write(batch)));
        let batches = Batches {
            asked: Mutex::new(asked),
            away: std::sync::Mutex::default(),
            some_away: Notify::new(),
            write,
            failed: Box::new(failed),
            clock,
        };
        (Self { queue }, Arc::new(batches))
    }

    /// The answer, or `None` once the batcher is gone (the node is being torn down) or has lost it
    /// in a panic. `urgent`: nothing is waited for.
    pub(super) async fn write(&self, item: T, urgent: bool) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Asked { item, urgent, answer }).await.ok()?;
        answered.await.ok()
    }

    /// For what nobody waits for. Forgotten where too much waits already.
    pub(super) fn post(&self, item: T) {
        let (answer, _) = oneshot::channel();
        drop(self.queue.try_send(Asked { item, urgent: false, answer }));
    }
}

/// What a write of several may say of one.
pub(super) trait Answer {
    /// Nothing is known: to be asked again.
    fn is_away(&self) -> bool;
}

impl<T: Clone, R: Answer> Batches<T, R> {
    pub(super) async fn run(&self) {
        tokio::select! {
            biased;
            () = self.write_new() => {}
            () = self.write_again() => {}
        }
    }

    async fn write_new(&self) {
        let mut asked = self.asked.lock().await;
        let mut batch = Vec::with_capacity(MOST_ITEMS);
        while asked.recv_many(&mut batch, MOST_ITEMS).await > 0 {
            self.gather(&mut asked, &mut batch).await;
            self.written(std::mem::take(&mut batch)).await;
        }
    }

    /// Asks again, in calls of its own, for what was away: what is elsewhere in the store must not wait for it.
    async fn write_again(&self) {
        let mut still_away = true;
        loop {
            if self.waiting().is_empty() {
                self.some_away.notified().await;
                still_away = true;
                continue;
            }
            // Once it is back, all that has waited goes in one batch after the other.
            if still_away {
                self.clock.sleep_until(self.clock.boot() + TRY_AGAIN).await;
            }
            let batch = {
                let mut away = self.waiting();
                let count = away.len().min(MOST_ITEMS);
                away.drain(..count).collect()
            };
            still_away = self.written(batch).await;
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Asked<T, R>>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes and answers; what is away is kept, behind what was away before. Whether anything was.
    async fn written(&self, batch: Vec<Asked<T, R>>) -> bool {
        let items: Vec<T> = batch.iter().map(|one| one.item.clone()).collect();
        let partly = || StoreError::Unavailable("a part of it is away".into());
        let (answers, why) = match (self.write)(items).await {
            Ok(answers) => (answers, partly()),
            Err(why) => (Vec::new(), why),
        };
        let (mut answers, mut away) = (answers.into_iter(), Vec::new());
        for one in batch {
            match answers.next().filter(|answer| !answer.is_away()) {
                // A writer that is gone was broken off; its write stands all the same.
                Some(answer) => drop(one.answer.send(answer)),
                None => away.push(one),
            }
        }
        let some = !away.is_empty();
        if some {
            (self.failed)(why);
            self.waiting().extend(away);
            self.some_away.notify_one();
        }
        some
    }

    async fn gather(&self, asked: &mut mpsc::Receiver<Asked<T, R>>, batch: &mut Vec<Asked<T, R>>) {
        let until: Boot = self.clock.boot() + LINGER;
        while batch.len() < MOST_ITEMS && batch.iter().all(|one| !one.urgent) {
            let room = MOST_ITEMS - batch.len();
            tokio::select! {
                biased;
                more = asked.recv_many(batch, room) => if more == 0 { return },
                () = self.clock.sleep_until(until) => return,
            }
        }
    }
}
