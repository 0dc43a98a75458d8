//! What is said of push providers that cannot be used: by the key at fault, with what would be right.

use secrecy::ExposeSecret as _;

use super::{Config, Dir, Sources};

const APNS: &str = "kind = \"apns\"\nteam_id = \"TEAM000001\"\nkey_id = \"KEY0000001\"\n";
const BY_CERTIFICATE: &str = "kind = \"apns\"\ntopic = \"a.b\"\nkey_file = {key}\n";
const FCM: &str = "kind = \"fcm\"\n";
const WEB: &str = "kind = \"web_push\"\nvapid_key_file = {key}\n";

/// Lines of a provider → its only problem.
const BAD: &[(&str, &str, &str)] = &[
    (APNS, "key_file = {key}", "p: lacks the key \"topic\": the app's bundle id, such as \"com.example.shop\""),
    (APNS, "topic = \"a.b\"\nkey_file = {odd}", "p.key_file: holds no private key; expected a private key in PEM"),
    (APNS, "topic = \"a.b\"\nkey_file = {key}\nca = \"odd\"", "p.ca: holds no certificate; expected PEM"),
    (APNS, "topic = \"a.b\"\nkey_file = {key}\nca_file = {odd}", "p.ca_file: holds no certificate; expected PEM"),
    (BY_CERTIFICATE, "certificate = \"odd\"", "p.certificate: holds no certificate; expected PEM"),
    (BY_CERTIFICATE, "certificate_file = {odd}", "p.certificate_file: holds no certificate; expected PEM"),
    (
        BY_CERTIFICATE,
        "certificate_file = {binary}",
        "binary cannot be read: it is no text; keys and certificates have to be PEM",
    ),
    (FCM, "", "p.service_account_file: is missing; expected the JSON key of a service account"),
    (FCM, "service_account_file = {odd}", "p.service_account_file: is no JSON of the right form (line 1); expected"),
    (WEB, "", "p: lacks the key \"subject\": whom push services may write to, such as \"mailto:ops@example.com\""),
    (WEB, "subject = \"a@b.example\"", "p.subject: must be whom push services may write to: \"mailto:"),
    (WEB, "subject = \"mailto:a@b.example\"\nca_file = {odd}", "p.ca_file: holds no certificate; expected PEM"),
];

#[test]
fn bad_settings_are_refused_by_the_key_at_fault() {
    let dir = Dir::new();
    let key = crate::channel::web_push::vapid::generate();
    let files = [
        ("{key}", dir.file("key.pem", key.pem.expose_secret())),
        ("{odd}", dir.file("odd", "neither PEM nor JSON")),
        ("{binary}", dir.file("binary", "")),
    ];
    std::fs::write(&files[2].1, b"\x30\x82\xff").unwrap();
    for (kind, lines, expected) in BAD {
        let with_paths =
            |text: String, (name, path): &(&str, std::path::PathBuf)| text.replace(name, &format!("{path:?}"));
        let text = files.iter().fold(format!("[providers.p]\n{kind}{lines}\n"), with_paths);
        let refused = dir.load(&text).map(|_| ()).expect_err(&text);
        assert!(refused.to_string().contains(expected), "{text}\ngave\n{refused}\nwithout\n{expected}");
        assert_eq!(refused.problems.len(), 1, "{refused}");
    }
}

#[test]
fn what_is_given_twice_is_refused_and_the_file_counts_for_the_rest() {
    let dir = Dir::new();
    let odd = dir.file("odd", "no PEM");
    let text = format!("[providers.p]\n{APNS}topic = \"a.b\"\nkey_file = {odd:?}\nca_file = {odd:?}\nca = \"x\"\n");
    let refused = dir.load(&text).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("providers.p.ca: is given twice: by") && refused.contains("by ca_file"), "{refused}");
    assert!(refused.contains("providers.p.key_file: holds no private key"), "{refused}");
}

#[test]
fn a_secret_by_environment_is_named_by_its_own_key() {
    let dir = Dir::new();
    let file = Some(dir.file("belfry.toml", &format!("[providers.p]\n{APNS}topic = \"a.b\"\n")));
    let env = [("BELFRY__PROVIDERS__P__KEY".to_owned(), "hunter2".to_owned())].into();
    let refused = Config::load(&Sources { file, env }).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("providers.p.key: holds no private key; expected"), "{refused}");
    assert!(refused.contains("(BELFRY__PROVIDERS__P__KEY)") && !refused.contains("hunter2"), "{refused}");
}

#[test]
fn certificates_may_stand_in_the_configuration_itself() {
    let dir = Dir::new();
    let made = rcgen::generate_simple_self_signed(["client.test".to_owned()]).unwrap();
    let key = dir.file("key.pem", &made.signing_key.serialize_pem());
    let certificate = made.cert.pem();
    let config = dir
        .load(&format!(
            "[providers.p]\nkind = \"apns\"\ntopic = \"a.b\"\nkey_file = {key:?}\n\
             certificate = {certificate:?}\nca = {certificate:?}\n"
        ))
        .unwrap();
    let shown = config.shown();
    for key in ["providers.p.certificate", "providers.p.ca"] {
        let one = shown.iter().find(|one| one.key == key).unwrap();
        let from_the_file = one.origin.to_string().ends_with("belfry.toml");
        assert_eq!((one.value.to_string().as_str(), from_the_file), ("(set)", true), "{key}");
    }
}
