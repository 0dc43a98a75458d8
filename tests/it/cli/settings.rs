//! `check-config` and what of a configuration ever reaches a screen.

use std::os::unix::ffi::OsStrExt;

use super::{Done, belfry, run};

const PASSWORD: &str = "correct-horse-battery";

fn smtp(dir: &std::path::Path) {
    std::fs::write(dir.join("password"), format!("{PASSWORD}\n")).unwrap();
    std::fs::write(
        dir.join("belfry.toml"),
        "[providers.main]\nkind = \"smtp\"\nurl = \"smtps://u@mail.invalid\"\nfrom = \"a@b.example\"\n\
         password_file = \"password\"\n[channels.email]\nproviders = [\"main\"]\n",
    )
    .unwrap();
}

#[test]
fn what_counts_is_shown_with_where_it_came_from() {
    let dir = tempfile::tempdir().unwrap();
    smtp(dir.path());
    let env = [("BELFRY_CONFIG", "belfry.toml"), ("BELFRY__HTTP__MAX_CONNECTIONS", "9")];
    let done = run(dir.path(), &["check-config", "--output", "json"], &env);
    assert_eq!(done.code, 0, "{done:?}");
    let shown: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let setting = |key: &str| {
        let all = shown["settings"].as_array().unwrap();
        let one = all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("{key}"));
        (one["value"].clone(), one["from"].as_str().unwrap().to_owned())
    };
    let pair = |value: serde_json::Value, from: &str| (value, from.to_owned());
    assert_eq!(setting("http.listen"), pair("127.0.0.1:8090".into(), "default"));
    assert_eq!(setting("http.max_connections"), pair(9.into(), "BELFRY__HTTP__MAX_CONNECTIONS"));
    assert_eq!(setting("classes.code.channels"), pair(serde_json::json!(["email", "sms"]), "default"));
    assert_eq!(setting("providers.main.url"), pair("smtps://u@mail.invalid".into(), "belfry.toml"));
    assert_eq!(setting("providers.main.password"), pair("(set)".into(), "password"));

    let table = run(dir.path(), &["check-config"], &env);
    let line = table.out.lines().find(|line| line.starts_with("http.max_connections")).unwrap();
    assert!(line.split_whitespace().eq(["http.max_connections", "9", "BELFRY__HTTP__MAX_CONNECTIONS"]), "{line}");
}

#[test]
fn every_problem_is_named_by_its_key() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("bad.toml"),
        "[http]\nlistne = \"127.0.0.1:1\"\n[caps.x]\nper = \"scope\"\nlimit = 0\nwindow = \"1h\"\nthen = \"defer\"\n\
         [classes.digest]\nresend_limit = 3\ncaps = [\"x\"]\n[store]\nkind = \"oracle\"\n[escalation]\n",
    )
    .unwrap();
    let args = ["check-config", "--config", "bad.toml"];
    let done = run(dir.path(), &args, &[]);
    assert_eq!((done.code, done.out.as_str()), (78, ""));
    for line in [
        "http.listne: no such key; did you mean \"listen\"? (bad.toml)",
        "escalation: escalation is not built yet (bad.toml)",
        "caps.x.limit: must be from 1 to 10000 (bad.toml)",
        "store.kind: expected one of \"sqlite\", \"redis\" (bad.toml)",
        "classes.digest.resend_limit: must be 0: record_then_send never sends again after an unknown outcome (bad.toml)",
    ] {
        assert!(done.err.contains(line), "{line} in {}", done.err);
    }
    let done = run(dir.path(), &[&args[..], &["--output", "json"]].concat(), &[]);
    let refused: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let keys: Vec<&str> =
        refused["problems"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    let expected = ["caps.x.limit", "classes.digest.resend_limit", "escalation", "http.listne", "store.kind"];
    assert_eq!((done.code, keys), (78, expected.to_vec()));
}

#[test]
fn a_secret_never_reaches_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    smtp(dir.path());
    let bootstrap = "bootstrap-key-of-thirty-two-letters";
    let by_file = [("BELFRY_CONFIG", "belfry.toml"), ("BELFRY_BOOTSTRAP_KEY", bootstrap)];
    // Given twice: refused, and still not shown.
    let twice = [by_file[0], by_file[1], ("BELFRY__PROVIDERS__MAIN__PASSWORD", PASSWORD)];
    // Where it does not belong.
    let wrong_place = [("BELFRY__PROVIDERS__MAIN__CONNECTIONS", PASSWORD), by_file[0], by_file[1]];
    for (env, code) in [(&by_file[..], 0), (&twice[..], 78), (&wrong_place[..], 78)] {
        for output in ["table", "json"] {
            let done = run(dir.path(), &["check-config", "--output", output], env);
            assert_eq!(done.code, code, "{done:?}");
            for secret in [PASSWORD, bootstrap] {
                assert!(!done.out.contains(secret) && !done.err.contains(secret), "{done:?}");
            }
        }
    }
    let short = run(dir.path(), &["check-config"], &[("BELFRY_BOOTSTRAP_KEY", "hunter2")]);
    assert!(short.code == 78 && short.err.contains("BELFRY_BOOTSTRAP_KEY") && !short.err.contains("hunter2"));
}

#[test]
fn output_to_a_pipe_has_no_colour() {
    let dir = tempfile::tempdir().unwrap();
    let done = run(dir.path(), &["check-config"], &[("TERM", "xterm-256color")]);
    assert!(!done.out.contains('\u{1b}') && done.out.contains("shutdown_grace"), "{done:?}");
}

/// What `serve` stops at, `check-config` has to name, under the same code.
#[test]
fn check_config_and_serve_refuse_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("empty.pem"), "no certificate in here\n").unwrap();
    std::fs::write(dir.join("dkim.pem"), "no key in here\n").unwrap();
    std::fs::create_dir_all(dir.join("templates/news")).unwrap();
    std::fs::write(dir.join("templates/news/meta.toml"), "locale = \"en\"\nchannel = [\"email\"]\n").unwrap();
    let smtp = "[providers.main]\nkind = \"smtp\"\nurl = \"smtp://127.0.0.1:2525\"\nfrom = \"a@b.example\"\n\
                helo = \"a b\"\nca_file = \"empty.pem\"\n\
                dkim = { domain = \"b.example\", selector = \"x\", key_file = \"dkim.pem\" }\n";
    let by_key = [
        "providers.main.ca_file: empty.pem: holds no certificate",
        "providers.main.dkim.key_file:",
        "providers.main.helo:",
    ];
    let by_template = ["templates.path: templates/news/meta.toml"];
    for (text, expected) in [(smtp, &by_key[..]), ("", &by_template)] {
        std::fs::write(dir.join("belfry.toml"), text).unwrap();
        for command in [&["check-config"][..], &["serve", "--port", "0"]] {
            let done = run(dir, &[command, &["--config", "belfry.toml"]].concat(), &[]);
            assert_eq!(done.code, 78, "{command:?}: {done:?}");
            for part in expected {
                assert!(done.err.contains(part), "{command:?}: {part} in {done:?}");
            }
        }
    }
}

/// Such a cap would count nothing of what it is for.
#[test]
fn a_cap_of_a_template_that_there_is_not_is_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[classes.receipt]\ncaps = [\"hourly\"]\n[caps.hourly]\nper = \"address\"\nlimit = 1\nwindow = \"1h\"\n\
                then = \"defer\"\ntemplates = [\"recept\"]\n";
    std::fs::write(dir.path().join("belfry.toml"), text).unwrap();
    for command in [&["check-config"][..], &["serve", "--port", "0"]] {
        let done = run(dir.path(), &[command, &["--config", "belfry.toml"]].concat(), &[]);
        let said = "caps.hourly.templates: there is no template \"recept\"; there are ";
        assert!(done.code == 78 && done.err.contains(said), "{command:?}: {done:?}");
    }
}

#[test]
fn a_mistyped_variable_is_refused_and_another_s_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    let env = [("BELFRY_HTTP__LISTEN", "127.0.0.1:1"), ("BELFRY_HOME", "/x")];
    let done = run(dir.path(), &["check-config"], &env);
    let said = "BELFRY_HTTP__LISTEN: is not read; did you mean BELFRY__HTTP__LISTEN?";
    assert!(done.code == 78 && done.err.contains(said), "{done:?}");
    let noted = run(dir.path(), &["check-config"], &env[1..]);
    assert!(noted.code == 0 && noted.out.contains("note: BELFRY_HOME is not read"), "{noted:?}");
}

#[test]
fn a_variable_that_is_no_text_is_refused_by_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = belfry(dir.path(), &["check-config"], &[]);
    command.env("BELFRY__LOG__LEVEL", std::ffi::OsStr::from_bytes(b"\xff"));
    let done: Done = command.output().unwrap().into();
    let said = format!("{}{}", done.out, done.err);
    assert!(done.code == 78 && said.contains("log.level"), "{done:?}");
}
