//! Nodes that die with calls open, again and again: no place among the workers stays taken.

use serde_json::json;

use super::books::Books;
use super::fleet::{Fleet, GRACE, LONG, redis};
use super::report::Row;
use crate::kill::load::{self, Ledger};
use crate::kill::server::Site;
use crate::kill::sink::{Phase, Sink};
use crate::peers::until::until;
use crate::redis::Server;

const NODES: usize = 3;
const KILLS: usize = 100;
const PER_KILL: usize = 45;
/// More than all nodes may have in hand, of which most waits there for its call.
const MANY: usize = 400;
/// Of a node's 8 connections a quarter is kept for urgent lanes, in which nothing is here.
const OPEN_CALLS: usize = NODES * 6;

struct Bed {
    /// One door for each node.
    doors: Vec<Sink>,
    fleet: Fleet,
    ledger: Ledger,
    asked: usize,
    urgent: usize,
}

impl Bed {
    fn ask(&mut self, intents: usize) {
        let from = self.asked;
        self.asked += intents;
        load::send_through(&self.fleet.places, &self.ledger, from..self.asked);
    }

    fn sink(&self) -> &Sink {
        &self.doors[0]
    }

    /// As many calls are open at once as the configuration allows, and the gauge says so. They stay open.
    fn reaches_full_concurrency(&mut self) {
        self.sink().hold(Phase::FinalDot);
        self.ask(MANY);
        until("so many calls are open", LONG, || (self.sink().waiting() == OPEN_CALLS).then_some(()));
        until("the gauge has them", LONG, || (sending(&self.fleet, 0) >= OPEN_CALLS as f64).then_some(()));
        self.urgent += 1;
        let name = urgent(self.urgent);
        let body = json!({
            "class": "security",
            "channels": ["email"],
            "to": { "email": "customer@example.com" },
            "content": { "subject": name, "text": "Somebody signed in." },
        });
        let answer = self.fleet.client(0).post("/v1/notifications", &name, &body).unwrap();
        assert_eq!(answer.status, 202, "{answer:?}");
        until("what is urgent does not wait for them", LONG, || (self.sink().effects(&name).len() == 1).then_some(()));
    }

    /// Lets all open calls end, and holds what comes then.
    fn next_calls(&self) {
        self.sink().let_go();
        until("all have their answers", LONG, || (self.sink().waiting() == 0).then_some(()));
        self.sink().hold(Phase::FinalDot);
    }

    /// `kill -9` of one that has calls open.
    fn kill_in_the_middle_of_a_send(&mut self, at: usize) {
        until("it has calls open", LONG, || (self.doors[at].waiting_here() > 0).then_some(()));
        self.fleet.kill(at);
        self.fleet.start_again(at);
        self.ask(PER_KILL);
        self.next_calls();
    }
}

fn urgent(number: usize) -> String {
    format!("urgent-{number}")
}

/// What a node's gauge of claims shows, over all lanes.
fn sending(fleet: &Fleet, at: usize) -> f64 {
    let metrics = fleet.client(at).get("/metrics").unwrap().body;
    let lanes = metrics.lines().filter(|line| line.starts_with("belfry_lane_sending{"));
    lanes.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

pub fn case_31_a_hundred_nodes_killed_in_the_middle_of_sends_free_their_places() -> Row {
    let (server, sink) = (Server::plain(), Sink::start());
    let doors: Vec<Sink> = (0..NODES).map(|_| sink.door()).collect();
    let store = redis(&server.url(), "ack");
    let fleet = Fleet::at(doors.iter().map(|door| Site::over(&store, door.address, GRACE)).collect());
    let mut bed = Bed { doors, fleet, ledger: Ledger::default(), asked: 0, urgent: 0 };
    bed.reaches_full_concurrency();
    for kill in 0..KILLS {
        bed.kill_in_the_middle_of_a_send(kill % NODES);
    }
    bed.sink().let_go();
    let books = Books { fleet: &bed.fleet, ledger: &bed.ledger, sink: &sink };
    books.reconcile(0..bed.asked);
    bed.reaches_full_concurrency();
    bed.sink().let_go();
    let books = Books { fleet: &bed.fleet, ledger: &bed.ledger, sink: &sink };
    let tally = books.reconcile(0..bed.asked);
    for at in 0..NODES {
        until("no claim is held", LONG, || (sending(&bed.fleet, at) == 0.0).then_some(()));
    }
    bed.fleet.did("each time with calls open");
    let books = Books { fleet: &bed.fleet, ledger: &bed.ledger, sink: &sink };
    books.report("killed in the middle of sends", &tally)
}
