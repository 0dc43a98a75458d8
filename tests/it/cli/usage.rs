//! Exit codes, help, completion, version.

use std::net::TcpListener;

use super::run;

#[test]
fn exit_codes_say_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody listens where somebody has just stopped listening.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!("http://{free}");
    let id = "ntf_000000000000000000000000";
    for (args, env, code, said) in [
        (vec!["version"], vec![], 0, ""),
        (vec!["--help"], vec![], 0, ""),
        (vec![], vec![], 2, "Usage: belfry"),
        (vec!["frobnicate"], vec![], 2, "unrecognized subcommand"),
        (vec!["serve", "--port", "many"], vec![], 2, "--port"),
        (vec!["status", "order-42"], vec![], 2, "ntf_ (a notification) or dlv_ (a delivery) and 24 hex digits"),
        (vec!["status", id, "--server", &away], vec![], 75, "no answer from"),
        (vec!["explain", id, "--server", &away], vec![], 75, "no answer from"),
        (vec!["send", "--class", "code", "--server", &away, "--key", "k"], vec![], 75, "--key k"),
        (vec!["send", "--data", "{broken"], vec![], 2, "--data is no JSON"),
        (vec!["send", "--json", "nowhere.json"], vec![], 2, "--json: nowhere.json cannot be read"),
        (vec!["send", "--data", "@nowhere.json"], vec![], 2, "--data: nowhere.json cannot be read"),
        (
            vec!["send", "--server", "127.0.0.1:8291"],
            vec![],
            2,
            "begin with http:// or https://, as in http://127.0.0.1:8291",
        ),
        (vec!["redrive", "ntf_000000000000000000000000"], vec![], 2, "dlv_ and 24 hex digits"),
        (vec!["send", "--api-key-file", "nowhere"], vec![], 2, "nowhere"),
        (vec!["send", "--api-key-file", "/etc/passwd"], vec![], 2, "/etc/passwd: holds no API key"),
        (vec!["health", "--server", &away], vec![], 1, "no answer from"),
        (vec!["check-config", "--config", "nowhere.toml"], vec![], 78, "nowhere.toml: cannot be read"),
        (vec!["serve"], vec![("BELFRY__HTTP__LISTEN", "0.0.0.0:0")], 78, "http.listen: lies beyond loopback"),
        (vec!["keys", "list"], vec![], 1, "there is no store yet"),
        (vec!["keys", "create", "--tenant", "A B"], vec![], 2, "--tenant"),
        (vec!["templates", "preview", "nothing"], vec![], 1, "login_code"),
    ] {
        let done = run(dir.path(), &args, &env);
        assert_eq!(done.code, code, "{args:?}: {done:?}");
        assert!(done.err.contains(said), "{args:?}: {done:?}");
    }
    assert!(!dir.path().join(".belfry").exists(), "commands that only look make nothing");
}

#[test]
fn version_and_completion_are_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let version: serde_json::Value = serde_json::from_str(&run(dir.path(), &["version", "--json"], &[]).out).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    for shell in ["bash", "zsh", "fish"] {
        let done = run(dir.path(), &["completion", shell], &[]);
        assert!(done.code == 0 && done.out.contains("check-config"), "{shell}: {done:?}");
    }
}

#[test]
fn templates_are_checked_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let built_in = run(dir.path(), &["templates", "lint"], &[]);
    assert_eq!(built_in.code, 0, "{built_in:?}");
    let shown = run(dir.path(), &["templates", "preview", "login_code", "--out", "made"], &[]);
    assert!(shown.code == 0 && shown.out.contains("login_code"), "{shown:?}");
    assert!(dir.path().join("made/subject.txt").is_file());

    let at = [
        "--data",
        "{\"sender\": \"N\", \"code\": \"777\", \"valid_until\": \"x\", \"device\": \"d\", \"domain\": \"e\"}",
    ];
    let args = [&["templates", "preview", "login_code", "--time-zone", "Europe/Berlin"][..], &at].concat();
    let shown = run(dir.path(), &args, &[]);
    assert!(shown.code == 0 && shown.out.contains("777"), "{shown:?}");
    for (flag, value, told) in [
        ("--locale", "xx-bad!", "the locale must be a language tag such as en or pt-BR"),
        ("--time-zone", "Mars", "the time zone must be an IANA time zone such as Europe/Stockholm"),
        ("--data", "[]", "the data has to be an object"),
        ("--data", "{", "--data is no JSON"),
    ] {
        for command in [&["templates", "preview", "login_code"][..], &["templates", "diff", "--from", "bad"]] {
            std::fs::create_dir_all(dir.path().join("bad")).unwrap();
            let refused = run(dir.path(), &[command, &[flag, value]].concat(), &[]);
            assert!(refused.code == 2 && refused.err.contains(told), "{flag}: {refused:?}");
        }
    }
    let nowhere = run(dir.path(), &["templates", "lint", "nowhere"], &[]);
    assert!(
        nowhere.code == 3 && !nowhere.out.contains(" / ") && nowhere.out.contains("nowhere cannot be read"),
        "{nowhere:?}"
    );

    let bad = dir.path().join("bad/news");
    std::fs::create_dir_all(&bad).unwrap();
    std::fs::write(bad.join("meta.toml"), "description = \"x\"\nchannels = [\"email\"]\n").unwrap();
    std::fs::write(bad.join("subject.txt"), "You have 1 new message").unwrap();
    std::fs::write(bad.join("text.txt"), "{{ broken").unwrap();
    let found = run(dir.path(), &["templates", "lint", "bad"], &[]);
    assert!(found.code == 3 && found.out.contains("news/text.txt"), "{found:?}");
}

#[test]
fn what_a_change_of_templates_changes_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    for (folder, text) in [("old", "Order {{ n }}\n"), ("templates", "Your order {{ n }}\n")] {
        let news = dir.path().join(folder).join("news");
        std::fs::create_dir_all(&news).unwrap();
        std::fs::write(news.join("meta.toml"), "description = \"x\"\nchannels = [\"chat\"]\nlocale = \"en\"\n")
            .unwrap();
        std::fs::write(news.join("sample.json"), "{\"n\": 7}").unwrap();
        std::fs::write(news.join("text.txt"), text).unwrap();
    }
    let changed = run(dir.path(), &["templates", "diff", "--from", "old", "news", "--locale", "en"], &[]);
    assert_eq!(changed.code, 3, "{changed:?}");
    assert_eq!(changed.out, "== news, en, chat: text changed\n@@ -1 +1 @@\n-Order 7\n+Your order 7\n");
    let json = run(dir.path(), &["templates", "diff", "--from", "old", "--output", "json"], &[]);
    assert!(json.code == 3 && json.out.contains("\"part\":\"text\""), "{json:?}");
    let same = run(dir.path(), &["templates", "diff", "--from", "old", "--to", "old"], &[]);
    assert!(same.code == 0 && same.out == "nothing differs\n", "{same:?}");
    let none = run(dir.path(), &["templates", "diff", "--from", "old", "nothing"], &[]);
    assert!(none.code == 1 && none.err.contains("there is no template `nothing` in either folder"), "{none:?}");
}
