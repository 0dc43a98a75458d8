//! `restored`, with and without a server that holds the store.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::run;
use super::running::Running;
use crate::peers::until::until;

const PATIENCE: Duration = Duration::from_secs(30);

fn json(dir: &Path, args: &[&str]) -> Value {
    let done = run(dir, &[args, &["--output", "json"]].concat(), &[]);
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

fn send(dir: &Path, class: &str, more: &[&str]) -> String {
    let args = ["send", "--class", class, "--to", "ada@example.com", "--subject", "Hello", "--text", "It works."];
    json(dir, &[&args, more].concat())["notification"]["id"].as_str().unwrap().to_owned()
}

fn stop(server: Running) -> String {
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success(), "{log}");
    log
}

/// A store with three that were due, which no worker has got at: their time came while none ran.
fn a_store_that_was_restored(dir: &Path) {
    let soon = jiff::Timestamp::now().saturating_add(jiff::SignedDuration::from_secs(4)).unwrap().to_string();
    let server = Running::start(dir, &["--port", "0"], &[]);
    let id = send(dir, "receipt", &["--send-at", &soon]);
    for _ in 0..2 {
        send(dir, "marketing", &["--send-at", &soon]);
    }
    assert_eq!(json(dir, &["status", &id])["state"], "scheduled");
    stop(server);
    let due: jiff::Timestamp = soon.parse().unwrap();
    until("their time comes", PATIENCE, || (jiff::Timestamp::now() > due).then_some(()));
}

#[test]
fn what_is_held_is_seen_and_released_by_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    a_store_that_was_restored(dir);
    let server = Running::start(dir, &["--port", "0", "--after-restore"], &[]);

    // Over the API of the server that holds the store.
    let shown = run(dir, &["restored"], &[]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.out.starts_with("3 deliveries held: due before the store was restored at 2"), "{shown:?}");
    let row = |words: [&str; 4]| shown.out.lines().any(|line| line.split_whitespace().eq(words));
    assert!(row(["marketing", "email", "2", "0"]) && row(["receipt", "email", "1", "0"]), "{shown:?}");
    let id = json(dir, &["restored"])["sample"][0]["id"].as_str().unwrap().to_owned();
    let told = run(dir, &["status", &id], &[]);
    assert!(told.out.contains("Held back: the store was restored"), "{told:?}");
    let ready = run(dir, &["status"], &[]);
    assert!(ready.code == 0 && ready.out.contains("see belfry restored"), "{ready:?}");
    let doctor = run(dir, &["doctor"], &[]);
    assert!(doctor.code == 3 && doctor.out.contains("`belfry restored`"), "{doctor:?}");
    let asked = run(dir, &["restored", "release"], &[]);
    assert!(asked.code == 2 && asked.err.contains("3 deliveries held") && asked.err.contains("--yes"), "{asked:?}");
    let all = run(dir, &["restored", "cancel"], &[]);
    assert!(all.code == 2 && all.err.contains("3 deliveries held") && all.err.contains("--yes"), "{all:?}");
    let unknown = run(dir, &["restored", "cancel", "--class", "marketting"], &[]);
    assert!(unknown.code == 2 && unknown.err.contains("no class \"marketting\""), "{unknown:?}");
    assert!(unknown.err.contains("held are those of marketing, receipt;"), "{unknown:?}");
    assert!(unknown.err.contains("configured are code, digest"), "{unknown:?}");
    assert_eq!(json(dir, &["restored"])["held"], 3, "nothing was cancelled unasked");
    let log = stop(server);
    assert!(log.contains("held_after_restore"), "{log}");

    // Straight in the store, where no server runs.
    let doctor = run(dir, &["doctor"], &[]);
    assert!(doctor.code == 3 && doctor.out.contains("`belfry restored`"), "{doctor:?}");
    let cancelled = run(dir, &["restored", "cancel", "--class", "marketing"], &[]);
    assert_eq!(cancelled.out, "2 deliveries cancelled; 1 of other classes still held\n", "{cancelled:?}");
    let elsewhere = ["--config", "our shop.toml"];
    std::fs::write(dir.join(elsewhere[1]), "").unwrap();
    let shown = run(dir, &[&["restored"][..], &elsewhere].concat(), &[]);
    assert!(shown.out.contains("belfry restored release --yes --config 'our shop.toml'\n"), "{shown:?}");
    assert!(shown.out.contains("belfry restored cancel --class receipt --config 'our shop.toml'\n"), "{shown:?}");
    let released = run(dir, &["restored", "release", "--yes"], &[]);
    assert_eq!(released.out, "1 delivery released: it goes out as soon as a worker runs\n", "{released:?}");
    let nothing = run(dir, &["restored", "release", "--yes"], &[]);
    assert!(nothing.code == 0 && nothing.out.starts_with("Nothing is held"), "{nothing:?}");

    let server = Running::start(dir, &["--port", "0"], &[]);
    let page = |state: &str| json(dir, &["find", "--state", state])["data"].as_array().map_or(0, Vec::len);
    until("the receipt goes out", PATIENCE, || (page("accepted") == 1).then_some(()));
    assert_eq!(page("cancelled"), 2);
    drop(server);
}

#[test]
fn programs_read_of_a_release_what_the_api_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    a_store_that_was_restored(dir);
    let server = Running::start(dir, &["--port", "0", "--after-restore"], &[]);
    let cancelled = json(dir, &["restored", "cancel", "--yes"]);
    assert_eq!((&cancelled["cancelled"], &cancelled["left"]), (&3.into(), &0.into()), "{cancelled}");
    let released = json(dir, &["restored", "release", "--yes"]);
    assert_eq!((&released["released"], &released["deliveries"]), (&true.into(), &0.into()), "{released}");
    drop(server);
}

#[test]
fn what_lives_in_memory_was_not_restored() {
    let dir = tempfile::tempdir().unwrap();
    let done = run(dir.path(), &["serve", "--ephemeral", "--after-restore"], &[]);
    assert!(done.code == 2 && done.err.contains("--after-restore"), "{done:?}");
    let absent = run(dir.path(), &["restored"], &[]);
    assert!(absent.code == 1 && absent.err.contains("there is no store yet"), "{absent:?}");
}
