//! Ledgers of caps by the server's own clock: shared by nodes whose clocks differ, and gone once nothing counts.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::caps::{Caps, Room, TakeAsk, Taken};
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::{KeyKind, child_key};
use futures::future::join_all;

use super::Server;
use super::server::PATIENCE;
use crate::contract::harness::ManualClock;
use crate::peers::until::until;

/// Whose own clock is so far from the server's.
fn node(server: &Server, off_ms: i64) -> Arc<RedisStore> {
    let clock = ManualClock::new();
    clock.step(off_ms);
    let link = Link::to(&server.url()).unwrap();
    let clocks = Clocks { node: clock, store: StoreClock::Server };
    RedisStore::new(link, Names::new("belfry".into(), 4), clocks, Arc::new(Unwatched), super::mark())
}

fn ask(number: u32, (limit, window): (u32, u64)) -> Vec<TakeAsk> {
    let room = |name: &[u8]| {
        let ledger = child_key(KeyKind::Cap, &[name]);
        Room { ledger, limit, window: Duration::from_secs(window) }
    };
    let mut rooms = vec![room(b"one"), room(b"two")];
    rooms.sort_by_key(|room| room.ledger);
    let reservation = child_key(KeyKind::Take, &[&number.to_be_bytes()]);
    vec![TakeAsk { rooms, reservation, longest: Duration::ZERO }]
}

#[tokio::test]
async fn nodes_whose_clocks_differ_share_one_count() {
    let server = Server::plain();
    let nodes = [node(&server, 0), node(&server, 3_600_000), node(&server, -3_600_000)];
    let taken = join_all((0..90).map(async |number| {
        let node = &nodes[usize::try_from(number % 3).unwrap()];
        node.take(ask(number, (10, 600))).await.unwrap()[0]
    }))
    .await;
    assert_eq!(taken.iter().filter(|one| **one == Taken::All).count(), 10);
    let ledgers: Vec<i64> = [b"one", b"two"]
        .iter()
        .map(|name| {
            let key = Names::new("belfry".into(), 4).ledger(&child_key(KeyKind::Cap, &[name.as_slice()]));
            server.ask_bytes(&[b"ZCARD".as_slice(), &key])
        })
        .collect();
    assert_eq!(ledgers, [10, 10]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_in_which_nothing_counts_is_gone() {
    let server = Server::plain();
    let node = node(&server, 0);
    assert_eq!(node.take(ask(1, (1, 1))).await.unwrap(), [Taken::All]);
    assert_eq!(server.ask::<i64>(&["DBSIZE"]), 2);
    until("both have expired", PATIENCE, || (server.ask::<i64>(&["DBSIZE"]) == 0).then_some(()));
    assert_eq!(node.take(ask(2, (1, 1))).await.unwrap(), [Taken::All]);
}
