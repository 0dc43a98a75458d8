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
fn what_is_wrong_with_a_key_file_is_said_without_quoting_it() {
    for (text, said) in [
        ("", "is no service account's key in JSON (line 1)"),
        (r#"{"private_key":["secret"]}"#, "is no service account's key in JSON (line 1)"),
        (r#"{"type":"authorized_user","client_id":"secret"}"#, "is the key of something else than a service account"),
        (r#"{"type":"service_account"}"#, "lacks private_key"),
        (r#"{"type":"service_account","private_key":"secret"}"#, "holds a private_key that is no PKCS#8 PEM"),
    ] {
        let config = FcmConfig { service_account: Some(text.into()), ..config() };
        assert_eq!(Settings::problems(&config), [wrong("service_account_file", said)], "{text}");
    }
}
