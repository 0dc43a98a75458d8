//! Intents through three nodes while nodes and the servers under them are killed, stopped and cut off.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::books::Books;
use super::fleet::{Fleet, LONG};
use super::report::Row;
use super::under::{Store, Under};
use crate::kill::load::{self, Ledger};
use crate::kill::sink::Sink;
use crate::peers::rng::Rng;
use crate::peers::until::{pass, until};

const NODES: usize = 3;
const THREE_LEASES: Duration = Duration::from_secs(3);

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
    /// `kill -9` of the server, which is started again at once.
    RestartStore,
    /// The primary dies, and nodes with it, while Sentinel finds out, and when another has begun to lead.
    FailOver,
    /// A slot moves to another server of the Cluster; a node dies when it is half way.
    MoveSlot,
}

/// What a storm is made of.
struct Plan {
    name: &'static str,
    seed: u64,
    store: Store,
    rounds: usize,
    per_round: usize,
    /// Asked for once, by callers who take no for an answer.
    once_per_round: usize,
    /// Drawn from, so many in each round.
    troubles: &'static [Trouble],
    troubles_per_round: usize,
    /// In this round there is this one as well.
    and_once: Option<(usize, Trouble)>,
}

struct Storm {
    under: Under,
    sink: Sink,
    fleet: Fleet,
    ledger: Ledger,
    rng: Rng,
    /// Slots moved so far.
    moved: usize,
}

/// The seed of a storm: of its own, or the one that a failed run printed.
fn seed(own: u64) -> u64 {
    std::env::var("BELFRY_STORM_SEED").ok().map_or(own, |text| text.parse().expect("a number"))
}

impl Trouble {
    /// What the report calls it; kills of nodes it counts by themselves.
    const fn said(self) -> Option<&'static str> {
        match self {
            Self::Kill | Self::KillTwo => None,
            Self::FlushScripts => Some("`SCRIPT FLUSH`"),
            Self::CutClients => Some("all connections cut"),
            Self::StopStore => Some("`SIGSTOP` of the server for 2 s"),
            Self::StopNode => Some("`SIGSTOP` of a node for three leases"),
            Self::RestartStore => Some("`kill -9` of the server"),
            Self::FailOver => Some("`kill -9` of the primary"),
            Self::MoveSlot => Some("a slot moves with its keys"),
        }
    }
}

impl Storm {
    fn new(store: Store, seed: u64) -> Self {
        let (under, sink) = (Under::start(store), Sink::start());
        let fleet = Fleet::start(NODES, &under.section(), sink.address);
        Self { under, sink, fleet, ledger: Ledger::default(), rng: Rng(seed), moved: 0 }
    }

    fn any_node(&mut self) -> usize {
        usize::try_from(self.rng.below(NODES as u64)).unwrap()
    }

    fn any_of(&mut self, troubles: &[Trouble]) -> Trouble {
        troubles[usize::try_from(self.rng.below(troubles.len() as u64)).unwrap()]
    }

    fn kill_one(&mut self) {
        let at = self.any_node();
        self.fleet.kill(at);
        self.fleet.start_again(at);
    }

    fn kill_two(&mut self) {
        let one = self.any_node();
        let other = (one + 1) % NODES;
        self.fleet.kill(one);
        self.fleet.kill(other);
        self.fleet.start_again(one);
        self.fleet.start_again(other);
    }

    fn stop_node(&mut self) {
        let at = self.any_node();
        self.fleet.signal(at, Signal::STOP);
        pass(THREE_LEASES);
        self.fleet.signal(at, Signal::CONT);
    }

    /// A node that starts meanwhile waits for a primary.
    fn fail_over(&mut self) {
        self.kill_one();
        self.under.kill_primary();
        self.kill_one();
        self.under.await_another_primary();
        self.kill_two();
    }

    /// A node that starts while its slot is away would wait for it.
    fn move_slot(&mut self) {
        let (moving, at) = (self.under.begin_move(self.moved), self.any_node());
        self.moved += 1;
        self.fleet.kill(at);
        self.under.end_move(&moving);
        self.fleet.start_again(at);
    }

    fn strike(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Kill => self.kill_one(),
            Trouble::KillTwo => self.kill_two(),
            Trouble::FlushScripts => self.under.flush_scripts(),
            Trouble::CutClients => self.under.cut_clients(),
            Trouble::StopStore => self.under.stop_for_a_while(),
            Trouble::StopNode => self.stop_node(),
            Trouble::RestartStore => self.under.restart(),
            Trouble::FailOver => self.fail_over(),
            Trouble::MoveSlot => self.move_slot(),
        }
        if let Some(what) = trouble.said() {
            self.fleet.did(what);
        }
    }

    /// One round's intents, and its troubles at moments that the dice choose: so many of the round
    /// were acknowledged, or so many of it had an effect.
    fn round(&mut self, plan: &Plan, round: usize) {
        let first = round * plan.per_round;
        let (accepted, sent) = (self.ledger.count(), self.sink.total());
        let and_once = plan.and_once.filter(|(at, _)| *at == round).map(|(_, trouble)| trouble);
        let mut moments: Vec<usize> = (0..plan.troubles_per_round + usize::from(and_once.is_some()))
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
        for (at, moment) in moments.into_iter().enumerate() {
            let by_effects = self.rng.chance(50);
            until("the moment has come", LONG, || {
                let (accepted, sent) = (self.ledger.count() - accepted, self.sink.total() - sent);
                let come = if by_effects { sent >= moment } else { accepted >= moment };
                (come || accepted >= plan.per_round).then_some(())
            });
            let trouble = and_once.filter(|_| at == 0).unwrap_or_else(|| self.any_of(plan.troubles));
            self.strike(trouble);
        }
        load.join().unwrap();
    }

    /// `None` where its seed is another than the plan's own.
    fn rage(mut self, plan: &Plan) -> Option<Row> {
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
        let row = books.report(plan.name, &tally);
        println!("{}: raged for {raged:?}, all of it {:?}", plan.name, began.elapsed());
        let (intents, once) = (plan.rounds * plan.per_round, plan.rounds * plan.once_per_round);
        (seed(plan.seed) == plan.seed).then_some(Row { intents, once, ..row })
    }
}

impl Plan {
    /// Numbers behind those of callers who never give up.
    fn once(&self, round: usize) -> std::ops::Range<usize> {
        let first = self.rounds * self.per_round + round * self.once_per_round;
        first..first + self.once_per_round
    }

    fn run(&self) -> Option<Row> {
        Storm::new(self.store, seed(self.seed)).rage(self)
    }
}

pub fn a_storm_of_kills_loses_nothing_and_doubles_nothing_without_a_reason() -> Option<Row> {
    let plan = Plan {
        name: "kills",
        seed: 1,
        store: Store::Plain,
        rounds: 30,
        per_round: 140,
        once_per_round: 10,
        troubles: &[Trouble::Kill, Trouble::Kill, Trouble::KillTwo],
        troubles_per_round: 2,
        and_once: None,
    };
    plan.run()
}

pub fn a_storm_of_kills_and_of_a_faltering_store_loses_nothing_and_doubles_nothing_without_a_reason() -> Option<Row> {
    let plan = Plan {
        name: "kills and the store",
        seed: 2,
        store: Store::Plain,
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
        and_once: None,
    };
    plan.run()
}

pub fn case_4_a_storm_of_nodes_that_sleep_through_their_leases_doubles_nothing_without_a_reason() -> Option<Row> {
    let plan = Plan {
        name: "sleepers",
        seed: 3,
        store: Store::Plain,
        rounds: 4,
        per_round: 690,
        once_per_round: 10,
        troubles: &[Trouble::StopNode, Trouble::StopNode, Trouble::StopStore, Trouble::Kill],
        troubles_per_round: 2,
        and_once: None,
    };
    plan.run()
}

/// What was answered is on the server's disk.
pub fn a_storm_of_kills_of_nodes_and_of_a_server_that_syncs_loses_nothing() -> Option<Row> {
    let plan = Plan {
        name: "fsync",
        seed: 4,
        store: Store::Syncing,
        rounds: 10,
        per_round: 190,
        once_per_round: 10,
        troubles: &[Trouble::Kill, Trouble::KillTwo, Trouble::RestartStore],
        troubles_per_round: 3,
        and_once: None,
    };
    plan.run()
}

/// A replica has what was answered.
pub fn nodes_that_die_while_sentinel_fails_over_lose_nothing_with_a_replica_waited_for() -> Option<Row> {
    let plan = Plan {
        name: "kills and a failover",
        seed: 5,
        store: Store::Watched,
        rounds: 5,
        per_round: 190,
        once_per_round: 10,
        troubles: &[Trouble::Kill, Trouble::KillTwo],
        troubles_per_round: 2,
        and_once: Some((2, Trouble::FailOver)),
    };
    plan.run()
}

pub fn case_94_nodes_of_a_cluster_that_die_while_slots_move_lose_and_double_nothing_without_a_reason() -> Option<Row> {
    let plan = Plan {
        name: "kills and a Cluster",
        seed: 6,
        store: Store::Cluster,
        rounds: 8,
        per_round: 190,
        once_per_round: 10,
        troubles: &[Trouble::Kill, Trouble::KillTwo, Trouble::MoveSlot],
        troubles_per_round: 2,
        and_once: Some((0, Trouble::MoveSlot)),
    };
    plan.run()
}

/// Nobody notices that every script is gone, again and again.
pub fn case_35_a_script_cache_that_is_emptied_under_load_fails_no_request() -> Row {
    const INTENTS: usize = 600;
    let mut storm = Storm::new(Store::Plain, 0);
    let (places, ledger) = (storm.fleet.places.clone(), storm.ledger.clone());
    let load = thread::spawn(move || load::send_through(&places, &ledger, 0..INTENTS));
    let mut flushed = 0;
    while storm.ledger.count() < INTENTS && !load.is_finished() {
        storm.under.flush_scripts();
        flushed += 1;
        let before = storm.ledger.count();
        until("more are accepted", LONG, || (storm.ledger.count() >= (before + 10).min(INTENTS)).then_some(()));
    }
    load.join().unwrap();
    storm.fleet.did("`SCRIPT FLUSH` after every 10 accepts");
    assert_eq!((storm.ledger.refused(), storm.ledger.cut()), (0, 0), "after {flushed} times");
    let books = Books { fleet: &storm.fleet, ledger: &storm.ledger, sink: &storm.sink };
    let tally = books.reconcile(0..INTENTS);
    assert_eq!((tally.accepted, tally.extra), (INTENTS, 0), "{tally:?}");
    books.report("flushed scripts", &tally)
}
