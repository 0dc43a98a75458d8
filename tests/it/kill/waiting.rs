//! What waits in the whole program: for a login to be mended, for its tenant's turn, for nothing
//! because a newer one has gone out.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::http::Client;
use super::server::Site;
use super::sink::{Phase, Sink};
use crate::peers::smtp_stub::{Script, SmtpStub};
use crate::peers::until::until;

const LONG: Duration = Duration::from_secs(30);

fn request(number: usize) -> Value {
    json!({
        "class": "receipt",
        "to": { "email": format!("customer{number}@example.com") },
        "channels": ["email"],
        "content": { "subject": format!("order-{number}"), "text": "It has left our warehouse." },
    })
}

fn accept(client: &mut Client, key: &str, body: &Value) -> String {
    let answer = client.post("/v1/notifications", key, body).unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn delivery(client: &mut Client, id: &str) -> Value {
    client.get(&format!("/v1/notifications/{id}")).unwrap().json()["deliveries"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_29_a_refused_login_opens_the_circuit_and_a_reload_with_the_right_one_drains_it() {
    const MAILS: usize = 12;
    let stub = SmtpStub::start(Script::default().with_login("shop", "right")).await;
    let site = Site::new(stub.address(), "");
    let config = site.folder().join("belfry.toml");
    let (password, url) = (site.folder().join("password"), format!("smtp://{}", stub.address()));
    fs::write(&password, "wrong").unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let login = format!("smtp://shop@{}\"\npassword_file = \"password", stub.address());
    fs::write(&config, text.replace(&url, &login)).unwrap();
    let server = site.start();
    let mut client = server.client();
    let ids: Vec<String> =
        (0..MAILS).map(|number| accept(&mut client, &format!("k{number}"), &request(number))).collect();
    until("the circuit opens", LONG, || site.log().contains("circuit").then_some(()));
    // The messages are not at fault: none has ended, none has gone out.
    for id in &ids {
        let state = delivery(&mut client, id)["state"].clone();
        assert!(["queued", "deferred", "sending"].contains(&state.as_str().unwrap()), "{state}");
    }
    assert_eq!(stub.messages().len(), 0);
    fs::write(&password, "right").unwrap();
    server.signal(Signal::HUP);
    for id in &ids {
        until("it is accepted", LONG, || (delivery(&mut client, id)["state"] == "accepted").then_some(()));
    }
    assert_eq!(stub.messages().len(), MAILS);
    assert!(!site.log().contains("wrong"), "the password is in the log");
}

/// A new key for `tenant`, made while no server runs.
fn key_of(site: &Site, tenant: &str) -> String {
    let mut server = site.start();
    server.signal(Signal::TERM);
    assert!(server.ended(LONG).success());
    let made = Command::new(env!("CARGO_BIN_EXE_belfry"))
        .args(["keys", "create", "--tenant", tenant, "--env", "live", "--can", "send,read", "--config", "belfry.toml"])
        .args(["--output", "json"])
        .current_dir(site.folder())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    made["key"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

#[test]
fn a_tenant_with_little_does_not_wait_for_one_with_much() {
    const MUCH: usize = 60;
    const LITTLE: usize = 5;
    let sink = Sink::start();
    let site = Site::new(sink.address, "connections = 1\n");
    let config = site.folder().join("belfry.toml");
    let text = fs::read_to_string(&config).unwrap();
    let (head, one) = (text.replace("connections = 1\n", ""), "from = \"Shop <no-reply@example.com>\"\n");
    fs::write(&config, head.replace(one, &format!("{one}connections = 1\n"))).unwrap();
    let little = key_of(&site, "little");
    sink.hold(Phase::FinalDot);
    let server = site.start();
    let mut much = server.client();
    for number in 0..MUCH {
        accept(&mut much, &format!("much{number}"), &request(number));
    }
    until("the only connection is taken", LONG, || (sink.waiting() == 1).then_some(()));
    let mut other = server.client().with_key(&little);
    let ids: Vec<String> =
        (0..LITTLE).map(|at| accept(&mut other, &format!("little{at}"), &request(MUCH + at))).collect();
    sink.let_go();
    for id in &ids {
        until("it is accepted", LONG, || (delivery(&mut other, id)["state"] == "accepted").then_some(()));
    }
    until("all have gone out", LONG, || (sink.total() == MUCH + LITTLE).then_some(()));
    let order = sink.order();
    let last = order.iter().rposition(|intent| {
        let number: usize = intent.trim_start_matches("order-").parse().unwrap();
        number >= MUCH
    });
    // One under way, a few in hand; from then on the two take turns.
    let place = last.unwrap() + 1;
    assert!(place <= 2 * LITTLE + 8, "the last of {LITTLE} came as number {place}: {order:?}");
}

#[test]
fn an_older_version_that_comes_late_is_superseded_and_not_sent() {
    let sink = Sink::start();
    let site = Site::new(sink.address, "");
    let server = site.start();
    let mut client = server.client();
    let version = |number: usize, version: u32| {
        let mut body = request(number);
        body["to"]["email"] = "one@example.com".into();
        body["collapse"] = "order-42".into();
        body["version"] = version.into();
        body
    };
    let newer = accept(&mut client, "v3", &version(3, 3));
    until("the newer has gone out", LONG, || (delivery(&mut client, &newer)["state"] == "accepted").then_some(()));
    let older = accept(&mut client, "v2", &version(2, 2));
    let ended = until("the older has ended", LONG, || {
        let older = delivery(&mut client, &older);
        (older["ended_at"].is_string()).then_some(older)
    });
    assert_eq!(ended["state"], "superseded", "{ended}");
    let another = accept(&mut client, "v4", &version(4, 4));
    until("a newer one goes out", LONG, || (delivery(&mut client, &another)["state"] == "accepted").then_some(()));
    assert_eq!(sink.order(), ["order-3", "order-4"]);
}
