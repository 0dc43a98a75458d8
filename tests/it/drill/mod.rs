//! The drill, as an operator runs it: it keeps its promises with all guards on, shows what each guard
//! is for, and can be reached from nowhere that serves.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use redis::Commands;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::peers::signal;
use crate::peers::until::until;

const PATIENCE: Duration = Duration::from_secs(60);

fn belfry(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_belfry"));
    command.env_remove("BELFRY_CONFIG").current_dir(std::env::temp_dir()).arg("drill").args(args);
    command
}

fn drilled(args: &[&str]) -> Value {
    let output = belfry(&[args, &["--output", "json"]].concat()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{args:?}: {out}{err}");
    serde_json::from_str(&out).unwrap()
}

/// All of it, once for all tests.
fn whole() -> &'static Value {
    static WHOLE: OnceLock<Value> = OnceLock::new();
    WHOLE.get_or_init(|| drilled(&["--seed", "7"]))
}

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn with_all_guards_on_everybody_gets_one_copy_whatever_goes_wrong() {
    for row in rows(whole()) {
        assert_eq!((&row["with"]["received"], &row["with"]["broken"]), (&1.into(), &Value::Array(Vec::new())), "{row}");
    }
    let hops: BTreeSet<&str> = rows(whole()).iter().map(|row| row["hop"].as_str().unwrap()).collect();
    assert_eq!(hops, BTreeSet::from(["api", "app", "balancer", "device", "provider", "worker"]));
}

#[test]
fn without_a_guard_the_damage_shows_that_it_prevents() {
    let guards = whole()["guards"].as_array().unwrap();
    assert!(guards.len() >= 8, "{guards:?}");
    for guard in guards {
        assert_eq!(guard["shows_damage"], true, "the drill is blind to it: {guard}");
    }
    let without = |guard: &str, fault: &str, class: &str| {
        let of = |row: &&Value| row["guard"] == guard && row["fault"] == fault && row["class"] == class;
        let row = rows(whole()).iter().find(of).unwrap_or_else(|| panic!("{guard}, {fault}, {class}"));
        (row["without"]["received"].as_u64().unwrap(), row["without"]["broken"].to_string())
    };
    let on_the_phone = rows(whole()).iter().filter(|row| row["hop"] == "device");
    let shown: Vec<_> = on_the_phone
        .map(|row| (row["guard"].as_str().unwrap(), row["with"]["calls"].clone(), row["without"]["received"].clone()))
        .collect();
    assert_eq!(
        shown,
        [("one collapse id", 2, 2); 2].map(|(guard, calls, received)| (guard, calls.into(), received.into()))
    );
    let (alo, amo) = ("send_then_record", "record_then_send");
    for (guard, fault, class, received, promise) in [
        ("the record is the key table", "the proxy repeats it to another node", alo, 2, "P2"),
        ("durable before 202", "killed right after the reply", alo, 0, "P1"),
        ("durable before 202", "killed right after the reply", amo, 0, "P1"),
        ("leases lapse", "killed between claim and call", alo, 0, "P3"),
        ("no call without a lease", "stopped at the call for longer than its lease", alo, 2, ""),
        ("fence", "stopped, and reports when another has sent", alo, 2, ""),
        ("fence", "stopped, and reports when another has sent", amo, 2, "P3"),
        ("spent mark", "killed in the call, the provider has it", amo, 2, "P3"),
        ("spent and lapsed is unknown", "killed after the call, before the settle", amo, 2, "P3"),
        ("a time-out is unknown", "a time-out after the provider took it", amo, 2, "P3"),
        ("one key for all attempts", "a time-out after the provider took it", alo, 2, "P4"),
    ] {
        let (got, broken) = without(guard, fault, class);
        assert!(got == received && broken.contains(promise), "{guard}, {fault}, {class}: {got}, {broken}");
    }
}

#[test]
fn the_report_has_the_members_that_programs_go_by() {
    let report = whole();
    assert_eq!(keys(report), ["guards", "later", "ok", "rows", "seed", "store", "took_ms"]);
    assert_eq!((&report["ok"], &report["seed"], &report["store"]), (&true.into(), &7.into(), &"redis".into()));
    assert!(report["took_ms"].as_u64().unwrap() < 60_000, "{}", report["took_ms"]);
    for row in rows(report) {
        assert_eq!(keys(row), ["class", "fault", "guard", "hop", "with", "without"]);
        for play in ["with", "without"] {
            assert_eq!(keys(&row[play]), ["broken", "calls", "received", "recognised", "states"]);
        }
    }
    for guard in report["guards"].as_array().unwrap() {
        assert_eq!(keys(guard), ["guard", "off", "shows_damage"]);
    }
    let later: Vec<&Value> = report["later"].as_array().unwrap().iter().map(|one| &one["hop"]).collect();
    assert_eq!(later, ["queue", "callback"]);
}

#[test]
fn one_hop_on_files_needs_no_redis() {
    let report = drilled(&["--store", "sqlite", "--hop", "worker", "--class", "record_then_send"]);
    assert_eq!(report["store"], "sqlite");
    assert!(rows(&report).len() >= 4, "{report}");
    for row in rows(&report) {
        assert_eq!((&row["hop"], &row["class"]), (&"worker".into(), &"record_then_send".into()));
        assert_ne!(row["with"], row["without"], "{row}");
    }
    let again = || drilled(&["--store", "sqlite", "--hop", "app", "--seed", "11"]);
    assert_eq!(again()["rows"], again()["rows"], "a seed plays the same again");
    let table = belfry(&["--store", "sqlite", "--hop", "api", "--seed", "3"]).output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    for part in ["Seed 3.", "killed right after the reply", "P1: it was acknowledged and is gone", "joins with queues"]
    {
        assert!(table.contains(part), "{part} in {table}");
    }
}

#[test]
fn a_given_redis_is_left_as_it_was() {
    let server = crate::redis::Server::plain();
    let mut connection = server.connection();
    let () = connection.set("belfry:{0}:somebody's", "own").unwrap();
    let report = drilled(&["--redis", &server.url(), "--hop", "balancer"]);
    assert_eq!(rows(&report).len(), 2);
    let left: Vec<String> = connection.keys("*").unwrap();
    assert_eq!(left, ["belfry:{0}:somebody's"]);
}

#[test]
fn a_given_redis_is_left_as_it_was_also_where_the_drill_is_ended() {
    let server = crate::redis::Server::plain();
    let size = || server.ask::<u64>(&["DBSIZE"]);
    let mut child = belfry(&["--redis", &server.url()]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it has begun", PATIENCE, || (size() > 0).then_some(()));
    signal::send(Pid::from_child(&child), Signal::TERM);
    let ended = until("it ends", PATIENCE, || child.try_wait().unwrap());
    assert_eq!((ended.code(), size()), (Some(1), 0));
}

#[test]
fn a_url_that_is_none_is_a_matter_of_usage() {
    for (url, said) in [
        ("http://127.0.0.1:1", "--redis: expected redis://"),
        ("redis://:hunter2@127.0.0.1:1", "--redis: holds a password; give it by password_file"),
    ] {
        let output = belfry(&["--redis", url]).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(output.stdout.is_empty() && err.contains(said) && !err.contains("hunter2"), "{err}");
    }
}

#[test]
fn without_a_redis_it_says_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = belfry(&["--hop", "app"]).env("PATH", folder.path()).env("TMPDIR", folder.path()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(["apt install redis-server", "--redis URL", "--store sqlite"].iter().all(|way| err.contains(way)), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    let wrong = belfry(&["--hop", "queue"]).output().unwrap();
    let err = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(2) && err.contains("app, balancer, api, worker, provider, device"), "{err}");
}

/// The guards' switches are in `src/ops/drill`; the only file that names it is the command's own.
#[test]
fn guards_can_be_switched_off_in_a_drill_only() {
    fn naming(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                naming(&path, found);
            } else if std::fs::read_to_string(&path)
                .is_ok_and(|text| text.contains("crate::ops") || text.contains("ops::drill"))
            {
                found.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    naming(Path::new("src"), &mut found);
    assert!(found.iter().any(|path| path.starts_with("src/cli/drill/")), "the look is blind: {found:?}");
    let elsewhere: Vec<&String> = found.iter().filter(|path| !path.starts_with("src/cli/drill/")).collect();
    // The room as a whole has an arrow from the commands alone: see the table in the tidy tests.
    assert_eq!(elsewhere, Vec::<&String>::new(), "who serves can reach a guard's switch");
    let serve = std::fs::read_to_string("src/cli/serve.rs").unwrap();
    assert!(!serve.contains("drill"));
}
