//! The primary dies under load, and a replica takes over.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::books::{Books, named_lost};
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use super::under::SENTINELS_OWN;
use crate::kill::load::{self, Ledger};
use crate::kill::sink::Sink;
use crate::peers::until::until;
use crate::redis::sentinel::Sentinels;

const NODES: usize = 3;
const INTENTS: usize = 900;
const BACK_WITHIN: Duration = Duration::from_secs(5);

struct Failover {
    set: Sentinels,
    sink: Sink,
    fleet: Fleet,
    ledger: Ledger,
}

impl Failover {
    fn of(durability: &str) -> Self {
        let (set, sink) = (Sentinels::start(2, 3), Sink::start());
        let fleet = Fleet::start(NODES, &redis(&set.url(), durability), sink.address);
        Self { set, sink, fleet, ledger: Ledger::default() }
    }

    /// Load all the while; `strike` at a third of it ends the primary.
    fn run(&mut self, strike: impl FnOnce(&mut Sentinels, &Ledger)) {
        let (places, callers) = (self.fleet.places.clone(), self.ledger.clone());
        let load = thread::spawn(move || load::send_through(&places, &callers, 0..INTENTS));
        until("a third is accepted", LONG, || (self.ledger.count() >= INTENTS / 3).then_some(()));
        let old = self.set.servers[0].port();
        strike(&mut self.set, &self.ledger);
        self.fleet.did("`kill -9` of the primary");
        until("another leads", SENTINELS_OWN, || (self.set.primary_port() != old).then_some(()));
        let before = self.ledger.count();
        until("nodes answer again", BACK_WITHIN, || (self.ledger.count() > before || load.is_finished()).then_some(()));
        load.join().unwrap();
    }

    fn books(&self) -> Books<'_> {
        Books { fleet: &self.fleet, ledger: &self.ledger, sink: &self.sink }
    }
}

pub fn with_a_replica_waited_for_a_primary_that_dies_takes_nothing_with_it() -> Row {
    let mut run = Failover::of("replicas:1");
    run.run(|set, _| set.servers[0].kill());
    let tally = run.books().reconcile(0..INTENTS);
    assert_eq!(named_lost(&run.fleet.log()).len(), 0);
    run.books().report("failover, replicas:1", &tally)
}

/// The replicas sleep and are cut off while more is accepted, so that they lack it when one of them
/// takes over.
pub fn without_one_what_a_dead_primary_takes_with_it_is_named() -> Row {
    let mut run = Failover::of("ack");
    run.run(|set, ledger| {
        set.servers[1..].iter().for_each(|replica| replica.signal(Signal::STOP));
        let _: i64 = set.servers[0].ask(&["CLIENT", "KILL", "TYPE", "replica"]);
        let before = ledger.count();
        until("some are accepted that no replica has", LONG, || (ledger.count() >= before + 50).then_some(()));
        set.servers[0].kill();
        set.servers[1..].iter().for_each(|replica| replica.signal(Signal::CONT));
    });
    run.fleet.did("`SIGSTOP` of its replicas before that");
    let log = run.fleet.log();
    let named = named_lost(&log);
    let tally = run.books().reconcile_but(0..INTENTS, &named);
    assert!(tally.lost > 0 && log.contains("store_went_back"), "the replicas lacked something: {tally:?}");
    run.books().report("failover, ack", &tally)
}
