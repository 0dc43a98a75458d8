//! A shard that cannot be asked, beside others that can.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belfry::ports::StoreError;
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::deliveries::{PurgeAsk, Renewed, Settle, Written};
use belfry::ports::store_news::Unwatched;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::{Link, slot_of};
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::{DeliveryId, State, UnixMs};
use rustix::process::Signal;

use super::calls::until_ok;
use super::cluster::Cluster;
use super::server::PATIENCE;
use crate::contract::fixture::{acme, ask, due_in, ended, intent};
use crate::contract::harness::{Harness, ManualClock, START};
use crate::contract::suppressions::suppressed;
use crate::peers::until::until;

const SHARDS: u16 = 16;
const INTENTS: usize = 96;

fn names() -> Names {
    Names::new("belfry".into(), SHARDS)
}

fn over(cluster: &Cluster) -> Harness {
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let store =
        RedisStore::new(Link::to(&cluster.url()).unwrap(), names(), clocks, Arc::new(Unwatched), crate::redis::mark());
    Harness::over(store, &clock)
}

/// A clock of which the boot clock moves as well.
struct Passing(Arc<ManualClock>);

#[async_trait]
impl Clock for Passing {
    fn now(&self) -> UnixMs {
        self.0.now()
    }

    fn boot(&self) -> Boot {
        self.0.now().since(START)
    }

    async fn sleep_until(&self, _until: Boot) {
        panic!("a store waits for nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_94_while_one_shard_moves_the_others_give_claims_and_lose_none() {
    let cluster = Cluster::start();
    let h = over(&cluster);
    let mut all = BTreeSet::new();
    for n in 0..INTENTS {
        let mut intent = intent(&h, &format!("k{n}"));
        intent.notification.keep_content_ms = 0;
        all.insert(intent.deliveries[0].id);
        h.create(intent).await;
    }
    let moving = names().shard_of(&all.first().unwrap().0);
    let (away, there): (BTreeSet<DeliveryId>, BTreeSet<DeliveryId>) =
        all.iter().partition(|id| names().shard_of(&id.0) == moving);
    assert!(!away.is_empty() && !there.is_empty());
    let slot = slot_of(&names().sequence(moving));
    let from = cluster.holder(slot);
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);

    let mut got = BTreeSet::new();
    for nonce in 0..4 {
        for claim in h.claims(ask(nonce, 100)).await.claims {
            assert!(got.insert(claim.delivery.id), "claimed twice");
            h.settle(&claim, &ended(&h, &claim.delivery, State::Accepted)).await;
        }
    }
    assert_eq!(got, there);
    assert_eq!(h.store.held(100).await.unwrap(), []);
    let ages = PurgeAsk { now: h.now(), keep_record: Duration::from_secs(60), limit: 1_000 };
    assert_eq!(h.store.purge(ages).await.unwrap().contents as usize, there.len());

    while cluster.move_keys(slot, from, to, 100) > 0 {}
    cluster.end_move(slot, from, to);
    // A shard that gave no answer is left alone for a while, by the node's clock.
    let other = over(&cluster);
    // And on another server than before nobody takes anything before all can have said what they are at.
    assert!(other.claims(ask(9, 100)).await.claims.is_empty());
    other.clock.step(3_000);
    let rest: BTreeSet<_> = other.claims(ask(10, 100)).await.claims.iter().map(|claim| claim.delivery.id).collect();
    assert_eq!(rest, away);
}

/// Outcomes are written and leases renewed wherever they can be: a shard that is away must not make the
/// claims of all others lapse.
#[tokio::test(flavor = "multi_thread")]
async fn case_94_while_one_shard_moves_the_others_renew_and_settle() {
    let cluster = Cluster::start();
    let h = over(&cluster);
    for n in 0..INTENTS {
        h.create(intent(&h, &format!("k{n}"))).await;
    }
    let claims = h.claims(ask(1, 100)).await.claims;
    assert_eq!(claims.len(), INTENTS);
    let moving = names().shard_of(&claims[0].delivery.id.0);
    let is_away = |id: DeliveryId| names().shard_of(&id.0) == moving;
    let slot = slot_of(&names().sequence(moving));
    let from = cluster.holder(slot);
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);

    let tokens = || claims.iter().map(|claim| (claim.delivery.id, claim.token)).collect();
    let renewed: BTreeSet<_> = h.store.renew(tokens()).await.unwrap().into_iter().collect();
    let there = claims.iter().map(|claim| claim.delivery.id).filter(|id| !is_away(*id));
    assert_eq!(renewed, there.map(|id| Renewed { id, held: true }).collect());
    let settles: Vec<Settle> = claims
        .iter()
        .map(|claim| Settle { next: ended(&h, &claim.delivery, State::Accepted), token: claim.token })
        .collect();
    for (settle, written) in settles.iter().zip(h.store.settle(settles.clone()).await.unwrap()) {
        assert_eq!(written, if is_away(settle.next.id) { Written::Away } else { Written::Done });
    }

    while cluster.move_keys(slot, from, to, 100) > 0 {}
    cluster.end_move(slot, from, to);
    for written in h.store.settle(settles.clone()).await.unwrap() {
        assert_eq!(written, Written::Done);
    }
    assert_eq!(h.store.held(100).await.unwrap(), []);
}

/// A server that is gone takes its shards along and no others: were all nodes to say then that they are not ready,
/// a balancer would send nothing to anybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_one_of_its_servers_is_ready_and_says_what_is_away() {
    let cluster = Cluster::start();
    let h = over(&cluster);
    assert_eq!(h.store.probe().await.unwrap(), Vec::<String>::new());
    let there = |shard: u16| cluster.holder(slot_of(&names().sequence(shard))) != 1;
    cluster.servers[1].signal(Signal::STOP);
    let away = h.store.probe().await.unwrap();
    let gone: Vec<String> = (0..SHARDS).filter(|shard| !there(*shard)).map(|shard| shard.to_string()).collect();
    assert!(!gone.is_empty() && gone.len() < usize::from(SHARDS));
    let of = away[0].strip_prefix("shards ").unwrap().split(" of 16: ").next().unwrap();
    assert_eq!(of.split(", ").collect::<Vec<_>>(), gone, "{away:?}");
    cluster.servers[1].signal(Signal::CONT);
    cluster.wait_until_whole();
    until_ok(PATIENCE, async || match h.store.probe().await?.is_empty() {
        true => Ok(()),
        false => Err(StoreError::Unavailable("not whole yet".into())),
    })
    .await;
    cluster.servers.iter().for_each(|server| server.signal(Signal::STOP));
    assert!(matches!(h.store.probe().await, Err(StoreError::Unavailable(_))));
    cluster.servers.iter().for_each(|server| server.signal(Signal::CONT));
}

/// A look before calls: who writes to others must not wait for a server that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_suppressed_is_told_of_all_whose_server_is_there() {
    let cluster = Cluster::start();
    let h = over(&cluster);
    let all: Vec<_> = (0..INTENTS).map(|n| suppressed(&format!("ann {n}"), START)).collect();
    for entry in &all {
        h.suppress(&acme(), entry).await;
    }
    let there = |key: &belfry_domain::Key| cluster.holder(slot_of(&names().sequence(names().shard_of(key)))) != 1;
    let expected: Vec<bool> = all.iter().map(|entry| there(&entry.addressee(&acme()).key())).collect();
    cluster.servers[1].signal(Signal::STOP);
    let found = h.store.find(all.iter().map(|entry| entry.addressee(&acme())).collect()).await;
    cluster.servers[1].signal(Signal::CONT);
    for ((found, entry), there) in found.into_iter().zip(all).zip(&expected) {
        match found {
            Ok(found) => assert!(*there && found == [entry]),
            Err(why) => assert!(!there && matches!(why, StoreError::Unavailable(_)), "{why}"),
        }
    }
    assert!(expected.contains(&true) && expected.contains(&false));
}

/// What a frozen server does once it thaws, for a claim that its worker has given up, must not wait for its
/// lapse, and go out as what may have been sent already.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_server_gives_when_it_thaws_is_heard_of() {
    let cluster = Cluster::start();
    let clock = ManualClock::new();
    let clocks = Clocks { node: Arc::new(Passing(clock.clone())), store: StoreClock::Own(clock.clone()) };
    let link = Link::to(&cluster.url()).unwrap();
    let h = Harness::over(RedisStore::new(link, names(), clocks, Arc::new(Unwatched), crate::redis::mark()), &clock);
    for n in 0..INTENTS {
        h.create(intent(&h, &format!("k{n}"))).await;
    }
    let frozen = &cluster.servers[0];
    let there = |id: &DeliveryId| cluster.holder(slot_of(&names().sequence(names().shard_of(&id.0)))) != 0;
    // Claims go to it by now, so that one reaches it while it is frozen.
    assert!(h.claims(ask(0, 0)).await.claims.is_empty());
    frozen.signal(Signal::STOP);
    let first: Vec<_> = h.claims(ask(1, 100)).await.claims;
    assert!(!first.is_empty() && first.len() < INTENTS);
    assert!(first.iter().all(|claim| there(&claim.delivery.id)));
    frozen.signal(Signal::CONT);
    let leased = || {
        let shards = (0..SHARDS).map(|shard| String::from_utf8(names().sequence(shard)).unwrap());
        let of =
            |sequence: String| frozen.try_ask::<usize>(&["ZCARD", &sequence.replace("seq", "leases")]).unwrap_or(0);
        shards.map(of).sum::<usize>()
    };
    // It runs what had reached it, one call for each of its shards.
    until("it has given something", PATIENCE, || (leased() > 0).then_some(()));
    // To the others it may have seemed to be gone.
    cluster.wait_until_whole();
    let mut second = Vec::new();
    for nonce in 2..6 {
        // A shard that gave no answer is left alone for a while.
        h.clock.step(1_000);
        second.extend(h.claims(ask(nonce, 100)).await.claims);
    }
    assert_eq!(first.len() + second.len(), INTENTS);
    assert!(second.iter().all(|claim| claim.token.fence == 1), "claimed twice");
    assert!(second.iter().any(|claim| claim.token.nonce == 1), "as it was given");
}

/// What keeps waking a shard without being due must not hold up what was claimed already.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_ends_however_much_is_scheduled_meanwhile() {
    let server = super::Server::plain();
    let clock = ManualClock::new();
    let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
    let store =
        RedisStore::new(Link::to(&server.url()).unwrap(), names(), clocks, Arc::new(Unwatched), crate::redis::mark());
    let h = Arc::new(Harness::over(store, &clock));
    h.create(intent(&h, "due")).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut load = tokio::task::JoinSet::new();
    for caller in 0..16 {
        let (h, stopped) = (h.clone(), stopped.clone());
        load.spawn(async move {
            for n in 0_u32.. {
                if *stopped.borrow() {
                    return;
                }
                h.create(due_in(intent(&h, &format!("{caller}/{n}")), 1_000_000)).await;
            }
        });
    }
    for nonce in 0..50 {
        let claims = h.claims(ask(nonce, 100)).await.claims;
        assert_eq!(claims.len(), usize::from(nonce == 0));
    }
    stop.send_replace(true);
    while let Some(ended) = load.join_next().await {
        ended.unwrap();
    }
}
