//! The replica that answers wait for goes away between an accept and its call.

use rustix::process::Signal;

use super::fleet::{Fleet, LONG, redis};
use crate::kill::load;
use crate::kill::reconcile::ended;
use crate::kill::sink::Sink;
use crate::peers::until::until;
use crate::redis::Server;
use crate::redis::server::{Options, PATIENCE};

const INTENTS: usize = 6;

/// Else a failover could take the claim along with its worker, and the next call would follow no unknown
/// outcome.
#[test]
fn no_call_is_made_on_a_claim_that_no_replica_has() {
    let primary = Server::plain();
    let replica = Server::start(Options::default().with(&format!("replicaof 127.0.0.1 {}", primary.port())));
    until("the replica is in step", PATIENCE, || {
        primary.ask::<String>(&["INFO", "replication"]).contains("state=online").then_some(())
    });
    let sink = Sink::start();
    let fleet = Fleet::start(1, &redis(&primary.url(), "replicas:1"), sink.address);
    let mut client = fleet.client(0);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let ids: Vec<String> = (0..INTENTS)
        .map(|number| {
            let mut body = load::body(number);
            body["send_at"] = soon.to_string().into();
            let answer = client.post("/v1/notifications", &load::intent(number), &body).unwrap();
            assert_eq!(answer.status, 202, "{answer:?}");
            answer.json()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    replica.signal(Signal::STOP);
    let failed = |verb: &str| {
        let metrics = fleet.client(0).get("/metrics").unwrap().body;
        metrics.contains(&format!("belfry_store_failures_total{{verb=\"{verb}\"}}"))
    };
    until("claims of both orders wait for it", LONG, || (failed("confirm") && failed("spend")).then_some(()));
    assert_eq!(sink.total(), 0);
    replica.signal(Signal::CONT);
    for id in ids {
        let delivery = ended(&mut client, &id);
        assert_eq!(delivery["state"], "accepted", "{delivery}");
    }
    assert_eq!(sink.total(), INTENTS);
}
