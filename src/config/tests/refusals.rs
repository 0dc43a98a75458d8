//! Tables of configurations that are refused, and what the refusal has to say.

use super::{Config, Dir, Sources};

/// File text → what every line of the refusal has to hold, one entry per problem.
const BAD: &[(&str, &[&str])] = &[
    ("[http.limit]\nrate = 5\n", &["http.limit: lacks the key \"per\""]),
    ("[http]\nlimit = 5\n", &["http.limit: expected a table, found a number"]),
    ("[http.limit]\nrate = 0\nper = \"1s\"\n", &["http.limit.rate: must be from 1 to 1000000"]),
    ("[http.limit]\nrate = 5\nper = \"2d\"\n", &["http.limit.per: must be from 1ms to 1d"]),
    ("[http.limit]\nrate = 5\nper = \"1s\"\nburst = 0\n", &["http.limit.burst: must be at least 1"]),
    ("[http.limit]\nrate = 5\nper = \"1s\"\nbust = 9\n", &["http.limit.bust: no such key; did you mean \"burst\"?"]),
    (
        "[http.limit]\nrate = \"ten\"\nper = \"1s\"\nburst = -1\n",
        &[
            "http.limit.rate: expected a whole number from 1 to 1000000, found text",
            "http.limit.burst: expected a whole number from 1 to 4294967295, found -1",
        ],
    ),
    (
        "[classes.digest]\ndefaults = { al = false, emial = true, letter = false, sms = \"no\" }\n",
        &[
            "classes.digest.defaults.al: no such key; did you mean \"all\"?",
            "classes.digest.defaults.emial: no such key; did you mean \"email\"?",
            "classes.digest.defaults.letter: no such key; known here: all, email, apns, fcm, web_push, sms, webhook, chat, inbox",
            "classes.digest.defaults.sms: expected true or false, found text",
            "4 problems",
        ],
    ),
    ("[http]\nlistne = \"x\"\n", &["http.listne: no such key; did you mean \"listen\"?"]),
    ("[htpp]\nlisten = \"x\"\n", &["htpp: no such key; did you mean \"http\"?"]),
    ("[zebra]\n", &["zebra: no such key; known here: http, store"]),
    ("[http]\nlisten = \"nonsense\"\n", &["http.listen: expected an address and a port such as \"127.0.0.1:8090\""]),
    ("[http]\nlisten = \"8090\"\n", &["such as \"127.0.0.1:8090\""]),
    ("[http]\nlisten = \"localhost:8090\"\n", &["such as \"127.0.0.1:8090\"; no name, no port alone"]),
    ("[http]\nbody_timeout = 30\n", &["http.body_timeout: expected a duration, in quotes and with its unit: \"30s\""]),
    ("[classes.recipt]\nexpiry = \"1d\"\n", &["lacks the key \"order\"; did you mean [classes.receipt]?"]),
    (
        "[providers.p]\nkind = \"smtp\"\nurl = \"http://h\"\n",
        &["providers.p: lacks the key \"from\"", "providers.p.url: expected smtp://"],
    ),
    (
        "[providers.p]\nkind = \"smtp\"\n",
        &["providers.p: lacks the key \"from\"", "providers.p: lacks the key \"url\"", "2 problems"],
    ),
    (
        "[providers.p]\nkind = \"smtp\"\nurl = \"smtp://localhost\"\nfrom = \"a@b.c\"\nhelo = \"a b\"\ntimeouts = { data = \"0s\" }\n",
        &["providers.p.helo:", "providers.p.timeouts.data: must be longer than zero", "2 problems"],
    ),
    ("http = 5\n", &["http: expected a table, found a number"]),
    ("classes = 5\n", &["classes: expected tables: [classes.<name>]"]),
    ("[engine]\npoll = 5\n", &["engine.poll: expected a duration, in quotes and with its unit: \"5s\""]),
    ("[engine]\npoll = \"5 parsecs\"\n", &["engine.poll: expected a duration such as"]),
    (
        "[engine]\npoll = \"0s\"\n[outbox]\nconcurrency = 0\n",
        &["outbox.concurrency: must be at least 1", "engine.poll: must be longer"],
    ),
    ("[outbox]\nconcurrency = 99999\n", &["outbox.concurrency: expected a whole number from 1 to 65535, found 99999"]),
    ("[outbox]\nconcurrency = \"many\"\n", &["outbox.concurrency: expected a whole number", "found text"]),
    ("[http]\nlisten = \"0.0.0.0:8090\"\n", &["http.listen: lies beyond loopback"]),
    ("[http]\npublic_url = \"notify.example.com\"\n", &["http.public_url: expected an address such as"]),
    ("[log]\nformat = \"jsn\"\n", &["log.format: expected one of \"pretty\", \"json\"; did you mean \"json\"?"]),
    ("[log]\nlevel = \"loud\"\n", &["log.level: expected error, warn"]),
    ("[store.redis]\nurl = \"http://x\"\n", &["store.redis.url: expected redis://host:6379"]),
    ("[store.redis]\nurl = \"redis://:pw@x\"\n", &["store.redis.url: holds a password; give it by password_file"]),
    ("[store.redis]\nurl = \"redis+sentinel://x\"\n", &["store.redis.url: lacks the primary's name"]),
    (
        "[store.redis]\nurl = \"redis+sentinel://h/mymaster/1\"\n",
        &["store.redis.url: names a database, which cannot be chosen with Sentinel"],
    ),
    ("[store.redis]\nshards = 70000\n", &["store.redis.shards: expected a whole number from 1 to 256"]),
    ("[store.redis]\nuser = \"u\"\n", &["store.redis.user: has no password; give it by password_file"]),
    ("[store.redis]\npassword = \"p\"\n", &["store.redis.password: a secret does not belong"]),
    ("[store.redis]\nuser = \"u\"\npassword_file = \"/nowhere\"\n", &["store.redis.password_file: /nowhere cannot be"]),
    ("[store.redis]\nca_file = \"/dev/null\"\n", &["store.redis.ca_file: /dev/null"]),
    ("[store.redis]\ndurability = \"disk\"\n", &["store.redis.durability: expected \"ack\", \"fsync\" or"]),
    (
        "[store.redis]\nshards = 0\nprefix = \"Our Shop\"\n",
        &["store.redis.shards: expected a whole number from 1 to 256", "store.redis.prefix: expected 1 to 32"],
    ),
    ("[store.redis]\nprefx = \"x\"\n", &["store.redis.prefx: no such key; did you mean \"prefix\"?"]),
    ("[store]\nkind = \"sqllite\"\n", &["store.kind: expected one of \"sqlite\""]),
    (
        "[classes.digest]\nquiet_hours = { from = \"22\", to = \"07:00\", zone = \"UTC\" }\n",
        &["classes.digest.quiet_hours.from: must be a time from 00:00 to 23:59"],
    ),
    (
        "[classes.digest]\nquiet_hours = { from = \"22\", to = \"7\", zone = \"UTC\" }\n",
        &[
            "classes.digest.quiet_hours.from: must be a time from 00:00 to 23:59",
            "classes.digest.quiet_hours.to: must be a time from 00:00 to 23:59",
        ],
    ),
    (
        "[classes.digest]\nexpiry = \"10h\"\nquiet_hours = { from = \"22:00\", to = \"07:00\", zone = \"UTC\" }\n",
        &[
            "classes.digest.quiet_hours.to: must lie less than the class's expiry (10h) after from, by more than an hour",
        ],
    ),
    (
        "[classes.code]\ncaps = [\"x\"]\n[caps.x]\nper = \"address\"\nlimit = -1\nwindow = \"1h\"\nthen = \"defer\"\n",
        &["caps.x.limit: expected a whole number from 1 to 10000"],
    ),
    (
        "[classes.digest]\nquiet_hours = { from = \"22:00\", to = \"07:00\", zone = \"Mars\" }\n",
        &["classes.digest.quiet_hours.zone: must be an IANA time zone such as Europe/Stockholm"],
    ),
    (
        "[classes.code]\nquiet_hours = { from = \"22:00\", to = \"22:10\", zone = \"UTC\" }\n",
        &["classes.code.quiet_hours.to: must lie less than the class's expiry (10m) after from, by more than an hour"],
    ),
    (
        "[classes.digest.quiet_hours]\nfrom = \"22:00\"\nto = \"07:00\"\n",
        &["classes.digest.quiet_hours: lacks the key \"zone\""],
    ),
    ("[escalation]\n", &["escalation: escalation is not built yet"]),
    ("[providers.p]\nkind = \"twilio\"\n", &["providers.p.kind: providers of kind \"twilio\" are not built yet"]),
    (
        "[providers.p]\nkind = \"smpt\"\n",
        &["providers.p.kind: expected one of smtp, apns, fcm, web_push, outbox; did you mean \"smtp\"?"],
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
        &["channels.sms.providers: \"m\" cannot send sms; only the outbox can as yet"],
    ),
    (
        "[channels.apns]\nproviders = [\"m\"]\n[providers.m]\nkind = \"smtp\"\nurl = \"smtp://localhost\"\nfrom = \"a@b.c\"\n",
        &["channels.apns.providers: \"m\" cannot send apns; name one of kind \"apns\" or \"outbox\""],
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
    ("url = \"smtp://mail\"\npace = { rate = 5 }", "providers.m.pace: lacks the key \"per\""),
    ("url = \"smtp://mail\"\npace = 5", "providers.m.pace: expected a table, found a number"),
    ("url = \"smtp://mail\"\npace = { rate = 5, per = 1 }", "providers.m.pace.per: expected a duration"),
    ("url = \"smtp://mail\"\npace = { rate = 0, per = \"1s\" }", "providers.m.pace.rate: must be from 1 to 1000000"),
    ("url = \"smtp://mail\"\npace = { rate = 5, per = \"2d\" }", "providers.m.pace.per: must be from 1ms to 1d"),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", burst = 0 }",
        "providers.m.pace.burst: must be at least 1",
    ),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", warm_up = { starts = \"soon\", days = [5] } }",
        "providers.m.pace.warm_up.starts: expected a day such as \"2026-12-01\"",
    ),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", warm_up = { starts = 2026-12-01, days = [5] } }",
        "providers.m.pace.warm_up.starts: expected a day such as \"2026-12-01\"",
    ),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", warm_up = { starts = \"2026-12-01\", days = [] } }",
        "providers.m.pace.warm_up.days: must have from 1 to 90 numbers",
    ),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", warm_up = { starts = \"2026-12-01\", days = [5, 50, 6] } }",
        "providers.m.pace.warm_up.days: must not fall from one day to the next",
    ),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", warm_up = { start = \"2026-12-01\", days = [5] } }",
        "providers.m.pace.warm_up.start: no such key; did you mean \"starts\"?",
    ),
    (
        "url = \"smtp://mail\"\npace = { rate = 5, per = \"1s\", bust = 10 }",
        "providers.m.pace.bust: no such key; did you mean \"burst\"?",
    ),
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

/// One slip is one problem: what only follows from it is not said as well.
#[test]
fn one_slip_is_one_problem() {
    for (text, expected) in [
        ("[environments.staging]\nalow = [\"*\"]\n", "environments.staging.alow: no such key; did you mean \"allow\"?"),
        (
            "[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.c\"\nurl = \"smtp://u@mail\"\npassword_file = \"/nowhere\"\n",
            "providers.m.password_file: /nowhere cannot be read",
        ),
        (
            "[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.c\"\nurl = \"smtp://u@mail\"\n",
            "providers.m.url: names a user; give the password by password_file",
        ),
        (
            "[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.c\"\nurl = \"smtp://mail\"\ndkim = { domain = \"b.c\", selector = \"x\" }\n",
            "providers.m.dkim: lacks the key \"key_file\"",
        ),
    ] {
        let refused = Dir::new().load(text).map(|_| ()).expect_err(text);
        assert_eq!(refused.problems.len(), 1, "{refused}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[test]
fn a_password_file_holds_one_line_and_no_blanks_at_its_end() {
    let refused = |text: &str| {
        let dir = Dir::new();
        let password = dir.file("password", text);
        let text = format!("[store.redis]\nuser = \"u\"\npassword_file = {password:?}\n");
        dir.load(&text).map(|_| ()).err().map(|errors| errors.to_string())
    };
    for fine in ["hunter2", "hunter2\n", "hunter2\r\n", " hunter 2\n"] {
        assert_eq!(refused(fine), None, "{fine:?}");
    }
    for (text, said) in [
        ("hunter2\nhunter3\n", "store.redis.password_file"),
        ("hunter2\nhunter3\n", "holds more than one line"),
        ("hunter2 \n", "ends with a blank"),
        ("hunter2\t", "ends with a blank"),
    ] {
        let problem = refused(text).unwrap_or_else(|| panic!("{text:?} is taken"));
        assert!(problem.contains(said) && !problem.contains("hunter"), "{problem}");
    }
}

#[test]
fn a_file_of_roots_that_holds_none_is_refused_before_the_start() {
    let dir = Dir::new();
    for (content, said) in [
        ("# no certificate\n", "holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca.pem"),
    ] {
        let file = dir.file("ca.pem", content);
        let text = format!("[store.redis]\nurl = \"rediss://h\"\nca_file = {file:?}\n");
        let refused = dir.load(&text).map(|_| ()).expect_err(content);
        assert_eq!(refused.problems.len(), 1, "{refused}");
        assert!(refused.to_string().contains("store.redis.ca_file") && refused.to_string().contains(said), "{refused}");
    }
}

#[test]
fn what_is_given_twice_says_where() {
    let dir = Dir::new();
    let password = dir.file("password", "from-the-file");
    let text = format!(
        "[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.c\"\nurl = \"smtp://u@mail\"\npassword_file = {password:?}\n"
    );
    let file = Some(dir.file("belfry.toml", &text));
    let env = [("BELFRY__PROVIDERS__M__PASSWORD".to_owned(), "from-the-variable".to_owned())].into();
    let refused = Config::load(&Sources { file, env }).map(|_| ()).unwrap_err().to_string();
    let said = "is given twice: by BELFRY__PROVIDERS__M__PASSWORD and by password_file; give one";
    assert!(refused.contains(said) && !refused.contains("from-the"), "{refused}");
}
