//! A server that closes idle connections, dies and comes back with its file or without, is full.

use std::thread;
use std::time::Duration;

use super::books::{Books, named_lost};
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::kill::load::{self, Ledger};
use crate::kill::reconcile::Tally;
use crate::kill::sink::Sink;
use crate::peers::until::{pass, until};
use crate::redis::Server;
use crate::redis::server::Options;

const NODES: usize = 2;
const INTENTS: usize = 600;

struct Bed {
    server: Server,
    sink: Sink,
    fleet: Fleet,
    ledger: Ledger,
}

impl Bed {
    fn on(options: Options) -> Self {
        let (server, sink) = (Server::start(options), Sink::start());
        let fleet = Fleet::start(NODES, &redis(&server.url(), "ack"), sink.address);
        Self { server, sink, fleet, ledger: Ledger::default() }
    }

    fn load(&self, intents: usize) -> thread::JoinHandle<()> {
        let (places, callers) = (self.fleet.places.clone(), self.ledger.clone());
        thread::spawn(move || load::send_through(&places, &callers, 0..intents))
    }

    fn books(&self) -> Books<'_> {
        Books { fleet: &self.fleet, ledger: &self.ledger, sink: &self.sink }
    }

    /// Kills the server under load and starts it again; what is missing then is named.
    fn restart_under_load(&mut self, name: &str) -> (Tally, Row) {
        let load = self.load(INTENTS);
        until("a third is accepted", LONG, || (self.ledger.count() >= INTENTS / 3).then_some(()));
        self.server.kill();
        self.server.start_again();
        self.fleet.did("`kill -9` of the server");
        load.join().unwrap();
        let tally = self.books().reconcile_but(0..INTENTS, &named_lost(&self.fleet.log()));
        let row = self.books().report(name, &tally);
        (tally, row)
    }
}

/// One request for every time that the server has closed what was idle.
pub fn case_62_a_server_that_closes_idle_connections_shows_callers_nothing() -> Row {
    const REQUESTS: usize = 6;
    const IDLE: Duration = Duration::from_millis(2_200);
    let mut bed = Bed::on(Options::default().with("timeout 1"));
    for number in 0..REQUESTS {
        load::send_through(&bed.fleet.places, &bed.ledger, number..number + 1);
        pass(IDLE);
        bed.fleet.did("nothing to do for 2 s");
    }
    assert_eq!((bed.ledger.refused(), bed.ledger.cut()), (0, 0));
    let tally = bed.books().reconcile(0..REQUESTS);
    assert_eq!((tally.accepted, tally.extra), (REQUESTS, 0), "{tally:?}");
    bed.books().report("idle connections", &tally)
}

pub fn a_server_that_comes_back_with_its_file_has_all_or_what_it_lacks_is_named() -> Row {
    let mut bed = Bed::on(Options::default().with("appendonly yes").with("appendfsync everysec"));
    let (tally, row) = bed.restart_under_load("back with its file");
    // It depends on when its file was synced last.
    let lost = if tally.missing() == 0 { "none, or each named".to_owned() } else { row.lost };
    Row { lost, ..row }
}

pub fn what_a_server_without_a_file_loses_is_named() -> Row {
    let mut bed = Bed::on(Options::default());
    let (tally, row) = bed.restart_under_load("back without a file");
    assert!(tally.lost >= INTENTS / 3, "{tally:?}");
    row
}

pub fn case_5_a_full_server_costs_refusals_and_nothing_that_was_acknowledged() -> Row {
    let mut bed = Bed::on(Options::default());
    let load = bed.load(INTENTS);
    until("a third is accepted", LONG, || (bed.ledger.count() >= INTENTS / 3).then_some(()));
    let () = bed.server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let refused = bed.ledger.refused();
    until("callers are refused", LONG, || (bed.ledger.refused() >= refused + 100).then_some(()));
    let before = bed.ledger.count();
    let () = bed.server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    until("callers are served again", Duration::from_secs(5), || (bed.ledger.count() > before).then_some(()));
    load.join().unwrap();
    bed.fleet.did("`maxmemory` until 100 callers were refused");
    let tally = bed.books().reconcile(0..INTENTS);
    assert_eq!(bed.ledger.cut(), 0, "refused, and not left without an answer");
    bed.books().report("a full server", &tally)
}
