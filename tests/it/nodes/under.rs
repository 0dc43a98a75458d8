//! The servers under a storm.

use std::time::Duration;

use belfry::store::redis::keys::Names;
use belfry::store::redis::link::slot_of;
use rustix::process::Signal;

use super::fleet::redis;
use crate::peers::until::{pass, until};
use crate::redis::Server;
use crate::redis::cluster::Cluster;
use crate::redis::sentinel::Sentinels;
use crate::redis::server::Options;

const STOPPED: Duration = Duration::from_secs(2);
/// Sentinel's own time: until it is sure, then the vote and the promotion.
pub const SENTINELS_OWN: Duration = Duration::from_secs(15);
/// As many as a Cluster has by default.
const SHARDS: u16 = 16;

/// Which servers a storm is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// One that keeps nothing on disk.
    Plain,
    /// One that syncs before it answers.
    Syncing,
    /// A primary with two replicas and three sentinels, of which answers wait for one.
    Watched,
    Cluster,
}

pub enum Under {
    One { server: Box<Server>, durability: &'static str },
    Watched(Sentinels),
    Cluster(Cluster),
}

/// A slot on its way.
pub struct Moving {
    slot: u16,
    from: usize,
    to: usize,
}

impl Under {
    pub fn start(store: Store) -> Self {
        let one = |options: Options, durability| Self::One { server: Box::new(Server::start(options)), durability };
        match store {
            Store::Plain => one(Options::default(), "ack"),
            Store::Syncing => one(Options::default().with("appendonly yes").with("appendfsync always"), "fsync"),
            Store::Watched => Self::Watched(Sentinels::start(2, 3)),
            Store::Cluster => Self::Cluster(Cluster::start()),
        }
    }

    /// The nodes' section about it.
    pub fn section(&self) -> String {
        match self {
            Self::One { server, durability } => redis(&server.url(), durability),
            Self::Watched(set) => redis(&set.url(), "replicas:1"),
            Self::Cluster(cluster) => redis(&cluster.url(), "ack"),
        }
    }

    fn one(&mut self) -> &mut Server {
        let Self::One { server, .. } = self else { panic!("several servers") };
        server
    }

    pub fn flush_scripts(&mut self) {
        self.one().ask(&["SCRIPT", "FLUSH"])
    }

    pub fn cut_clients(&mut self) {
        let _: i64 = self.one().ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    }

    pub fn stop_for_a_while(&mut self) {
        self.one().signal(Signal::STOP);
        pass(STOPPED);
        self.one().signal(Signal::CONT);
    }

    /// Dies, and comes back with what it had on disk.
    pub fn restart(&mut self) {
        self.one().kill();
        self.one().start_again();
    }

    /// Sentinel has to find out.
    pub fn kill_primary(&mut self) {
        let Self::Watched(set) = self else { panic!("nobody watches it") };
        set.servers[0].kill();
    }

    /// Until a replica leads in its place.
    pub fn await_another_primary(&self) {
        let Self::Watched(set) = self else { panic!("nobody watches it") };
        until("another leads", SENTINELS_OWN, || (set.primary_port() != set.servers[0].port()).then_some(()));
    }

    /// Begins to move the slot of `shard`, which has not been moved before.
    pub fn begin_move(&self, shard: usize) -> Moving {
        let Self::Cluster(cluster) = self else { panic!("no slots") };
        let names = Names::new("belfry".into(), SHARDS);
        let slot = slot_of(&names.sequence(u16::try_from(shard).unwrap() % SHARDS));
        let from = cluster.holder(slot);
        let to = (from + 1) % cluster.servers.len();
        cluster.begin_move(slot, from, to);
        cluster.move_keys(slot, from, to, 20);
        Moving { slot, from, to }
    }

    pub fn end_move(&self, moving: &Moving) {
        let Self::Cluster(cluster) = self else { panic!("no slots") };
        let Moving { slot, from, to } = *moving;
        while cluster.move_keys(slot, from, to, 100) > 0 {}
        cluster.end_move(slot, from, to);
    }
}
