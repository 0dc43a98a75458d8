//! The key for web push is made once.

use std::os::unix::fs::PermissionsExt as _;

use super::run;

#[test]
fn a_key_of_another_library_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    // The application server's in RFC 8291, Appendix A, in the form of npm's web-push.
    let (public, private) = (
        "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
    );
    let file = |text: String| std::fs::write(dir.path().join("keys.json"), text).unwrap();
    file(format!(r#"{{"publicKey":"{public}","privateKey":"{private}"}}"#));
    let taken = run(dir.path(), &["vapid", "import", "keys.json", "--out", "web.pem"], &[]);
    assert!(taken.code == 0 && taken.out.contains(public) && !taken.out.contains(private), "{taken:?}");
    assert_eq!(run(dir.path(), &["vapid", "public", "web.pem"], &[]).out, format!("{public}\n"));
    for odd in [format!(r#"{{"publicKey":"{public}","privateKey":"{}"}}"#, &private[1..]), "{}".into(), private.into()]
    {
        file(odd);
        let refused = run(dir.path(), &["vapid", "import", "keys.json", "--out", "odd.pem"], &[]);
        assert!(refused.code == 2 && refused.err.contains("keys.json holds no"), "{refused:?}");
        assert!(!refused.err.contains(&private[2..]) && !dir.path().join("odd.pem").exists());
    }
}

#[test]
fn a_vapid_key_is_made_once_and_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let made = run(dir.path(), &["vapid", "generate", "--out", "web.pem", "--output", "json"], &[]);
    assert_eq!(made.code, 0, "{made:?}");
    let told: serde_json::Value = serde_json::from_str(&made.out).unwrap();
    let public = told["public_key"].as_str().unwrap();
    // An uncompressed point: 65 bytes, of which the first is 4.
    assert!(public.len() == 87 && public.starts_with('B'), "{public}");
    let file = dir.path().join("web.pem");
    let pem = std::fs::read_to_string(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----") && !made.out.contains("PRIVATE"));
    let again = run(dir.path(), &["vapid", "generate", "--out", "web.pem"], &[]);
    assert!(again.code == 2 && again.err.contains("web.pem is there already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), pem);
    assert_eq!(run(dir.path(), &["vapid", "public", "web.pem"], &[]).out, format!("{public}\n"));
    std::fs::write(dir.path().join("odd.pem"), "no key").unwrap();
    let odd = run(dir.path(), &["vapid", "public", "odd.pem"], &[]);
    assert!(odd.code == 2 && odd.err.contains("odd.pem holds no P-256 key"), "{odd:?}");
    // What it made is a configuration's key.
    let text = "[channels.web_push]\nproviders = [\"web\"]\n[providers.web]\nkind = \"web_push\"\n\
                vapid_key_file = \"web.pem\"\nsubject = \"mailto:ops@example.com\"\n";
    std::fs::write(dir.path().join("belfry.toml"), text).unwrap();
    let checked = run(dir.path(), &["check-config", "--config", "belfry.toml"], &[]);
    assert!(checked.code == 0 && !checked.out.contains("PRIVATE"), "{checked:?}");
    let doctor = run(dir.path(), &["doctor", "--config", "belfry.toml"], &[]);
    assert!(doctor.out.contains(public), "{doctor:?}");
}
