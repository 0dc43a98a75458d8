//! The link to one server: scripts that were lost, connections that were closed, a server that
//! freezes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belfry::ports::StoreError;
use belfry::store::redis::link::{Durability, Link, LinkSettings, Need, Wake};
use redis::Value;
use rustix::process::Signal;

use super::calls::{Calls, settings, until_ok};
use super::server::{Options, PATIENCE, Server, free_ports};
use super::shared::{shared, shared_cluster};
use crate::peers::until::until;

const WITHIN_A_CALL: Duration = Duration::from_millis(1_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_35_an_emptied_script_cache_is_never_seen() {
    const TASKS: usize = 8;
    const EACH: usize = 300;
    let server = Server::plain();
    let calls = Arc::new(Calls::to(&server.url(), "s"));
    let done = Arc::new(AtomicBool::new(false));
    let flushing = tokio::task::spawn_blocking({
        let (mut connection, done) = (server.connection(), done.clone());
        move || {
            let mut flushes = 0;
            while !done.load(Ordering::SeqCst) {
                let () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut connection).unwrap();
                flushes += 1;
            }
            flushes
        }
    });
    let tasks: tokio::task::JoinSet<()> = (0..TASKS)
        .map(|task| {
            let calls = calls.clone();
            async move {
                for number in 0..EACH {
                    calls.add(&format!("{task}-{number}"), Need::Durable).await.unwrap();
                }
            }
        })
        .collect();
    tasks.join_all().await;
    done.store(true, Ordering::SeqCst);
    assert!(flushing.await.unwrap() > 10);
    assert_eq!(server.ask::<usize>(&["GET", "test:{s}:number"]), TASKS * EACH);
}

#[tokio::test]
async fn case_97_of_a_pipeline_only_the_call_that_was_unknown_runs_again() {
    const CALLS: usize = 50;
    let primary = Server::plain();
    let replica = Server::start(Options::default().with(&format!("replicaof 127.0.0.1 {}", primary.port())));
    until("the replica is in step", PATIENCE, || {
        primary.ask::<String>(&["INFO", "replication"]).contains("state=online").then_some(())
    });
    let calls = Calls::durable(&primary.url(), "s", Durability::Replicas(1));
    // Known: the first. Then all together share pipelines in which one script is unknown.
    calls.count(Need::Durable).await.unwrap();
    let () = primary.ask(&["SCRIPT", "FLUSH"]);
    let known = calls.add("known", Need::Durable).await;
    known.unwrap();
    let (counted, added) = futures::join!(
        futures::future::join_all((0..CALLS).map(|_| calls.count(Need::Durable))),
        futures::future::join_all((0..CALLS).map(async |number| calls.add(&number.to_string(), Need::Durable).await)),
    );
    assert!(counted.iter().chain(&added).all(Result::is_ok), "{counted:?} {added:?}");
    for server in [&primary, &replica] {
        assert_eq!(server.ask::<usize>(&["GET", "test:{s}:runs"]), CALLS + 1);
        assert_eq!(server.ask::<usize>(&["GET", "test:{s}:number"]), CALLS + 1);
    }
}

#[tokio::test]
async fn case_62_a_connection_that_the_server_closed_is_no_error() {
    let server = Server::start(Options::default().with("timeout 1"));
    let calls = Calls::to(&server.url(), "s");
    for number in 0..50 {
        calls.add(&number.to_string(), Need::Done).await.unwrap();
        calls.add(&number.to_string(), Need::Durable).await.unwrap();
        let closed: usize = server.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        assert!(closed >= 2, "{closed}");
    }
    // The server's own idle limit, waited for by looking for who is left.
    until("the idle are closed", PATIENCE, || {
        (server.ask::<String>(&["CLIENT", "LIST"]).lines().count() == 1).then_some(())
    });
    calls.add("last", Need::Done).await.unwrap();
    assert_eq!(server.ask::<usize>(&["GET", "test:{s}:number"]), 51);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_fails_calls_in_time_and_is_used_again_when_it_thaws() {
    let server = Server::plain();
    let calls = Calls::to(&server.url(), "s");
    calls.add("before", Need::Done).await.unwrap();
    server.signal(Signal::STOP);
    for _ in 0..2 {
        let begun = Instant::now();
        let errors = futures::join!(calls.add("during", Need::Done), calls.add("during", Need::Durable));
        assert!(errors.0.is_err() && errors.1.is_err());
        assert!(begun.elapsed() < WITHIN_A_CALL, "{:?}", begun.elapsed());
    }
    server.signal(Signal::CONT);
    let begun = Instant::now();
    until_ok(Duration::from_secs(5), async || calls.add("after", Need::Done).await).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_is_gone_fails_calls_at_once_and_is_used_again_when_it_is_back() {
    let mut server = Server::plain();
    let calls = Calls::to(&server.url(), "s");
    calls.add("before", Need::Done).await.unwrap();
    server.kill();
    let error = calls.add("during", Need::Done).await.unwrap_err().to_string();
    assert!(error.contains("refused or closed"), "{error}");
    server.start_again();
    until_ok(Duration::from_secs(5), async || calls.add("after", Need::Done).await).await;
}

#[tokio::test]
async fn wakes_are_heard_and_a_lost_connection_is_told() {
    let server = Server::plain();
    let heard: Arc<Mutex<Vec<Wake>>> = Arc::default();
    let calls = Calls::to(&server.url(), "s");
    calls.link.wakes(Arc::new({
        let heard = heard.clone();
        move |wake| heard.lock().unwrap().push(wake)
    }));
    let hears = async |what: &[Wake]| {
        let heard_it = async || {
            let heard = heard.lock().unwrap().clone();
            if heard == what { Ok(()) } else { Err(StoreError::Unavailable(format!("{heard:?}"))) }
        };
        until_ok(PATIENCE, heard_it).await;
    };
    let seven = Wake::Shard { shard: 7, by: 9 };
    hears(&[Wake::Missed]).await;
    assert_eq!(server.ask::<usize>(&["PUBLISH", "belfry:wake", "7 9"]), 1);
    hears(&[Wake::Missed, seven]).await;
    assert_eq!(server.ask::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]), 1);
    hears(&[Wake::Missed, seven, Wake::Missed]).await;
}

/// Trusted by the file of roots, and by nothing else.
#[tokio::test]
async fn under_tls_the_certificate_must_be_by_a_trusted_root() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let [port] = free_ports();
    let options = Options::default()
        .with(&format!("tls-port {port}"))
        .with(&format!("tls-cert-file {}", certificate.display()))
        .with(&format!("tls-key-file {}", key.display()))
        .with(&format!("tls-ca-cert-file {}", certificate.display()))
        .with("tls-auth-clients no");
    let server = Server::start(options);
    let plain = settings(&format!("rediss://127.0.0.1:{port}"), Durability::Ack);
    let trusting = LinkSettings { ca_file: Some(certificate), ..plain.clone() };
    Calls::new(Link::with(trusting).unwrap(), "s").add("one", Need::Durable).await.unwrap();
    assert!(Calls::new(Link::with(plain).unwrap(), "s").add("two", Need::Durable).await.is_err());
    assert_eq!(server.ask::<usize>(&["GET", "test:{s}:number"]), 1);
}

#[tokio::test]
async fn one_server_and_a_cluster_serve_calls_under_any_tag() {
    for url in [shared(), shared_cluster()] {
        for number in 0..20 {
            let calls = Calls::to(&url, &format!("any-{number}"));
            assert_eq!(calls.add("one", Need::Durable).await, Ok(Value::BulkString(b"1".to_vec())));
            calls.link.settled().await.unwrap();
            assert_eq!(calls.link.check().await, []);
        }
    }
}

#[tokio::test]
async fn case_5_a_server_that_may_evict_is_found_unless_that_is_meant() {
    let server = Server::start(Options::default().with("maxmemory-policy allkeys-lru"));
    let found = Link::to(&server.url()).unwrap().check().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, "eviction");
    assert!(found[0].text.contains("maxmemory-policy is allkeys-lru"), "{}", found[0].text);
    let meant = Link::with(LinkSettings { allow_eviction: true, ..settings(&server.url(), Durability::Ack) });
    assert_eq!(meant.unwrap().check().await, []);
}

#[tokio::test]
async fn case_5_a_full_server_acknowledges_nothing_and_says_why() {
    let server = Server::plain();
    let calls = Calls::to(&server.url(), "s");
    calls.add("before", Need::Durable).await.unwrap();
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = calls.add("during", Need::Durable).await.unwrap_err().to_string();
    assert!(error.contains("Redis is out of memory (maxmemory reached)"), "{error}");
    let found = calls.link.check().await;
    assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), ["writes"], "{found:?}");
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    calls.add("after", Need::Durable).await.unwrap();
    assert_eq!(calls.has("during", Need::Done).await, Ok(Value::Int(0)));
}

#[tokio::test]
async fn a_password_is_used_and_a_wrong_one_is_named_without_being_shown() {
    let server = Server::start(Options::default().with("requirepass right-word"));
    let good = format!("redis://:right-word@{}", server.address());
    Calls::to(&good, "s").add("one", Need::Done).await.unwrap();
    let bad = format!("redis://:wrong-word@{}", server.address());
    let error = Calls::to(&bad, "s").add("one", Need::Done).await.unwrap_err().to_string();
    assert!(error.contains("refuses the user or the password") && !error.contains("wrong-word"), "{error}");
    let error = Calls::to(&server.url(), "s").add("one", Need::Done).await.unwrap_err().to_string();
    assert!(error.contains("store.redis.password_file"), "{error}");
}
