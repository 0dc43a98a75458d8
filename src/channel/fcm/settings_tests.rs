use super::super::config::FcmTimeouts;
use super::*;
use crate::ports::span::Span;

fn config() -> FcmConfig {
    FcmConfig {
        service_account_file: None,
        service_account: None,
        project: Some("shop".into()),
        app: None,
        url: "https://fcm.googleapis.com".into(),
        ca_file: None,
        ca: None,
        connections: 4,
        streams: 100,
        timeouts: FcmTimeouts::default(),
    }
}

#[test]
fn secrets_go_over_tls_or_to_this_machine() {
    for good in [
        "https://fcm.googleapis.com",
        "https://fcm.googleapis.com/",
        "https://gateway.internal:8443",
        "http://127.0.0.1:9000",
        "http://[::1]:9000/",
        "http://localhost",
    ] {
        assert_eq!(origin(good), Ok(good.trim_end_matches('/').to_owned()), "{good}");
    }
    for bad in [
        "",
        "fcm.googleapis.com",
        "http://fcm.googleapis.com",
        "http://127.0.0.1.example.com",
        "ftp://127.0.0.1",
        "https://",
        "https://user:password@fcm.googleapis.com",
        "https://fcm.googleapis.com/v1",
        "https://fcm.googleapis.com/?key=x",
    ] {
        assert!(origin(bad).is_err(), "{bad}");
    }
}

#[test]
fn problems_name_their_keys() {
    let keys = |config: &FcmConfig| Settings::problems(config).iter().map(|problem| problem.key).collect::<Vec<_>>();
    assert_eq!(keys(&config()), ["service_account_file"]);
    let itself = FcmConfig { service_account: Some("x".into()), ca: Some("x".into()), ..config() };
    assert_eq!(keys(&itself), ["service_account", "ca"]);
    let broken = FcmConfig {
        service_account_file: Some("/nonexistent".into()),
        url: "http://fcm.googleapis.com".into(),
        ca_file: Some("/nonexistent".into()),
        connections: 0,
        streams: 0,
        timeouts: FcmTimeouts { body: Span::secs(0), ..FcmTimeouts::default() },
        ..config()
    };
    let all = ["connections", "streams", "timeouts.body", "service_account_file", "url", "ca_file"];
    assert_eq!(keys(&broken), all);
}

#[test]
fn what_is_wrong_with_a_key_file_is_said_with_what_would_be_right_and_without_quoting_it() {
    let expected = "expected the JSON key of a service account (Firebase console, Project settings, ";
    let whole = "expected the whole file as Google gives it";
    for (text, said, right) in [
        ("", "is empty; ", expected),
        (r#"{"private_key":["secret"]}"#, "is no JSON of the right form (line 1); ", expected),
        ("AAAAsecret:APA91bsecret", "is a key of FCM's legacy API, which Google has switched off; ", expected),
        ("AIzasecret\n", "is a key of FCM's legacy API", expected),
        (r#"<?xml version="1.0"?><plist version="1.0">secret</plist>"#, "is a GoogleService-Info.plist", expected),
        ("-----BEGIN PRIVATE KEY-----\nsecret\n", "is a private key alone", expected),
        ("/run/secrets/secret.json", "is a path", expected),
        (r#"{"project_info":{"project_id":"secret"},"client":[]}"#, "is a google-services.json", expected),
        (r#"{"apiKey":"AIzasecret","authDomain":"x"}"#, "is a web app's configuration", expected),
        (r#"{"installed":{"client_secret":"secret"}}"#, "is an OAuth client's secret", expected),
        (r#"{"type":"authorized_user","client_id":"secret"}"#, "is a person's login", expected),
        (r#"{"type":"external_account","audience":"secret"}"#, "is a login by way of another account", expected),
        (r#"{"type":"secret"}"#, "is the key of something else than a service account; ", expected),
        ("{}", "names no type \"service_account\"; ", expected),
        (r#"{"type":"service_account"}"#, "lacks private_key; ", whole),
        (
            r#"{"type":"service_account","private_key":"secret"}"#,
            "has a private_key that holds no private key; ",
            "PEM",
        ),
        (
            r#"{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\\nsecret\\n"}"#,
            "has a private_key that has \\n in place of line ends; ",
            "on lines of their own",
        ),
    ] {
        for (file, key) in [(None, "service_account"), (Some("/run/secrets/fcm.json".into()), "service_account_file")] {
            let config = FcmConfig { service_account: Some(text.into()), service_account_file: file, ..config() };
            let found = Settings::problems(&config);
            assert_eq!(found.iter().map(|one| one.key).collect::<Vec<_>>(), [key], "{text}");
            let problem = &found[0].problem;
            assert!(problem.starts_with(said) && problem.contains(right), "{text}: {problem}");
            // Of what is right, \"secrets\" may be said.
            assert!(!problem.replace("OAuth client's secret", "").contains("secret"), "{problem}");
        }
    }
}
