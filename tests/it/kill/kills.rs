//! `kill -9` under load.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::load::{self, Ledger, Place};
use super::reconcile::{ended, reconcile};
use super::server::Site;
use super::sink::{Phase, Sink};
use crate::peers::until::until;

const ROUNDS: usize = 25;
const PER_ROUND: usize = 200;
const LONG: Duration = Duration::from_secs(30);

/// When the first kill of a round comes: after so many accepts, or after so many sends, earlier and
/// later by turns.
fn reached(round: usize, ledger: &Ledger, sink: &Sink, sent_before: usize) -> bool {
    let accepted = ledger.count() - round * PER_ROUND;
    let turn = (round % 7) * 25;
    accepted >= PER_ROUND || if round.is_multiple_of(2) { accepted > turn } else { sink.total() > sent_before + turn }
}

/// 50 kills, 5,000 intents: nothing accepted is lost, at most once stays so, and every further
/// effect of an at-least-once intent follows a recorded reason.
#[test]
fn fifty_kills_under_load_lose_nothing_and_double_nothing_without_a_reason() {
    let sink = Sink::start();
    let site = Site::new(sink.address, "");
    let place: Place = Arc::new(Mutex::new(None));
    let ledger = Ledger::default();
    for round in 0..ROUNDS {
        let so_far = (round + 1) * PER_ROUND;
        let sent_before = sink.total();
        let server = site.start();
        *place.lock().unwrap() = Some(server.address);
        let (callers, goes_on) = (ledger.clone(), place.clone());
        let load = thread::spawn(move || load::send(&goes_on, &callers, so_far - PER_ROUND..so_far));
        until("enough to kill", LONG, || reached(round, &ledger, &sink, sent_before).then_some(()));
        *place.lock().unwrap() = None;
        server.kill();
        let server = site.start();
        *place.lock().unwrap() = Some(server.address);
        load.join().unwrap();
        *place.lock().unwrap() = None;
        if round % 5 == 4 {
            // Long enough for what the kills left to be taken over, some of it not for the first time.
            reconcile(&mut server.client(), &ledger, &sink, so_far);
        }
        server.kill();
    }
    let server = site.start();
    let tally = reconcile(&mut server.client(), &ledger, &sink, ROUNDS * PER_ROUND);
    assert!(tally.accepted > ROUNDS * PER_ROUND / 2, "most of them went through: {tally:?}");
}

/// Kill a worker in the middle of a send and start only one again: what it held is done within the
/// bounded time that a lease and a sweep take.
#[test]
fn case_25_a_killed_workers_claims_are_taken_over() {
    let sink = Sink::start();
    let site = Site::new(sink.address, "");
    let place: Place = Arc::new(Mutex::new(None));
    let ledger = Ledger::default();
    sink.hold(Phase::Greeting);
    let server = site.start();
    *place.lock().unwrap() = Some(server.address);
    load::send(&place, &ledger, 0..8);
    until("calls are under way", LONG, || (sink.waiting() > 0).then_some(()));
    server.kill();
    sink.let_go();
    let server = site.start();
    let tally = reconcile(&mut server.client(), &ledger, &sink, 8);
    assert_eq!((tally.extra, tally.parked), (0, 0), "nobody had called yet: {tally:?}");
}

/// Kills in the middle of sends, over and over: no place among the workers stays taken.
#[test]
fn case_31_killed_workers_free_their_places() {
    let sink = Sink::start();
    let site = Site::new(sink.address, "");
    let place: Place = Arc::new(Mutex::new(None));
    let ledger = Ledger::default();
    let mut sent = 0;
    for _ in 0..10 {
        sink.hold(Phase::FinalDot);
        let server = site.start();
        *place.lock().unwrap() = Some(server.address);
        load::send(&place, &ledger, sent..sent + 20);
        sent += 20;
        until("calls are under way", LONG, || (sink.waiting() > 0).then_some(()));
        server.kill();
        sink.let_go();
    }
    let server = site.start();
    let mut client = server.client();
    reconcile(&mut client, &ledger, &sink, sent);
    // Nothing is held any more, and new work goes through.
    let ids = ledger.accepted();
    *place.lock().unwrap() = Some(server.address);
    load::send(&place, &ledger, sent..sent + 50);
    for (intent, id) in ledger.accepted().into_iter().filter(|(intent, _)| !ids.contains_key(intent)) {
        assert_eq!(ended(&mut client, &id)["state"], "accepted", "{intent}");
        assert_eq!(sink.effects(&intent).len(), 1, "{intent}");
    }
}
