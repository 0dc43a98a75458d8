//! The store's clock jumps while calls are under way.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::UnixMs;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::books::Books;
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::contract::fixture::{ask, due_in, id_of, intent};
use crate::contract::harness::{Harness, ManualClock};
use crate::kill::load::{self, Ledger};
use crate::kill::sink::Sink;
use crate::peers::until::until;
use crate::redis::Server;
use crate::redis::valkey::valkey;

const NODES: usize = 2;
const INTENTS: usize = 300;
const HOUR: i64 = 3_600;

/// Steps the store's clock by `off` seconds under load; `None` where there is no such store.
fn stepped(off: i64) -> Option<Row> {
    let options = valkey()?;
    let (server, sink, ledger) = (Server::start(options.steppable()), Sink::start(), Ledger::default());
    let mut fleet = Fleet::start(NODES, &redis(&server.url(), "ack"), sink.address);
    let later = later(&fleet);
    let (places, callers) = (fleet.places.clone(), ledger.clone());
    let load = thread::spawn(move || load::send_through(&places, &callers, 0..INTENTS));
    until("a third is accepted", LONG, || (ledger.count() >= INTENTS / 3).then_some(()));
    server.step_clock(off);
    fleet.did(&format!("the clock of the server steps {off:+} s"));
    load.join().unwrap();
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let tally = books.reconcile(0..INTENTS);
    assert_eq!(tally.accepted, INTENTS, "nothing lapsed, nothing waits: {tally:?}");
    until("somebody is told", LONG, || fleet.log().contains("clock_skew").then_some(()));
    let mut client = fleet.client(0);
    let answer = client.get(&format!("/v1/notifications/{later}")).unwrap().json();
    assert_eq!(answer["deliveries"][0]["state"], "scheduled", "{answer}");
    assert!(sink.effects("later").is_empty());
    // The last one that would not have ended.
    let cancelled = client.post(&format!("/v1/notifications/{later}/cancel"), "stop", &json!({})).unwrap();
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    Some(books.report(&format!("the store's clock stepped {off} s"), &tally))
}

/// An intent that is to go out in two hours.
fn later(fleet: &Fleet) -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap();
    let at = now + SignedDuration::try_from(Duration::from_secs(7_200)).unwrap();
    let body = json!({
        "class": "receipt",
        "channels": ["email"],
        "to": { "email": "later@example.com" },
        "content": { "subject": "later", "text": "Later." },
        "send_at": at.to_string(),
    });
    let answer = fleet.client(0).post("/v1/notifications", "later", &body).unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

pub fn case_70_a_store_whose_clock_steps_forward_sends_nothing_early_and_lapses_nothing() -> Option<Row> {
    stepped(HOUR)
}

pub fn case_70_a_store_whose_clock_steps_back_holds_nothing_up() -> Option<Row> {
    stepped(-HOUR)
}

/// A node whose clock is right and a server whose clock is off by as much as the test says.
struct Apart {
    h: Harness,
    server: Arc<ManualClock>,
}

impl Apart {
    fn by(ms: i64) -> (Self, Server) {
        let redis = Server::plain();
        let (node, server) = (ManualClock::new(), ManualClock::new());
        server.step(ms);
        let clocks = Clocks { node: node.clone(), store: StoreClock::Own(server.clone()) };
        let link = Link::to(&redis.url()).unwrap();
        let store =
            RedisStore::new(link, Names::new("belfry".into(), 2), clocks, Arc::new(Unwatched), crate::redis::mark());
        (Self { h: Harness::over(store, &node), server }, redis)
    }

    fn pass(&self, ms: i64) {
        self.h.clock.step(ms);
        self.server.step(ms);
    }
}

const HOUR_MS: i64 = HOUR * 1_000;

#[tokio::test]
async fn case_70_what_is_due_is_due_by_the_clock_that_said_when() {
    for off in [-HOUR_MS, HOUR_MS] {
        let (apart, _redis) = Apart::by(off);
        let h = &apart.h;
        h.create(intent(h, "now")).await;
        h.create(due_in(intent(h, "later"), HOUR_MS / 2)).await;
        let claims = h.claims(ask(1, 10)).await;
        assert_eq!(claims.claims.len(), 1, "{off}");
        assert_eq!(claims.claims[0].notification.id, id_of("now"));
        assert_eq!(claims.next_due, Some(UnixMs(h.now().0 + HOUR_MS / 2)), "{off}");
        apart.pass(HOUR_MS / 2);
        assert_eq!(h.claim(2).await.notification.id, id_of("later"), "{off}");
    }
}
