//! The signal that something may have come due.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Wakes everybody who waits; where nobody does, the next one to wait returns at once.
#[derive(Default)]
pub struct DueSignal {
    notify: Notify,
    waiting: AtomicUsize,
}

/// One caller waiting; counted out when it returns or is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl DueSignal {
    pub fn raise(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.notify.notify_waiters();
        } else {
            self.notify.notify_one();
        }
    }

    pub async fn changed(&self) {
        // In this order: a future that exists is woken by `notify_waiters`, polled or not, so whoever
        // is counted cannot be missed; whoever is not counted yet finds the stored permit.
        let notified = self.notify.notified();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        notified.await;
    }
}
