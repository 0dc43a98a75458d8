//! The listener from the moment that its port is taken: while the start waits for the store it says so,
//! then the same listener, with the same connections, answers the API.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Roles, server_limits};
use crate::config::Config;
use crate::facts::{Fact, FactSink};
use crate::http::Drain;
use crate::http::server::{Current, Server};
use crate::http::waiting::{self, Awaited, Waits};
use crate::ports::clock::{Boot, Clock};
use crate::ports::store_news::{StoreNews, StoreWatch};
use crate::telemetry::Recorder;

/// Between two lines about the same wait.
const REMINDED: Duration = Duration::from_secs(60);

/// Hears what the store finds out, and passes it on. A wait is told when it begins, when its reason
/// changes, and once a minute: it asks every second.
pub(super) struct Watch {
    recorder: Arc<Recorder>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Option<(Awaited, Boot)>>,
}

impl Watch {
    pub fn new(recorder: Arc<Recorder>, clock: Arc<dyn Clock>) -> Self {
        Self { recorder, clock, seen: Mutex::default() }
    }

    fn awaited(&self) -> Option<Awaited> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(awaited, _)| awaited.clone())
    }

    /// Notes it. Whether it is to be told.
    fn waits(&self, why: &str) -> bool {
        let (now, boot) = (self.clock.now(), self.clock.boot());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let told = seen.as_ref().filter(|(awaited, _)| awaited.why == why).map(|(_, told)| *told);
        let tell = told.is_none_or(|told| boot.saturating_sub(told) >= REMINDED);
        let since = seen.as_ref().map_or(now, |(awaited, _)| awaited.since);
        let told = told.filter(|_| !tell).unwrap_or(boot);
        *seen = Some((Awaited { why: why.to_owned(), since }, told));
        tell
    }
}

impl StoreWatch for Watch {
    fn tell(&self, news: StoreNews) {
        if let StoreNews::Awaited { why } = &news
            && !self.waits(why)
        {
            return;
        }
        self.recorder.tell(news);
    }
}

impl FactSink for Watch {
    fn record(&self, fact: &Fact) {
        self.recorder.record(fact);
    }
}

/// Ends, and cuts its connections, when it is dropped.
pub(super) struct Front {
    /// The router that answers.
    pub current: Current,
    pub drain: Drain,
    pub serving: JoinSet<()>,
}

impl Front {
    pub fn open(config: &Config, listener: TcpListener, address: SocketAddr, roles: Roles, watch: &Arc<Watch>) -> Self {
        let drain = Drain::default();
        let server =
            Server { limits: server_limits(config), drain: drain.clone(), facts: Arc::clone(&watch.recorder) as _ };
        let (awaited, metrics) = (Arc::clone(watch), Arc::clone(&watch.recorder));
        let waits = Waits {
            awaited: Arc::new(move || awaited.awaited()),
            metrics: Arc::new(move || metrics.exposition()),
            clock: Arc::clone(&watch.clock),
            facts: Arc::clone(&watch.recorder) as _,
            public_url: config.public_url(address),
            roles: roles.names(),
        };
        let current = Current::new(waiting::router(waits));
        let router = current.seen();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            server.serve_current(listener, router).await;
        });
        Self { current, drain, serving }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineClock;
    use crate::telemetry::Names;

    #[test]
    fn a_wait_is_told_once_for_each_reason() {
        let recorder = Arc::new(Recorder::new(Names::new([], []), Arc::new(MachineClock)));
        let watch = Watch::new(recorder, Arc::new(MachineClock));
        let told: Vec<bool> = ["cut", "cut", "late", "late", "cut"].map(|why| watch.waits(why)).into();
        assert_eq!(told, [true, false, true, false, true]);
        let since = watch.awaited().unwrap().since;
        watch.waits("another");
        assert_eq!(watch.awaited().unwrap(), Awaited { why: "another".into(), since }, "since when it waits at all");
    }
}
