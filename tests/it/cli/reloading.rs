//! What is wrong with the files under a running server never costs the server.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use super::run;
use super::running::Running;
use crate::peers::until::until;

const PATIENCE: Duration = Duration::from_secs(60);
const META: &str = "description = \"d\"\nlocale = \"en\"\nchannels = [\"email\"]\n";

/// One request over a plain socket, and all of the answer.
fn asked(server: &Running, head: &str, body: &str) -> String {
    let address = server.told["address"].as_str().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let long = body.len();
    write!(stream, "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {long}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn refusals(server: &Running) -> u64 {
    let metrics = asked(server, "GET /metrics HTTP/1.1", "");
    let line = metrics.lines().find_map(|line| line.strip_prefix("belfry_reloads_total{result=\"refused\"} "));
    line.map_or(0, |many| many.parse().unwrap())
}

fn template(dir: &Path, text: &str) {
    let folder = dir.join("templates/t");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("meta.toml"), META).unwrap();
    std::fs::write(folder.join("subject.txt"), "s").unwrap();
    std::fs::write(folder.join("text.txt"), text).unwrap();
}

#[test]
fn files_that_cannot_be_read_leave_the_old_configuration_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = dir.join("belfry.toml");
    std::fs::write(&file, "").unwrap();
    let server = Running::start(dir, &["--port", "0", "--config", "belfry.toml"], &[]);
    let mut refused = 0;
    let mut refuses = |what: &str| {
        server.signal(Signal::HUP);
        refused += 1;
        until(what, PATIENCE, || (refusals(&server) == refused).then_some(()));
    };
    for deep in [format!("{{{{ {}1 }}}}", "not ".repeat(40_000)), format!("{{{{ 1{} }}}}", "~1".repeat(50_000))] {
        template(dir, &deep);
        refuses("a template too deep for any stack");
    }
    std::fs::remove_file(dir.join("templates/t/text.txt")).unwrap();
    mknodat(CWD, dir.join("templates/t/text.txt"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refuses("a pipe where a template should be");
    std::fs::remove_dir_all(dir.join("templates")).unwrap();
    let endless = "[channels.email]\nproviders = [\"m\"]\n[providers.m]\nkind = \"smtp\"\nfrom = \"a@b.example\"\n\
                   url = \"smtp://u@127.0.0.1:2525\"\npassword_file = \"/dev/zero\"\n";
    std::fs::write(&file, endless).unwrap();
    refuses("a password without an end");
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("words and marks") && log.contains("not a regular file"), "{log}");
}

#[test]
fn a_reload_changes_how_often_a_key_may_call() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = dir.join("belfry.toml");
    let limit = |burst: u32| format!("[http.limit]\nrate = 1\nper = \"1h\"\nburst = {burst}\n");
    std::fs::write(&file, limit(1)).unwrap();
    let server = Running::start(dir, &["--port", "0", "--config", "belfry.toml"], &[]);
    let key = std::fs::read_to_string(dir.join(".belfry/api-key")).unwrap();
    let head = format!("GET /v1/notifications HTTP/1.1\r\nAuthorization: Bearer {}", key.trim());
    let asks = || asked(&server, &head, "");
    assert!(asks().contains("ratelimit-policy: \"default\";q=1;w=3600\r\n"));
    let refused = asks();
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("\"code\":\"rate_limited\""), "{refused}");
    std::fs::write(&file, limit(3)).unwrap();
    server.signal(Signal::HUP);
    let taken = until("another limit", PATIENCE, || Some(asks()).filter(|told| told.starts_with("HTTP/1.1 200")));
    assert!(taken.contains("ratelimit: \"default\";r=2;t=3600\r\n"), "{taken}");
    std::fs::write(&file, "").unwrap();
    server.signal(Signal::HUP);
    let free = until("no limit", PATIENCE, || Some(asks()).filter(|told| !told.contains("ratelimit")));
    assert!(free.starts_with("HTTP/1.1 200"), "{free}");
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0.code(), Some(0));
}

#[test]
fn a_folder_of_templates_that_was_named_has_to_be_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain"), "").unwrap();
    for path in ["tmplates", "plain"] {
        let env = [("BELFRY__TEMPLATES__PATH", path)];
        let done = run(dir.path(), &["serve", "--port", "0"], &env);
        assert!(done.code != 0 && done.err.contains("templates.path"), "{done:?}");
        let done = run(dir.path(), &["templates", "lint"], &env);
        assert_eq!(done.code, 3, "{done:?}");
    }
    assert_eq!(run(dir.path(), &["templates", "lint"], &[]).code, 0);
}

#[test]
fn a_template_that_does_not_finish_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    template(dir, "{% for x in range(9000) %}{% if a == b %}{% endif %}{% endfor %}x");
    let server = Running::start(dir, &["--port", "0"], &[]);
    let key = std::fs::read_to_string(dir.join(".belfry/api-key")).unwrap();
    let key = key.trim();
    let rows = format!("[[{}1]]", "1,".repeat(100_000));
    let slow = format!(
        "{{\"class\":\"receipt\",\"to\":{{\"email\":\"a@b.example\"}},\"template\":\"t\",\
         \"data\":{{\"a\":{rows},\"b\":{rows}}}}}"
    );
    let head = |at: usize| {
        format!(
            "POST /v1/notifications HTTP/1.1\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: k{at}\r\n\
             Content-Type: application/json"
        )
    };
    std::thread::scope(|scope| {
        let (head, slow, server) = (&head, &slow, &server);
        let asking: Vec<_> = (0..6).map(|at| scope.spawn(move || asked(server, &head(at), slow))).collect();
        let plain =
            "{\"class\":\"receipt\",\"to\":{\"email\":\"a@b.example\"},\"content\":{\"subject\":\"s\",\"text\":\"t\"}}";
        assert!(asked(server, &head(100), plain).starts_with("HTTP/1.1 202"));
        assert!(asked(server, "GET /readyz HTTP/1.1", "").starts_with("HTTP/1.1 200"));
        for one in asking {
            let answer = one.join().unwrap();
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("did not come to an end"), "{answer}");
        }
    });
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log}");
}
