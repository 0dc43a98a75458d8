//! Nodes that go and come as somebody wants it: rolling restarts, fewer of them, none, all again.

use std::thread;

use super::books::Books;
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::kill::load::{self, Ledger};
use crate::kill::sink::{Phase, Sink};
use crate::peers::until::until;
use crate::redis::Server;

const NODES: usize = 3;

pub fn case_10_rolling_restarts_of_three_nodes_lose_and_double_nothing() -> Row {
    const ROUNDS: usize = 6;
    const PER_RESTART: usize = 60;
    const INTENTS: usize = ROUNDS * NODES * PER_RESTART;
    let (server, sink, ledger) = (Server::plain(), Sink::start(), Ledger::default());
    let mut fleet = Fleet::start(NODES, &redis(&server.url(), "ack"), sink.address);
    for restart in 0..ROUNDS * NODES {
        let (places, callers) = (fleet.places.clone(), ledger.clone());
        let so_far = restart * PER_RESTART;
        let load = thread::spawn(move || load::send_through(&places, &callers, so_far..so_far + PER_RESTART));
        until("some are accepted", LONG, || (ledger.count() >= so_far + PER_RESTART / 3).then_some(()));
        fleet.stop(restart % NODES);
        fleet.start_again(restart % NODES);
        load.join().unwrap();
    }
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let tally = books.reconcile(0..INTENTS);
    assert_eq!((tally.extra, tally.accepted), (0, INTENTS), "a graceful stop doubles nothing: {tally:?}");
    books.report("rolling restarts", &tally)
}

/// With calls under way everywhere.
pub fn case_76_nodes_scaled_down_to_none_and_up_again_leave_nothing_behind() -> Row {
    const INTENTS: usize = 120;
    let (server, sink, ledger) = (Server::plain(), Sink::start(), Ledger::default());
    let mut fleet = Fleet::start(NODES, &redis(&server.url(), "ack"), sink.address);
    for round in 0..2 {
        sink.hold(Phase::FinalDot);
        load::send_through(&fleet.places, &ledger, round * INTENTS..(round + 1) * INTENTS);
        let before = sink.total();
        until("calls are under way", LONG, || (sink.waiting() >= NODES).then_some(()));
        // The last to go sees its own calls end; those of the others nobody hears the end of.
        (1..NODES).for_each(|at| fleet.kill(at));
        sink.let_go();
        until("the last one goes on alone", LONG, || (sink.total() > before).then_some(()));
        fleet.stop(0);
        (0..NODES).for_each(|at| fleet.start_again(at));
    }
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let tally = books.reconcile(0..2 * INTENTS);
    books.report("down to none and up again", &tally)
}
