//! What a Redis user has to be allowed, and who says that a node is there.

use std::sync::Arc;
use std::time::Duration;

use belfry::machine::MachineClock;
use belfry::ports::broadcasts::ChunkAt;
use belfry::ports::caps::{Room, TakeAsk, TakeEnd, Taken};
use belfry::ports::deliveries::PurgeAsk;
use belfry::ports::paces::ShareAsk;
use belfry::ports::recipients::Profile;
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::{Durability, Link, Need};
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::caps::Fate;
use belfry_domain::device::TokenFault;
use belfry_domain::pause::Paused;
use belfry_domain::{KeyKind, State, UnixMs, child_key};

use super::calls::{Calls, settings};
use super::server::{Options, PATIENCE, Server};
use crate::contract::broadcasts::named;
use crate::contract::fixture::{acme, intent};
use crate::contract::harness::{Harness, ManualClock};
use crate::contract::pauses::pause_of;
use crate::contract::recipients::{device, of, word};
use crate::contract::schedules::schedule;
use crate::contract::suppressions::suppressed;
use crate::peers::until::until;

/// What docs/configuration.md asks for, and no more.
#[tokio::test]
async fn the_documented_permissions_are_enough() {
    let server = Server::start(Options::default().with("appendonly yes").with("appendfsync always"));
    let words = "ACL SETUSER belfry reset on >word ~test:* ~belfry:* &belfry:* +@read +@write +@scripting +@pubsub \
                 +@connection +role +info +time +config|get +command|info +wait";
    let () = server.ask(&words.split_whitespace().collect::<Vec<_>>());
    let url = format!("redis://belfry:word@{}", server.address());
    let calls = Calls::new(Link::open(settings(&url, Durability::Fsync)).await.unwrap(), "s");
    calls.add("one", Need::Durable).await.unwrap();
    calls.link.settled().await.unwrap();
    assert_eq!(calls.link.check().await, []);
    // And all that the store itself does, by the server's clock.
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Server };
    let link = Link::open(settings(&url, Durability::Fsync)).await.unwrap();
    let store = RedisStore::new(link, Names::new("belfry".into(), 2), clocks, Arc::new(Unwatched), super::mark());
    store.prepare().await.unwrap();
    store.leave("n").await.unwrap();
    let h = Harness::over(store, &clock);
    h.create(intent(&h, "k")).await;
    let done = h.finish(1, State::Accepted).await;
    assert_eq!(h.stored(&done).await, done);
    h.store.probe().await.unwrap();
    h.store.held(1).await.unwrap();
    h.store.shares("n", 1, vec![ShareAsk { pace: "main".into(), parts: 1, using: 0 }]).await.unwrap();
    h.store.purge(PurgeAsk { now: h.now(), keep_record: Duration::ZERO, limit: 1 }).await.unwrap();
    h.store.release(h.store.hold(h.now()).await.unwrap()).await.unwrap();
    keeps_recipients(&h).await;
    keeps_suppressions(&h).await;
    keeps_pauses(&h).await;
    keeps_schedules(&h).await;
    keeps_caps(&h).await;
    keeps_broadcasts(&h).await;
}

async fn keeps_suppressions(h: &Harness) {
    let entry = suppressed("ann", h.now());
    assert_eq!(h.suppress(&acme(), &entry).await, entry);
    assert_eq!(h.store.find(vec![entry.addressee(&acme())]).await, [Ok(vec![entry.clone()])]);
    assert_eq!(h.store.listed(&acme(), None, 10).await.unwrap().entries, std::slice::from_ref(&entry));
    h.store.lift(&acme(), entry.id(&acme())).await.unwrap();
}

async fn keeps_pauses(h: &Harness) {
    let mut ends = pause_of(Paused::Class("marketing".into()));
    ends.pause.until = Some(h.now());
    for one in [&ends, &pause_of(Paused::All)] {
        h.pause(one).await;
    }
    assert_eq!(h.store.drop_over(h.now()).await.unwrap(), [ends]);
    assert_eq!(h.store.pauses().await.unwrap(), [pause_of(Paused::All)]);
    h.store.waiting(None, 10, true).await.unwrap();
    h.store.resume(pause_of(Paused::All).id()).await.unwrap();
}

async fn keeps_schedules(h: &Harness) {
    h.keep(&schedule("daily", 0)).await;
    let taken = h.store.take_due(h.now(), UnixMs(h.now().0 + 1), 10).await.unwrap();
    assert_eq!(h.store.schedules(&acme(), None, 10).await.unwrap().schedules, [schedule("daily", 0)]);
    h.store.write_schedule(&acme(), "daily", Some(&taken.due[0].written), None).await.unwrap();
    assert_eq!(h.scheduled(&acme(), "daily").await, None);
}

/// By the server's clock, so that a place ends when it is said to have ended.
async fn keeps_caps(h: &Harness) {
    let room =
        |name: &[u8]| Room { ledger: child_key(KeyKind::Cap, &[name]), limit: 1, window: Duration::from_secs(9) };
    let rooms = vec![room(b"one"), room(b"two")];
    let reservation = child_key(KeyKind::Take, &[b"call"]);
    let other = child_key(KeyKind::Take, &[b"other"]);
    let ledgers = rooms.iter().map(|room| room.ledger).collect();
    let ask = TakeAsk { rooms, reservation, longest: Duration::from_secs(60) };
    assert_eq!(h.store.take(vec![ask.clone()]).await.unwrap(), [Taken::All]);
    let refused = h.store.take(vec![TakeAsk { reservation: other, ..ask.clone() }]).await.unwrap();
    assert!(
        matches!(&refused[..], [Taken::Full { at: 0, full, now }] if full.open_until.is_some_and(|open| open > *now))
    );
    h.store.end(vec![TakeEnd { ledgers, reservation, fate: Fate::Counts }]).await.unwrap();
    let refused = h.store.take(vec![TakeAsk { reservation: other, ..ask }]).await.unwrap();
    assert!(matches!(&refused[..], [Taken::Full { full, .. }] if full.open_until.is_none()));
}

async fn keeps_broadcasts(h: &Harness) {
    let it = named(&acme(), "k");
    h.create_new(&it).await;
    let begun = it.begin_upload(h.now()).unwrap();
    assert!(h.store.write_broadcast(&begun).await.unwrap());
    assert_eq!(h.store.active_broadcasts(None, 10).await.unwrap().broadcasts, std::slice::from_ref(&begun));
    assert_eq!(h.store.broadcasts(&acme()).await.unwrap(), std::slice::from_ref(&begun));
    let at = ChunkAt { broadcast: it.id, upload: 1, chunk: 0 };
    h.store.put_rows(at, "rows").await.unwrap();
    assert_eq!(h.store.rows(at).await.unwrap().as_deref(), Some("rows"));
    h.store.clear_rows(it.id, 1, 0..3).await.unwrap();
    assert!(h.store.remove_broadcast(&begun).await.unwrap());
}

async fn keeps_recipients(h: &Harness) {
    h.store.put_profile(&acme(), "ann", &Profile::default()).await.unwrap();
    for recipient in ["ann", "bob"] {
        h.register(recipient, device("phone", "a")).await;
    }
    h.register("bob", device("phone", "b")).await;
    let word = word(&of("bob", "phone"), "b", TokenFault::Unregistered, h.now());
    assert!(h.store.bury(&acme(), &word).await.unwrap());
    assert_eq!(h.store.dead(&acme(), UnixMs(0), None, 10).await.unwrap().tokens, std::slice::from_ref(&word));
    h.store.exhume(&acme(), &word).await.unwrap();
    assert!(h.store.remove_device(&acme(), &of("bob", "phone")).await.unwrap());
    assert!(h.store.remove_recipient(&acme(), "ann").await.unwrap());
}

/// Whoever leaves must not come back by itself while it drains: others would leave it its shards.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_stays_away() {
    let server = Server::plain();
    let node = || {
        let clocks = Clocks { node: Arc::new(MachineClock), store: StoreClock::Server };
        let link = Link::to(&server.url()).unwrap();
        RedisStore::new(link, Names::new("belfry".into(), 2), clocks, Arc::new(Unwatched), super::mark())
    };
    let (leaving, staying) = (node(), node());
    leaving.join("leaving", true).await;
    staying.join("staying", true).await;
    let heard_of = |name: &str| server.ask::<Option<i64>>(&["ZSCORE", "belfry:{i}:nodes", name]);
    until("both are there", PATIENCE, || {
        (heard_of("leaving").is_some() && heard_of("staying").is_some()).then_some(())
    });
    leaving.leave("leaving").await.unwrap();
    let said = heard_of("staying").unwrap();
    // Twice as long as between two words of a node that is there.
    until("the other has said so twice", PATIENCE, || {
        assert_eq!(heard_of("leaving"), None);
        (heard_of("staying").unwrap() >= said + 2_000).then_some(())
    });
}
