//! A process that sleeps through its lease (SIGSTOP, a suspended machine) and wakes up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;

use super::load::{self, Ledger, Place};
use super::reconcile::reconcile;
use super::server::Site;
use super::sink::{Phase, Sink};
use crate::peers::until::{pass, until};

const LONG: Duration = Duration::from_secs(30);
const THREE_LEASES: Duration = Duration::from_secs(3);

/// Stopped at `phase` for three leases, with the answer there when it wakes.
fn stop_at(phase: Phase) -> (Sink, Ledger, super::reconcile::Tally) {
    let sink = Sink::start();
    let site = Site::new(sink.address, "");
    let place: Place = Arc::new(Mutex::new(None));
    let ledger = Ledger::default();
    sink.hold(phase);
    let server = site.start();
    *place.lock().unwrap() = Some(server.address);
    load::send(&place, &ledger, 0..2);
    until("a call is under way", LONG, || (sink.waiting() > 0).then_some(()));
    server.signal(Signal::STOP);
    pass(THREE_LEASES);
    sink.let_go();
    server.signal(Signal::CONT);
    let tally = reconcile(&mut server.client(), &ledger, &sink, 2);
    (sink, ledger, tally)
}

#[test]
fn case_4_a_worker_that_slept_before_its_call_sends_once() {
    let (sink, ledger, tally) = stop_at(Phase::Greeting);
    for intent in ledger.accepted().keys() {
        assert_eq!(sink.effects(intent).len(), 1, "{intent}");
    }
    assert_eq!((tally.extra, tally.accepted), (0, 2));
}

#[test]
fn case_4_a_worker_that_slept_during_its_call_doubles_nothing_silently() {
    let (sink, ledger, _) = stop_at(Phase::FinalDot);
    for intent in ledger.accepted().keys() {
        assert!((1..=2).contains(&sink.effects(intent).len()), "{intent}");
    }
}
