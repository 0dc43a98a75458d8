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
    assert!(asked(&worker, "/readyz?verbose").contains("\"roles\":[\"worker\"]"));
    assert!(asked(&worker, "/metrics").contains("belfry_"));
    assert_eq!(worker.told["roles"], serde_json::json!(["worker"]));
    assert_eq!(worker.told.get("api"), None, "it has none");
    assert!(worker.told.get("api_key").is_none(), "a key that nobody could use there");
    assert_eq!(site.json(&["status"], &api)["roles"], serde_json::json!(["api"]));
    let doctor = run(site.dir(), &["doctor", "--config", "belfry.toml"], &[KEY]);
    assert!(doctor.out.contains(&format!("ready at {} as api", api.url())), "{doctor:?}");
    worker.signal(Signal::TERM);
    let (ended, log) = worker.ended();
    assert!(ended.success() && log.contains("roles=\"worker\"") || log.contains("\"roles\":\"worker\""), "{log}");
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
