//! How a server comes and goes: what it tells, and to whom.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::running::Running;
use super::{belfry, run};
use crate::peers::until::until;

#[test]
fn a_life_is_logged_from_start_to_stop() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("belfry.toml"), "[providers.pretend]\nkind = \"outbox\"\n[classes.news]\norder = \"record_then_send\"\ntitles = { en = \"Summaries\" }\n").unwrap();
    let server =
        Running::start(dir.path(), &["--port", "0", "--config", "belfry.toml"], &[("BELFRY__LOG__FORMAT", "json")]);
    let address = server.told["address"].as_str().unwrap().to_owned();
    server.signal(Signal::HUP);
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let fact = |name: &str| lines.iter().find(|line| line["fact"] == name).unwrap_or_else(|| panic!("{name} in {log}"));
    let started = fact("started");
    for (key, value) in [
        ("version", env!("CARGO_PKG_VERSION")),
        ("listen", &address),
        ("store", "sqlite"),
        ("config", "belfry.toml"),
        ("providers", "pretend"),
        ("key_file", ".belfry/api-key"),
    ] {
        assert_eq!(started[key], *value, "{started}");
    }
    let noted = fact("config_noted");
    assert_eq!((&noted["level"], &noted["key"]), (&"WARN".into(), &"classes.news.titles.en".into()), "{noted}");
    assert_eq!(fact("end_asked")["signal"], "SIGTERM");
    assert_eq!(fact("draining")["calls"], 0);
    assert_eq!(fact("stopped")["broken_off"], 0);
    let order: Vec<&str> = lines.iter().filter_map(|line| line["fact"].as_str()).collect();
    let at = |name: &str| order.iter().position(|one| *one == name);
    assert!(at("started") < at("end_asked") && at("end_asked") < at("draining") && at("draining") < at("stopped"));
}

struct Piped(Child);

impl Drop for Piped {
    fn drop(&mut self) {
        // Already ended in the good case.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Serves with both outputs on pipes until it is up, and returns all that was written to each.
fn served(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> (String, String) {
    let args = [&["serve", "--port", "0"], args].concat();
    let mut child = belfry(dir, &args, env).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map(Piped).unwrap();
    let mut log = BufReader::new(child.0.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("started") {
        assert_ne!(log.read_line(&mut told).unwrap(), 0, "{told}");
    }
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    until("the server ends", Duration::from_secs(60), || child.0.try_wait().unwrap());
    log.read_to_string(&mut told).unwrap();
    let mut out = String::new();
    child.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    (out, told)
}

#[test]
fn a_journal_never_holds_the_first_key() {
    for env in [&[][..], &[("BELFRY__LOG__FORMAT", "json")]] {
        let dir = tempfile::tempdir().unwrap();
        let (out, log) = served(dir.path(), &[], env);
        let key = std::fs::read_to_string(dir.path().join(".belfry/api-key")).unwrap();
        assert!(!out.contains(key.trim()) && !log.contains(key.trim()), "{out}\n{log}");
        if env.is_empty() {
            assert!(out.contains("kept in .belfry/api-key") && out.contains("$(cat .belfry/api-key)"), "{out}");
        } else {
            assert_eq!(out, "", "a banner is no line of JSON");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (out, _) = served(dir.path(), &["--ephemeral"], &[]);
    assert!(out.contains("blf_live_"), "kept nowhere, so it has to be told: {out}");
}

#[test]
fn with_a_key_of_the_operators_own_the_curl_names_its_variable() {
    let dir = tempfile::tempdir().unwrap();
    let (out, _) = served(dir.path(), &[], &[("BELFRY_BOOTSTRAP_KEY", "a-bootstrap-key-of-40-visible-characters")]);
    assert!(out.contains("Bearer $BELFRY_BOOTSTRAP_KEY\"") && !out.contains("a-bootstrap-key"), "{out}");
}

#[test]
fn a_second_server_says_that_one_runs_here() {
    let dir = tempfile::tempdir().unwrap();
    let first = Running::start(dir.path(), &["--port", "0"], &[]);
    let address = first.told["address"].as_str().unwrap();
    let same = run(dir.path(), &["serve"], &[("BELFRY__HTTP__LISTEN", address)]);
    assert!(same.code == 1 && same.err.contains("Belfry runs here already"), "{same:?}");
    let other_port = run(dir.path(), &["serve", "--port", "0"], &[]);
    assert!(
        other_port.code == 1 && other_port.err.contains("another Belfry has .belfry/belfry.db open"),
        "{other_port:?}"
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let taken = run(elsewhere.path(), &["serve"], &[("BELFRY__HTTP__LISTEN", address)]);
    assert!(taken.code == 1 && taken.err.contains("is in use by another program"), "{taken:?}");
}
