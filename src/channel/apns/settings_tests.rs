use secrecy::SecretString;

use super::super::config::{ApnsEnvironment, ApnsTimeouts};
use super::*;
use crate::ports::span::Span;

fn key(alg: &'static rcgen::SignatureAlgorithm) -> Option<SecretString> {
    Some(rcgen::KeyPair::generate_for(alg).unwrap().serialize_pem().into())
}

fn config(toml: serde_json::Value) -> ApnsConfig {
    serde_json::from_value(toml).unwrap()
}

/// As a configuration names it, its key filled in.
fn good() -> ApnsConfig {
    let least = serde_json::json!({ "topic": "com.example.shop", "team_id": "TEAM000001", "key_id": "KEY0000001" });
    ApnsConfig { key: key(&rcgen::PKCS_ECDSA_P256_SHA256), ..config(least) }
}

fn wrong(config: &ApnsConfig) -> Vec<&'static str> {
    Settings::problems(config).into_iter().map(|error| error.key).collect()
}

#[test]
fn the_environment_says_where_to() {
    let place = |config: &ApnsConfig| Settings::read(config).map(|read| (read.url, read.place)).ok();
    let expected = |host: &str| Some((format!("https://{host}"), host.to_owned()));
    assert_eq!(place(&good()), expected("api.push.apple.com"));
    let sandbox = ApnsConfig { environment: ApnsEnvironment::Sandbox, ..good() };
    assert_eq!(place(&sandbox), expected("api.sandbox.push.apple.com"));
    let own = ApnsConfig { url: Some("https://gateway.example.com:2197/".into()), ..good() };
    assert_eq!(place(&own), expected("gateway.example.com:2197"));
}

#[test]
fn what_is_not_said_is_as_documented() {
    let read = good();
    assert_eq!((read.environment, read.connections, read.streams), (ApnsEnvironment::Production, 2, 100));
    let timeouts = [read.timeouts.connect, read.timeouts.answer, read.timeouts.body];
    assert_eq!(timeouts, [10, 30, 5].map(Span::secs));
    let waits = [read.keepalive, read.keepalive_wait, read.idle];
    assert_eq!(waits, [60, 10, 1800].map(Span::secs));
    assert!(serde_json::from_value::<ApnsConfig>(serde_json::json!({ "topic": "a", "teamid": "x" })).is_err());
}

#[test]
fn every_wrong_key_is_named() {
    assert_eq!(wrong(&good()), [""; 0]);
    for topic in ["", "com..shop", ".shop", "com.shop.", "com.sh op", "com.é", &"a".repeat(156)] {
        assert_eq!(wrong(&ApnsConfig { topic: topic.into(), ..good() }), ["topic"], "{topic}");
    }
    for url in ["http://127.0.0.1", "api.push.apple.com", "https://u@x", "https://x/y", "https://x?y", "https://x:0"] {
        assert_eq!(wrong(&ApnsConfig { url: Some(url.into()), ..good() }), ["url"], "{url}");
    }
    for id in ["", "TEAM00001", "TEAM0000012", "team000001", "TEAM-00001", "TEAM00000É"] {
        assert_eq!(wrong(&ApnsConfig { team_id: Some(id.into()), ..good() }), ["team_id"], "{id}");
        assert_eq!(wrong(&ApnsConfig { key_id: Some(id.into()), ..good() }), ["key_id"], "{id}");
    }
    let zero = Span::secs(0);
    let timeouts = ApnsTimeouts { connect: zero, answer: zero, body: zero };
    let zeros = ApnsConfig {
        connections: 0,
        streams: 0,
        timeouts,
        keepalive: zero,
        keepalive_wait: zero,
        idle: zero,
        ca: Some("x".into()),
        topic: "-.".into(),
        ..good()
    };
    let named = wrong(&zeros);
    let expected = [
        "connections",
        "streams",
        "timeouts.connect",
        "timeouts.answer",
        "timeouts.body",
        "keepalive",
        "keepalive_wait",
        "idle",
        "topic",
    ];
    assert_eq!(named, expected, "the certificates are looked at once the rest is right");
    assert_eq!(wrong(&ApnsConfig { ca: Some("x".into()), ..good() }), ["ca"]);
}

#[test]
fn there_is_exactly_one_way_of_authentication() {
    let made = rcgen::generate_simple_self_signed(["client.test".to_owned()]).unwrap();
    let certificate = Some(made.cert.pem());
    let own: Option<SecretString> = Some(made.signing_key.serialize_pem().into());
    let with = ApnsConfig { certificate, key: own, team_id: None, key_id: None, ..good() };
    assert_eq!(wrong(&with), [""; 0]);
    let both = ApnsConfig { team_id: Some("TEAM000001".into()), key_id: Some("KEY0000001".into()), ..with.clone() };
    assert_eq!(wrong(&both), ["team_id", "key_id"]);
    assert_eq!(wrong(&ApnsConfig { key: None, ..with.clone() }), ["key_file"]);
    assert_eq!(wrong(&ApnsConfig { key: good().key, ..with }), ["certificate"]);
    let none = ApnsConfig { team_id: None, key_id: None, key: None, ..good() };
    assert_eq!(wrong(&none), ["key_file", "team_id", "key_id"]);
    for odd in [Some("".into()), Some("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".into())] {
        assert_eq!(wrong(&ApnsConfig { key: odd, ..good() }), ["key"]);
    }
    for alg in [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
        assert_eq!(wrong(&ApnsConfig { key: key(alg), ..good() }), ["key"]);
    }
}

#[test]
fn files_are_read_where_nothing_was_filled_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.p8");
    let named = ApnsConfig { key: None, key_file: Some(path.clone()), ..good() };
    assert_eq!(wrong(&named), ["key_file"]);
    std::fs::write(&path, good().key.unwrap().expose_secret()).unwrap();
    assert_eq!(wrong(&named), [""; 0]);
    let missing = Some(folder.path().join("missing"));
    assert_eq!(wrong(&ApnsConfig { ca_file: missing.clone(), ..good() }), ["ca_file"]);
    assert_eq!(wrong(&ApnsConfig { certificate_file: missing, ..good() }), ["certificate_file"]);
}

#[test]
fn no_text_shows_a_key() {
    let key = good().key.unwrap().expose_secret().to_owned();
    let secret = key.lines().nth(1).unwrap();
    let broken = key.replace("BEGIN PRIVATE", "BEGIN PUBLIC");
    let config = ApnsConfig { key: Some(broken.into()), ..good() };
    let shown = format!("{config:?} {:?} {}", Settings::problems(&config), serde_json::to_string(&config).unwrap());
    assert!(!shown.contains(secret) && !shown.contains(&secret[..16]));
}

/// A certificate for `app`, and its key.
fn made_for(app: &str) -> (String, SecretString) {
    let mut params = rcgen::CertificateParams::new(["client.test".to_owned()]).unwrap();
    let user_id = rcgen::DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    params.distinguished_name.push(user_id, app);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem().into())
}

fn by_certificate((certificate, key): (String, SecretString)) -> ApnsConfig {
    ApnsConfig { certificate: Some(certificate), key: Some(key), team_id: None, key_id: None, ..good() }
}

/// Key and sentence of the only problem.
fn said(config: &ApnsConfig) -> String {
    let found = Settings::problems(config);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].to_string()
}

#[test]
fn a_certificate_of_another_app_is_refused_and_one_that_has_ended_is_not() {
    let ours = by_certificate(made_for("com.example.shop"));
    let read = Settings::read(&ours).map_err(|found| format!("{found:?}")).unwrap();
    assert!(matches!(read.login, Login::Certificate(Some(UnixMs(1_577_836_800_000)))));
    let other = ApnsConfig { topic: "com.example.other".into(), ..ours };
    let expected = "topic: is not the app that certificate was made for (\"com.example.shop\"); give that, or the certificate of this app";
    assert_eq!(said(&other), expected);
    let gateway = ApnsConfig { url: Some("https://gateway.example.com".into()), ..other };
    assert_eq!(wrong(&gateway), [""; 0], "who it knows us by is the gateway's business");
}

#[test]
fn every_sentence_says_what_would_be_right() {
    let (certificate, own) = made_for("com.example.shop");
    let with = |certificate: &str, key: SecretString| by_certificate((certificate.to_owned(), key));
    let pem = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
    let token = |key: &str| ApnsConfig { key: Some(key.into()), ..good() };
    let p384 = key(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    for (config, expected) in [
        (
            with(&certificate, key(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap()),
            "certificate: does not begin with the certificate that belongs to the key of key;",
        ),
        (
            with(&certificate, pem("ENCRYPTED PRIVATE KEY").into()),
            "key: is encrypted, and there is no setting for its passphrase; openssl pkey",
        ),
        (with(&certificate, pem("PRIVATE KEY").into()), "key: holds a key that cannot be used; expected RSA,"),
        (
            with(own.expose_secret(), own.clone()),
            "certificate: holds no certificate; expected PEM, from BEGIN CERTIFICATE",
        ),
        (
            with(&pem("CERTIFICATE"), own.clone()),
            "certificate: holds a certificate that cannot be read; expected X.509",
        ),
        (with(&certificate[..200], own.clone()), "certificate: holds PEM that is damaged or cut off; expected PEM"),
        (
            ApnsConfig { team_id: Some("TEAM000001".into()), ..with(&certificate, own) },
            "team_id: belongs to a signing key (.p8); leave it out, or certificate",
        ),
        (
            token(p384.expose_secret()),
            "key: holds a key of another kind (P-384); expected one of the curve P-256 (Apple's AuthKey",
        ),
        (token(&pem("ENCRYPTED PRIVATE KEY")), "key: is encrypted"),
        (token(&certificate), "key: holds a certificate without its key"),
        (ApnsConfig { key: None, ..good() }, "key_file: is missing: the signing key as Apple gives it"),
        (ApnsConfig { team_id: None, ..good() }, "team_id: is missing: ten upper-case letters and digits"),
        (
            ApnsConfig { key_id: Some("x".into()), ..good() },
            "key_id: must be ten upper-case letters and digits, as Apple's",
        ),
        (ApnsConfig { topic: "shop!".into(), ..good() }, "topic: must be the app's bundle id, such as"),
        (
            ApnsConfig { topic: "TEAM000001.com.example.shop".into(), ..good() },
            "topic: begins with the team's id; give the bundle id alone",
        ),
        (ApnsConfig { url: Some("http://x".into()), ..good() }, "url: must begin with https://, such as"),
        (
            ApnsConfig { ca: Some(pem("CERTIFICATE")), ..good() },
            "ca: holds a certificate that cannot be read; expected X.509 of the CAs",
        ),
    ] {
        let said = said(&config);
        assert!(said.starts_with(expected), "{said}\nwithout\n{expected}");
    }
}

#[test]
fn the_key_at_fault_is_named_however_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let (odd, file) = ("no PEM at all", path("odd", "no PEM at all"));
    let by_file = [
        ApnsConfig { key: None, key_file: file.clone(), ..good() },
        ApnsConfig { key: Some(odd.into()), key_file: file.clone(), ..good() },
    ];
    assert_eq!(by_file.map(|config| wrong(&config)), [["key_file"], ["key_file"]]);
    let made = by_certificate(made_for("com.example.shop"));
    let certificates = [
        ApnsConfig { certificate: None, certificate_file: file.clone(), ..made.clone() },
        ApnsConfig { certificate: Some(odd.into()), certificate_file: file.clone(), ..made.clone() },
    ];
    assert_eq!(certificates.map(|config| wrong(&config)), [["certificate_file"], ["certificate_file"]]);
    let roots = [
        ApnsConfig { ca: None, ca_file: file.clone(), ..good() },
        ApnsConfig { ca: Some(odd.into()), ca_file: file, ..good() },
    ];
    assert_eq!(roots.map(|config| wrong(&config)), [["ca_file"], ["ca_file"]]);
}
