use std::collections::BTreeSet;

use belfry_domain::{Order, Priority};
use figment::error::Kind;
use figment::value::{Dict, Value};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;

use super::*;
use crate::channel::smtp::config::{DkimConfig, SmtpConfig, SmtpReuse, SmtpTimeouts};

fn with_env(pairs: &[(&str, &str)]) -> Sources {
    Sources { file: None, env: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect() }
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn load(&self, text: &str) -> Result<Config, ConfigErrors> {
        Config::load(&Sources { file: Some(self.file("belfry.toml", text)), env: BTreeMap::new() })
    }
}

#[test]
fn the_defaults_alone_are_a_configuration() {
    let config = Config::load(&Sources::default()).unwrap();
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8090");
    assert_eq!(config.engine.shutdown_grace, "25s".parse().unwrap());
    assert!(config.shown().iter().all(|one| one.origin == Origin::Default));
    let parts = config.policy_parts();
    assert!(parts.routes.is_empty(), "on a fresh machine everything goes to the outbox");
    assert_eq!(
        parts.classes.keys().collect::<Vec<_>>(),
        ["code", "digest", "marketing", "receipt", "security", "transactional"]
    );
    for (name, class) in &parts.classes {
        assert_eq!(class.at_most_once(), ["digest", "marketing"].contains(&name.as_str()), "{name}");
    }
}

/// The names serde knows for `T`.
fn keys_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let odd = Value::from(Dict::from([("\u{1}".to_owned(), Value::from(0))]));
    match odd.deserialize::<T>().map(|_| ()).unwrap_err().kind {
        Kind::UnknownField(_, known) => known.iter().map(|name| (*name).to_owned()).collect(),
        kind => panic!("{kind:?}"),
    }
}

/// The embedded file with its commented-out keys switched on.
fn everything_on() -> toml::Table {
    let key = |line: &str| {
        let name = line.split('=').next().unwrap_or_default().trim();
        (line.starts_with('[') && line.ends_with(']'))
            || (line.contains(" = ") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
    };
    let on: String = DEFAULTS
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if key(rest) => format!("{rest}\n"),
            Some(_) => "\n".to_owned(),
            None => format!("{line}\n"),
        })
        .collect();
    toml::from_str(&on).unwrap()
}

fn keys_at(tree: &toml::Table, at: &str) -> BTreeSet<String> {
    let table = at.split('.').fold(tree, |table, name| table[name].as_table().unwrap());
    table.keys().cloned().collect()
}

#[test]
fn the_embedded_file_names_every_key_and_no_other() {
    let tree = everything_on();
    let given_elsewhere = |path: &str| match path {
        // Secrets: by file or environment only.
        "providers.main" => vec!["password"],
        "providers.main.dkim" => vec!["key"],
        _ => Vec::new(),
    };
    let mut types: Vec<(&str, BTreeSet<String>)> = vec![
        ("http", keys_of::<HttpConfig>()),
        ("store", keys_of::<StoreConfig>()),
        ("store.sqlite", keys_of::<SqliteConfig>()),
        ("engine", keys_of::<EngineConfig>()),
        ("remember", keys_of::<RememberConfig>()),
        ("templates", keys_of::<TemplatesConfig>()),
        ("outbox", keys_of::<OutboxConfig>()),
        ("log", keys_of::<LogConfig>()),
        ("channels.email", keys_of::<ChannelConfig>()),
        ("environments.staging", keys_of::<EnvironmentConfig>()),
        ("providers.main", keys_of::<SmtpConfig>()),
        ("providers.main.dkim", keys_of::<DkimConfig>()),
        ("providers.main.timeouts", keys_of::<SmtpTimeouts>()),
        ("providers.main.reuse", keys_of::<SmtpReuse>()),
    ];
    let classes = keys_at(&tree, "classes");
    let class_paths: Vec<(String, String)> =
        classes.iter().map(|name| (format!("classes.{name}"), format!("classes.{name}.retry"))).collect();
    for (class, retry) in &class_paths {
        types.push((class, keys_of::<ClassConfig>()));
        types.push((retry, keys_of::<RetryConfig>()));
    }
    for (path, mut known) in types {
        let mut written = keys_at(&tree, path);
        for secret in given_elsewhere(path) {
            assert!(known.remove(secret), "{path}.{secret}");
        }
        match path {
            // Told apart before the type is read.
            "providers.main" => assert!(written.remove("kind")),
            // Shown in the other example: one environment has one or the other.
            "environments.staging" => written.extend(keys_at(&tree, "environments.preview")),
            _ => {}
        }
        assert_eq!(written, known, "{path}");
    }
    assert_eq!(tree.keys().map(String::as_str).collect::<BTreeSet<_>>(), SECTIONS.into_iter().collect());
}

#[test]
fn what_the_comments_call_a_default_is_one() {
    let dir = Dir::new();
    let full = dir.file("full.toml", &toml::to_string(&without_files(everything_on())).unwrap());
    let password = ("BELFRY__PROVIDERS__MAIN__PASSWORD".to_owned(), "secret".to_owned());
    let env = BTreeMap::from([password]);
    let full = Config::load(&Sources { file: Some(full), env: env.clone() }).unwrap();
    let short = dir.file(
        "short.toml",
        "[providers.main]\nkind = \"smtp\"\nurl = \"smtp://user@mail.example.com:587\"\nfrom = \"Shop <no-reply@example.com>\"\nhelo = \"notify.example.com\"\n",
    );
    let short = Config::load(&Sources { file: Some(short), env }).unwrap();
    let text = |config: &Config| serde_json::to_value(&config.providers["main"]).unwrap();
    assert_eq!(text(&full), text(&short));
}

/// Less the files that the example names and no test has.
fn without_files(mut tree: toml::Table) -> toml::Table {
    let main = tree["providers"]["main"].as_table_mut().unwrap();
    for key in ["password_file", "ca_file", "dkim"] {
        assert!(main.remove(key).is_some(), "{key}");
    }
    tree
}

#[test]
fn a_new_class_needs_only_its_order_and_is_like_transactional() {
    let dir = Dir::new();
    let config = dir
        .load("[classes.news]\norder = \"send_then_record\"\n[classes.nudge]\norder = \"record_then_send\"\n")
        .unwrap();
    let classes = config.policy_parts().classes;
    let mut expected = classes["transactional"].clone();
    expected.name = "news".into();
    assert_eq!(classes["news"], expected);
    let nudge = &classes["nudge"];
    assert_eq!((nudge.order, nudge.resend_limit, nudge.priority), (Order::RecordThenSend, 0, Priority::Normal));
}

#[test]
fn a_file_merges_key_by_key_and_the_environment_goes_over_both() {
    let dir = Dir::new();
    let file = dir.file(
        "belfry.toml",
        "[http]\nidle_timeout = \"5s\"\nmax_connections = 7\n[classes.code]\nretry = { cap = \"9s\" }\n",
    );
    let mut sources = with_env(&[
        ("BELFRY__HTTP__MAX_CONNECTIONS", "9"),
        ("BELFRY__CLASSES__CODE__CHANNELS", "sms, email"),
        ("BELFRY__TEMPLATES__PATH", "007"),
        ("BELFRY_SERVER", "not one of them"),
    ]);
    sources.file = Some(file.clone());
    let config = Config::load(&sources).unwrap();
    let code = &config.policy_parts().classes["code"];
    assert_eq!((code.retry.cap.as_secs(), code.retry.base.as_secs()), (9, 1));
    assert_eq!(code.channels, [ChannelKind::Sms, ChannelKind::Email]);
    let origin = |key: &str| config.shown().into_iter().find(|one| one.key == key).map(|one| (one.value, one.origin));
    assert_eq!(origin("http.idle_timeout"), Some(("\"5s\"".into(), Origin::File(file))));
    assert_eq!(origin("http.max_connections"), Some(("9".into(), Origin::Env("BELFRY__HTTP__MAX_CONNECTIONS".into()))));
    assert_eq!(origin("http.header_timeout"), Some(("\"10s\"".into(), Origin::Default)));
    assert_eq!(config.templates.path.to_str(), Some("007"));
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    let dir = Dir::new();
    let password = dir.file("password", "hunter2-and-more\n");
    let smtp = format!(
        "[providers.main]\nkind = \"smtp\"\nurl = \"smtps://u@mail.example.com\"\nfrom = \"a@b.example\"\npassword_file = {password:?}\n[channels.email]\nproviders = [\"main\"]\n"
    );
    let config = dir.load(&smtp).unwrap();
    let ProviderConfig::Smtp(main) = &config.providers["main"] else { panic!("not smtp") };
    assert_eq!(main.password.as_ref().unwrap().expose_secret(), "hunter2-and-more");
    assert_eq!(config.policy_parts().routes[&ChannelKind::Email], "main");
    let shown = config.shown();
    assert!(shown.iter().any(|one| one.key == "providers.main.password" && one.value == "(set)"));
    for text in [format!("{shown:?}"), format!("{config:?}"), serde_json::to_string(&config).unwrap()] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_reload_says_what_it_cannot_carry_out() {
    let config = Config::load(&Sources::default()).unwrap();
    let next = Config::load(&with_env(&[("BELFRY__HTTP__LISTEN", "127.0.0.1:9"), ("BELFRY__REMEMBER__RECORD", "3d")]));
    assert_eq!(config.needs_restart(&next.unwrap()), ["http.listen"]);
    assert!(config.needs_restart(&config.clone()).is_empty());
}

/// File text → what every line of the refusal has to hold, one entry per problem.
const BAD: &[(&str, &[&str])] = &[
    ("[http]\nlistne = \"x\"\n", &["http.listne: no such key; did you mean \"listen\"?"]),
    ("[htpp]\nlisten = \"x\"\n", &["htpp: no such key; did you mean \"http\"?"]),
    ("[zebra]\n", &["zebra: no such key; known here: http, store"]),
    ("[http]\nlisten = \"nonsense\"\n", &["http.listen: invalid socket address syntax"]),
    ("http = 5\n", &["http: expected a table, found a number"]),
    ("classes = 5\n", &["classes: expected tables: [classes.<name>]"]),
    ("[engine]\npoll = 5\n", &["engine.poll: expected text, found a number"]),
    ("[engine]\npoll = \"5 parsecs\"\n", &["engine.poll: expected a duration such as"]),
    (
        "[engine]\npoll = \"0s\"\nconcurrency = 0\n",
        &["engine.concurrency: must be at least 1", "engine.poll: must be longer"],
    ),
    ("[engine]\nconcurrency = 99999\n", &["engine.concurrency: expected a whole number from 0 to 65535, found 99999"]),
    ("[engine]\nconcurrency = \"many\"\n", &["engine.concurrency: expected a whole number", "found text"]),
    ("[http]\nlisten = \"0.0.0.0:8090\"\n", &["http.listen: lies beyond loopback"]),
    ("[http]\nlisten = \"[::]:8090\"\nallow_remote = true\n", &["http.public_url"]),
    ("[http]\npublic_url = \"notify.example.com\"\n", &["http.public_url: expected an address such as"]),
    ("[http]\nbody_limit = 5000\nbatch_body_limit = 4000\n", &["http.batch_body_limit: must not be smaller"]),
    ("[log]\nformat = \"jsn\"\n", &["log.format: expected one of \"pretty\", \"json\"; did you mean \"json\"?"]),
    ("[log]\nlevel = \"loud\"\n", &["log.level: expected error, warn"]),
    ("[store]\nkind = \"redis\"\n", &["store.kind: the Redis store is not built yet"]),
    ("[store.redis]\nurl = \"redis://x\"\n", &["store.redis: the Redis store is not built yet"]),
    ("[store]\nkind = \"sqllite\"\n", &["store.kind: expected one of \"sqlite\""]),
    ("[caps.x]\nlimit = 3\n", &["caps: caps are not built yet"]),
    ("[classes.receipt]\ncaps = [\"x\"]\n", &["classes.receipt.caps: caps are not built yet"]),
    ("[quiet_hours]\n", &["quiet_hours: quiet hours are not built yet"]),
    ("[escalation]\n", &["escalation: escalation is not built yet"]),
    ("[providers.p]\nkind = \"apns\"\n", &["providers.p.kind: providers of kind \"apns\" are not built yet"]),
    (
        "[providers.p]\nkind = \"smpt\"\n",
        &["providers.p.kind: expected \"smtp\" or \"outbox\"; did you mean \"smtp\"?"],
    ),
    ("[providers.p]\nurl = \"smtp://x\"\n", &["providers.p: lacks the key \"kind\""]),
    ("[providers.p]\nkind = \"smtp\"\nfrom = \"a@b.c\"\n", &["providers.p: lacks the key \"url\""]),
    ("[providers.Main]\nkind = \"outbox\"\n", &["providers.Main: is no name"]),
    (
        "[providers.outbox]\nkind = \"smtp\"\nurl = \"smtp://localhost\"\nfrom = \"a@b.c\"\n",
        &["providers.outbox: the name"],
    ),
    ("[channels.emial]\nproviders = []\n", &["channels.emial: no such channel; did you mean \"email\"?"]),
    (
        "[channels.email]\nproviders = [\"main\"]\n",
        &["channels.email.providers: there is no provider \"main\"; define [providers.main]"],
    ),
    ("[channels.email]\nproviders = [\"outbx\"]\n", &["did you mean \"outbox\"?"]),
    ("[channels.email]\nproviders = [\"outbox\", \"outbox\"]\n", &["channels.email.providers: names several"]),
    ("[channels.email]\nproviders = [5]\n", &["channels.email.providers: in its list, expected text, found a number"]),
    (
        "[channels.sms]\nproviders = [\"m\"]\n[providers.m]\nkind = \"smtp\"\nurl = \"smtp://localhost\"\nfrom = \"a@b.c\"\n",
        &["channels.sms.providers: \"m\" cannot send sms"],
    ),
    ("[environments.staging]\n", &["environments.staging: says nothing"]),
    ("[environments.staging]\noutbox = true\nallow = [\"*\"]\n", &["environments.staging: has both"]),
    ("[environments.test]\nallow = [\"*\"]\n", &["environments.test.allow: \"test\" always goes to the outbox"]),
    ("[classes.x]\npriority = \"high\"\n", &["classes.x: lacks the key \"order\""]),
    (
        "[classes.x]\norder = \"send_then_recrod\"\n",
        &["classes.x.order: expected one of", "did you mean \"send_then_record\"?"],
    ),
    (
        "[classes.receipt]\nchannels = [\"emial\"]\n",
        &["classes.receipt.channels: in its list, expected one of", "\"email\"?"],
    ),
    ("[classes.digest]\nresend_limit = 2\n", &["classes.digest.resend_limit: must be 0: record_then_send never"]),
    (
        "[classes.code]\nwindow = \"5m\"\nlease = \"1ms\"\n",
        &["classes.code.lease: must be at least 500ms", "classes.code.window:"],
    ),
    ("[classes.code]\nretry = { max_attempts = 0 }\n", &["classes.code.retry.max_attempts: must be at least 1"]),
    ("[http]\n\"a.b\" = 1\n", &["http: holds the name \"a.b\""]),
    ("[http\n", &["line 1 is no TOML"]),
    ("[http]\nlisten = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n", &["line 3 is no TOML: duplicate key"]),
];

#[test]
fn bad_configurations_are_refused_by_key() {
    for (text, expected) in BAD {
        let refused = Dir::new().load(text).map(|_| ()).expect_err(text).to_string();
        for part in *expected {
            assert!(refused.contains(part), "{text}\ngave\n{refused}\nwithout\n{part}");
        }
        assert!(
            refused.contains("belfry.toml)") || refused.contains("belfry.toml:") || refused.contains("lacks"),
            "{refused}"
        );
    }
}

/// Lines of `[providers.m]` with `kind = "smtp"` → the problem.
const BAD_SMTP: &[(&str, &str)] = &[
    ("url = \"http://mail\"", "providers.m.url: expected smtp://user@host:587"),
    ("url = \"smtp://\"", "providers.m.url: expected smtp://user@host:587"),
    ("url = \"smtp://mail:0\"", "providers.m.url: expected smtp://user@host:587"),
    ("url = \"smtp://u:hunter2@mail\"", "providers.m.url: holds a password"),
    ("url = \"smtp://u@mail\"", "providers.m.url: names a user"),
    ("url = \"smtp://mail\"\npassword = \"hunter2\"", "providers.m.password: a secret does not belong"),
    ("url = \"smtp://mail\"\npassword = 1234567", "providers.m.password: expected"),
    ("url = \"smtp://mail\"\npassword_file = \"/nowhere\"", "providers.m.password_file: /nowhere cannot be read"),
    ("url = \"smtp://mail\"\nca_file = \"/nowhere\"", "providers.m.ca_file: /nowhere cannot be read"),
    ("url = \"smtp://mail\"\nauth = \"plian\"", "did you mean \"plain\"?"),
    ("url = \"smtp://mail\"\nconnections = 0", "providers.m.connections: must be at least 1"),
    (
        "url = \"smtp://mail\"\ntimeouts = { end_of_data = \"60s\" }",
        "providers.m.timeouts.end_of_data: must be at least 600s",
    ),
    (
        "url = \"smtp://mail\"\ntimeouts = { conect = \"60s\" }",
        "providers.m.timeouts.conect: no such key; did you mean \"connect\"?",
    ),
    ("url = \"smtp://mail\"\npace = { rate = 5 }", "providers.m.pace: pace is not built yet"),
    (
        "url = \"smtp://mail\"\ndkim = { domain = \"a b\", selector = \"x\", key_file = \"/nowhere\" }",
        "providers.m.dkim.domain: expected a DNS name",
    ),
];

#[test]
fn bad_smtp_settings_are_refused_and_never_repeated() {
    for (lines, expected) in BAD_SMTP {
        let text = format!("[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.c\"\n{lines}\n");
        let refused = Dir::new().load(&text).map(|_| ()).expect_err(lines).to_string();
        assert!(refused.contains(expected), "{lines}\ngave\n{refused}");
        assert!(!refused.contains("hunter2") && !refused.contains("1234567"), "{refused}");
    }
    let impatient = "[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.c\"\nurl = \"smtp://127.0.0.1:2525\"\ntimeouts = { end_of_data = \"1s\" }\n";
    assert!(Dir::new().load(impatient).is_ok(), "a test peer on this machine may have short patience");
}

#[test]
fn every_problem_is_named_at_once() {
    let text = "[http]\nlisten = 1\nidel_timeout = \"1s\"\nmax_connections = -1\n[engine]\npoll = true\n\
        [classes.receipt]\nlease = \"soon\"\n[caps]\n[providers.a]\nkind = \"fcm\"\n[providers.b]\nkind = \"smtp\"\nfrom = \"x\"\nurl = \"y\"\n";
    let refused = Dir::new().load(text).map(|_| ()).unwrap_err();
    let keys: Vec<&str> = refused.problems.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "caps",
            "classes.receipt.lease",
            "engine.poll",
            "http.idel_timeout",
            "http.listen",
            "http.max_connections",
            "providers.a.kind",
            "providers.b.from",
            "providers.b.url",
        ]
    );
}

#[test]
fn the_environment_is_checked_like_a_file() {
    for (name, value, expected) in [
        ("BELFRY__HTTP__LISTNE", "x", "http.listne: no such key; did you mean \"listen\"? (BELFRY__HTTP__LISTNE)"),
        ("BELFRY__HTTP__MAX_CONNECTIONS", "lots", "http.max_connections: expected a whole number"),
        ("BELFRY__CAPS__X__LIMIT", "3", "caps: caps are not built yet (BELFRY__CAPS__X__LIMIT)"),
        ("BELFRY__HTTP", "3", "BELFRY__HTTP: names no key"),
        ("BELFRY_BOOTSTRAP_KEY", "hunter2", "BELFRY_BOOTSTRAP_KEY: expected 32 to 128 visible"),
    ] {
        let refused = Config::load(&with_env(&[(name, value)])).map(|_| ()).expect_err(name).to_string();
        assert!(refused.contains(expected), "{name}\ngave\n{refused}");
        assert!(!refused.contains("hunter2"));
    }
    let password = with_env(&[
        ("BELFRY__PROVIDERS__M__KIND", "smtp"),
        ("BELFRY__PROVIDERS__M__URL", "smtp://u@mail.example.com"),
        ("BELFRY__PROVIDERS__M__FROM", "a@b.example"),
        ("BELFRY__PROVIDERS__M__PASSWORD", "0123456789"),
        ("BELFRY_BOOTSTRAP_KEY", "0123456789abcdef0123456789abcdef"),
    ]);
    let config = Config::load(&password).unwrap();
    let ProviderConfig::Smtp(smtp) = &config.providers["m"] else { panic!("not smtp") };
    assert_eq!(smtp.password.as_ref().unwrap().expose_secret(), "0123456789");
    assert!(!format!("{:?}{:?}", config, config.shown()).contains("0123456789"));
}

#[test]
fn a_missing_file_is_named() {
    let sources = Sources { file: Some("/nowhere/belfry.toml".into()), env: BTreeMap::new() };
    assert!(Config::load(&sources).unwrap_err().to_string().contains("/nowhere/belfry.toml: cannot be read"));
}
