//! `doctor`: what it says has to be so.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use super::run;
use super::running::Running;

/// Exit code, and each check's verdict and words.
fn doctor(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> (i32, Vec<(String, String, String)>) {
    let done = run(dir, &[&["doctor", "--output", "json"], args].concat(), env);
    let told: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let checks = told["checks"].as_array().unwrap();
    (done.code, checks.iter().map(|one| (text(one, "check"), text(one, "verdict"), text(one, "what"))).collect())
}

#[track_caller]
fn says(checks: &[(String, String, String)], check: &str, verdict: &str, what: &str) {
    let found = checks.iter().find(|one| one.0 == check).unwrap_or_else(|| panic!("{check} in {checks:?}"));
    assert!(found.1 == verdict && found.2.contains(what), "{found:?}, not {verdict} {what}");
}

#[test]
fn a_server_of_another_folder_is_not_ours() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Running::start(theirs.path(), &["--port", "0"], &[]);
    let address = server.told["address"].as_str().unwrap();
    let env = [("BELFRY__HTTP__LISTEN", address)];
    let (_, checks) = doctor(ours.path(), &[], &env);
    says(&checks, "server", "note", "another program answers at");
    says(&checks, "store", "note", "there is no store yet");
    says(&checks, "folder", "note", "is not there yet");
    assert!(std::fs::read_dir(ours.path()).unwrap().next().is_none(), "it only looks");

    let (code, checks) = doctor(theirs.path(), &[], &env);
    assert_eq!(code, 0, "{checks:?}");
    says(&checks, "server", "ok", "ready at");
    says(&checks, "store", "ok", "held by the running server");
    says(&checks, "clock", "ok", "compared with no time server");

    let refused = run(ours.path(), &["keys", "list"], &env);
    assert_eq!(refused.code, 1, "{refused:?}");
}

#[test]
fn a_store_that_cannot_be_made_is_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    for path in ["/proc/x/y.db", "file/x.db"] {
        let (code, checks) = doctor(dir.path(), &[], &[("BELFRY__STORE__SQLITE__PATH", path)]);
        assert_eq!(code, 3, "{checks:?}");
        says(&checks, "store", "finding", "cannot be made");
        says(&checks, "folder", "finding", "");
    }
}

#[test]
fn links_that_lead_nowhere_are_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let smtp = format!(
        "[providers.near]\nkind = \"smtp\"\nurl = \"smtp://{free}\"\nfrom = \"a@b.example\"\n\
         [channels.email]\nproviders = [\"near\"]\n"
    );
    let of = |http: &str| {
        std::fs::write(dir.path().join("belfry.toml"), format!("{http}{smtp}")).unwrap();
        let noted = run(dir.path(), &["check-config", "--config", "belfry.toml"], &[]);
        let json = run(dir.path(), &["check-config", "--config", "belfry.toml", "--output", "json"], &[]);
        let json: Value = serde_json::from_str(&json.out).unwrap();
        (doctor(dir.path(), &["--config", "belfry.toml"], &[]).1, noted.out, json["notes"].clone())
    };
    let what = "http.public_url is not set: mail of digest, marketing has a link to unsubscribe that leads to";
    let (checks, noted, json) = of("");
    says(&checks, "http.public_url", "finding", what);
    assert!(noted.contains(&format!("\nnote: {what}")), "{noted}");
    assert_eq!((json[0]["key"].as_str(), json.as_array().unwrap().len()), (Some("http.public_url"), 1));
    let (checks, noted, json) = of("[http]\npublic_url = \"https://notify.example.com\"\n");
    assert!(checks.iter().all(|one| one.0 != "http.public_url") && !noted.contains("note:"), "{noted}");
    assert_eq!(json, serde_json::json!([]));
}

#[test]
fn a_provider_s_finding_says_where_and_why() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody listens where somebody has just stopped listening.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "[providers.near]\nkind = \"smtp\"\nurl = \"smtp://{free}\"\nfrom = \"a@b.example\"\n\
         [providers.far]\nkind = \"smtp\"\nurl = \"smtp://mail.invalid:2525\"\nfrom = \"a@b.example\"\n"
    );
    std::fs::write(dir.path().join("belfry.toml"), text).unwrap();
    let (code, checks) = doctor(dir.path(), &["--config", "belfry.toml"], &[]);
    assert_eq!(code, 3, "{checks:?}");
    says(
        &checks,
        "provider near",
        "finding",
        &format!("{free}: the provider could not be reached: Connection refused"),
    );
    says(&checks, "provider far", "finding", "mail.invalid:2525: the provider could not be reached: failed to lookup");
}
