//! The listener from the moment that its port is taken: while the start waits for the store it says so,
//! then the same listener, with the same connections, answers the API.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Roles, server_limits};
use crate::config::Config;
use crate::facts::{Fact, FactSink};
use crate::http::Drain;
use crate::http::server::{Current, Server};
use crate::http::waiting::{self, Awaited, Waits};
use crate::ports::clock::Clock;
use crate::ports::reminders::Reminders;
use crate::ports::store_news::{StoreNews, StoreWatch};
use crate::telemetry::Recorder;

/// Hears what the store finds out, and passes it on. Of a wait each reason is told once a
/// minute: it asks every second.
pub(super) struct Watch {
    recorder: Arc<Recorder>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Option<Awaited>>,
    told: Mutex<Reminders<String>>,
}

impl Watch {
    pub fn new(recorder: Arc<Recorder>, clock: Arc<dyn Clock>) -> Self {
        Self { recorder, clock, seen: Mutex::default(), told: Mutex::default() }
    }

    fn awaited(&self) -> Option<Awaited> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes it. Whether it is to be told.
    fn waits(&self, why: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = seen.as_ref().map_or_else(|| self.clock.now(), |awaited| awaited.since);
        *seen = Some(Awaited { why: why.to_owned(), since });
        drop(seen);
        self.told.lock().unwrap_or_else(PoisonError::into_inner).is_news(why.to_owned(), self.clock.boot())
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
        assert_eq!(told, [true, false, true, false, false]);
        let since = watch.awaited().unwrap().since;
        watch.waits("another");
        assert_eq!(watch.awaited().unwrap(), Awaited { why: "another".into(), since }, "since when it waits at all");
    }
}
