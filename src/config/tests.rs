use std::collections::BTreeSet;

use belfry_domain::{Order, Priority};
use figment::error::Kind;
use figment::value::Dict;
use figment::value::Value as Figment;
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;

use super::show::Value;
use super::*;
use crate::channel::apns::config::{ApnsConfig, ApnsTimeouts};
use crate::channel::fcm::config::{FcmConfig, FcmTimeouts};
use crate::channel::smtp::config::{DkimConfig, SmtpConfig, SmtpReuse, SmtpTimeouts};
use crate::channel::web_push::config::{WebPushConfig, WebPushTimeouts};
use crate::ports::policy::Route;

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

mod caps;
mod links;
mod push;
mod refusals;

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
    let odd = Figment::from(Dict::from([("\u{1}".to_owned(), Figment::from(0))]));
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

/// Secrets: by file or environment only.
fn given_elsewhere(path: &str) -> &'static [&'static str] {
    match path {
        "providers.main" | "store.redis" => &["password"],
        "providers.ios" => &["key", "certificate", "ca"],
        "providers.android" => &["service_account", "ca"],
        "providers.web" => &["vapid_key", "ca"],
        "providers.main.dkim" => &["key"],
        "links" => &["keys"],
        _ => &[],
    }
}

#[test]
fn the_embedded_file_names_every_key_and_no_other() {
    let tree = everything_on();
    let mut types: Vec<(&str, BTreeSet<String>)> = vec![
        ("http", keys_of::<HttpConfig>()),
        ("http.limit", keys_of::<LimitConfig>()),
        ("store", keys_of::<StoreConfig>()),
        ("store.sqlite", keys_of::<SqliteConfig>()),
        ("store.redis", keys_of::<RedisConfig>()),
        ("engine", keys_of::<EngineConfig>()),
        ("remember", keys_of::<RememberConfig>()),
        ("templates", keys_of::<TemplatesConfig>()),
        ("links", keys_of::<LinksConfig>()),
        ("outbox", keys_of::<OutboxConfig>()),
        ("log", keys_of::<LogConfig>()),
        ("channels.email", keys_of::<ChannelConfig>()),
        ("environments.staging", keys_of::<EnvironmentConfig>()),
        ("caps.codes_per_range", keys_of::<CapConfig>()),
        ("classes.digest.quiet_hours", keys_of::<QuietHoursConfig>()),
        ("providers.main", keys_of::<SmtpConfig>()),
        ("providers.main.pace", keys_of::<PaceConfig>()),
        ("providers.main.pace.warm_up", keys_of::<WarmUpConfig>()),
        ("providers.main.dkim", keys_of::<DkimConfig>()),
        ("providers.main.timeouts", keys_of::<SmtpTimeouts>()),
        ("providers.main.reuse", keys_of::<SmtpReuse>()),
        ("providers.ios", keys_of::<ApnsConfig>()),
        ("providers.ios.timeouts", keys_of::<ApnsTimeouts>()),
        ("providers.android", keys_of::<FcmConfig>()),
        ("providers.android.timeouts", keys_of::<FcmTimeouts>()),
        ("providers.web", keys_of::<WebPushConfig>()),
        ("providers.web.timeouts", keys_of::<WebPushTimeouts>()),
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
            assert!(known.remove(*secret), "{path}.{secret}");
        }
        match path {
            // Told apart before the type is read.
            "providers.main" => assert!(written.remove("kind") && written.remove("pace")),
            "providers.ios" | "providers.android" | "providers.web" => assert!(written.remove("kind")),
            // Shown in the other example: one environment has one or the other.
            "environments.staging" => written.extend(keys_at(&tree, "environments.preview")),
            // Shown with one class.
            _ if known.contains("quiet_hours") => {
                written.extend(["quiet_hours", "gather", "gather_most"].map(str::to_owned))
            }
            _ => {}
        }
        assert_eq!(written, known, "{path}");
    }
    assert_eq!(tree.keys().map(String::as_str).collect::<BTreeSet<_>>(), SECTIONS.into_iter().collect());
}

const PUSH: [&str; 3] = ["ios", "android", "web"];

/// The members of `name`'s example that are called a default, as `T` has them without.
fn defaults_of<T: DeserializeOwned + serde::Serialize>(name: &str, needed: &str, called: &[&str]) {
    let mut example = everything_on()["providers"][name].clone();
    example.as_table_mut().unwrap().remove("kind");
    let example = serde_json::to_value(example.try_into::<T>().unwrap()).unwrap();
    let short = serde_json::to_value(toml::from_str::<T>(needed).unwrap()).unwrap();
    for key in called {
        assert_eq!(example[key], short[key], "providers.{name}.{key}");
    }
}

#[test]
fn what_the_comments_call_a_default_of_push_is_one() {
    let common = ["connections", "streams", "timeouts"];
    let of_apns = ["environment", "keepalive", "keepalive_wait", "idle"];
    defaults_of::<ApnsConfig>("ios", "topic = \"a.b\"", &[common.as_slice(), &of_apns].concat());
    defaults_of::<FcmConfig>("android", "", &[common.as_slice(), &["url"]].concat());
    defaults_of::<WebPushConfig>(
        "web",
        "subject = \"mailto:a@b.example\"",
        &[common.as_slice(), &["allow_internal"]].concat(),
    );
}

#[test]
fn several_providers_of_a_channel_are_of_different_apps() {
    let dir = Dir::new();
    let apns = |name: &str, topic: &str, environment: &str| {
        format!(
            "[providers.{name}]\nkind = \"apns\"\ntopic = \"{topic}\"\nenvironment = \"{environment}\"\n\
             team_id = \"TEAM000001\"\nkey_id = \"KEY0000001\"\nkey_file = \"{}\"\n",
            dir.0.path().join("key.p8").display()
        )
    };
    let vapid = crate::channel::web_push::vapid::generate();
    dir.file("key.p8", vapid.pem.expose_secret());
    let two = |first: (&str, &str), second: (&str, &str)| {
        let (a, b) = (apns("a", first.0, first.1), apns("b", second.0, second.1));
        dir.load(&format!("[channels.apns]\nproviders = [\"a\", \"b\"]\n{a}{b}"))
    };
    let config = two(("com.shop", "production"), ("com.shop", "sandbox")).unwrap();
    let routes = config.policy_parts().routes[&ChannelKind::Apns].clone();
    assert_eq!(routes[1].environment.as_deref(), Some("sandbox"));
    assert_eq!((routes[0].provider.as_str(), routes[0].app.as_deref()), ("a", Some("com.shop")));
    assert!(two(("com.shop", "production"), ("com.driver", "production")).is_ok());
    let refused = two(("com.shop", "production"), ("com.shop", "production")).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("channels.apns.providers: \"a\" and \"b\" would serve the same devices"), "{refused}");
    assert!(!format!("{:?}", config.shown()).contains("PRIVATE KEY"));
}

#[test]
fn what_the_comments_call_a_default_is_one() {
    let dir = Dir::new();
    let mut everything = links::without_files(everything_on());
    // Their keys are files; compared below.
    everything["providers"].as_table_mut().unwrap().retain(|name, _| !PUSH.contains(&name));
    everything["channels"].as_table_mut().unwrap().remove("apns");
    // No class of the example names it.
    everything.remove("caps");
    let full = dir.file("full.toml", &toml::to_string(&everything).unwrap());
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

#[test]
fn the_redis_store_s_password_is_read_and_never_shown() {
    use crate::store::redis::link::{Durability, LinkSettings, Topology};
    let dir = Dir::new();
    let password = dir.file("password", "deep-secret\n");
    let text = format!(
        "[store]\nkind = \"redis\"\n[store.redis]\nurl = \"redis+sentinel://a,b:1/shop\"\nuser = \"belfry\"\n\
         password_file = {password:?}\ndurability = \"replicas:2\"\n"
    );
    let config = dir.load(&text).unwrap();
    assert_eq!(config.store.kind, StoreKind::Redis);
    let settings = LinkSettings::of(&config.store.redis).unwrap();
    assert_eq!(settings.durability, Durability::Replicas(2));
    assert!(matches!(settings.target.topology, Topology::Sentinel { .. }));
    assert_eq!(settings.target.login.password.unwrap().expose_secret(), "deep-secret");
    let shown = config.shown();
    assert!(shown.iter().any(|one| one.key == "store.redis.password" && one.value == Value::Set));
    assert!(!format!("{shown:?}{config:?}").contains("deep-secret"));
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
    let origin = |key: &str| {
        config.shown().into_iter().find(|one| one.key == key).map(|one| (one.value.to_string(), one.origin))
    };
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
    let ProviderKind::Smtp(main) = &config.providers["main"].kind else { panic!("not smtp") };
    assert_eq!(main.password.as_ref().unwrap().expose_secret(), "hunter2-and-more");
    assert_eq!(config.policy_parts().routes[&ChannelKind::Email], [Route::any("main")]);
    let shown = config.shown();
    assert!(shown.iter().any(|one| one.key == "providers.main.password" && one.value == Value::Set));
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

#[test]
fn every_problem_is_named_at_once() {
    let text = "[http]\nlisten = 1\nidel_timeout = \"1s\"\nmax_connections = -1\n[engine]\npoll = true\n\
        [classes.receipt]\nlease = \"soon\"\n[quiet_hours]\n[providers.a]\nkind = \"twilio\"\n[providers.b]\nkind = \"smtp\"\nfrom = \"x\"\nurl = \"y\"\n";
    let refused = Dir::new().load(text).map(|_| ()).unwrap_err();
    let keys: Vec<&str> = refused.problems.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "classes.receipt.lease",
            "engine.poll",
            "http.idel_timeout",
            "http.listen",
            "http.max_connections",
            "providers.a.kind",
            "providers.b.from",
            "providers.b.url",
            "quiet_hours",
        ]
    );
}

#[test]
fn the_environment_is_checked_like_a_file() {
    for (name, value, expected) in [
        ("BELFRY__HTTP__LISTNE", "x", "http.listne: no such key; did you mean \"listen\"? (BELFRY__HTTP__LISTNE)"),
        (
            "BELFRY__HTTP__MAX_CONNECTIONS",
            "lots",
            "http.max_connections: expected a whole number from 1 to 4294967295, found text",
        ),
        ("BELFRY__ESCALATION__X", "3", "escalation: escalation is not built yet (BELFRY__ESCALATION__X)"),
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
    let ProviderKind::Smtp(smtp) = &config.providers["m"].kind else { panic!("not smtp") };
    assert_eq!(smtp.password.as_ref().unwrap().expose_secret(), "0123456789");
    assert!(!format!("{:?}{:?}", config, config.shown()).contains("0123456789"));
}

#[test]
fn beyond_loopback_needs_the_operators_word() {
    let remote = ("BELFRY__HTTP__LISTEN", "[::]:8090");
    let allowed = |pairs: &[(&str, &str)]| Config::load(&with_env(pairs)).is_ok();
    assert!(!allowed(&[remote]));
    assert!(allowed(&[remote, ("BELFRY__HTTP__ALLOW_REMOTE", "true")]));
    assert!(allowed(&[remote, (BOOTSTRAP_KEY, "0123456789abcdef0123456789abcdef")]));
    assert!(allowed(&[("BELFRY__HTTP__LISTEN", "[::1]:8090")]));
    let config = Config::load(&with_env(&[remote, ("BELFRY__HTTP__ALLOW_REMOTE", "true")])).unwrap();
    assert!(!config.misbehave_allowed() && Config::load(&Sources::default()).unwrap().misbehave_allowed());
}

#[test]
fn a_missing_file_is_named() {
    let sources = Sources { file: Some("/nowhere/belfry.toml".into()), env: BTreeMap::new() };
    assert!(Config::load(&sources).unwrap_err().to_string().contains("/nowhere/belfry.toml: cannot be read"));
}
