//! The hold after a restore, where several nodes and shards have to obey one.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::StoreError;
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::{Link, slot_of};
use belfry::store::redis::{Clocks, RedisStore, StoreClock};

use super::Server;
use super::calls::until_ok;
use super::cluster::Cluster;
use super::server::PATIENCE;
use crate::contract::fixture::{ask, intent};
use crate::contract::harness::{Harness, ManualClock};
use crate::kill::server::Site;
use crate::kill::sink::Sink;
use crate::peers::until::until;

fn store(url: &str, shards: u16, clock: &Arc<ManualClock>) -> Arc<RedisStore> {
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    RedisStore::new(
        Link::to(url).unwrap(),
        Names::new("belfry".into(), shards),
        clocks,
        Arc::new(Unwatched),
        crate::redis::mark(),
    )
}

fn node(url: &str, shards: u16, clock: &Arc<ManualClock>) -> Harness {
    Harness::over(store(url, shards, clock), clock)
}

async fn claimed(node: &Harness, nonce: u64) -> usize {
    node.claims(ask(nonce, 100)).await.claims.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_counts_for_a_node_that_has_already_heard_what_is_due_and_its_release_wakes_it() {
    let (server, clock) = (Server::plain(), ManualClock::new());
    let (one, other) = (node(&server.url(), 4, &clock), node(&server.url(), 4, &clock));
    for key in ["a", "b", "c"] {
        other.create(intent(&other, key)).await;
    }
    // It knows that more is due than it took.
    assert_eq!(claimed(&other, 1).await, 3);
    for key in ["d", "e"] {
        one.create(intent(&one, key)).await;
    }
    let at = one.store.hold(one.now()).await.unwrap();
    for nonce in 2..6 {
        assert_eq!(claimed(&other, nonce).await, 0);
    }
    one.store.release(at).await.unwrap();
    let mut nonce = 6;
    until_ok(Duration::from_secs(10), async || {
        nonce += 1;
        match claimed(&other, nonce).await {
            0 => Err(StoreError::Unavailable("nothing was claimed yet".into())),
            _ => Ok(()),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_is_away_keeps_a_hold_from_being_done_and_the_same_call_finishes_it() {
    let (cluster, clock) = (Cluster::start(), ManualClock::new());
    let url = cluster.url();
    let one = node(&url, 16, &clock);
    for n in 0..48 {
        one.create(intent(&one, &format!("k{n}"))).await;
    }
    let slot = slot_of(&Names::new("belfry".into(), 16).sequence(3));
    let from = cluster.holder(slot);
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);
    let first = one.now();
    let error = one.store.hold(first).await.unwrap_err();
    assert!(error.to_string().contains("unavailable"), "{error}");
    while cluster.move_keys(slot, from, to, 100) > 0 {}
    cluster.end_move(slot, from, to);
    // The moment of the first try is the one that counts.
    clock.step(10_000);
    let at = until_ok(Duration::from_secs(10), async || one.store.hold(one.now()).await).await;
    assert_eq!(at, first);
    assert_eq!(claimed(&node(&url, 16, &clock), 1).await, 0);
}

#[tokio::test]
async fn a_hold_that_a_start_left_half_way_is_spread_by_the_next_one() {
    let (server, clock) = (Server::plain(), ManualClock::new());
    let one = node(&server.url(), 4, &clock);
    one.create(intent(&one, "k")).await;
    let at = one.now();
    let () = server.ask(&["HSET", "belfry:{i}:install", "hold", &at.0.to_string()]);
    assert_eq!(one.store.standing().await.unwrap(), None);
    store(&server.url(), 4, &clock).prepare().await.unwrap();
    assert_eq!(one.store.standing().await.unwrap(), Some(at));
    assert_eq!(claimed(&one, 1).await, 0);
    one.store.release(at).await.unwrap();
    store(&server.url(), 4, &clock).prepare().await.unwrap();
    assert_eq!(one.store.standing().await.unwrap(), None, "released is released");
    assert_eq!(claimed(&one, 2).await, 1);
}

#[tokio::test]
async fn a_shard_that_has_gone_back_before_the_hold_has_it_again_before_it_gives_a_claim() {
    let (server, clock) = (Server::plain(), ManualClock::new());
    let one = node(&server.url(), 1, &clock);
    one.create(intent(&one, "k")).await;
    let at = one.store.hold(one.now()).await.unwrap();
    let () = server.ask(&["DEL", "belfry:{0}:hold"]);
    let () = server.ask(&["SET", "belfry:{0}:seq", "1"]);
    clock.step(10_000);
    assert_eq!(claimed(&one, 1).await, 0);
    assert_eq!(one.store.standing().await.unwrap(), Some(at));
    assert_eq!(claimed(&node(&server.url(), 1, &clock), 2).await, 0);
}

#[test]
fn a_start_that_is_to_hold_waits_for_the_shard_that_is_away() {
    let (cluster, sink) = (Cluster::start(), Sink::start());
    let store = format!(
        "[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{}\"\nprefix = \"belfry\"\nshards = 16\n",
        cluster.url()
    );
    let site = Site::over(&store, sink.address, "");
    let slot = slot_of(&Names::new("belfry".into(), 16).sequence(3));
    let from = cluster.holder(slot);
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| site.start_with(&["--after-restore"]));
        until("it says that it waits", PATIENCE, || site.log().contains("store_awaited").then_some(()));
        assert!(!site.log().contains("started"), "{}", site.log());
        while cluster.move_keys(slot, from, to, 100) > 0 {}
        cluster.end_move(slot, from, to);
        drop(starting.join().unwrap());
    });
    assert!(site.log().contains("held_after_restore"), "{}", site.log());
}

/// A node that starts while a hold is released may still bring it to shards that have let go of it.
#[tokio::test]
async fn what_was_released_is_not_held_again_by_a_node_that_was_late() {
    let (server, clock) = (Server::plain(), ManualClock::new());
    let one = node(&server.url(), 2, &clock);
    one.create(intent(&one, "k")).await;
    let at = one.store.hold(one.now()).await.unwrap();
    one.store.release(at).await.unwrap();
    // As the late node saw it: its start puts it into all shards, and finds no word of its release.
    let _: i64 = server.ask(&["HSET", "belfry:{i}:install", "hold", &at.0.to_string()]);
    let late = store(&server.url(), 2, &clock);
    late.prepare().await.unwrap();
    assert_eq!(one.store.standing().await.unwrap(), None);
    assert_eq!(claimed(&one, 1).await, 1);
    // A further restore is held by a moment of its own, also where the clock has gone back.
    one.store.release(at).await.unwrap();
    clock.step(-5_000);
    let again = one.store.hold(one.now()).await.unwrap();
    assert_eq!(again.0, at.0 + 1);
    assert_eq!(one.store.standing().await.unwrap(), Some(again));
}
