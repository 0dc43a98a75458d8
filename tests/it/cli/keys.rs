//! Keys by the command line, with and without a server that holds the store.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use super::run;
use super::running::Running;

fn json(dir: &Path, args: &[&str]) -> Value {
    let done = run(dir, &[args, &["--output", "json"]].concat(), &[]);
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    serde_json::from_str(&done.out).unwrap()
}

const STATUS: [&str; 4] = ["status", "ntf_000000000000000000000000", "--api-key-file", "key"];

/// What a key may: the same by either way.
fn made_used_and_revoked(dir: &Path) {
    let made = json(dir, &["keys", "create", "--tenant", "shop", "--can", "read", "--name", "night shift"]);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let listed = run(dir, &["keys", "list"], &[]);
    let row = listed.out.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{listed:?}"));
    assert!(row.contains("night shift") && row.contains("shop") && !listed.out.contains(key), "{row}");

    let told = run(dir, &["keys", "create"], &[]).out;
    assert!(told.contains("for tenant default, environment live") && told.contains("It may send and cancel; read"));

    let revoked = run(dir, &["keys", "revoke", id], &[]);
    assert!(revoked.code == 0 && revoked.out.contains("is revoked"), "{revoked:?}");
    let again = run(dir, &["keys", "revoke", id], &[]);
    assert!(again.code == 0 && again.out.contains("had been revoked already, at 2"), "{again:?}");
    let absent = run(dir, &["keys", "revoke", "key_000000000000"], &[]);
    assert_eq!(absent.code, 1, "{absent:?}");
    let slip = run(dir, &["keys", "create", "--env", "stagging"], &[]);
    assert!(slip.code > 0 && slip.err.contains("--env") && slip.err.contains("really go out"), "{slip:?}");
}

#[test]
fn keys_are_made_and_revoked_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start(dir.path(), &["--port", "0"], &[]);
    server.signal(Signal::INT);
    assert_eq!(server.ended().0.code(), Some(0));
    made_used_and_revoked(dir.path());
    let again = Running::start(dir.path(), &["--port", "0"], &[]);
    assert_eq!(again.told["api_key"], Value::Null);
}

#[test]
fn keys_are_made_and_revoked_while_a_server_holds_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let _server = Running::start(dir, &["--port", "0"], &[]);
    made_used_and_revoked(dir);

    // Valid at once, useless at once.
    let made = json(dir, &["keys", "create", "--can", "read"]);
    std::fs::write(dir.join("key"), made["key"].as_str().unwrap()).unwrap();
    let absent = run(dir, &STATUS, &[]);
    assert!(absent.code == 1 && absent.err.contains("404"), "{absent:?}");
    json(dir, &["keys", "revoke", made["id"].as_str().unwrap()]);
    let refused = run(dir, &STATUS, &[]);
    assert!(refused.code == 1 && refused.err.contains("401"), "{refused:?}");

    // Whose key it is decides, not who can reach the server.
    std::fs::remove_file(dir.join(".belfry/api-key")).unwrap();
    let keyless = run(dir, &["keys", "list"], &[]);
    assert!(keyless.code == 1 && keyless.err.contains("--api-key-file"), "{keyless:?}");
}

#[test]
fn the_operators_key_from_the_environment_makes_keys_for_every_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let env = [("BELFRY_BOOTSTRAP_KEY", "a-bootstrap-key-of-40-visible-characters")];
    let server = Running::start(dir.path(), &["--port", "0"], &env);
    assert_eq!((&server.told["api_key"], &server.told["api_key_file"]), (&Value::Null, &Value::Null));
    for args in [&["keys", "create", "--tenant", "shop"][..], &["keys", "create", "--tenant", "bank", "--env", "test"]]
    {
        let done = run(dir.path(), args, &env);
        assert_eq!(done.code, 0, "{done:?}");
    }
    let listed = run(dir.path(), &["keys", "list"], &env);
    assert!(listed.out.contains("shop") && listed.out.contains("bank"), "{listed:?}");
}
