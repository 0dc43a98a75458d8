//! A node sleeps through its leases (SIGSTOP, a suspended machine) while another takes over, and wakes.

use std::time::Duration;

use rustix::process::Signal;

use super::books::Books;
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::kill::load::{self, Ledger, at_most_once, intent};
use crate::kill::reconcile::Tally;
use crate::kill::sink::{Phase, Sink};
use crate::peers::until::{pass, until};
use crate::redis::Server;

const INTENTS: usize = 40;
const THREE_LEASES: Duration = Duration::from_secs(3);

/// One of two is stopped with calls at `phase`, and wakes once the other has taken over; then it ends, so
/// that nothing of it is still to come.
fn asleep_at(phase: Phase) -> (Sink, Tally, Row) {
    let (server, sink, ledger) = (Server::plain(), Sink::start(), Ledger::default());
    let mut fleet = Fleet::start(2, &redis(&server.url(), "ack"), sink.address);
    sink.hold(phase);
    load::send_through(&fleet.places, &ledger, 0..INTENTS);
    until("calls are under way in both", LONG, || (sink.waiting() >= 10).then_some(()));
    fleet.signal(0, Signal::STOP);
    sink.let_go();
    fleet.did("`SIGSTOP` of a node for three leases");
    pass(THREE_LEASES);
    fleet.signal(0, Signal::CONT);
    fleet.stop(0);
    let lapsed = fleet.log().matches("fact=\"lapsed\"").count();
    assert!(lapsed > 0, "it held nothing");
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let tally = books.reconcile(0..INTENTS);
    let row = books.report(&format!("asleep at {phase:?}, {lapsed} taken over"), &tally);
    (sink, tally, row)
}

pub fn case_4_a_node_that_slept_before_its_calls_makes_none_when_it_wakes() -> Row {
    let (sink, tally, row) = asleep_at(Phase::Greeting);
    assert_eq!(tally.extra, 0, "{tally:?}");
    for number in (0..INTENTS).filter(|number| !at_most_once(*number)) {
        assert_eq!(sink.effects(&intent(number)).len(), 1, "{number}");
    }
    row
}

pub fn case_4_a_node_that_slept_during_its_calls_doubles_nothing_silently() -> Row {
    let (sink, _, row) = asleep_at(Phase::FinalDot);
    for number in 0..INTENTS {
        // At most once: recorded as spent, and asleep before its call.
        let allowed = if at_most_once(number) { 0..=1 } else { 1..=2 };
        assert!(allowed.contains(&sink.effects(&intent(number)).len()), "{number}");
    }
    row
}
