//! A store that is put back from a backup: what was sent between the backup and the loss is not sent again
//! before a person has looked.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::Client;
use super::server::{KEY, Server, Site};
use super::sink::{Phase, Sink};
use crate::peers::until::until;
use crate::redis::Server as Redis;

const LONG: Duration = Duration::from_secs(30);
const RECEIPTS: usize = 4;
const NOTICES: usize = 3;
/// At least once, as receipts are: an unknown outcome ends none of them while nobody is looking.
const NOTICE: &str = "[classes.notice]\norder = \"send_then_record\"\nlease = \"1s\"\nbudget_exempt = true\n";
const ALL: usize = RECEIPTS + NOTICES;

fn request(number: usize) -> Value {
    let class = if number < RECEIPTS { "receipt" } else { "notice" };
    json!({
        "class": class,
        "to": { "email": format!("customer{number}@example.com") },
        "channels": ["email"],
        "content": { "subject": format!("order-{number}"), "text": "It has left our warehouse." },
    })
}

fn accept(client: &mut Client, number: usize) -> String {
    let answer = client.post("/v1/notifications", &format!("k{number}"), &request(number)).unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn delivery(client: &mut Client, id: &str) -> Value {
    client.get(&format!("/v1/notifications/{id}")).unwrap().json()["deliveries"][0].clone()
}

#[track_caller]
fn comes_to(client: &mut Client, id: &str, state: &str) {
    until(state, LONG, || (delivery(client, id)["state"] == state).then_some(()));
}

/// The command line beside the server, asking it.
fn restored(site: &Site, server: &Server, args: &[&str]) -> Value {
    let done = Command::new(env!("CARGO_BIN_EXE_belfry"))
        .args([&["restored"], args, &["--config", "belfry.toml", "--output", "json"]].concat())
        .args(["--server", &format!("http://{}", server.address)])
        .current_dir(site.folder())
        .env("BELFRY_BOOTSTRAP_KEY", KEY)
        .env("BELFRY_API_KEY", KEY)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Everything from the accept to the release. `back_up` and `put_back` are called while no server runs.
fn from_backup_to_release(site: &Site, sink: &Sink, back_up: impl FnOnce(), put_back: impl FnOnce()) {
    let ids = accepted_backed_up_and_sent(site, sink, back_up);
    let sent = sink.total();
    put_back();
    let held = held_at_the_start(site, sink, &ids);
    assert_eq!(sink.total(), sent + 1, "what came in");
    it_outlives_restarts(site, &held);
    assert_eq!(sink.total(), sent + 3);
    cancelled_and_released(site, sink, &ids);
    assert!(site.log().contains("held_after_restore") && site.log().contains("hold_released"));
}

fn accepted_backed_up_and_sent(site: &Site, sink: &Sink, back_up: impl FnOnce()) -> Vec<String> {
    // The provider is away: some are being sent when the backup is made, the others wait.
    sink.hold(Phase::Greeting);
    let server = site.start();
    let mut client = server.client();
    let ids: Vec<String> = (0..ALL).map(|number| accept(&mut client, number)).collect();
    until("a call is open", LONG, || (sink.waiting() > 0).then_some(()));
    server.kill();
    back_up();
    // It goes on, everything is sent, and then all of that is lost.
    sink.let_go();
    let server = site.start();
    let mut client = server.client();
    for id in &ids {
        comes_to(&mut client, id, "accepted");
    }
    server.kill();
    ids
}

/// Returns what is told of it.
fn held_at_the_start(site: &Site, sink: &Sink, ids: &[String]) -> Value {
    let before = sink.total();
    let server = site.start_with(&["--after-restore"]);
    let mut client = server.client();
    for id in ids {
        // What was being sent is taken from its dead worker, and held as well.
        let held = until("it waits", LONG, || {
            let it = delivery(&mut client, id);
            (it["state"] == "queued").then_some(it)
        });
        let reason = held["reason"].as_str().unwrap();
        assert!(reason.starts_with("Held back: the store was restored from a backup at 2"), "{reason}");
        assert!(reason.contains("belfry restored"), "{reason}");
    }
    // What comes in now goes out, beside what is held.
    let new = accept(&mut client, ALL);
    comes_to(&mut client, &new, "accepted");
    assert_eq!(sink.total(), before + 1);
    let ready = client.get("/readyz?verbose").unwrap();
    assert!(ready.status == 200 && ready.body.contains("what was due before the store was restored is held"));
    until("the metric says how many", LONG, || {
        let metrics = client.get("/metrics").unwrap().body;
        metrics.lines().any(|line| line == format!("belfry_held_after_restore {ALL}")).then_some(())
    });
    let held = restored(site, &server, &[]);
    assert_eq!(held["held"], ALL, "{held}");
    server.kill();
    held
}

/// With the flag and without, and nothing moves it.
fn it_outlives_restarts(site: &Site, held: &Value) {
    for flag in [&[][..], &["--after-restore"]] {
        let server = site.start_with(flag);
        let mut client = server.client();
        let again = restored(site, &server, &[]);
        assert_eq!((&again["restored_at"], &again["held"]), (&held["restored_at"], &held["held"]), "{again}");
        let id = accept(&mut client, ALL + 1 + flag.len());
        comes_to(&mut client, &id, "accepted");
        server.kill();
    }
}

fn cancelled_and_released(site: &Site, sink: &Sink, ids: &[String]) {
    let server = site.start();
    let mut client = server.client();
    let cancelled = restored(site, &server, &["cancel", "--class", "notice", "--why", "They have it."]);
    assert_eq!((&cancelled["cancelled"], &cancelled["left"]), (&json!(NOTICES), &json!(RECEIPTS)), "{cancelled}");
    let done = restored(site, &server, &["release", "--yes"]);
    assert_eq!((&done["released"], &done["deliveries"]), (&true.into(), &RECEIPTS.into()), "{done}");
    for (number, id) in ids.iter().enumerate() {
        let of_both = if number < RECEIPTS { "accepted" } else { "cancelled" };
        comes_to(&mut client, id, of_both);
        let copies = sink.effects(&format!("order-{number}"));
        // Once before the loss, and once more where a person has said so.
        assert_eq!(copies.len(), if number < RECEIPTS { 2 } else { 1 }, "order-{number}");
        assert!(copies.windows(2).all(|pair| pair[0].message_id == pair[1].message_id), "the same message");
    }
    let told = delivery(&mut client, &ids[ALL - 1]);
    assert!(told["reason"].as_str().unwrap().contains("They have it."), "{told}");
    assert_eq!(restored(site, &server, &[])["held"], 0);
    assert_eq!(restored(site, &server, &["release", "--yes"])["held"], 0, "again: nothing to do");
}

fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_file_put_back_from_a_backup_sends_nothing_twice_before_a_person_has_looked() {
    let sink = Sink::start();
    let site = Site::new(sink.address, NOTICE);
    let (store, backup) = (site.folder().join("store"), site.folder().join("backup"));
    from_backup_to_release(&site, &sink, || copy(&store, &backup), || copy(&backup, &store));
}

#[test]
fn a_redis_put_back_from_a_backup_sends_nothing_twice_before_a_person_has_looked() {
    let redis = std::cell::RefCell::new(Redis::plain());
    let sink = Sink::start();
    let url = redis.borrow().url();
    let site =
        Site::over(&format!("[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{url}\"\n"), sink.address, NOTICE);
    let dump = redis.borrow().folder().join("dump.rdb");
    let backup = site.folder().join("backup.rdb");
    let back_up = || {
        let () = redis.borrow().ask(&["SAVE"]);
        fs::copy(&dump, &backup).unwrap();
    };
    let put_back = || {
        let mut redis = redis.borrow_mut();
        redis.kill();
        fs::copy(&backup, &dump).unwrap();
        redis.start_again();
    };
    from_backup_to_release(&site, &sink, back_up, put_back);
}
