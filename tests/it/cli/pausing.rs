//! `pauses`, with a server that holds the store.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::running::Running;
use super::{Done, run};
use crate::peers::until::until;

fn pauses(dir: &Path, args: &[&str]) -> Done {
    run(dir, &[&["pauses"], args].concat(), &[])
}

fn told(dir: &Path, args: &[&str]) -> Value {
    let done = pauses(dir, &[args, &["--output", "json"]].concat());
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

#[test]
fn something_is_paused_seen_and_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    assert_eq!(pauses(dir, &["list"]).out, "nothing is paused\n");
    let args = ["add", "channel", "email", "--why", "the relay moves"];
    let added = pauses(dir, &args);
    assert!(
        added.code == 0 && added.out.contains("channel email") && added.out.contains("the relay moves"),
        "{added:?}"
    );
    assert!(added.out.ends_with("Goes out all the same unless --forced: code, security\n"), "{added:?}");
    assert!(pauses(dir, &args).out.contains("It was paused before.\n"));
    // What a message becomes.
    let send = ["send", "--class", "receipt", "--subject", "Hello", "--text", "It works.", "--to", "bob@example.com"];
    let sent = run(dir, &[&send[..], &["--output", "json"]].concat(), &[]);
    let sent: Value = serde_json::from_str(&sent.out).unwrap();
    let id = sent["notification"]["id"].as_str().unwrap();
    // The outbox has messages of any channel, so that it is looked at once.
    until("it says so", Duration::from_secs(20), || {
        run(dir, &["explain", id], &[]).out.contains("the channel email is paused since").then_some(())
    });
    let list = told(dir, &["list"]);
    assert_eq!((&list["data"][0]["held"], &list["data"][0]["name"]), (&json!(1), &json!("email")));
    let status = run(dir, &["status"], &[]);
    assert!(status.out.contains("pause") && status.out.contains("the channel email is paused since"), "{status:?}");

    let forced = told(dir, &["add", "class", "code", "--forced"]);
    assert_eq!(forced["forced"], true);
    assert!(pauses(dir, &["list"]).out.contains("class code (forced)"));
    let id = list["data"][0]["id"].as_str().unwrap();
    assert_eq!(pauses(dir, &["resume", "channel", "email"]).out, format!("{id} lifted\n"));
    assert_eq!(pauses(dir, &["resume", "channel", "email"]).out, "nothing of that is paused; what is: class code\n");
    // A tenant's pause is another one.
    told(dir, &["add", "channel", "email", "--tenant", "default"]);
    let nothing = "nothing of that is paused; what is: channel email --tenant default, class code\n";
    let found = pauses(dir, &["resume", "channel", "email"]).out;
    assert!(found == nothing || found.contains("class code, channel email --tenant default"), "{found}");
    assert!(pauses(dir, &["resume", "channel", "email", "--tenant", "default"]).out.ends_with(" lifted\n"));
    let code = forced["id"].as_str().unwrap();
    assert_eq!(told(dir, &["resume", code]), json!({ "resumed": [code] }));
    assert_eq!(pauses(dir, &["list"]).out, "nothing is paused\n");
    for (args, code, words) in [
        (&["add", "class", "code"][..], 2, "the name: is a class that pauses let through"),
        (&["add", "class", "adverts"], 2, "the name: is not a configured class; there are code"),
        (&["add", "everything"], 2, "what to pause: must be one of all"),
        (&["add", "all", "--until", "noon"], 2, "--until: must be an RFC 3339"),
        (&["resume", "pau_12"], 2, "24 hex digits"),
        (&["resume", "chanel", "email"], 2, "must be a pause's id or one of all, channel"),
        (&["resume", "class"], 2, "say which class"),
        (&["resume", "all", "of it"], 2, "`all` has no name"),
    ] {
        let odd = pauses(dir, args);
        assert!(odd.code == code && odd.err.contains(words), "{args:?}: {odd:?}");
    }
}
