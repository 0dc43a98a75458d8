//! `preferences`, with a server that holds the store.

use serde_json::{Value, json};

use super::run;
use super::running::Running;

#[test]
fn what_a_recipient_wants_is_shown_linked_to_and_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    let preferences = |args: &[&str]| run(dir, &[&["preferences"], args].concat(), &[]);
    // By where the column begins: cells may be empty.
    let email = |out: &str, class: &str| {
        let line = |begins: &str| out.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("{out}"));
        let at = line("CLASS").find("EMAIL").unwrap();
        line(class)[at..].split_whitespace().next().unwrap().to_owned()
    };
    let silent = preferences(&["show", "ann"]);
    assert!(silent.code == 0 && silent.out.starts_with("ann: has said nothing"), "{silent:?}");
    assert!(!silent.out.contains("on*") && !silent.out.contains("off"), "{silent:?}");

    let shown = preferences(&["set", "ann", "marketing", "email", "off"]);
    assert_eq!(shown.out, preferences(&["show", "ann"]).out);
    assert_eq!(email(&shown.out, "marketing"), "off*", "{shown:?}");
    assert_eq!(email(&shown.out, "digest"), "on", "{shown:?}");
    assert_eq!(email(&shown.out, "code (always sent)"), "on", "{shown:?}");
    let told: Value = serde_json::from_str(&preferences(&["show", "ann", "--output", "json"]).out).unwrap();
    assert_eq!((&told["categories"], &told["every"]), (&json!({ "marketing": { "email": false } }), &json!({})));
    // What was said of one thing stays when another is said, and the last word taken back leaves nothing.
    for args in [["set", "ann", "every", "push", "off"], ["set", "ann", "marketing", "email", "default"]] {
        assert_eq!(preferences(&args).code, 0);
    }
    let told: Value = serde_json::from_str(&preferences(&["show", "ann", "--output", "json"]).out).unwrap();
    let push = json!({ "apns": false, "fcm": false, "web_push": false });
    assert_eq!((&told["categories"], &told["every"]), (&json!({}), &push));

    let linked = preferences(&["link", "ann", "--locale", "de"]);
    assert!(linked.code == 0 && linked.out.contains("/u/") && linked.out.contains("For ann alone"), "{linked:?}");
    assert!(!linked.out.lines().next().unwrap().contains("ann"), "{linked:?}");
    assert_eq!(preferences(&["forget", "ann"]).out, "Nothing that ann said is kept.\n");
    assert_eq!(preferences(&["forget", "ann"]).code, 0);
    assert_eq!(preferences(&["show", "ann"]).out, silent.out);
    for (args, words) in [
        (&["show", ".."][..], "the recipient: must not be dots alone"),
        (&["show", "a/b"], "the recipient: must have 1 to 255"),
        (&["set", "ann", "code", "email", "off"], "code email: "),
        (&["set", "ann", "adverts", "email", "off"], "adverts email: "),
        (&["set", "ann", "marketing", "fax", "off"], "marketing fax: "),
        (&["set", "ann", "marketing", "email", "perhaps"], "possible values: on, off, default"),
        (&["link", "ann", "--until", "noon"], "--until: must be an RFC 3339"),
        (&["link", "ann", "--locale", "german"], "--locale: must"),
    ] {
        let odd = preferences(args);
        assert!(odd.code == 2 && odd.err.contains(words), "{args:?}: {odd:?}");
    }
}
