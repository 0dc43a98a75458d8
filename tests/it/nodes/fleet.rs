//! Nodes that share one store, each with a folder of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;

use crate::kill::http::Client;
use crate::kill::load::Place;
use crate::kill::server::{Server, Site};

/// How long anything about nodes may take before a test gives up.
pub const LONG: Duration = Duration::from_secs(30);

pub const GRACE: &str = "[engine]\nshutdown_grace = \"25s\"\n";

pub struct Fleet {
    sites: Vec<Site>,
    nodes: Vec<Option<Server>>,
    /// Where callers find them.
    pub places: Vec<Place>,
    /// What was done to it, and how often.
    done: BTreeMap<String, usize>,
}

/// The section of the configuration for a Redis.
pub fn redis(url: &str, durability: &str) -> String {
    format!("[store]\nkind = \"redis\"\n[store.redis]\nurl = \"{url}\"\ndurability = \"{durability}\"\n")
}

impl Fleet {
    /// So many nodes over `store`, with mail going to `relay`.
    pub fn start(count: usize, store: &str, relay: SocketAddr) -> Self {
        Self::at((0..count).map(|_| Site::over(store, relay, GRACE)).collect())
    }

    /// A node at each of `sites`.
    pub fn at(sites: Vec<Site>) -> Self {
        let nodes: Vec<_> = sites.iter().map(|site| Some(site.start())).collect();
        let places: Vec<Place> =
            nodes.iter().map(|node| Arc::new(Mutex::new(node.as_ref().map(|node| node.address)))).collect();
        Self { sites, nodes, places, done: BTreeMap::new() }
    }

    /// Notes for the report that this was done to it once more.
    pub fn did(&mut self, what: &str) {
        *self.done.entry(what.to_owned()).or_default() += 1;
    }

    /// So many nodes, and what was done to them.
    pub fn story(&self) -> String {
        let mut told = vec![format!("{} nodes", self.nodes.len())];
        told.extend(self.done.iter().map(|(what, count)| match count {
            1 => what.clone(),
            _ => format!("{count} × {what}"),
        }));
        told.join("; ")
    }

    /// Those that run.
    pub fn up(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].is_some()).collect()
    }

    /// `kill -9`; it stays down.
    pub fn kill(&mut self, at: usize) {
        self.take(at).kill();
        self.did("`kill -9` of a node");
    }

    /// Takes it from the callers.
    fn take(&mut self, at: usize) -> Server {
        *self.places[at].lock().unwrap() = None;
        self.nodes[at].take().expect("it is up")
    }

    pub fn start_again(&mut self, at: usize) {
        assert!(self.nodes[at].is_none(), "it is up");
        let node = self.sites[at].start();
        *self.places[at].lock().unwrap() = Some(node.address);
        self.nodes[at] = Some(node);
    }

    /// SIGTERM and its end, which must be a good one.
    #[track_caller]
    pub fn stop(&mut self, at: usize) {
        self.did("SIGTERM of a node");
        let mut node = self.take(at);
        node.signal(Signal::TERM);
        assert_eq!(node.ended(LONG).code(), Some(0), "{}", self.sites[at].log());
    }

    pub fn signal(&self, at: usize, signal: Signal) {
        self.node(at).signal(signal);
    }

    fn node(&self, at: usize) -> &Server {
        self.nodes[at].as_ref().expect("it is up")
    }

    pub fn client(&self, at: usize) -> Client {
        self.node(at).client()
    }

    /// What all of them wrote so far.
    pub fn log(&self) -> String {
        self.sites.iter().map(Site::log).collect()
    }
}
