//! `cancel` by filters: stopping a mistake, and finding who got it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::running::Running;
use super::terminal::Terminal;
use super::{belfry, run};

fn told(dir: &Path, args: &[&str]) -> Value {
    let done = run(dir, &[args, &["--output", "json"]].concat(), &[]);
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn send(dir: &Path, to: &str, more: &[&str]) -> Value {
    let args =
        ["send", "--class", "receipt", "--to", to, "--subject", "Hello", "--text", "It works.", "--group", "launch"];
    told(dir, &[&args, more].concat())
}

/// Within 90 days, as the API wants it, and far enough that nothing goes out meanwhile.
fn later() -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48)).to_string()
}

/// Scheduled ones, many at a time.
fn scheduled(server: &Running, key: &str, many: usize) {
    // Whoever else installs it in this binary installs the same one.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let later = later();
    for start in (0..many).step_by(1_000) {
        let item = |n: usize| {
            json!({"key": format!("k{n}"), "class": "receipt", "to": {"email": "ann@example.com"}, "group": "launch",
                "send_at": later, "content": {"subject": "S", "text": "T"}})
        };
        let items: Vec<Value> = (start..many.min(start + 1_000)).map(item).collect();
        let request = client
            .post(format!("{}/v1/notifications/batch", server.url()))
            .bearer_auth(key)
            .header("content-type", "application/json")
            .body(json!({"items": items}).to_string());
        assert_eq!(runtime.block_on(request.send()).unwrap().status(), 200);
    }
}

const KEY: &str = "operator-0123456789abcdef0123456789abcdef";

/// With more settings; it says little, for nobody reads its log while it runs.
fn server(dir: &Path, settings: &str) -> Running {
    std::fs::write(dir.join("belfry.toml"), format!("[log]\nlevel = \"error\"\n{settings}")).unwrap();
    let bootstrap = [("BELFRY_BOOTSTRAP_KEY", KEY)];
    Running::start(dir, &["--port", "0", "--config", "belfry.toml"], &bootstrap)
}

/// The flags of a command that knows the key.
fn keyed(dir: &Path) -> [&str; 2] {
    std::fs::write(dir.join("key"), KEY).unwrap();
    ["--api-key-file", "key"]
}

#[test]
fn a_mistake_is_paused_cancelled_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    for (to, key) in [("out1@example.com", "=out"), ("out2@example.com", "crm-2")] {
        send(dir, to, &["--reference", key, "--wait"]);
    }
    let later = later();
    for n in 0..3 {
        send(dir, "late@example.com", &["--send-at", &later, "--key", &format!("late-{n}")]);
    }
    let slip = run(dir, &["cancel", "--group", "launch"], &[]);
    assert!(slip.code == 2 && slip.err.contains("--why: say why"), "{slip:?}");
    let slip = run(dir, &["cancel", "--recipient", "x", "--why", "wrong price", "--pause"], &[]);
    assert!(slip.code == 2 && slip.err.contains("--pause: needs --group, --template or --class"), "{slip:?}");
    let slip = run(dir, &["cancel", "--group", "launch", "--why", "x", "--export", "who.xlsx"], &[]);
    assert!(slip.code == 2 && slip.err.contains("must end in .csv or .ndjson"), "{slip:?}");
    let slip = run(dir, &["cancel", "--from", "yesterday", "--dry-run"], &[]);
    assert!(slip.code == 2 && slip.err.contains("--from: must be an RFC 3339 date-time"), "{slip:?}");
    let slip = run(dir, &["cancel", "--key", "a b", "--dry-run"], &[]);
    assert!(slip.code == 2 && slip.err.contains("--key: must have 1 to 255 visible"), "{slip:?}");

    let dry = run(dir, &["cancel", "--key", "late-1", "--key", "late-7", "--dry-run"], &[]);
    assert!(dry.out.starts_with("1 notification: 1 delivery would be cancelled, 0 in flight"), "{dry:?}");
    let args = ["cancel", "--group", "launch", "--why", "wrong price", "--pause", "--export", "who.csv"];
    let done = run(dir, &args, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.out.contains(
            "5 notifications: 3 deliveries cancelled, 0 in flight (no further attempt follows), 2 ended before; 2 of \
             all may have reached somebody\n"
        ) && done.out.contains("A corrected run needs new keys.")
            && done.out.contains("2 deliveries that may have reached somebody: who.csv"),
        "{done:?}"
    );
    let pause = done.out.split("belfry pauses resume ").nth(1).unwrap().trim();
    assert!(
        done.err.contains("paused: group launch, but for code, security (") && done.err.contains(pause),
        "{done:?}"
    );
    assert_eq!(told(dir, &["pauses", "list"])["data"][0]["name"], "launch");
    let who = std::fs::read_to_string(dir.join("who.csv")).unwrap();
    let rows: Vec<&str> = who.lines().collect();
    assert_eq!(rows.len(), 3, "{who}");
    assert!(
        rows[0].starts_with("notification,accepted_at,class,template,recipient,reference,delivery,channel,address")
    );
    assert!(rows[1].contains(",crm-2,dlv_") && rows[2].contains(",'=out,dlv_"), "{who}");
    assert!(who.contains(",email,o…@example.com,accepted,20") && !who.contains("out1@"), "{who}");

    // Once more, as programs ask: nothing new is cancelled, nothing that is there written over.
    let again = run(dir, &args, &[]);
    assert!(again.code == 2 && again.err.contains("is there already"), "{again:?}");
    let again = told(dir, &["cancel", "--group", "launch", "--why", "again", "--export", "who.ndjson"]);
    assert_eq!((&again["cancelled"], &again["cancelled_before"], &again["out"]), (&json!(3), &json!(3), &json!(2)));
    assert_eq!((&again["exported"], &again["corrected_run"]["code"]), (&json!(2), &json!("needs_new_keys")));
    let who = std::fs::read_to_string(dir.join("who.ndjson")).unwrap();
    let first: Value = serde_json::from_str(who.lines().next().unwrap()).unwrap();
    assert_eq!((&first["reference"], &first["state"]), (&json!("crm-2"), &json!("accepted")));
    let resumed = run(dir, &["pauses", "resume", pause], &[]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
}

/// Whoever ran it is killed; what was printed says where to go on.
#[test]
fn case_17_a_command_that_is_killed_half_way_is_gone_on_with() {
    const MANY: usize = 2_500;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let server = server(dir, "");
    let key = keyed(dir);
    scheduled(&server, KEY, MANY);
    let cancel = [&["cancel", "--group", "launch", "--why", "wrong list"][..], &key].concat();
    let mut child = belfry(dir, &cancel, &[]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (counted, cursor) = line.split_once(" notifications; go on from here with --cursor ").expect(&line);
    assert_eq!(counted, "1000");
    let rest = told(dir, &[&cancel[..], &["--cursor", cursor.trim()]].concat());
    // All that it had not told of, each once; what it had done beyond that is among what was before.
    assert_eq!((&rest["notifications"], &rest["cancelled"]), (&json!(MANY - 1_000), &json!(MANY - 1_000)), "{rest}");
    let all = told(dir, &[&["cancel", "--group", "launch", "--dry-run"][..], &key].concat());
    assert_eq!((&all["cancelled"], &all["cancelled_before"]), (&json!(MANY), &json!(MANY)), "{all}");
}

#[test]
fn what_is_interrupted_says_how_far_it_came_and_where_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let key = keyed(dir);
    let first = server(dir, "");
    scheduled(&first, KEY, 1_200);
    drop(first);
    // After ten pages it is asked to come back, and waits.
    let limit = "[http.limit]\nrate = 1\nper = \"50s\"\nburst = 10\n";
    let slow = server(dir, limit);
    let cancel = [&["cancel", "--group", "launch", "--why", "wrong list"][..], &key].concat();
    let mut child = belfry(dir, &cancel, &[]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.starts_with("1000 notifications; go on from here"), "{line}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("belfry: interrupted\nUntil then: 1000 notifications: 1000 deliveries cancelled"), "{said}");
    let cursor = said.split("with --cursor ").nth(1).unwrap().split(' ').next().unwrap();
    drop(slow);
    let _third = server(dir, "");
    let rest = told(dir, &[&cancel[..], &["--cursor", cursor]].concat());
    assert_eq!((&rest["notifications"], &rest["cancelled_before"]), (&json!(200), &json!(0)), "{rest}");
    let odd = run(dir, &[&cancel[..], &["--cursor", "x"]].concat(), &[]);
    assert!(odd.code == 2 && odd.err.contains("--cursor: must be a `next_cursor`"), "{odd:?}");
}

#[test]
fn on_a_terminal_it_counts_asks_and_draws() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let server = server(dir, "");
    let key = keyed(dir);
    scheduled(&server, KEY, 250);
    let cancel = [&["cancel", "--group", "launch", "--why", "wrong list"][..], &key].concat();
    let count =
        || told(dir, &[&["cancel", "--group", "launch", "--dry-run"][..], &key].concat())["cancelled_before"].clone();
    let counted = "250 notifications: 250 deliveries would be cancelled";
    for answer in ["n\n", "\n", "yea\n"] {
        let mut terminal = Terminal::start(dir, &cancel);
        terminal.until_shown("Cancel? [y/N] ");
        terminal.typed(answer);
        let (status, shown) = terminal.ended();
        assert!(status.code() == Some(1) && shown.contains(counted), "{shown:?}");
        assert!(shown.contains("nothing was cancelled"), "{shown:?}");
    }
    assert_eq!(count(), 0);
    let mut terminal = Terminal::start(dir, &cancel);
    terminal.until_shown("Cancel? [y/N] ");
    terminal.typed("y\n");
    let (status, shown) = terminal.ended();
    assert!(status.success(), "{shown:?}");
    let bar = format!("\r\u{1b}[2K[{}{}] 100 of 250 notifications\r", "#".repeat(12), "·".repeat(18));
    assert!(shown.contains(&bar) && shown.contains("250 deliveries cancelled, 0 in flight"), "{shown:?}");
    assert_eq!(count(), 250);
    // Who says yes beforehand is not asked, and nothing is counted first: how many there are is not known.
    let (status, shown) = Terminal::start(dir, &[&cancel[..], &["--yes"]].concat()).ended();
    assert!(
        status.success() && !shown.contains("[y/N]") && shown.contains("\u{1b}[2K100 notifications\r"),
        "{shown:?}"
    );
}
