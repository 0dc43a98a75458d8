//! Several nodes on one Redis, each with a part of the work.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::run;
use super::running::Running;
use crate::peers::until::until;
use crate::redis::shared;

const PATIENCE: Duration = Duration::from_secs(30);
const KEY: (&str, &str) = ("BELFRY_BOOTSTRAP_KEY", "roles-0123456789abcdef0123456789abcdef");

/// A folder whose nodes share an installation of their own.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(prefix: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{}\"\nprefix = \"{prefix}\"\n\
             [classes.receipt]\norder = \"send_then_record\"\nlease = \"1s\"\nbudget_exempt = true\n",
            shared()
        );
        std::fs::write(folder.path().join("belfry.toml"), config).unwrap();
        Self { folder }
    }

    fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn node(&self, roles: &str) -> Running {
        Running::start(self.dir(), &["--port", "0", "--config", "belfry.toml", "--roles", roles], &[KEY])
    }

    fn json(&self, args: &[&str], node: &Running) -> Value {
        let at = ["--config", "belfry.toml", "--output", "json", "--server", &node.url()];
        let done = run(self.dir(), &[args, &at].concat(), &[KEY, ("BELFRY_API_KEY", KEY.1)]);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        serde_json::from_str(&done.out).unwrap()
    }

    fn send(&self, to: &str, node: &Running) -> String {
        let args = ["send", "--class", "receipt", "--to", to, "--subject", "Hello", "--text", "It works."];
        self.json(&args, node)["notification"]["id"].as_str().unwrap().to_owned()
    }

    fn state(&self, id: &str, node: &Running) -> String {
        self.json(&["status", id], node)["state"].as_str().unwrap().to_owned()
    }

    fn comes_to(&self, state: &str, id: &str, node: &Running) {
        until(state, PATIENCE, || (self.state(id, node) == state).then_some(()));
    }
}

/// Over a plain socket: what a node answers to a path without a key.
fn asked(node: &Running, path: &str) -> String {
    use std::io::{Read, Write};
    let address = node.told["address"].as_str().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn one_node_accepts_and_another_delivers() {
    let site = Site::new("roles-two");
    let api = site.node("api");
    let id = site.send("ada@example.com", &api);
    assert_eq!(site.state(&id, &api), "queued", "nobody is there who would deliver it");
    let none = "no worker is there: nothing is sent";
    assert!(asked(&api, "/readyz?verbose").contains(none));
    let look = |args: &[&str]| run(site.dir(), &[args, &["--config", "belfry.toml"]].concat(), &[KEY]);
    let (doctor, status) = (look(&["doctor"]), look(&["status"]));
    assert!(doctor.code == 3 && doctor.out.contains(none), "{doctor:?}");
    assert!(status.code == 0 && status.out.contains(none), "{status:?}");
    let worker = site.node("worker");
    site.comes_to("accepted", &id, &api);
    for (path, status) in [
        ("/livez", "200"),
        ("/readyz", "200"),
        ("/metrics", "200"),
        ("/v1/notifications", "404"),
        ("/admin", "404"),
        ("/openapi.json", "404"),
        ("/", "404"),
    ] {
        assert!(asked(&worker, path).starts_with(&format!("HTTP/1.1 {status} ")), "{path}");
    }
    let ready = asked(&worker, "/readyz?verbose");
    assert!(ready.contains("\"roles\":[\"worker\"]") && ready.contains("1 worker is there"), "{ready}");
    assert!(asked(&worker, "/metrics").contains("belfry_"));
    assert_eq!(worker.told["roles"], serde_json::json!(["worker"]));
    assert_eq!(worker.told.get("api"), None, "it has none");
    assert!(worker.told.get("api_key").is_none(), "a key that nobody could use there");
    assert_eq!(site.json(&["status"], &api)["roles"], serde_json::json!(["api"]));
    let doctor = look(&["doctor"]);
    assert!(doctor.code == 0 && doctor.out.contains("1 worker is there"), "{doctor:?}");
    assert!(doctor.out.contains(&format!("ready at {} as api", api.url())), "{doctor:?}");
    worker.signal(Signal::TERM);
    let (ended, log) = worker.ended();
    assert!(ended.success() && log.contains("roles=\"worker\"") || log.contains("\"roles\":\"worker\""), "{log}");
}

#[test]
fn without_its_configuration_a_command_uses_the_server_that_runs_here_or_says_what_is_missing() {
    let site = Site::new("roles-plain");
    let away = run(site.dir(), &["restored"], &[]);
    assert!(away.code == 1 && away.err.contains("there is no store yet") && away.err.contains("--config"), "{away:?}");
    let node = site.node("api,worker,scheduler");
    let bare = run(site.dir(), &["restored"], &[]);
    assert!(bare.code == 1 && bare.err.contains("--api-key-file or BELFRY_API_KEY"), "{bare:?}");
    let here = run(site.dir(), &["restored"], &[KEY]);
    assert!(here.code == 0 && here.out.starts_with("Nothing is held"), "{here:?}");
    let keys = run(site.dir(), &["keys", "list"], &[KEY]);
    assert_eq!(keys.code, 0, "{keys:?}");
    let doctor = run(site.dir(), &["doctor"], &[]);
    let said = format!("ready at {} as api, worker, scheduler, on another store", node.url());
    assert!(doctor.code == 0 && doctor.out.contains(&said) && doctor.out.contains("--config"), "{doctor:?}");
}

#[test]
fn the_address_of_a_node_that_ended_misleads_nobody() {
    let site = Site::new("roles-two-here");
    // Given back just before it is used.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let listen = ("BELFRY__HTTP__LISTEN", &*free);
    let first = Running::start(site.dir(), &["--config", "belfry.toml"], &[KEY, listen]);
    let second = site.node("api,worker,scheduler");
    let status = || run(site.dir(), &["status", "--config", "belfry.toml"], &[KEY, listen]);
    assert!(status().out.starts_with(&second.url()), "{:?}", status());
    let (left, url) = (site.dir().join(".belfry/server"), second.url());
    second.signal(Signal::TERM);
    assert!(second.ended().0.success());
    assert!(!left.exists(), "it took its address away");
    assert!(status().out.starts_with(&first.url()), "{:?}", status());
    // One that was killed takes nothing away.
    std::fs::write(&left, url).unwrap();
    let (there, doctor) = (status(), run(site.dir(), &["doctor", "--config", "belfry.toml"], &[KEY, listen]));
    assert!(there.code == 0 && there.out.starts_with(&first.url()), "{there:?}");
    assert!(doctor.out.contains(&format!("ready at {}", first.url())), "{doctor:?}");
    first.signal(Signal::TERM);
    assert!(first.ended().0.success());
    assert!(left.exists(), "another's address is left alone");
}

#[test]
fn what_is_in_memory_is_told_as_such_whatever_is_configured() {
    let site = Site::new("roles-memory");
    let node = Running::start(site.dir(), &["--port", "0", "--config", "belfry.toml", "--ephemeral"], &[KEY]);
    node.signal(Signal::TERM);
    let log = node.ended().1;
    assert!(log.contains("store=\"memory\"") && !log.contains("store=\"redis\""), "{log}");
}

#[test]
fn a_node_that_only_schedules_takes_over_what_a_killed_worker_left() {
    let site = Site::new("roles-left");
    let api = site.node("api");
    let worker = site.node("worker");
    let id = site.send("ada+sim-slow@example.com", &api);
    site.comes_to("sending", &id, &api);
    // kill -9, with its call open.
    drop(worker);
    let scheduler = site.node("scheduler");
    site.comes_to("queued", &id, &api);
    let told = site.json(&["status", &id], &api).to_string();
    assert!(told.contains("lapsed"), "{told}");
    assert_eq!(site.state(&id, &api), "queued", "the scheduler calls nobody");
    let _other = site.node("worker,scheduler");
    site.comes_to("accepted", &id, &api);
    drop(scheduler);
}

#[test]
fn one_file_wants_one_node_that_does_everything() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |more: &[&str], env: &[(&str, &str)]| {
        let done = run(folder.path(), &[&["serve", "--port", "0"], more].concat(), env);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(!folder.path().join(".belfry").exists(), "nothing was begun");
        done.err
    };
    for refused in [
        serve(&["--roles", "api,worker"], &[]),
        serve(&[], &[("BELFRY_ROLES", "scheduler")]),
        serve(&["--ephemeral", "--roles", "worker"], &[]),
    ] {
        assert!(refused.contains("one node has the store to itself"), "{refused}");
        assert!(refused.contains("store.kind = \"redis\""), "what to do about it: {refused}");
    }
    let unknown = serve(&["--roles", "api,mailer"], &[]);
    assert!(unknown.contains("there are api, worker and scheduler"), "{unknown}");
}
