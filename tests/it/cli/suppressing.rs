//! `suppressions`, with a server that holds the store.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::running::Running;
use super::{Done, run};

fn suppressions(dir: &Path, args: &[&str]) -> Done {
    run(dir, &[&["suppressions"], args].concat(), &[])
}

fn told(dir: &Path, args: &[&str], code: i32) -> Value {
    let done = suppressions(dir, &[args, &["--output", "json"]].concat());
    assert_eq!(done.code, code, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

fn found(dir: &Path, args: &[&str]) -> Vec<Value> {
    told(dir, args, 0)["data"].as_array().unwrap().clone()
}

#[test]
fn an_address_is_suppressed_seen_and_lifted_and_never_printed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    assert_eq!(suppressions(dir, &["list"]).out, "nothing is suppressed\n");
    let args = ["add", "ann@example.com", "--kind", "unsubscribe", "--category", "marketing", "--note", "by letter"];
    let added = suppressions(dir, &args);
    assert!(added.code == 0 && added.out.contains("a…@example.com") && added.out.contains("by letter"), "{added:?}");
    let again = suppressions(dir, &args);
    assert!(again.out.ends_with("It was suppressed before.\n"), "{again:?}");
    let page = found(dir, &["check", "Ann@Example.com"]);
    assert_eq!((page.len(), &page[0]["category"], &page[0]["kind"]), (1, &json!("marketing"), &json!("unsubscribe")));
    let bob = told(dir, &["add", "bob@example.com"], 0);
    assert_eq!(found(dir, &["list"]).len(), 2);
    let first = suppressions(dir, &["list", "--limit", "1"]);
    let cursor = first.out.split("--cursor ").nth(1).unwrap().trim();
    assert_eq!(found(dir, &["list", "--limit", "1", "--cursor", cursor])[0]["id"], page[0]["id"]);
    // What a message to it becomes.
    let send = ["send", "--class", "receipt", "--subject", "Hello", "--text", "It works.", "--to", "bob@example.com"];
    let sent = run(dir, &send, &[]);
    assert!(sent.out.contains("suppressed"), "{sent:?}");

    let bob = bob["id"].as_str().unwrap();
    assert_eq!(suppressions(dir, &["remove", bob]).out, format!("{bob} lifted\n"));
    let ann = page[0]["id"].as_str().unwrap();
    assert_eq!(suppressions(dir, &["remove", "ann@example.com"]).out, format!("{ann} lifted\n"));
    assert_eq!(suppressions(dir, &["remove", "ann@example.com"]).out, "nothing is suppressed there\n");
    for (args, code, words) in [
        (&["add", "not-an-address"][..], 2, "the address: must be"),
        (&["add", "ann@example.com", "--category", "adverts"], 2, "--category: is not a configured class"),
        (&["add", "ann@example.com", "--channel", "apns"], 2, "--channel: must be"),
        (&["remove", "sup_12"], 2, "48 hex digits"),
        (&["list", "--cursor", "a b"], 2, "--cursor"),
    ] {
        let odd = suppressions(dir, args);
        assert!(odd.code == code && odd.err.contains(words), "{args:?}: {odd:?}");
        assert!(!odd.err.contains("not-an-address"), "{odd:?}");
    }
    assert_eq!(found(dir, &["list"]), Vec::<Value>::new());
}

#[test]
fn an_import_names_what_is_wrong_by_its_line_and_a_repeat_of_it_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let mut file = "address,kind,channel,note\r\n\"one@example.com\",hard_bounce,,\"a, b\"\r\n".to_owned();
    file.push_str("secret-at-example.com,,,\n+46701234567,,sms,\nthree@example.com,dislike,,\nfour@example.com\n\n");
    for number in 0..60 {
        writeln!(file, "many-{number}@example.com,,,").unwrap();
    }
    std::fs::write(dir.join("list.csv"), file).unwrap();
    let done = suppressions(dir, &["import", "list.csv"]);
    assert_eq!((done.code, done.out.as_str()), (3, "65 rows: 62 suppressed, 0 were before, 3 wrong\n"), "{done:?}");
    let lines: Vec<&str> = done.err.lines().collect();
    assert_eq!(lines.len(), 3, "{done:?}");
    assert!(lines[0].starts_with("line 3: address must be an email address such as"), "{done:?}");
    assert_eq!(lines[1], "line 5: kind must be manual, hard_bounce, complaint or unsubscribe");
    assert_eq!(lines[2], "line 6: has 1 cells, the first row has 4");
    assert!(!done.err.contains("secret") && !done.err.contains("three"), "{done:?}");
    let before = found(dir, &["list", "--limit", "500"]);
    assert_eq!(before.len(), 62);
    let again = told(dir, &["import", "list.csv"], 3);
    assert_eq!((&again["rows"], &again["suppressed"], &again["before"]), (&json!(65), &json!(0), &json!(62)));
    assert_eq!(
        again["wrong"][1],
        json!({"line": 5, "detail": "kind must be manual, hard_bounce, complaint or unsubscribe"})
    );
    assert_eq!(found(dir, &["list", "--limit", "500"]), before);

    // What it has, and no address whole.
    let export = suppressions(dir, &["export"]);
    assert_eq!((export.code, export.out.lines().count()), (0, 63), "{export:?}");
    assert!(export.out.starts_with("id,channel,address,kind,category,sender,since,until,origin,note\nsup_"));
    assert!(export.out.contains(",email,o…@example.com,hard_bounce,,,20") && export.out.contains(",\"a, b\"\n"));
    assert!(
        export.out.contains(",sms,'+46…67,manual,") && !export.out.contains("one@") && !export.out.contains("many-")
    );
    std::fs::write(dir.join("export.csv"), "address\na…@example.com\n").unwrap();
    assert_eq!(suppressions(dir, &["import", "export.csv"]).code, 3);
    // A row that no request can hold costs nobody else.
    let long = format!("address,note\nx1@example.com,\nx2@example.com,{}\nx3@example.com,\n", "n".repeat(1_200_000));
    std::fs::write(dir.join("long.csv"), long).unwrap();
    let done = suppressions(dir, &["import", "long.csv"]);
    assert_eq!((done.code, done.out.as_str()), (3, "3 rows: 2 suppressed, 0 were before, 1 wrong\n"), "{done:?}");
    assert_eq!(done.err, "line 3: is too long: a note has at most 255 characters\n");
    for (text, words) in [("", "must name the columns"), ("ann@example.com\n", "must name the columns")] {
        std::fs::write(dir.join("bad.csv"), text).unwrap();
        let bad = suppressions(dir, &["import", "bad.csv"]);
        assert!(bad.code == 2 && bad.err.contains(words) && !bad.err.contains("ann@"), "{bad:?}");
    }
    assert_eq!(suppressions(dir, &["import", "absent.csv"]).code, 2);
}

/// A limit of calls makes it slower and nothing else.
#[test]
fn an_import_comes_back_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let config = "[http.limit]\nrate = 5\nper = \"1s\"\nburst = 5\n";
    std::fs::write(dir.join("belfry.toml"), config).unwrap();
    let _server = Running::start(dir, &["--port", "0", "--config", "belfry.toml"], &[]);
    let rows: String = (0..18).map(|number| format!("imp{number}@example.com\n")).collect();
    std::fs::write(dir.join("list.csv"), format!("address\n{rows}")).unwrap();
    let done = suppressions(dir, &["import", "list.csv"]);
    assert!(done.code == 0 && done.out == "18 rows: 18 suppressed, 0 were before\n", "{done:?}");
    assert_eq!(done.err.matches("waiting 1 s at a time: the server says 429").count(), 1, "{done:?}");
    // One address, however often it stands there.
    std::fs::write(dir.join("twice.csv"), "address\ndup@example.com\nDUP@example.com\nimp0@example.com\n").unwrap();
    let done = suppressions(dir, &["import", "twice.csv"]);
    assert!(done.out == "3 rows: 1 suppressed, 1 were before, 1 repeats another row\n", "{done:?}");
}

/// More than the time that anybody waits for: it says so, and what it had done counts.
#[test]
fn an_import_that_is_broken_off_says_how_far_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let config = "[http.limit]\nrate = 1\nper = \"1h\"\nburst = 5\n";
    std::fs::write(dir.join("belfry.toml"), config).unwrap();
    let _server = Running::start(dir, &["--port", "0", "--config", "belfry.toml"], &[]);
    let rows: String = (0..18).map(|number| format!("imp{number}@example.com\n")).collect();
    std::fs::write(dir.join("list.csv"), format!("address\n{rows}")).unwrap();
    let done = suppressions(dir, &["import", "list.csv"]);
    assert!(done.code == 75 && done.err.contains("Until then: 5 rows: 5 suppressed"), "{done:?}");
}
