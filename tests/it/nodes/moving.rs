//! A Cluster's slot moves under load.

use std::thread;

use belfry::store::redis::keys::Names;
use belfry::store::redis::link::slot_of;

use super::books::Books;
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::kill::load::{self, Ledger};
use crate::kill::sink::Sink;
use crate::peers::until::until;
use crate::redis::cluster::Cluster;

const NODES: usize = 3;
const INTENTS: usize = 600;
const SHARD: u16 = 5;

pub fn case_94_a_slot_that_moves_under_nodes_costs_refusals_and_nothing_else() -> Row {
    let (cluster, sink, ledger) = (Cluster::start(), Sink::start(), Ledger::default());
    let mut fleet = Fleet::start(NODES, &redis(&cluster.url(), "ack"), sink.address);
    let slot = slot_of(&Names::new("belfry".into(), 16).sequence(SHARD));
    let from = cluster.holder(slot);
    let to = (from + 1) % 3;
    let (places, callers) = (fleet.places.clone(), ledger.clone());
    let load = thread::spawn(move || load::send_through(&places, &callers, 0..INTENTS));
    until("a third is accepted", LONG, || (ledger.count() >= INTENTS / 3).then_some(()));
    cluster.begin_move(slot, from, to);
    cluster.move_keys(slot, from, to, 20);
    let refused = ledger.refused();
    until("callers meet the move", LONG, || (ledger.refused() >= refused + 10).then_some(()));
    while cluster.move_keys(slot, from, to, 100) > 0 {}
    cluster.end_move(slot, from, to);
    fleet.did("a slot moves with its keys");
    load.join().unwrap();
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let tally = books.reconcile(0..INTENTS);
    assert_eq!(ledger.cut(), 0, "refused, and not left without an answer");
    books.report("a moved slot", &tally)
}
