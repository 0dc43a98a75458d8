//! One round trip for many writers: while a batch is under way the next one gathers. Nothing waits
//! for a batch to fill, so a single code is recorded at once.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::ports::StoreError;
use crate::ports::clock::{BoxFuture, Clock};
use crate::ports::deliveries::MOST_ITEMS;
use std::sync::Arc;

/// Bound of what may gather; writers beyond it wait their turn.
const QUEUE: usize = 4 * MOST_ITEMS;
/// Between two tries at a store that is away.
const TRY_AGAIN: Duration = Duration::from_millis(200);

type Asked<T, R> = (T, oneshot::Sender<R>);

/// A writer's end.
pub(super) struct Batcher<T, R> {
    queue: mpsc::Sender<Asked<T, R>>,
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
        failed: impl Fn() + Send + Sync + 'static,
    ) -> (Self, BoxFuture)
    where
        W: Fn(Vec<T>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<R>, StoreError>> + Send + 'static,
    {
        let (queue, mut asked) = mpsc::channel::<Asked<T, R>>(QUEUE);
        let run = async move {
            let mut batch = Vec::with_capacity(MOST_ITEMS);
            while asked.recv_many(&mut batch, MOST_ITEMS).await > 0 {
                let (items, waiting): (Vec<T>, Vec<oneshot::Sender<R>>) = batch.drain(..).unzip();
                let answers = loop {
                    match write(items.clone()).await {
                        Ok(answers) => break answers,
                        Err(_) => {
                            failed();
                            clock.sleep_until(clock.boot() + TRY_AGAIN).await;
                        }
                    }
                };
                for (answer, to) in answers.into_iter().zip(waiting) {
                    // A writer that is gone was broken off; its write stands all the same.
                    drop(to.send(answer));
                }
            }
        };
        (Self { queue }, Box::pin(run))
    }

    /// The answer, or `None` once the batcher is gone (the node is being torn down).
    pub(super) async fn write(&self, item: T) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        self.queue.send((item, answer)).await.ok()?;
        answered.await.ok()
    }
}
