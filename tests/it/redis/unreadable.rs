//! Stored values that are damaged or gone: what lies beside them goes on as if they were not there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use belfry::ports::StoreError;
use belfry::ports::deliveries::{PurgeAsk, Settle, Written};
use belfry::ports::store_news::{StoreNews, StoreWatch};
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::{DeliveryId, State, UnixMs};

use super::Server;
use crate::contract::fixture::{LEASE_MS, acme, ask, ended, id_of, intent};
use crate::contract::harness::{Harness, ManualClock, START};
use crate::contract::suppressions::suppressed;

#[derive(Default)]
struct Told(Mutex<Vec<DeliveryId>>);

impl StoreWatch for Told {
    fn tell(&self, news: StoreNews) {
        if let StoreNews::Unreadable { delivery, .. } = news {
            self.0.lock().unwrap().push(delivery);
        }
    }
}

struct Site {
    server: Server,
    names: Names,
    told: Arc<Told>,
    h: Harness,
}

impl Site {
    /// All in one shard, and some of it due.
    async fn with(keys: &[&str]) -> Self {
        let (server, clock, told) = (Server::plain(), ManualClock::new(), Arc::new(Told::default()));
        let names = Names::new("belfry".into(), 1);
        let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
        let link = Link::to(&server.url()).unwrap();
        let store = RedisStore::new(link, names.clone(), clocks, told.clone(), crate::redis::mark());
        let h = Harness::over(store, &clock);
        for key in keys {
            h.create(intent(&h, key)).await;
        }
        Self { server, names, told, h }
    }

    fn delivery(&self, key: &str) -> DeliveryId {
        intent(&self.h, key).deliveries[0].id
    }

    /// Overwrites the body of a delivery, from its first byte on.
    fn damage(&self, key: &str) {
        let name = self.names.delivery(self.delivery(key));
        let length: usize = self.server.ask_bytes(&[&b"STRLEN"[..], &name]);
        let from = (length - 200).to_string();
        let _: usize = self.server.ask_bytes(&[&b"SETRANGE"[..], &name, from.as_bytes(), &[0xff; 200]]);
    }

    fn delete(&self, key: &str) {
        let gone: usize = self.server.ask_bytes(&[&b"DEL"[..], &self.names.delivery(self.delivery(key))]);
        assert_eq!(gone, 1);
    }
}

#[tokio::test]
async fn one_that_cannot_be_read_holds_up_no_claim_no_settle_and_no_sweep() {
    let site = Site::with(&["a", "broken", "b", "c"]).await;
    let h = &site.h;
    site.damage("broken");
    let broken = site.delivery("broken");
    let claims = h.claims(ask(1, 10)).await.claims;
    assert_eq!(claims.len(), 3);
    assert_eq!(*site.told.0.lock().unwrap(), [broken]);
    // The one that is read beside it, and a write that would read it.
    let loaded = h.store.load(vec![claims[0].delivery.id, broken, claims[1].delivery.id]).await.unwrap();
    assert_eq!(loaded.len(), 2);
    let settle =
        |claim: usize| Settle { next: ended(h, &claims[claim].delivery, State::Accepted), token: claims[claim].token };
    let mut strange = settle(0);
    (strange.next.id, strange.next.rev) = (broken, 99);
    strange.token = h.store.held(10).await.unwrap().iter().find(|held| held.id == broken).unwrap().token;
    let written = h.store.settle(vec![settle(0), strange, settle(1)]).await.unwrap();
    assert_eq!(written, [Written::Done, Written::Gone, Written::Done]);
    // Its lease lapses like any other, and stays where nobody can decide.
    h.clock.step(LEASE_MS);
    assert_eq!(h.store.held(10).await.unwrap().iter().filter(|held| held.lapsed).count(), 2);
    // Who asks for that very record is told that it cannot be read.
    let read = h.store.read(&acme(), id_of("broken")).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    assert_eq!(*site.told.0.lock().unwrap(), [broken], "told of once");
}

#[tokio::test]
async fn one_that_was_deleted_holds_up_nothing_behind_it() {
    let site = Site::with(&["gone", "a", "b"]).await;
    let h = &site.h;
    site.delete("gone");
    let claims = h.claims(ask(1, 10)).await.claims;
    assert_eq!(claims.len(), 2);
    for claim in &claims {
        let settled = h.settle(claim, &ended(h, &claim.delivery, State::Accepted)).await;
        assert_eq!(settled, Written::Done);
    }
    let depths = h.store.depths().await.unwrap();
    assert!(depths.lanes.iter().all(|lane| (lane.due, lane.sending) == (0, 0)), "{depths:?}");
    assert!(h.claims(ask(2, 10)).await.claims.is_empty());
    h.clock.step(86_400_000 * 30);
    let ages = PurgeAsk { now: h.now(), keep_record: Duration::from_secs(60), limit: 100 };
    assert_eq!(h.store.purge(ages).await.unwrap().records, 2);
}

#[tokio::test]
async fn a_repeat_of_what_cannot_be_read_fails_alone() {
    let site = Site::with(&["broken", "a"]).await;
    let h = &site.h;
    site.damage("broken");
    let (good, bad) = futures::join!(
        h.store.accept(vec![intent(h, "a"), intent(h, "new")]),
        h.store.accept(vec![intent(h, "broken")])
    );
    assert_eq!(good.unwrap().len(), 2);
    assert!(matches!(bad, Err(StoreError::Corrupt(_))), "{bad:?}");
}

/// One node whose clock is ahead would make all others forget.
#[tokio::test]
async fn a_purge_by_a_node_that_is_ahead_forgets_nothing() {
    let server = Server::plain();
    let ahead = ManualClock::new();
    let link = Link::to(&server.url()).unwrap();
    let clocks = Clocks { node: ahead.clone(), store: StoreClock::Server };
    let names = Names::new("belfry".into(), 1);
    let store = RedisStore::new(link, names, clocks, Arc::new(Told::default()), crate::redis::mark());
    let h = Harness::over(store, &ahead);
    h.create(intent(&h, "k")).await;
    h.finish(1, State::Accepted).await;
    ahead.step(86_400_000 * 40);
    let ages = PurgeAsk { now: h.now(), keep_record: Duration::from_secs(60), limit: 100 };
    assert_eq!(h.store.purge(ages).await.unwrap().records, 0);
    assert!(h.record("k").await.is_some());
}

/// Evicted, or deleted by hand: one such entry must not end every list there.
#[tokio::test]
async fn a_suppression_whose_hash_is_gone_ends_no_list() {
    let site = Site::with(&[]).await;
    let entries: Vec<_> = (0..5).map(|n| suppressed(&n.to_string(), UnixMs(START.0 + n))).collect();
    for entry in &entries {
        site.h.suppress(&acme(), entry).await;
    }
    for gone in [1, 3] {
        let id = entries[gone].id(&acme());
        let gone: usize = site.server.ask_bytes(&[&b"DEL"[..], &site.names.suppressed(&id.address)]);
        assert_eq!(gone, 1);
    }
    let left: Vec<_> = [4, 2, 0].map(|at| entries[at].clone()).into();
    let page = site.h.store.listed(&acme(), None, 2).await.unwrap();
    assert_eq!(page.entries, left[..2]);
    let rest = site.h.store.listed(&acme(), page.next.as_deref(), 2).await.unwrap();
    assert_eq!((rest.entries.as_slice(), rest.next), (&left[2..], None));
}
