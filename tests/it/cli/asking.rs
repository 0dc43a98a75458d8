//! What support asks at night: find, look, cancel, decide.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::run;
use super::running::Running;

fn json(dir: &Path, args: &[&str]) -> Value {
    let done = run(dir, &[args, &["--output", "json"]].concat(), &[]);
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    assert_eq!(done.out.lines().count(), 1, "one line for programs: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

fn send<'a>(to: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["send", "--class", "receipt", "--to", to, "--subject", "Hello", "--text", "It works."][..], more].concat()
}

fn id(sent: &Value) -> String {
    sent["notification"]["id"].as_str().unwrap().to_owned()
}

const LATER: &str = "2099-01-01T00:00:00Z";

/// Within 90 days, as the API wants it, and far enough that nothing goes out meanwhile.
fn soon() -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48)).to_string()
}

#[test]
fn find_asks_by_address_reference_and_group_and_goes_on_by_cursor() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let ann = id(&json(dir, &send("ann@example.com", &["--reference", "crm-7", "--group", "mail"])));
    let bob = id(&json(dir, &send("bob@example.com", &["--group", "mail"])));
    let found = |args: &[&str]| {
        let page = json(dir, &[&["find"], args].concat());
        let ids = page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(found(&["--to", "ann@example.com"]), std::slice::from_ref(&ann));
    assert_eq!(found(&["--reference", "crm-7"]), std::slice::from_ref(&ann));
    assert_eq!(found(&["--group", "mail"]), [bob.clone(), ann.clone()]);
    assert!(found(&["--group", "mail", "--class", "code"]).is_empty());

    let first = run(dir, &["find", "--group", "mail", "--limit", "1"], &[]);
    assert!(first.out.contains(&bob) && !first.out.contains(&ann) && first.out.contains("b…@example.com"), "{first:?}");
    let cursor = first.out.split("--cursor ").nth(1).unwrap().trim();
    assert_eq!(found(&["--group", "mail", "--limit", "1", "--cursor", cursor]), [ann]);
    assert_eq!(run(dir, &["find", "--reference", "crm-8"], &[]).out, "nothing found\n");
    let odd = run(dir, &["find", "--state", "lost"], &[]);
    assert!(odd.code == 2 && odd.err.contains("--state: must be one of scheduled, queued"), "{odd:?}");
}

#[test]
fn a_recipient_is_found_by_name_and_a_push_is_sent_from_flags() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let token = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad";
    std::fs::write(dir.join("token.txt"), format!("{token}\n")).unwrap();
    let push = [
        "send",
        "--class",
        "transactional",
        "--recipient",
        "user-42",
        "--device",
        "apns",
        "--token-file",
        "token.txt",
        "--app",
        "com.example.app",
        "--channel",
        "push",
        "--title",
        "Shipped",
        "--body",
        "Order 42",
        "--link",
        "shop://orders/42",
        "--push",
        r#"{"badge":3}"#,
    ];
    let sent = id(&json(dir, &push));
    json(dir, &send("ann@example.com", &[]));
    let page = json(dir, &["find", "--recipient", "user-42"]);
    assert_eq!((page["data"].as_array().unwrap().len(), page["data"][0]["id"].as_str()), (1, Some(sent.as_str())));
    let shown = json(dir, &["status", &sent]);
    assert_eq!(shown["deliveries"][0]["device"], serde_json::json!({"app": "com.example.app"}));
    let told = run(dir, &["explain", &sent], &[]);
    assert!(told.out.contains(" for user-42.") && told.out.contains("apns to …78ad (com.example.app)"), "{told:?}");
    for said in [told, run(dir, &["find", "--recipient", "user-42"], &[]), run(dir, &["status", &sent], &[])] {
        assert!(said.code == 0 && !said.out.contains(&token[..8]), "{said:?}");
    }
    let odd = run(dir, &[&push[..8], &["-", "--channel", "push", "--title", "T"]].concat(), &[]);
    assert!(odd.code == 2 && odd.err.contains("--token-file: - is empty"), "{odd:?}");
}

#[test]
fn cancel_takes_one_or_what_filters_find_and_never_everything() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let soon = soon();
    let later = |to: &str| id(&json(dir, &send(to, &["--group", "launch", "--send-at", &soon])));
    let (one, _two, _three) = (later("a@example.com"), later("b@example.com"), later("c@example.com"));
    let single = run(dir, &["cancel", &one, "--why", "wrong price"], &[]);
    assert!(single.code == 0 && single.out.contains("1 notification: 1 delivery cancelled"), "{single:?}");
    assert_eq!(json(dir, &["status", &one])["state"], "cancelled");

    let trial = run(dir, &["cancel", "--group", "launch", "--dry-run"], &[]);
    assert!(trial.out.contains("3 notifications: 2 deliveries would be cancelled, 1 had been before"), "{trial:?}");
    let all = json(dir, &["cancel", "--group", "launch", "--why", "wrong price"]);
    assert_eq!((&all["notifications"], &all["cancelled"]), (&3.into(), &3.into()), "{all}");

    let slip = run(dir, &["cancel"], &[]);
    assert!(slip.code == 2 && slip.err.contains("or a filter"), "{slip:?}");
    assert_eq!(run(dir, &["cancel", &one, "--group", "launch"], &[]).code, 2);
}

#[test]
fn wait_prints_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let sent = json(dir, &send("ann@example.com", &["--wait"]));
    assert_eq!(sent["notification"]["state"], "accepted", "{sent}");
    let gone = run(dir, &send("ann+sim-bounced@example.com", &["--wait", "20"]), &[]);
    assert!(gone.out.contains("outbox"), "the provider is shown: {gone:?}");
}

#[test]
fn a_person_decides_about_a_delivery_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let sent = json(dir, &send("ann@example.com", &["--wait"]));
    let notification = id(&sent);
    let delivery = sent["notification"]["deliveries"][0]["id"].as_str().unwrap();

    for command in ["status", "explain"] {
        let by_delivery = run(dir, &[command, delivery], &[]);
        assert!(by_delivery.code == 0 && by_delivery.out.contains(&notification), "{by_delivery:?}");
    }
    let refused = run(dir, &["redrive", delivery], &[]);
    assert!(refused.code == 1 && refused.err.contains("409"), "it was accepted: {refused:?}");
    assert!(!refused.err.contains("repeat safely"), "a repeat would be refused as well: {refused:?}");

    let asked = run(dir, &["send-again", delivery], &[]);
    assert!(asked.code == 2 && asked.err.contains("send 2") && asked.err.contains("Give --yes"), "{asked:?}");
    let done = run(dir, &["send-again", delivery, "--yes"], &[]);
    assert!(done.code == 0 && done.out.contains("send 2"), "{done:?}");
    let again = done.err.split("repeat safely with ").nth(1).unwrap().trim().trim_end_matches(')');
    let repeat: Vec<&str> = ["send-again", delivery, "--yes"].into_iter().chain(again.split(' ')).collect();
    let repeated = json(dir, &repeat);
    assert_eq!((&repeated["replayed"], &repeated["delivery"]["send"]), (&Value::Bool(true), &2.into()), "{repeated}");

    let until = Instant::now() + Duration::from_secs(30);
    while json(dir, &["status", delivery])["deliveries"][0]["state"] != "accepted" {
        assert!(Instant::now() < until);
    }
    assert_eq!(run(dir, &["resolve", delivery, "--to", "failed"], &[]).code, 1, "nothing about it is unknown");
    assert_eq!(run(dir, &["redrive", &notification], &[]).code, 2);
}

#[test]
fn errors_are_problem_objects_for_programs_and_name_flags_for_people() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let bad = ["send", "--class", "receipt", "--phone", "1", "--send-at", LATER];
    let told = run(dir, &[&bad[..], &["--output", "json"]].concat(), &[]);
    let problem: Value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{told:?}"));
    assert_eq!((&problem["code"], &problem["exit"], told.code), (&"invalid".into(), &2.into(), 2), "{problem}");

    let words = run(dir, &bad, &[]);
    for line in ["\n  --phone: ", "\n  --send-at: ", "\n  must have template or content"] {
        assert!(words.err.contains(line), "{line:?} in {words:?}");
    }
    assert!(!words.err.contains("Idempotency-Key"), "a repeat would be refused as well: {words:?}");
    let sent = run(dir, &send("ann@example.com", &[]), &[]);
    assert!(sent.err.contains("repeat safely with --key"), "{sent:?}");

    let usage = run(dir, &["status", "order-42", "--output", "json"], &[]);
    let problem: Value = serde_json::from_str(&usage.out).unwrap();
    assert_eq!((&problem["code"], &problem["exit"]), (&"usage".into(), &2.into()), "{problem}");
    let configuration = run(dir, &["find", "--output", "json"], &[("BELFRY__HTTP__LISTNE", "x")]);
    let problem: Value = serde_json::from_str(&configuration.out).unwrap();
    assert_eq!((&problem["code"], &problem["errors"][0]["key"]), (&"configuration".into(), &"http.listne".into()));
}
