//! What is true outside the nodes: the effects that people saw, what callers were promised, and
//! where each delivery stood when a node died.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belfry::facts::{Fact, FactSink};
use belfry::ports::clock::{Boot, BoxFuture, Clock, Dice, Tasks};
use belfry::ports::deliveries::Token;
use belfry_domain::pause::Pause;
use belfry_domain::{DeliveryId, NotificationId, UnixMs};

use super::executor::{NodeId, Sim};

/// Something that reached a person.
#[derive(Clone, Debug)]
pub struct Effect {
    pub at: UnixMs,
    pub delivery: DeliveryId,
    pub send: u32,
    /// The key the provider was given.
    pub key: String,
    /// Hash of the message as it is before signing.
    pub hash: String,
    /// Unknown outcomes on record for this send at that moment.
    pub unknowns_recorded: usize,
}

/// How far the one delivery of a sweep had come; what the table of guarantees is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    BeforeCommit,
    Committed,
    Claimed,
    Spent,
    InCall,
    HadEffect,
    Answered,
    Settled,
}

impl Phase {
    pub const ALL: [Self; 8] = [
        Self::BeforeCommit,
        Self::Committed,
        Self::Claimed,
        Self::Spent,
        Self::InCall,
        Self::HadEffect,
        Self::Answered,
        Self::Settled,
    ];

    pub fn describe(self) -> &'static str {
        match self {
            Self::BeforeCommit => "before the accept is durable",
            Self::Committed => "accepted, not yet claimed",
            Self::Claimed => "claimed, before the call",
            Self::Spent => "recorded as spent, before the call",
            Self::InCall => "call open, the provider has nothing yet",
            Self::HadEffect => "the provider has it, its answer is under way",
            Self::Answered => "answered, before the outcome is recorded",
            Self::Settled => "outcome recorded",
        }
    }
}

#[derive(Default)]
pub struct Told {
    pub effects: Vec<Effect>,
    /// Callers' intents by their own name, once acknowledged.
    pub acknowledged: BTreeMap<String, NotificationId>,
    pub phase: Option<Phase>,
    /// Where it stood when the first node died.
    pub phase_at_crash: Option<Phase>,
    pub faults: bool,
    pub facts: Vec<Fact>,
    /// Promises found broken while the run went on.
    pub broken: Vec<String>,
    pub calls: u64,
    /// When each began.
    pub called_at: Vec<Boot>,
    pub crashes: u64,
    /// What each node has read of the pauses since it came up.
    pub pauses_read: BTreeMap<NodeId, Vec<Pause>>,
    /// Classes that only a forced pause holds.
    pub pause_exempt: Vec<String>,
    pub failover: Failover,
}

/// A primary that dies before its replica has the claims that were made last.
#[derive(Default)]
pub enum Failover {
    #[default]
    Never,
    /// At the first wait for durability.
    ToCome,
    /// These claims the new primary never had; it answers from then on.
    Done { lost: Vec<(DeliveryId, Token)>, answers_at: Boot },
}

#[derive(Clone)]
pub struct World {
    pub sim: Sim,
    told: Arc<Mutex<Told>>,
    wall_offset: Arc<Mutex<i64>>,
    pub started_at: UnixMs,
}

impl World {
    pub fn new(sim: Sim) -> Self {
        let told = Told { faults: true, ..Told::default() };
        let boot = i64::try_from(sim.now().as_millis()).unwrap();
        let started_at = UnixMs(1_800_000_000_000 + boot);
        let wall_offset = Arc::new(Mutex::new(1_800_000_000_000));
        Self { sim, told: Arc::new(Mutex::new(told)), wall_offset, started_at }
    }

    /// The wall clock.
    pub fn now(&self) -> UnixMs {
        let boot = i64::try_from(self.sim.now().as_millis()).unwrap();
        UnixMs(boot + *self.wall_offset.lock().unwrap())
    }

    pub fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn faults(&self) -> bool {
        self.told().faults
    }

    pub fn reach(&self, phase: Phase) {
        self.told().phase = Some(phase);
    }

    pub fn step_wall_clock(&self, by_ms: i64) {
        *self.wall_offset.lock().unwrap() += by_ms;
    }

    pub fn node(&self, node: NodeId) -> Arc<NodeShell> {
        Arc::new(NodeShell { world: self.clone(), node })
    }
}

/// One node's clock, dice, tasks and facts.
pub struct NodeShell {
    pub world: World,
    pub node: NodeId,
}

#[async_trait::async_trait]
impl Clock for NodeShell {
    fn now(&self) -> UnixMs {
        self.world.now()
    }

    fn boot(&self) -> Boot {
        self.world.sim.now()
    }

    async fn sleep_until(&self, until: Boot) {
        self.world.sim.sleep_until(until).await;
    }
}

impl Dice for NodeShell {
    fn roll(&self) -> u64 {
        self.world.sim.roll()
    }
}

impl Tasks for NodeShell {
    fn start(&self, _name: &'static str, task: BoxFuture) {
        self.world.sim.start(self.node, task);
    }
}

impl FactSink for NodeShell {
    fn record(&self, fact: &Fact) {
        // Depths are measured at every sweep and say nothing about a promise.
        if !matches!(fact, Fact::Measured { .. }) {
            self.world.told().facts.push(fact.clone());
        }
    }
}

/// The lease of every class in a simulation.
pub const LEASE: Duration = Duration::from_secs(3);
