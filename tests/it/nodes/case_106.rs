//! All nodes reach for the same intents at once, and are woken again when these have ended.

use std::time::Duration;

use belfry::store::redis::link::wakes;
use serde_json::{Value, json};

use super::books::{Books, entries};
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::kill::load::{self, Ledger, intent};
use crate::kill::reconcile::ended;
use crate::kill::server::Site;
use crate::kill::sink::{Phase, Sink};
use crate::peers::until::{pass, until};
use crate::redis::Server;

const NODES: usize = 3;
const INTENTS: usize = 600;
/// Accepted behind those, to see that nodes have looked again.
const LATER: usize = 30;
const EAGER: &str = "[engine]\npoll = \"1ms\"\n";
const SHARDS: u16 = 4;
/// What has been due for so long any node takes, whichever its shard is preferred by.
const ANYBODYS: Duration = Duration::from_secs(2);

/// The fence of each call of a delivery: it grows by one with every claim, also one without a call.
fn fences(delivery: &Value) -> Vec<u64> {
    entries(delivery, "attempt").map(|entry| entry["fence"].as_u64().unwrap()).collect()
}

pub fn case_106_of_three_nodes_that_ask_at_once_one_gets_it_and_a_finished_intent_none() -> Row {
    let (server, sink, ledger) = (Server::plain(), Sink::start(), Ledger::default());
    let store = redis(&server.url(), "ack");
    let mut fleet = Fleet::at((0..NODES).map(|_| Site::over(&store, sink.address, EAGER)).collect());
    // While all places are taken, the rest grows so old that nobody leaves it to anybody.
    sink.hold(Phase::Greeting);
    load::send_through(&fleet.places, &ledger, 0..INTENTS);
    pass(ANYBODYS);
    sink.let_go();
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let mut tally = books.reconcile(0..INTENTS);
    assert_eq!((tally.accepted, tally.extra), (INTENTS, 0), "{tally:?}");
    for shard in 0..SHARDS {
        let word = String::from_utf8(wakes::written(shard, 0)).unwrap();
        let heard: usize = server.ask(&["PUBLISH", "belfry:wake", &word]);
        assert_eq!(heard, NODES);
    }
    load::send_through(&fleet.places, &ledger, INTENTS..INTENTS + LATER);
    tally.add(&books.reconcile(INTENTS..INTENTS + LATER));
    fleet.did("polls every millisecond");
    fleet.did("all woken after the ends");
    let row = Books { fleet: &fleet, ledger: &ledger, sink: &sink }.report("one claim each", &tally);
    claimed_once_until_now(&fleet, &ledger);
    row
}

/// The claim of a second send, which a person asks for, has the fence right behind the first one's.
fn claimed_once_until_now(fleet: &Fleet, ledger: &Ledger) {
    let (mut client, ids) = (fleet.client(0), ledger.accepted());
    for number in 0..INTENTS {
        let id = &ids[&intent(number)];
        let delivery = ended(&mut client, id);
        assert_eq!(fences(&delivery), [1], "{delivery}");
        let path = format!("/v1/deliveries/{}/send-again", delivery["id"].as_str().unwrap());
        let asked = client.post(&path, &format!("again-{number}"), &json!({ "after_send": 1 })).unwrap();
        assert_eq!(asked.status, 200, "{asked:?}");
    }
    for number in 0..INTENTS {
        let fences = until("it is sent again", LONG, || {
            let fences = fences(&ended(&mut client, &ids[&intent(number)]));
            (fences.len() > 1).then_some(fences)
        });
        assert_eq!(fences, [1, 2], "{number}");
    }
}
