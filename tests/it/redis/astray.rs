//! A node whose own clock is hours off, among others on one Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use belfry::machine::MachineClock;
use belfry::ports::StoreError;
use belfry::ports::broadcasts::Broadcasts as _;
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::deliveries::Deliveries as _;
use belfry::ports::pauses::{KeptPause, Pauses as _};
use belfry::ports::schedules::{Paused as Waits, Schedule, Schedules as _, Wrote};
use belfry::ports::store_news::{StoreNews, StoreWatch};
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::UnixMs;
use belfry_domain::pause::{Pause, Paused};
use tokio::sync::mpsc;

use super::server::{PATIENCE, Server};
use crate::contract::fixture::{acme, ask};
use crate::contract::schedules::schedule;
use crate::peers::until::until;

const HOUR: i64 = 3_600_000;
const NOW: i64 = 1_796_083_200_000;

/// A wall clock that stands, so many milliseconds from the store's; waiting is the machine's.
struct OffClock(AtomicI64);

#[async_trait]
impl Clock for OffClock {
    fn now(&self) -> UnixMs {
        UnixMs(NOW + self.0.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Boot {
        MachineClock.boot()
    }

    async fn sleep_until(&self, until: Boot) {
        MachineClock.sleep_until(until).await;
    }
}

struct Told(mpsc::Sender<Option<i64>>);

impl StoreWatch for Told {
    fn tell(&self, news: StoreNews) {
        if let StoreNews::Astray { ms } = news {
            self.0.try_send(ms).unwrap();
        }
    }
}

struct Node {
    store: Arc<RedisStore>,
    clock: Arc<OffClock>,
    told: mpsc::Receiver<Option<i64>>,
}

impl Node {
    fn on(server: &Server, off: i64) -> Self {
        let clock = Arc::new(OffClock(AtomicI64::new(off)));
        let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(Arc::new(OffClock(AtomicI64::new(0)))) };
        let (tell, told) = mpsc::channel(16);
        let names = Names::new("belfry".into(), 2);
        let link = Link::to(&server.url()).unwrap();
        Self { store: RedisStore::new(link, names, clocks, Arc::new(Told(tell)), super::mark()), clock, told }
    }

    /// As whoever believes that a slot is over.
    async fn moves_on(&self, from: &Schedule) -> Result<Wrote, StoreError> {
        let before = self.store.schedule(&acme(), "daily").await.unwrap().unwrap().written;
        let next = Schedule { next: from.next.map(|next| UnixMs(next.0 + HOUR)), ..from.clone() };
        self.store.write_schedule(&acme(), "daily", Some(&before), Some(&next)).await
    }

    /// What it says of its clock next.
    async fn says(&mut self) -> Option<i64> {
        tokio::time::timeout(PATIENCE, self.told.recv()).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn case_70_a_node_whose_clock_is_alone_takes_no_part_until_it_is_mended() {
    let server = Server::plain();
    let (right, mut wrong) = (Node::on(&server, 0), Node::on(&server, HOUR));
    right.store.join("right", true).await;
    let until = UnixMs(right.clock.now().0 + HOUR / 2);
    let paused =
        Pause { paused: Paused::All, tenant: None, since: right.clock.now(), until: Some(until), forced: false };
    right.store.pause(&KeptPause { pause: paused, by: "key_1".into(), why: None }).await.unwrap();
    let daily = Schedule { next: Some(until), ..schedule("daily", 0) };
    assert_eq!(right.store.write_schedule(&acme(), "daily", None, Some(&daily)).await, Ok(Wrote::Done));
    // Its first word of where it stands is heard with the next.
    wrong.store.join("wrong", false).await;
    assert_eq!(wrong.says().await, Some(HOUR));
    let now = wrong.clock.now();
    let refused = |error: StoreError| {
        assert!(error.to_string().contains("the clock of this node is 3600 s ahead of most others'"), "{error}");
    };
    refused(wrong.store.claim(ask(1, 10)).await.unwrap_err());
    refused(wrong.store.accept(Vec::new()).await.unwrap_err());
    refused(wrong.store.drop_over(now).await.unwrap_err());
    refused(wrong.store.receipts_overdue(now, 10).await.unwrap_err());
    refused(wrong.store.take_due(now, now, 10).await.unwrap_err());
    refused(wrong.moves_on(&daily).await.unwrap_err());
    refused(wrong.store.active_broadcasts(None, 10).await.unwrap_err());
    refused(wrong.store.probe().await.unwrap_err());
    assert_eq!(right.store.pauses().await.unwrap().len(), 1);
    assert!(right.store.claim(ask(2, 10)).await.unwrap().claims.is_empty());
    right.store.probe().await.unwrap();
    // The slot that its clock has passed is for those whose clocks have come there.
    assert_eq!(right.store.take_due(right.clock.now(), now, 10).await.unwrap().then, daily.next);
    // What it holds it may still settle and renew, and whoever asks is answered.
    assert!(wrong.store.renew(Vec::new()).await.unwrap().is_empty());
    assert_eq!(wrong.store.pauses().await.unwrap().len(), 1);
    // To stop something takes no clock.
    let paused = Schedule { paused: Some(Waits { since: now, by: "key_1".into() }), ..daily.clone() };
    let daily = right.store.schedule(&acme(), "daily").await.unwrap().unwrap();
    let wrote = wrong.store.write_schedule(&acme(), "daily", Some(&daily.written), Some(&paused)).await;
    assert_eq!(wrote, Ok(Wrote::Done));

    wrong.clock.0.store(0, Ordering::SeqCst);
    assert_eq!(wrong.says().await, None);
    wrong.store.probe().await.unwrap();
    wrong.store.claim(ask(3, 10)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn case_70_nodes_that_agree_go_on_where_the_store_s_clock_is_the_wrong_one() {
    let server = Server::plain();
    let (one, other) = (Node::on(&server, HOUR), Node::on(&server, HOUR + 400));
    let alone = Node::on(&Server::plain(), 0);
    for (node, name) in [(&one, "one"), (&other, "other")] {
        node.store.join(name, true).await;
        // Of two clocks nobody can say which is wrong; of three it is the store's.
        node.store.claim(ask(1, 10)).await.unwrap();
    }
    until("both have told their time", PATIENCE, || {
        (server.ask::<i64>(&["HLEN", "belfry:{i}:clocks"]) == 2).then_some(())
    });
    one.store.join("one", true).await;
    one.store.claim(ask(2, 10)).await.unwrap();
    // Where the store is away its clock says nothing: there is nothing to claim either.
    alone.store.join("alone", true).await;
    assert!(alone.store.claim(ask(1, 10)).await.unwrap_err().to_string().contains("has not yet compared its clock"));
}
