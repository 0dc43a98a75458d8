//! A node's life as its own tasks see it: they go on, stand still, or are no more. A killed node's
//! tasks are dropped; until that is done none of them gets any further, as none would after `kill -9`.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// Where in a node's work something can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The accept is durable, its answer not yet given.
    Committed,
    /// The claim is durable, nothing came of it yet.
    Claimed,
    /// At most once: right before *spent* is recorded.
    BeforeSpend,
    /// In the call, before the provider has anything.
    BeforeCall,
    /// In the call, the provider has the message.
    Taken,
    /// The outcome is known, and not yet recorded.
    BeforeSettle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `kill -9`.
    Killed,
    /// SIGSTOP, a suspended machine.
    Asleep,
}

pub struct Life {
    armed: Mutex<Option<(Point, Stop)>>,
    stopped: watch::Sender<Option<Stop>>,
}

impl Life {
    pub fn new(armed: Option<(Point, Stop)>) -> Self {
        Self { armed: Mutex::new(armed), stopped: watch::Sender::new(None) }
    }

    /// Something got here: the first time is where the fault strikes.
    pub async fn reach(&self, point: Point) {
        {
            let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, stop)) = armed.take_if(|(at, _)| *at == point) {
                self.stopped.send_replace(Some(stop));
            }
        }
        self.go_on().await;
    }

    /// Returns at once while the node lives, when it wakes where it sleeps, never where it is dead.
    pub async fn go_on(&self) {
        let mut stopped = self.stopped.subscribe();
        if stopped.wait_for(Option::is_none).await.is_err() {
            // This very life is gone with all its tasks.
            std::future::pending::<()>().await;
        }
    }

    /// Returns once the fault has struck.
    pub async fn has_stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        if stopped.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn kill(&self) {
        self.stopped.send_replace(Some(Stop::Killed));
    }

    pub fn wake(&self) {
        self.stopped.send_if_modified(|stopped| stopped.take_if(|stop| *stop == Stop::Asleep).is_some());
    }
}
