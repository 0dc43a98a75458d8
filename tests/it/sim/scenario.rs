//! One run: two nodes over one store, callers who repeat everything, and a seed that decides who
//! fails when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belfry::engine::{Deps, Engine, Settings};
use belfry::ports::channel::Receipt;
use belfry::ports::deliveries::{Deliveries, Owner};
use belfry::ports::links::LinkPolicy;
use belfry::ports::pauses::Board;
use belfry::ports::policy::{OUTBOX, Policy, Provider, Route};
use belfry::ports::schedules::Schedule;
use belfry::schedules;
use belfry::store::sqlite::InlineStore;
use belfry_domain::admission::Rules;
use belfry_domain::caps::Cap;
use belfry_domain::class::RetryPolicy;
use belfry_domain::delivery::Stop;
use belfry_domain::notification::Record;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::{ChannelKind, Class, Event, NotificationId, Order, PacePlan, Priority};
use futures::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};

use super::bugs::Bug;
use super::door::{Door, Intent};
use super::executor::{NodeId, Sim, WORLD};
use super::faulty_store::FaultyStore;
use super::gathered;
use super::provider::ScriptedProvider;
use super::render::SimRender;
use super::world::{LEASE, Phase, World};

pub fn owner() -> Owner {
    Owner { tenant: "acme".into(), environment: "live".into() }
}

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub nodes: usize,
    pub intents: Vec<Intent>,
    pub faults: bool,
    pub bug: Option<Bug>,
    /// Node → poll before which it dies, one after the other.
    pub crashes: BTreeMap<NodeId, Vec<u64>>,
    pub clock_steps: bool,
    /// How long the provider takes before it answers.
    pub slow: Duration,
    /// Of the mail provider.
    pub pace: Option<PacePlan>,
    /// By class.
    pub caps: BTreeMap<String, Vec<Cap>>,
}

pub struct Run {
    pub world: World,
    pub store: Arc<InlineStore>,
    plan: Plan,
    rules: BTreeMap<String, Rules>,
    /// In the store from the beginning.
    pub scheduled: Vec<Schedule>,
}

fn class(name: &str, order: Order, priority: Priority) -> Class {
    Class {
        name: name.into(),
        order,
        priority,
        expiry: Duration::from_secs(600),
        retry: RetryPolicy { base: Duration::from_millis(200), cap: Duration::from_secs(5), max_attempts: 12 },
        resend_limit: if order == Order::SendThenRecord { 4 } else { 0 },
        lease: LEASE,
        window: Duration::from_secs(15 * 24 * 3600),
        receipt_window: Duration::from_secs(30),
        keep_content: Duration::from_secs(3600),
        channels: vec![ChannelKind::Email],
        required: false,
        budget_exempt: false,
    }
}

pub fn classes() -> BTreeMap<String, Class> {
    [
        class("code", Order::SendThenRecord, Priority::High),
        class("receipt", Order::SendThenRecord, Priority::Normal),
        class("marketing", Order::RecordThenSend, Priority::Low),
    ]
    .into_iter()
    .map(|class| (class.name.clone(), class))
    .collect()
}

impl Run {
    pub fn new(plan: Plan) -> Self {
        let world = World::new(Sim::new(plan.seed));
        world.told().faults = plan.faults;
        let store = InlineStore::open(world.node(WORLD));
        Self { world, store, plan, rules: BTreeMap::new(), scheduled: Vec::new() }
    }

    /// The same with rules of admission for some classes.
    pub fn ruled(plan: Plan, rules: BTreeMap<String, Rules>) -> Self {
        let run = Self { rules, ..Self::new(plan) };
        let exempt = run.rules.iter().filter(|(_, rules)| rules.pause_exempt);
        run.world.told().pause_exempt = exempt.map(|(name, _)| name.clone()).collect();
        run
    }

    /// To the end: callers served, everything settled. Returns whether it came to rest.
    pub fn play(&self) -> bool {
        for node in 1..=self.plan.nodes {
            self.boot(node);
        }
        for intent in self.plan.intents.clone() {
            self.world.sim.start(WORLD, Box::pin(caller(self.caller_view(), intent)));
        }
        self.world.sim.start(WORLD, Box::pin(restarts(self.clone_for_restarts())));
        if self.plan.clock_steps {
            let world = self.world.clone();
            self.world.sim.start(WORLD, Box::pin(clock_steps(world)));
        }
        let heal_at = self.world.sim.now() + Duration::from_secs(40);
        let world = self.world.clone();
        self.world.sim.start(
            WORLD,
            Box::pin(async move {
                world.sim.sleep_until(heal_at).await;
                world.told().faults = false;
            }),
        );
        let limit = self.world.sim.now() + Duration::from_secs(24 * 3600);
        let mut asked = 0_u32;
        self.world.sim.run(limit, || {
            asked += 1;
            asked.is_multiple_of(20) && self.at_rest()
        })
    }

    fn at_rest(&self) -> bool {
        let told = self.world.told();
        // Effects of stalled zombies may still come while faults are on.
        if told.acknowledged.len() < self.plan.intents.len() || (told.faults && self.plan.faults) {
            return false;
        }
        drop(told);
        if !self.slots_seen_to() {
            return false;
        }
        let told = self.world.told();
        let ids: Vec<NotificationId> = told.acknowledged.values().copied().collect();
        drop(told);
        let ended = |id| self.record(id).is_none_or(|record| record.deliveries.iter().all(|one| one.ended()));
        ids.into_iter().all(|id| ended(id) && self.digests_of(id).into_iter().all(ended))
    }

    /// What an item went into.
    pub fn digests_of(&self, item: NotificationId) -> Vec<NotificationId> {
        let deliveries = self.record(item).map(|record| record.deliveries).unwrap_or_default();
        deliveries.iter().filter_map(|one| one.folded_into()).collect()
    }

    pub fn record(&self, id: NotificationId) -> Option<Record> {
        self.record_of(&owner(), id)
    }

    pub fn record_of(&self, owner: &Owner, id: NotificationId) -> Option<Record> {
        self.store.read(owner, id).now_or_never().expect("the inline store never waits").unwrap()
    }

    pub fn inputs(&self, id: NotificationId) -> Option<String> {
        self.store.inputs(id).now_or_never().expect("the inline store never waits").unwrap()
    }

    fn clone_for_restarts(&self) -> Self {
        Self {
            world: self.world.clone(),
            store: self.store.clone(),
            plan: self.plan.clone(),
            rules: self.rules.clone(),
            scheduled: self.scheduled.clone(),
        }
    }

    fn caller_view(&self) -> CallerView {
        let (receipts, _) = mpsc::channel(1);
        CallerView {
            world: self.world.clone(),
            store: self.store.clone(),
            policy: self.policy(WORLD, &receipts),
            nodes: self.plan.nodes,
            bug: self.plan.bug,
        }
    }

    fn boot(&self, node: NodeId) {
        self.world.sim.up(node);
        self.world.told().pauses_read.remove(&node);
        let shell = self.world.node(node);
        let line = FaultyStore { node, inner: self.store.clone(), world: self.world.clone(), bug: self.plan.bug };
        let (receipts, inbox) = mpsc::channel(64);
        let policy = self.policy(node, &receipts);
        drop(receipts);
        let line = Arc::new(line);
        let deps = Deps {
            deliveries: line.clone(),
            paces: line.clone(),
            caps: line.clone(),
            recipients: self.store.clone(),
            suppressions: self.store.clone(),
            preferences: self.store.clone(),
            gatherings: line.clone(),
            pauses: Arc::new(Board::new(line.clone())),
            render: Arc::new(SimRender { bug: self.plan.bug, made: std::sync::atomic::AtomicU64::new(0) }),
            seen_token: Arc::new(|id| format!("seen {id}")),
            clock: shell.clone(),
            dice: shell.clone(),
            tasks: shell.clone(),
            facts: shell.clone(),
            policy: watch::channel(policy.clone()).1,
        };
        let settings = Settings {
            // As a server's own: new at every start.
            worker: format!("node-{node}-{}", self.world.told().crashes),
            poll: Duration::from_secs(1),
            purge_every: Duration::from_secs(3600),
        };
        drop(Engine::start(deps, settings, inbox));
        if self.rules.values().any(|rules| rules.gather.is_some()) {
            gathered::start(node, self.door(node, policy.clone()), self);
        }
        if !self.scheduled.is_empty() {
            let intake = Arc::new(self.door(node, policy).intake());
            let (clock, facts) = (shell.clone(), shell.clone());
            let deps = schedules::Deps { schedules: line, holds: self.store.clone(), intake, clock, facts };
            schedules::start(deps, &*shell);
        }
        if let Some(next) = self.plan.crashes.get(&node).and_then(|crashes| crashes.first()) {
            self.world.sim.crash_before(node, *next);
        }
    }

    fn door(&self, node: NodeId, policy: Arc<Policy>) -> Door {
        door(node, &self.world, &self.store, (policy, self.plan.bug))
    }

    fn policy(&self, node: NodeId, receipts: &mpsc::Sender<Receipt>) -> Arc<Policy> {
        let provider = |guard, receipts, pace| Provider {
            channel: Arc::new(ScriptedProvider {
                world: self.world.clone(),
                node,
                store: self.store.clone(),
                guard,
                receipts,
                bug: self.plan.bug,
                slow: self.plan.slow,
            }),
            concurrency: 4,
            pace,
        };
        Arc::new(Policy {
            rules: self.rules.clone(),
            classes: classes(),
            caps: self.plan.caps.clone(),
            providers: [
                (OUTBOX.into(), provider(RepeatGuard::None, None, None)),
                ("mail".into(), provider(RepeatGuard::None, None, self.plan.pace.clone())),
                ("texts".into(), provider(RepeatGuard::Lookup, Some(receipts.clone()), None)),
            ]
            .into(),
            routes: [(ChannelKind::Email, "mail"), (ChannelKind::Sms, "texts")]
                .map(|(kind, name)| (kind, vec![Route::any(name)]))
                .into(),
            environments: BTreeMap::new(),
            links: LinkPolicy::default(),
            keep_record: Duration::from_secs(15 * 24 * 3600),
        })
    }
}

fn door(node: NodeId, world: &World, store: &Arc<InlineStore>, (policy, bug): (Arc<Policy>, Option<Bug>)) -> Door {
    let line = Arc::new(FaultyStore { node, inner: store.clone(), world: world.clone(), bug });
    Door {
        node,
        shell: world.node(node),
        store: line.clone(),
        recipients: store.clone(),
        suppressions: store.clone(),
        preferences: store.clone(),
        gatherings: line,
        policy,
        bug,
    }
}

/// Brings crashed nodes back after a while.
async fn restarts(mut run: Run) {
    loop {
        run.world.sim.sleep(Duration::from_millis(100)).await;
        for node in run.world.sim.crashed() {
            {
                let mut told = run.world.told();
                told.crashes += 1;
                told.phase_at_crash = told.phase_at_crash.or(told.phase).or(Some(Phase::BeforeCommit));
            }
            if let Some(crashes) = run.plan.crashes.get_mut(&node)
                && !crashes.is_empty()
            {
                crashes.remove(0);
            }
            let away = run.world.sim.below(2 * LEASE.as_millis() as u64);
            run.world.sim.sleep(Duration::from_millis(away)).await;
            run.boot(node);
        }
    }
}

async fn clock_steps(world: World) {
    for _ in 0..3 {
        world.sim.sleep(Duration::from_millis(world.sim.below(12_000))).await;
        let by = i64::try_from(world.sim.below(120_000)).unwrap() - 60_000;
        world.step_wall_clock(by);
    }
}

#[derive(Clone)]
struct CallerView {
    world: World,
    store: Arc<InlineStore>,
    policy: Arc<Policy>,
    nodes: usize,
    bug: Option<Bug>,
}

impl CallerView {
    /// One request to one node; `None` where the node died under it or the store was away.
    async fn ask(&self, intent: &Intent) -> Option<NotificationId> {
        let node = 1 + usize::try_from(self.world.sim.below(self.nodes as u64)).unwrap();
        let door = door(node, &self.world, &self.store, (self.policy.clone(), self.bug));
        let (answer, answered) = oneshot::channel();
        let intent = intent.clone();
        let request = async move {
            // The caller may be gone; nobody minds.
            answer.send(door.submit(&intent).await).ok();
        };
        self.world.sim.start(node, Box::pin(request));
        answered.await.ok().flatten()
    }
}

/// A caller who tries until told yes, and then once or twice again for good measure.
async fn caller(view: CallerView, intent: Intent) {
    let sim = view.world.sim.clone();
    sim.sleep(intent.at).await;
    let mut id = None;
    while id.is_none() {
        id = view.ask(&intent).await;
        if id.is_none() {
            sim.sleep(Duration::from_millis(50 + sim.below(500))).await;
        }
    }
    let id = id.unwrap();
    view.world.told().acknowledged.insert(intent.key.clone(), id);
    for _ in 0..intent.repeats {
        sim.sleep(Duration::from_millis(sim.below(4_000))).await;
        if let Some(again) = view.ask(&intent).await
            && again != id
        {
            view.world.told().broken.push(format!("P2: {} answered {id} and then {again}", intent.key));
        }
    }
    if intent.cancel {
        sim.sleep(Duration::from_millis(sim.below(3_000))).await;
        cancel(&view, id).await;
    }
}

async fn cancel(view: &CallerView, id: NotificationId) {
    let Some(record) = view.store.read(&owner(), id).await.unwrap() else { return };
    for delivery in record.deliveries {
        let stop = Stop::Cancel { by: "caller".into(), why: "changed my mind".into() };
        let class = &classes()[&delivery.class];
        let env = belfry_domain::Env {
            now: belfry::ports::clock::Clock::now(view.world.node(WORLD).as_ref()),
            jitter: 0,
            receipts: false,
            guard: RepeatGuard::None,
        };
        if let Ok(transition) = belfry_domain::step(&delivery, class, Event::StopAsked(stop), env) {
            // Lost to a concurrent write: the wish simply was not granted.
            view.store.apply(vec![transition.next]).await.unwrap();
        }
    }
}
