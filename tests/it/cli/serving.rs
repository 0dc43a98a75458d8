//! Two terminals: a server in one, commands in the other.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::running::Running;
use super::{belfry, run};
use crate::peers::until::until;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let done = run(dir, &[args, &["--output", "json"]].concat(), &[]);
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

const SEND: [&str; 9] =
    ["send", "--class", "receipt", "--to", "ada@example.com", "--subject", "Hello", "--text", "It works."];

#[test]
fn a_fresh_machine_serves_and_its_other_terminal_just_works() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let server = Running::start(dir, &["--port", "0"], &[]);
    assert_eq!(server.told["api_key"], Value::Null, "what is no terminal may be a journal");
    let left = dir.join(server.told["api_key_file"].as_str().unwrap());
    assert_eq!((mode(&dir.join(".belfry")), mode(&left)), (0o700, 0o600));
    let key = std::fs::read_to_string(left).unwrap().trim().to_owned();

    let first = json(dir, &SEND);
    let (id, idempotency) = (first["notification"]["id"].as_str().unwrap(), first["key"].as_str().unwrap());
    assert_eq!(first["replayed"], false);
    let again = json(dir, &[&SEND[..], &["--key", idempotency]].concat());
    assert_eq!((&again["notification"], &again["replayed"]), (&first["notification"], &Value::Bool(true)));
    let other = [&SEND[..7], &["--text", "Another.", "--key", idempotency]].concat();
    let other = run(dir, &other, &[]);
    assert!(other.code == 2 && other.err.contains("--text: differs"), "{other:?}");

    let until = Instant::now() + Duration::from_secs(30);
    while json(dir, &["status", id])["state"] != "accepted" {
        assert!(Instant::now() < until, "{}", json(dir, &["status", id]));
    }
    let told = run(dir, &["explain", id], &[]);
    for part in ["received, over HTTP", "attempt 1 through outbox: accepted", "to a…@example.com", "1 repeat was"] {
        assert!(told.out.contains(part), "{part} in {}", told.out);
    }
    assert!(!told.out.contains("ada@example.com"), "addresses are shown masked");
    assert_eq!(run(dir, &["health"], &[]).out, "ready\n");
    let doctor = run(dir, &["doctor"], &[]);
    assert!(doctor.out.contains("ready at") && doctor.code == 0, "{doctor:?}");

    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    for secret in ["ada@example.com", "It works.", key.as_str()] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(log.contains("a repeat was recognised") && log.contains("the same key came with another request"), "{log}");
}

#[test]
fn an_ephemeral_server_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start(dir.path(), &["--ephemeral", "--port", "0"], &[]);
    let key = server.told["api_key"].as_str().unwrap();
    let url = server.url();
    let sent = [&SEND[..], &["--server", &url]].concat();
    assert_eq!(run(dir.path(), &sent, &[("BELFRY_API_KEY", key)]).code, 0);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0.code(), Some(0));
    assert!(!dir.path().join(".belfry").exists());
}

#[test]
fn the_banner_s_curl_works_when_pasted() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start(dir.path(), &["--port", "0"], &[]);
    drop(server);
    // On the same store again, for people this time: the key now comes from its file.
    let port = free_port();
    let mut child = belfry(dir.path(), &["serve", "--port", &port.to_string()], &[])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut banner = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    while !banner.contains("}}'\n") {
        assert_ne!(std::io::BufRead::read_line(&mut out, &mut banner).unwrap(), 0, "{banner}");
    }
    let curl = &banner[banner.find("  curl").unwrap()..];
    let answer = std::process::Command::new("sh").arg("-c").arg(curl).current_dir(dir.path()).output().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(String::from_utf8_lossy(&answer.stdout).contains("\"id\":\"ntf_"), "{banner}\n{answer:?}");
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn sighup_reloads_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = dir.join("belfry.toml");
    std::fs::write(&file, "").unwrap();
    let server = Running::start(dir, &["--port", "0", "--config", "belfry.toml"], &[]);
    let news = [&["send", "--class", "news"][..], &SEND[3..]].concat();
    assert_eq!(run(dir, &news, &[]).code, 2, "there is no such class yet");

    std::fs::write(&file, "[classes.news]\norder = \"record_then_send\"\n").unwrap();
    server.signal(Signal::HUP);
    let until = Instant::now() + Duration::from_secs(30);
    while run(dir, &news, &[]).code != 0 {
        assert!(Instant::now() < until, "the new class did not come");
    }
    // The class is gone from the file, but so does the rest not hold together: nothing changes.
    std::fs::write(&file, "[http]\nlistne = \"x\"\n").unwrap();
    server.signal(Signal::HUP);
    let refused = |metrics: &str| metrics.contains("belfry_reloads_total{result=\"refused\"} 1");
    while !refused(&metrics(&server)) {
        assert!(Instant::now() < until, "the refusal was not counted");
    }
    assert_eq!(run(dir, &news, &[]).code, 0);
    server.signal(Signal::TERM);
    let (_, log) = server.ended();
    assert!(log.contains("the configuration was reloaded") && log.contains("did you mean"), "{log}");
}

/// Over plain sockets: the page needs no key.
fn metrics(server: &Running) -> String {
    use std::io::{Read, Write};
    let address = server.told["address"].as_str().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_demo_shows_one_effect_for_each_intent() {
    let dir = tempfile::tempdir().unwrap();
    let done = run(dir.path(), &["demo", "--once", "--output", "json"], &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let shown: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(shown["ways"].as_array().unwrap().len(), 10);
    let out = shown["went_out"].as_array().unwrap();
    let names: Vec<&str> = out.iter().map(|one| one["template"].as_str().unwrap()).collect();
    assert_eq!(names, ["login_code", "order_shipped", "receipt", "weekly_digest"]);
    for one in out {
        assert_eq!((&one["messages"], &one["state"]), (&Value::from(1), &Value::from("accepted")), "{one}");
        assert_eq!(one["repeats"], out[0]["repeats"], "each was repeated as often as the others: {out:?}");
    }
    for way in shown["ways"].as_array().unwrap() {
        for (template, tally) in way["templates"].as_object().unwrap() {
            assert_eq!(tally["sent"], tally["caught"], "{way} {template}");
        }
    }
    assert!(!dir.path().join(".belfry").exists());
}

#[test]
fn the_demo_stays_up_until_it_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = belfry(dir.path(), &["demo"], &[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(demo.stdout.take().unwrap());
    let mut told = String::new();
    while !told.contains("API key") {
        assert!(out.read_line(&mut told).unwrap() > 0, "it ended: {told}");
    }
    assert!(told.contains("Still up until Ctrl-C."), "{told}");
    let api = told.lines().find_map(|line| line.trim().strip_prefix("API ")).unwrap().trim();
    let health = run(dir.path(), &["health", "--server", api.trim_end_matches("/v1")], &[]);
    assert_eq!(health.code, 0, "{health:?}");
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    let ended = until("the demo ends", Duration::from_secs(30), || demo.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}
