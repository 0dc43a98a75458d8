//! `schedules`, with a server that holds the store.

use std::path::Path;

use serde_json::{Value, json};

use super::running::Running;
use super::{Done, run};

const MAIL: &str =
    r#"{"class": "receipt", "to": {"email": "ann@example.com"}, "content": {"subject": "S", "text": "T"}}"#;

fn schedules(dir: &Path, args: &[&str]) -> Done {
    run(dir, &[&["schedules"], args].concat(), &[])
}

fn told(dir: &Path, args: &[&str]) -> Value {
    let done = schedules(dir, &[args, &["--output", "json"]].concat());
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

#[test]
fn a_schedule_is_set_seen_paused_resumed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    assert_eq!(schedules(dir, &["list"]).out, "there are no schedules\n");
    std::fs::write(dir.join("mail.json"), MAIL).unwrap();
    let set =
        ["set", "yearly", "--cron", "30 9 24 12 *", "--time-zone", "Europe/Stockholm", "--notification", "mail.json"];
    let dry = schedules(dir, &[&set[..], &["--dry-run"]].concat());
    assert!(dry.code == 0 && dry.out.contains("-12-24 09:30:00  in "), "{dry:?}");
    assert_eq!(schedules(dir, &["list"]).out, "there are no schedules\n");
    let kept = schedules(dir, &set);
    for words in
        ["yearly  active  30 9 24 12 *  Europe/Stockholm\n", "Sends receipt. Missed runs are skipped.\n", "\nnow ─"]
    {
        assert!(kept.code == 0 && kept.out.contains(words), "{words:?} in {kept:?}");
    }
    assert_eq!(kept.out.matches('●').count(), 5, "{kept:?}");
    let catches_up =
        told(dir, &[&set[..], &["--missed", "catch-up", "--most", "3", "--until", "9990-01-01T00:00:00Z"]].concat());
    assert_eq!(catches_up["missed"], json!({"policy": "catch_up", "most": 3}));
    assert_eq!(told(dir, &["list"])["data"][0]["name"], "yearly");
    assert!(schedules(dir, &["list"]).out.contains("-12-24T09:30:00 (in "));

    let paused = schedules(dir, &["pause", "yearly"]);
    assert!(paused.code == 0 && paused.out.contains("\nPaused since ") && !paused.out.contains('●'), "{paused:?}");
    assert_eq!(told(dir, &["show", "yearly"])["state"], "paused");
    assert_eq!(told(dir, &["resume", "yearly"])["state"], "active");
    for _ in 0..2 {
        assert_eq!(schedules(dir, &["remove", "yearly"]).out, "yearly is gone: nothing more of it is sent\n");
    }
    std::fs::write(dir.join("odd.json"), MAIL.replace("receipt", "advert")).unwrap();
    std::fs::write(dir.join("none.json"), "{").unwrap();
    let with = |cron, zone, file| ["set", "odd", "--cron", cron, "--time-zone", zone, "--notification", file];
    let catch_up = [&with("@daily", "UTC", "mail.json")[..], &["--missed", "catch-up"]].concat();
    for (args, code, words) in [
        (&["show", "yearly"][..], 1, "There is nothing here"),
        (&["show", "a/b"], 2, "the name must have 1 to 64"),
        (&with("61 * * * *", "UTC", "mail.json"), 2, "--cron: minute (field 1): must be from 0 to 59"),
        (&with("@daily", "Mars", "mail.json"), 2, "--time-zone: must be an IANA time zone"),
        (&with("@daily", "UTC", "odd.json"), 2, "--notification, at /class: is not a configured class"),
        (&with("@daily", "UTC", "none.json"), 2, "--notification none.json: is no JSON"),
        (&with("@daily", "UTC", "missing.json"), 2, "--notification missing.json"),
        (&catch_up, 2, "--missed catch-up and --most stand together"),
    ] {
        let odd = schedules(dir, args);
        assert!(odd.code == code && odd.err.contains(words), "{args:?}: {odd:?}");
    }
}
