//! Intents through three nodes while nodes and the server under them are killed, stopped and cut off.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::books::Books;
use super::fleet::{Fleet, LONG, redis};
use crate::kill::load::{self, Ledger};
use crate::kill::sink::Sink;
use crate::peers::rng::Rng;
use crate::peers::until::{pass, until};
use crate::redis::Server;

const NODES: usize = 3;
const THREE_LEASES: Duration = Duration::from_secs(3);
const STORE_STOPPED: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// `kill -9` of one node, which is started again at once.
    Kill,
    /// Of two at once.
    KillTwo,
    FlushScripts,
    CutClients,
    StopStore,
    /// One node sleeps through its leases.
    StopNode,
}

/// What a storm is made of.
struct Plan {
    name: &'static str,
    seed: u64,
    rounds: usize,
    per_round: usize,
    /// Asked for once, by callers who take no for an answer.
    once_per_round: usize,
    /// Drawn from, so many in each round.
    troubles: &'static [Trouble],
    troubles_per_round: usize,
}

struct Storm {
    redis: Server,
    sink: Sink,
    fleet: Fleet,
    ledger: Ledger,
    rng: Rng,
}

/// The seed of a storm: of its own, or the one that a failed run printed.
fn seed(own: u64) -> u64 {
    std::env::var("BELFRY_STORM_SEED").ok().map_or(own, |text| text.parse().expect("a number"))
}

impl Storm {
    fn new(seed: u64) -> Self {
        let (redis_server, sink) = (Server::plain(), Sink::start());
        let fleet = Fleet::start(NODES, &redis(&redis_server.url(), "ack"), sink.address);
        Self { redis: redis_server, sink, fleet, ledger: Ledger::default(), rng: Rng(seed) }
    }

    fn any_node(&mut self) -> usize {
        usize::try_from(self.rng.below(NODES as u64)).unwrap()
    }

    fn strike(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Kill => {
                let at = self.any_node();
                self.fleet.kill(at);
                self.fleet.start_again(at);
            }
            Trouble::KillTwo => {
                let one = self.any_node();
                let other = (one + 1) % NODES;
                self.fleet.kill(one);
                self.fleet.kill(other);
                self.fleet.start_again(one);
                self.fleet.start_again(other);
            }
            Trouble::FlushScripts => self.redis.ask(&["SCRIPT", "FLUSH"]),
            Trouble::CutClients => {
                let _: i64 = self.redis.ask(&["CLIENT", "KILL", "TYPE", "normal"]);
            }
            Trouble::StopStore => {
                self.redis.signal(Signal::STOP);
                pass(STORE_STOPPED);
                self.redis.signal(Signal::CONT);
            }
            Trouble::StopNode => {
                let at = self.any_node();
                self.fleet.signal(at, Signal::STOP);
                pass(THREE_LEASES);
                self.fleet.signal(at, Signal::CONT);
            }
        }
    }

    /// One round's intents, and its troubles at moments that the dice choose: so many of the round
    /// were acknowledged, or so many of it had an effect.
    fn round(&mut self, plan: &Plan, round: usize) {
        let first = round * plan.per_round;
        let (accepted, sent) = (self.ledger.count(), self.sink.total());
        let mut moments: Vec<usize> = (0..plan.troubles_per_round)
            .map(|_| usize::try_from(self.rng.below(plan.per_round as u64)).unwrap())
            .collect();
        moments.sort_unstable();
        let (places, ledger) = (self.fleet.places.clone(), self.ledger.clone());
        let numbers = first..first + plan.per_round;
        let once = plan.once(round);
        let load = thread::spawn(move || {
            thread::scope(|scope| {
                scope.spawn(|| load::send_once(&places, &ledger, once));
                load::send_through(&places, &ledger, numbers);
            });
        });
        for moment in moments {
            let by_effects = self.rng.chance(50);
            until("the moment has come", LONG, || {
                let (accepted, sent) = (self.ledger.count() - accepted, self.sink.total() - sent);
                let come = if by_effects { sent >= moment } else { accepted >= moment };
                (come || accepted >= plan.per_round).then_some(())
            });
            let which = usize::try_from(self.rng.below(plan.troubles.len() as u64)).unwrap();
            self.strike(plan.troubles[which]);
        }
        load.join().unwrap();
    }

    fn rage(mut self, plan: &Plan) {
        let began = Instant::now();
        println!("{}: BELFRY_STORM_SEED={}", plan.name, seed(plan.seed));
        for round in 0..plan.rounds {
            self.round(plan, round);
        }
        let raged = began.elapsed();
        let books = Books { fleet: &self.fleet, ledger: &self.ledger, sink: &self.sink };
        let mut tally = books.reconcile(0..plan.rounds * plan.per_round);
        for round in 0..plan.rounds {
            tally.add(&books.reconcile_unsure(plan.once(round)));
        }
        books.report(plan.name, &tally);
        println!("{}: raged for {raged:?}, all of it {:?}", plan.name, began.elapsed());
    }
}

impl Plan {
    /// Numbers behind those of callers who never give up.
    fn once(&self, round: usize) -> std::ops::Range<usize> {
        let first = self.rounds * self.per_round + round * self.once_per_round;
        first..first + self.once_per_round
    }

    fn run(&self) {
        Storm::new(seed(self.seed)).rage(self);
    }
}

#[test]
fn a_storm_of_kills_loses_nothing_and_doubles_nothing_without_a_reason() {
    let plan = Plan {
        name: "kills",
        seed: 1,
        rounds: 30,
        per_round: 140,
        once_per_round: 10,
        troubles: &[Trouble::Kill, Trouble::Kill, Trouble::KillTwo],
        troubles_per_round: 2,
    };
    plan.run();
}

#[test]
fn a_storm_of_kills_and_of_a_faltering_store_loses_nothing_and_doubles_nothing_without_a_reason() {
    let plan = Plan {
        name: "kills and the store",
        seed: 2,
        rounds: 8,
        per_round: 390,
        once_per_round: 10,
        troubles: &[
            Trouble::Kill,
            Trouble::KillTwo,
            Trouble::FlushScripts,
            Trouble::CutClients,
            Trouble::StopStore,
            Trouble::Kill,
        ],
        troubles_per_round: 3,
    };
    plan.run();
}

#[test]
fn case_4_a_storm_of_nodes_that_sleep_through_their_leases_doubles_nothing_without_a_reason() {
    let plan = Plan {
        name: "sleepers",
        seed: 3,
        rounds: 4,
        per_round: 690,
        once_per_round: 10,
        troubles: &[Trouble::StopNode, Trouble::StopNode, Trouble::StopStore, Trouble::Kill],
        troubles_per_round: 2,
    };
    plan.run();
}

/// Nobody notices that every script is gone, again and again.
#[test]
fn case_35_a_script_cache_that_is_emptied_under_load_fails_no_request() {
    const INTENTS: usize = 600;
    let mut storm = Storm::new(0);
    let (places, ledger) = (storm.fleet.places.clone(), storm.ledger.clone());
    let load = thread::spawn(move || load::send_through(&places, &ledger, 0..INTENTS));
    let mut flushed = 0;
    while storm.ledger.count() < INTENTS && !load.is_finished() {
        storm.strike(Trouble::FlushScripts);
        flushed += 1;
        let before = storm.ledger.count();
        until("more are accepted", LONG, || (storm.ledger.count() >= (before + 10).min(INTENTS)).then_some(()));
    }
    load.join().unwrap();
    assert_eq!((storm.ledger.refused(), storm.ledger.cut()), (0, 0), "after {flushed} times");
    let books = Books { fleet: &storm.fleet, ledger: &storm.ledger, sink: &storm.sink };
    let tally = books.reconcile(0..INTENTS);
    assert_eq!((tally.accepted, tally.extra), (INTENTS, 0), "{tally:?}");
    books.report("flushed scripts", &tally);
}
