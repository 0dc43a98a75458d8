//! What an answer waits for.

use std::time::{Duration, Instant};

use belfry::store::redis::link::{Durability, Link, Need};
use redis::Value;
use rustix::process::Signal;

use super::calls::{Calls, settings, until_ok};
use super::server::{Options, PATIENCE, Server};
use super::valkey::valkey;
use crate::peers::until::until;

fn pair() -> (Server, Server) {
    let primary = Server::plain();
    let replica = Server::start(Options::default().with(&format!("replicaof 127.0.0.1 {}", primary.port())));
    until("the replica is in step", PATIENCE, || {
        primary.ask::<String>(&["INFO", "replication"]).contains("state=online").then_some(())
    });
    (primary, replica)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_replicas_1_an_answer_waits_for_the_replica_and_other_calls_do_not() {
    let (primary, replica) = pair();
    let calls = Calls::durable(&primary.url(), "s", Durability::Replicas(1));
    calls.add("both", Need::Durable).await.unwrap();
    assert_eq!(replica.ask::<usize>(&["SISMEMBER", "test:{s}:set", "both"]), 1);
    replica.signal(Signal::STOP);
    let begun = Instant::now();
    let error = calls.add("one", Need::Durable).await.unwrap_err().to_string();
    assert!(error.contains("the record stays, but is not yet as durable"), "{error}");
    assert!(begun.elapsed() < Duration::from_millis(1_600), "{:?}", begun.elapsed());
    // A call that waits for nothing is not held up by those that wait.
    let (waiting, at_once) = futures::join!(calls.add("two", Need::Durable), async {
        let begun = Instant::now();
        calls.has("one", Need::Done).await.map(|found| (found, begun.elapsed()))
    });
    assert!(waiting.is_err());
    let (found, took) = at_once.unwrap();
    assert_eq!(found, Value::Int(1), "the record stays");
    assert!(took < Duration::from_millis(400), "{took:?}");
    // Neither a repeat's answer nor what was read before counts as durable.
    assert!(calls.has("one", Need::Durable).await.is_err());
    assert!(calls.link.settled().await.is_err());
    assert_eq!(calls.link.check().await.iter().map(|one| one.code).collect::<Vec<_>>(), ["durability"]);
    replica.signal(Signal::CONT);
    until_ok(Duration::from_secs(5), async || calls.has("one", Need::Durable).await).await;
    assert_eq!(replica.ask::<usize>(&["SISMEMBER", "test:{s}:set", "one"]), 1);
    calls.link.settled().await.unwrap();
}

/// Another connection wrote it: the reader's own last write says nothing about it.
#[tokio::test]
async fn what_was_only_read_waits_as_well() {
    let (primary, replica) = pair();
    let (writer, reader) = (
        Calls::durable(&primary.url(), "s", Durability::Replicas(1)),
        Calls::durable(&primary.url(), "s", Durability::Replicas(1)),
    );
    reader.add("warm", Need::Durable).await.unwrap();
    replica.signal(Signal::STOP);
    writer.add("token", Need::Done).await.unwrap();
    assert!(reader.has("token", Need::Durable).await.is_err());
    replica.signal(Signal::CONT);
    until_ok(Duration::from_secs(5), async || reader.has("token", Need::Durable).await).await;
}

#[tokio::test]
async fn fsync_is_refused_where_it_cannot_be_had() {
    for (lines, wanted) in [
        (&[][..], Err("needs appendonly yes")),
        (&["appendonly yes"][..], Err("needs appendfsync always on the Redis server, or Redis 7.2")),
        (&["appendonly yes", "appendfsync always"][..], Ok(())),
    ] {
        let options = lines.iter().fold(Options::default(), |options, line| options.with(line));
        let server = Server::start(options);
        let opened = Link::open(settings(&server.url(), Durability::Fsync)).await;
        match (wanted, opened) {
            (Ok(()), Ok(link)) => {
                assert_eq!(link.check().await, []);
                // Somebody sets it up otherwise while we run.
                let () = server.ask(&["CONFIG", "SET", "appendfsync", "everysec"]);
                let found = link.check().await;
                assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), ["durability"], "{found:?}");
            }
            (Err(wanted), Err(error)) => assert!(error.to_string().contains(wanted), "{error}"),
            (wanted, opened) => panic!("{lines:?}: wanted {wanted:?}, got {:?}", opened.map(|_| ())),
        }
    }
}

#[tokio::test]
async fn fsync_outlives_a_kill() {
    let mut server = Server::start(Options::default().with("appendonly yes").with("appendfsync always"));
    let calls = Calls::durable(&server.url(), "s", Durability::Fsync);
    for number in 0..20 {
        calls.add(&number.to_string(), Need::Durable).await.unwrap();
    }
    server.kill();
    server.start_again();
    assert_eq!(server.ask::<usize>(&["GET", "test:{s}:number"]), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_server_is_waited_for_with_one_fsync_a_second() {
    let Some(options) = valkey() else { return };
    let mut server = Server::start(options.with("appendonly yes").with("appendfsync everysec"));
    let calls = Calls::new(Link::open(settings(&server.url(), Durability::Fsync)).await.unwrap(), "s");
    assert_eq!(calls.link.check().await, []);
    // Together they need no more than their own time, though the disk is waited for by the second.
    let many =
        futures::future::join_all((0..300).map(async |number| calls.add(&number.to_string(), Need::Durable).await));
    let answers = many.await;
    assert_eq!(
        answers.iter().filter(|answer| answer.is_err()).count(),
        0,
        "{:?}",
        answers.iter().find(|it| it.is_err())
    );
    server.kill();
    server.start_again();
    assert_eq!(server.ask::<usize>(&["SCARD", "test:{s}:set"]), 300);
}

/// The connection stays open, and nobody asks whether the server is ready.
#[tokio::test]
async fn a_server_that_is_set_to_be_less_durable_is_found_out_under_way() {
    let server = Server::start(Options::default().with("appendonly yes").with("appendfsync always"));
    let calls = Calls::new(Link::open(settings(&server.url(), Durability::Fsync)).await.unwrap(), "s");
    calls.add("before", Need::Durable).await.unwrap();
    let () = server.ask(&["CONFIG", "SET", "appendfsync", "everysec"]);
    let mut number = 0;
    let mut add = || {
        number += 1;
        format!("n{number}")
    };
    let error = loop {
        if let Err(error) = calls.add(&add(), Need::Durable).await {
            break error.to_string();
        }
    };
    assert!(error.contains("needs appendfsync always"), "{error}");
    assert!(calls.add(&add(), Need::Durable).await.is_err(), "it stays refused");
    let () = server.ask(&["CONFIG", "SET", "appendfsync", "always"]);
    until_ok(PATIENCE, async || calls.add("after", Need::Durable).await).await;
}
