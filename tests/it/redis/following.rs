//! Primaries that change: by Sentinel, behind its back, and slot by slot.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belfry::store::redis::link::{Durability, Need, slot_of};
use rustix::process::Signal;

use super::calls::{Calls, until_ok};
use super::cluster::Cluster;
use super::sentinel::{NAME, Sentinels};
use super::server::PATIENCE;
use crate::peers::until::until;

/// Failing over is Sentinel's own time: 500 ms until it is sure, then the vote and the promotion.
const SENTINELS_OWN: Duration = Duration::from_secs(10);
const LEFT_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_under_calls_loses_nothing_that_a_replica_had() {
    let set = Sentinels::start(2, 3);
    let calls = Arc::new(Calls::durable(&set.url(), "s", Durability::Replicas(1)));
    calls.add("first", Need::Durable).await.unwrap();
    let kept: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let done = Arc::new(AtomicBool::new(false));
    let tasks: tokio::task::JoinSet<()> = (0..4)
        .map(|task| {
            let (calls, kept, done) = (calls.clone(), kept.clone(), done.clone());
            async move {
                for number in 0.. {
                    if done.load(Ordering::SeqCst) {
                        return;
                    }
                    let token = format!("{task}-{number}");
                    if calls.add(&token, Need::Durable).await.is_ok() {
                        kept.lock().unwrap().insert(token);
                    }
                }
            }
        })
        .collect();
    let count = || kept.lock().unwrap().len();
    wait("calls go through", || count() > 100).await;
    set.servers[0].signal(Signal::STOP);
    let old = set.servers[0].port();
    wait_within("another leads", SENTINELS_OWN, || set.primary_port() != old).await;
    let (before, begun) = (count(), Instant::now());
    wait_within("calls go through again", LEFT_WITHIN, || count() > before + 10).await;
    assert!(begun.elapsed() < LEFT_WITHIN);
    // The old one comes back and still believes that it leads.
    set.servers[0].signal(Signal::CONT);
    let before = count();
    wait("calls still go through", || count() > before + 100).await;
    done.store(true, Ordering::SeqCst);
    tasks.join_all().await;
    let port = set.primary_port();
    let leader = set.servers.iter().find(|server| server.port() == port).unwrap();
    let there: BTreeSet<String> = leader.ask(&["SMEMBERS", "test:{s}:set"]);
    let lost: Vec<_> = kept.lock().unwrap().difference(&there).cloned().collect();
    assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_primary_that_keeps_its_socket_is_left() {
    let set = Sentinels::start(1, 1);
    let calls = Calls::to(&set.url(), "s");
    calls.add("before", Need::Done).await.unwrap();
    let (old, new, sentinel) = (&set.servers[0], &set.servers[1], &set.sentinels[0]);
    // Behind the sentinel's back, so that it closes nobody's connection.
    let () = sentinel.ask(&["SENTINEL", "REMOVE", NAME]);
    let () = new.ask(&["REPLICAOF", "NO", "ONE"]);
    let () = old.ask(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
    let refused = calls.add("during", Need::Done).await.unwrap_err().to_string();
    assert!(refused.contains("read-only replica") || refused.contains("no server"), "{refused}");
    let () = sentinel.ask(&["SENTINEL", "MONITOR", NAME, "127.0.0.1", &new.port().to_string(), "1"]);
    until_ok(LEFT_WITHIN, async || calls.add("after", Need::Done).await).await;
    assert_eq!(new.ask::<usize>(&["SISMEMBER", "test:{s}:set", "after"]), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_94_a_slot_that_moves_under_calls_is_followed_and_loses_nothing() {
    let cluster = Cluster::start();
    let calls = Calls::to(&cluster.url(), "moving");
    let slot = slot_of(&calls.key("set"));
    let from = cluster.holder(slot);
    let to = (from + 1) % 3;
    calls.add("before", Need::Durable).await.unwrap();
    cluster.begin_move(slot, from, to);
    // Nothing has moved yet: the keys are all still there.
    calls.add("begun", Need::Durable).await.unwrap();
    assert_eq!(cluster.move_keys(slot, from, to, 1), 1);
    let error = calls.add("half", Need::Durable).await.unwrap_err().to_string();
    assert!(error.contains("the shard is unavailable until it has arrived"), "{error}");
    while cluster.move_keys(slot, from, to, 10) > 0 {}
    let error = calls.add("all but done", Need::Durable).await.unwrap_err().to_string();
    assert!(error.contains("(ASK)"), "{error}");
    // Others are served meanwhile.
    Calls::to(&cluster.url(), "resting").add("one", Need::Durable).await.unwrap();
    cluster.end_move(slot, from, to);
    calls.add("after", Need::Durable).await.unwrap();
    let there: BTreeSet<String> = cluster.servers[to].ask(&["SMEMBERS", "test:{moving}:set"]);
    assert_eq!(there, BTreeSet::from(["before", "begun", "after"].map(str::to_owned)));
    assert_eq!(calls.link.check().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_reached_by_any_of_its_servers_and_a_lost_one_takes_only_its_slots() {
    let mut cluster = Cluster::start();
    for server in &cluster.servers {
        let () = server.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let tags: Vec<String> = (0..3).map(|place| tag_at(&cluster, place)).collect();
    // Only the last is named.
    let url = format!("redis+cluster://{}", cluster.servers[2].address());
    let calls: Vec<Calls> = tags.iter().map(|tag| Calls::to(&url, tag)).collect();
    for one in &calls {
        one.add("before", Need::Done).await.unwrap();
    }
    cluster.servers[0].kill();
    assert!(calls[0].add("during", Need::Done).await.is_err());
    for one in &calls[1..] {
        until_ok(LEFT_WITHIN, async || one.add("during", Need::Done).await).await;
    }
    assert!(calls[0].link.check().await.iter().any(|one| one.code == "unreachable" || one.code == "slots"));
    cluster.servers[0].start_again();
    until_ok(SENTINELS_OWN, async || calls[0].add("after", Need::Done).await).await;
}

fn tag_at(cluster: &Cluster, place: usize) -> String {
    (0..).map(|number: u32| number.to_string()).find(|tag| cluster.holder(slot_of(tag.as_bytes())) == place).unwrap()
}

async fn wait(what: &'static str, found: impl FnMut() -> bool) {
    wait_within(what, PATIENCE, found).await;
}

/// Other tasks go on meanwhile.
async fn wait_within(what: &'static str, within: Duration, mut found: impl FnMut() -> bool) {
    tokio::task::block_in_place(|| until(what, within, || found().then_some(())));
}
