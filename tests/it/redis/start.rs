//! A server that starts before its Redis.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Server;
use crate::peers::until::until;

const WITHIN: Duration = Duration::from_secs(20);

struct Running(Child);

impl Running {
    fn ends(&mut self) -> Option<i32> {
        until("it ends", WITHIN, || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn serve(folder: &std::path::Path, redis: &str, more: &str) -> Running {
    let config = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n[store]\nkind = \"redis\"\n\
         [store.redis]\nurl = \"{redis}\"\n{more}"
    );
    std::fs::write(folder.join("belfry.toml"), config).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_belfry"))
        .args(["serve", "--port", "0", "--config", "belfry.toml"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    Running(child)
}

#[test]
fn it_waits_for_its_redis_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut redis = Server::plain();
    redis.kill();
    let said = |what: &str| std::fs::read_to_string(folder.path().join("log")).unwrap_or_default().contains(what);
    let _running = serve(folder.path(), &redis.url(), "");
    until("it says that it waits", WITHIN, || said("store_awaited").then_some(()));
    assert!(!said("\"started\""));
    redis.start_again();
    until("it has started", WITHIN, || said("\"started\"").then_some(()));
}

#[test]
fn it_does_not_wait_for_what_only_an_operator_can_mend() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Server::plain();
    let mut running = serve(folder.path(), &redis.url(), "durability = \"fsync\"\n");
    assert_eq!(running.ends(), Some(1));
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("store.redis.durability = \"fsync\" needs appendonly yes"), "{log}");
}

#[test]
fn without_a_number_of_shards_it_takes_what_it_finds() {
    let redis = Server::plain();
    for more in ["shards = 7\n", ""] {
        let folder = tempfile::tempdir().unwrap();
        let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let _running = serve(folder.path(), &redis.url(), more);
        until("it has started", WITHIN, || log().contains("\"started\"").then_some(()));
        let shards: usize = redis.ask(&["HGET", "belfry:{i}:install", "shards"]);
        assert_eq!(shards, 7);
    }
}

#[test]
fn another_number_of_shards_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Server::plain();
    let first = serve(folder.path(), &redis.url(), "shards = 4\n");
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    until("it has started", WITHIN, || log().contains("\"started\"").then_some(()));
    drop(first);
    let mut second = serve(folder.path(), &redis.url(), "shards = 5\n");
    assert_eq!(second.ends(), Some(1));
    assert!(log().contains("store.redis.shards: 5 asked for, but this installation has 4"), "{}", log());
}
