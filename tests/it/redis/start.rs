//! A server that starts before its Redis.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::Server;
use super::server::Options;
use crate::peers::signal;
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

/// Where the node in `folder` listens, as commands find it.
fn listens(folder: &Path) -> SocketAddr {
    let file = folder.join(".belfry/server");
    let url = until("it leaves its address", WITHIN, || std::fs::read_to_string(&file).ok());
    url.trim().strip_prefix("http://").unwrap().parse().unwrap()
}

/// One request on a connection that stays open, up to the end of its answer.
fn asked(stream: &mut TcpStream, head: &str) -> String {
    write!(stream, "{head} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut text = Vec::new();
    let whole = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        (Some(body.len()) == length).then(|| text.clone())
    };
    loop {
        if let Some(text) = whole(&text) {
            return text;
        }
        let mut part = [0; 1024];
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "closed after {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&part[..read]);
    }
}

fn command(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_belfry")).args(args).current_dir(folder).output().unwrap()
}

#[test]
fn while_it_waits_it_lives_and_says_why_it_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut redis = Server::plain();
    redis.kill();
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let mut running = serve(folder.path(), &redis.url(), "");
    let mut stream = TcpStream::connect(listens(folder.path())).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let live = asked(&mut stream, "GET /livez");
    assert!(live.starts_with("HTTP/1.1 200 ") && live.ends_with("{\"alive\":true}"), "{live}");
    let why = format!("Redis at {}", redis.address());
    let ready = until("it says what it waits for", WITHIN, || {
        let ready = asked(&mut stream, "GET /readyz");
        assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("\"ready\":false"), "{ready}");
        ready.contains(&why).then_some(ready)
    });
    assert!(ready.contains("waiting for the store since 2"), "{ready}");
    assert!(asked(&mut stream, "GET /readyz?verbose").contains(&why));
    assert!(asked(&mut stream, "GET /metrics").contains("belfry_"));
    for head in ["POST /v1/notifications", "GET /admin", "DELETE /livez"] {
        let away = asked(&mut stream, head);
        assert!(away.starts_with("HTTP/1.1 503 ") && away.contains("retry-after: 1\r\n"), "{away}");
        assert!(away.contains("application/problem+json") && away.contains("store_unavailable"), "{away}");
    }

    // What looks at it says the same, and soon.
    let began = Instant::now();
    let doctor = command(folder.path(), &["doctor", "--config", "belfry.toml"]);
    let (took, told) = (began.elapsed(), String::from_utf8(doctor.stdout).unwrap());
    assert_eq!(doctor.status.code(), Some(3), "{told}");
    assert!(told.contains("not ready: waiting for the store since") && told.contains(&why), "{told}");
    assert!(took < WITHIN, "{took:?}");
    for args in [&["keys", "list"][..], &["restored"], &["drill", "--redis", &redis.url()]] {
        let refused = command(folder.path(), &[args, &["--config", "belfry.toml"]].concat());
        assert_eq!(refused.status.code(), Some(75), "{args:?}: {refused:?}");
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }

    redis.start_again();
    until("it has started", WITHIN, || log().contains("\"started\"").then_some(()));
    assert!(asked(&mut stream, "GET /readyz").starts_with("HTTP/1.1 200 "), "on the same connection");
    assert!(asked(&mut stream, "GET /v1/notifications").starts_with("HTTP/1.1 401 "));
    let waits = log().lines().filter(|line| line.contains("store_awaited")).count();
    // The reason may change once while the server ends.
    assert!((1..=3).contains(&waits), "{waits} lines of one wait: {}", log());
    signal::send(Pid::from_child(&running.0), Signal::TERM);
    assert_eq!(running.ends(), Some(0));
    assert!(!folder.path().join(".belfry/server").exists(), "nobody is there any more");
}

#[test]
fn while_it_waits_it_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut redis = Server::plain();
    redis.kill();
    let mut running = serve(folder.path(), &redis.url(), "");
    let _open = TcpStream::connect(listens(folder.path())).unwrap();
    signal::send(Pid::from_child(&running.0), Signal::TERM);
    assert_eq!(running.ends(), Some(0));
    assert!(!folder.path().join(".belfry/server").exists());
}

#[test]
fn a_look_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Server::plain();
    std::fs::write(
        folder.path().join("belfry.toml"),
        format!("[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{}\"\n", redis.url()),
    )
    .unwrap();
    let looked = |args: &[&str]| {
        let done = command(folder.path(), &[args, &["--config", "belfry.toml"]].concat());
        (done.status.code(), String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap())
    };
    let (code, told) = looked(&["doctor"]);
    assert!(code == Some(0) && told.contains("nothing has been started here yet"), "{told}");
    for args in [&["keys", "list"][..], &["restored"]] {
        let (code, told) = looked(args);
        assert!(code == Some(1) && told.contains("nothing has been started here yet"), "{told}");
    }
    let begun: bool = redis.ask(&["EXISTS", "belfry:{i}:install"]);
    assert!(!begun, "the next start has its say about the number of shards");

    // The number that was fixed is found, whatever the default is.
    let running = serve(folder.path(), &redis.url(), "shards = 7\n");
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    until("it has started", WITHIN, || log().contains("\"started\"").then_some(()));
    let line = log().lines().find(|line| line.contains("\"started\"")).unwrap().to_owned();
    for part in [&format!("\"store_at\":\"{}\"", redis.address())[..], "\"durability\":\"ack\""] {
        assert!(line.contains(part), "{part} in {line}");
    }
    std::fs::write(
        folder.path().join("belfry.toml"),
        format!("[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{}\"\n", redis.url()),
    )
    .unwrap();
    until("the worker is seen", WITHIN, || looked(&["doctor"]).1.contains("1 worker is there").then_some(()));
    let (code, told) = looked(&["doctor"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("note") && told.contains("keeps nothing on disk"), "{told}");
    drop(running);
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

/// A node that is replaced while the replica is away must not be missing as well.
#[test]
fn it_waits_for_the_replica_that_answers_have_to_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Server::plain();
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let _running = serve(folder.path(), &redis.url(), "durability = \"replicas:1\"\n");
    until("it says that it waits", WITHIN, || log().contains("store_awaited").then_some(()));
    assert!(log().contains("NOTDURABLE") && log().contains(&redis.address()), "{}", log());
    let _replica = Server::start(Options::default().with(&format!("replicaof 127.0.0.1 {}", redis.port())));
    until("it has started", WITHIN, || log().contains("\"started\"").then_some(()));
}
