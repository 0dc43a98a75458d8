//! The connections of one origin, and who gets a stream on which.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::WhyCode;
use bytes::Bytes;
use http::Request;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::connection::{Connection, Driver, Way};
use super::dial::Target;
use super::exchange::{Lost, exchange};
use super::{Answer, Fault, HttpsSettings, Shared};

/// How long no further connection is tried after one failed, while others serve.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub(super) struct Origin {
    target: Target,
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// A stream was given back, or a connection came or went.
    changed: Notify,
}

#[derive(Default)]
struct State {
    connections: Vec<Arc<Connection>>,
    opening: u16,
    /// Whether this origin was seen to speak HTTP/1.1, where each request needs a connection of its own.
    one_at_a_time: bool,
    failures: u64,
    failed: Option<(Fault, Instant)>,
}

impl State {
    /// Those that take new requests, now or once they have room.
    fn usable(&self) -> usize {
        self.connections.iter().filter(|one| !one.is_over() && !one.seen.is_going()).count()
    }

    fn may_open(&self, settings: &HttpsSettings) -> bool {
        let usable = self.usable();
        let rested = self.failed.as_ref().is_none_or(|(_, at)| at.elapsed() >= AFTER_FAILURE);
        usable + usize::from(self.opening) < usize::from(settings.connections.max(1))
            && (self.opening == 0 || self.one_at_a_time)
            && (usable == 0 || rested)
    }
}

/// What to do for one who wants a stream.
enum Next {
    Take(Slot),
    Open(Opening),
    Failed(Fault),
    Wait,
}

/// One stream's worth of a connection; given back when dropped.
pub(super) struct Slot {
    connection: Arc<Connection>,
    origin: Arc<Origin>,
}

/// The right to open one connection; given back when dropped.
struct Opening(Arc<Origin>);

impl Origin {
    pub fn new(target: Target, shared: Arc<Shared>) -> Self {
        Self { target, shared, state: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream on a live connection, preferably not on `avoid`; waits for one until `by`.
    pub async fn stream(self: &Arc<Self>, avoid: Option<&Arc<Connection>>, by: Instant) -> Result<Slot, Fault> {
        let failures = self.lock().failures;
        loop {
            let mut next = self.next(avoid, failures);
            if matches!(next, Next::Wait) {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                // What changed before this wait began is not told of any more.
                next = self.next(avoid, failures);
                if matches!(next, Next::Wait) {
                    let waited = timeout_at(by, changed).await;
                    waited.map_err(|_| Fault::NotTaken { code: WhyCode::TimedOutBefore, detail: None })?;
                }
            }
            match next {
                Next::Take(slot) => {
                    if slot.connection.lives(&self.shared.settings).await {
                        return Ok(slot);
                    }
                    slot.connection.ended().await;
                }
                Next::Open(opening) => {
                    if let Some(slot) = opening.open().await? {
                        return Ok(slot);
                    }
                }
                Next::Failed(fault) => return Err(fault),
                Next::Wait => {}
            }
        }
    }

    fn next(self: &Arc<Self>, avoid: Option<&Arc<Connection>>, failures: u64) -> Next {
        let settings = &self.shared.settings;
        let avoided = |one: &Arc<Connection>| avoid.is_some_and(|avoid| Arc::ptr_eq(one, avoid));
        let mut state = self.lock();
        state.connections.retain(|one| {
            if one.is_stale(settings) {
                one.close();
                return false;
            }
            !one.is_over()
        });
        let free = state.connections.iter().filter(|one| one.has_room(settings));
        let best = free.min_by_key(|one| (avoided(one), one.busy()));
        let may_open = state.may_open(settings);
        match best {
            Some(best) if !avoided(best) || !may_open => {
                best.lend();
                let slot = Slot { connection: best.clone(), origin: self.clone() };
                if best.has_room(settings) {
                    // Room for several came at once (the other side raised its limit), and one was told.
                    self.changed.notify_one();
                }
                Next::Take(slot)
            }
            _ if state.usable() == 0 && state.opening == 0 && state.failures > failures => {
                // Everybody who waited for a connection hears why there is none; nobody tries it all over again.
                state.failed.as_ref().map_or(Next::Wait, |(fault, _)| Next::Failed(fault.clone()))
            }
            _ if may_open => {
                state.opening += 1;
                Next::Open(Opening(self.clone()))
            }
            _ => Next::Wait,
        }
    }

    /// Its first stream, if the other side takes any, is for whoever opened it.
    fn opened(self: &Arc<Self>, connection: Arc<Connection>, driver: Driver) -> Option<Slot> {
        let slot = connection.has_room(&self.shared.settings).then(|| {
            connection.lend();
            Slot { connection: connection.clone(), origin: self.clone() }
        });
        let mut state = self.lock();
        state.one_at_a_time = matches!(connection.way, Way::Http1 { .. });
        state.failed = None;
        state.connections.push(connection.clone());
        drop(state);
        let origin = Arc::downgrade(self);
        let settings = self.shared.settings.clone();
        self.shared.start(async move {
            connection.drive(driver, &settings).await;
            connection.end();
            if let Some(origin) = origin.upgrade() {
                origin.lock().connections.retain(|one| !one.is_over());
                origin.changed.notify_waiters();
            }
        });
        slot
    }

    /// Says whether the others may go on waiting: another connection serves.
    fn failed(&self, fault: &Fault) -> bool {
        let mut state = self.lock();
        state.failures += 1;
        state.failed = Some((fault.clone(), Instant::now()));
        state.usable() > 0
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        for connection in &self.lock().connections {
            connection.close();
        }
    }
}

impl Opening {
    /// `None`: it has no stream now, or it failed but another connection serves.
    async fn open(self) -> Result<Option<Slot>, Fault> {
        match Connection::open(&self.0.target, &self.0.shared).await {
            Ok((connection, driver)) => Ok(self.0.opened(connection, driver)),
            Err(fault) if self.0.failed(&fault) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.lock().opening -= 1;
        self.0.changed.notify_waiters();
    }
}

impl Slot {
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// `by`: when the answer's headers must be there.
    pub async fn exchange(
        &self,
        request: &Request<Bytes>,
        by: Instant,
        settings: &HttpsSettings,
    ) -> Result<Answer, Lost> {
        exchange(&self.connection, request, by, settings).await
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connection.take_back();
        self.origin.changed.notify_one();
    }
}
