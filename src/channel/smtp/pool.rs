//! Open connections between messages. A connection is lent to one call, which owns it: dropped
//! half-way, it is closed, never given back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::Connection;
use super::settings::Settings;

pub(super) struct Pool {
    permits: Semaphore,
    shelf: Arc<Shelf>,
}

struct Shelf {
    settings: Arc<Settings>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    /// Whether the sweeper is at work.
    swept: bool,
    /// Ends with the pool.
    sweeper: JoinSet<()>,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing that holds the lock can panic half-way through a change.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what may not be used any more; says whether something is left.
    fn take_spent(&self) -> (Vec<Connection>, bool) {
        let mut idle = self.lock();
        let all = std::mem::take(&mut idle.connections);
        let (spent, kept) = all.into_iter().partition(|one| one.is_spent(&self.settings.reuse));
        idle.connections = kept;
        idle.swept = !idle.connections.is_empty();
        (spent, idle.swept)
    }
}

impl Pool {
    pub fn new(settings: Arc<Settings>) -> Self {
        let permits = Semaphore::new(settings.connections);
        Self { permits, shelf: Arc::new(Shelf { settings, idle: Mutex::default() }) }
    }

    /// The right to one connection; `None` where none came free within `limit`.
    pub async fn permit(&self, limit: Duration) -> Option<SemaphorePermit<'_>> {
        timeout(limit, self.permits.acquire()).await.ok()?.ok()
    }

    /// The connection used last that is still good. The others keep ageing towards their limit.
    pub async fn take(&self) -> Option<Connection> {
        loop {
            let mut next = self.shelf.lock().connections.pop()?;
            if next.has_news() {
                // Closed, or a 421 is waiting: it costs nobody anything to leave it.
                continue;
            }
            if next.is_spent(&self.shelf.settings.reuse) {
                next.bye().await;
                continue;
            }
            return Some(next);
        }
    }

    /// Keeps `connection` for the next call, if a whole exchange is behind it.
    pub async fn give_back(&self, connection: Connection) {
        if !connection.is_reusable() {
            return;
        }
        if connection.is_spent(&self.shelf.settings.reuse) {
            connection.bye().await;
            return;
        }
        let mut idle = self.shelf.lock();
        idle.connections.push(connection);
        if !std::mem::replace(&mut idle.swept, true) {
            while idle.sweeper.try_join_next().is_some() {}
            idle.sweeper.spawn(sweep(Arc::downgrade(&self.shelf), self.shelf.settings.reuse.idle.0));
        }
    }
}

/// Closes what nobody uses. At work while something is idle.
async fn sweep(shelf: Weak<Shelf>, every: Duration) {
    loop {
        sleep(every).await;
        let Some(shelf) = shelf.upgrade() else { return };
        let (spent, more) = shelf.take_spent();
        drop(shelf);
        for one in spent {
            one.bye().await;
        }
        if !more {
            return;
        }
    }
}
