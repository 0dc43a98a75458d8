//! Several nodes in one test, over one store, with one provider that counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use belfry::content::inputs::Inputs;
use belfry::engine::{self, Engine, Made, Render, RenderFault, Settings};
use belfry::facts::{Fact, FactSink};
use belfry::intake::accept::{Intake, IntakePorts};
use belfry::intake::caller::Caller;
use belfry::intake::content_check::{ContentCheck, Slot};
use belfry::intake::fields::FieldProblem;
use belfry::intake::schedules::ScheduleDesk;
use belfry::machine::{MachineDice, MachineTasks};
use belfry::ports::channel::{Call, Channel};
use belfry::ports::clock::Clock as _;
use belfry::ports::message::{Address, Outgoing, Rendered};
use belfry::ports::pauses::Board;
use belfry::ports::policy::{OUTBOX, Policy, Provider, Route};
use belfry::ports::store_news::Unwatched;
use belfry::schedules;
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry::store::sqlite::SqliteStore;
use belfry_domain::notification::TemplateRef;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Outcome, UnixMs, Why, WhyCode};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

use crate::contract::harness::Ports;
use crate::http::policy::policy;
use crate::http::shifted::ShiftedClock;

pub const NODES: usize = 3;

/// What reached people: how often, and when first.
pub struct Sink {
    clock: Arc<ShiftedClock>,
    seen: Mutex<HashMap<NotificationId, (u32, UnixMs)>>,
}

impl Sink {
    pub fn seen(&self) -> HashMap<NotificationId, (u32, UnixMs)> {
        self.seen.lock().unwrap().clone()
    }

    pub fn has_all(&self, ids: &[NotificationId]) -> bool {
        let seen = self.seen.lock().unwrap();
        ids.iter().all(|id| seen.contains_key(id))
    }
}

/// The one provider of every node.
struct Mail(Arc<Sink>);

#[async_trait]
impl Channel for Mail {
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::None
    }

    fn receipts(&self) -> bool {
        false
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        if call.commit().is_err() {
            return Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::LeaseLost) };
        }
        let now = self.0.clock.now();
        self.0.seen.lock().unwrap().entry(out.notification).or_insert((0, now)).0 += 1;
        Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) }
    }
}

/// Renders nothing, and always the same.
struct Plain;

#[async_trait]
impl Render for Plain {
    async fn render(&self, _: NotificationId, _: &str, _: ChannelKind, _: &str) -> Result<Made, RenderFault> {
        let message = Rendered::Sms { text: "due".into() };
        Ok(Made { address: Address("ann@example.com".into()), message, hash: "frozen".into() })
    }
}

impl ContentCheck for Plain {
    fn freeze(&self, _template: &str, _locale: Option<&str>) -> Result<TemplateRef, FieldProblem> {
        Err(FieldProblem::new("/template", "there is none here"))
    }

    fn speaks_of_links(&self, _template: &TemplateRef) -> bool {
        false
    }

    fn render_hash(&self, _inputs: &Inputs, slots: &[Slot]) -> Result<Vec<String>, Vec<FieldProblem>> {
        Ok(slots.iter().map(|_| "frozen".to_owned()).collect())
    }
}

struct Untold;

impl FactSink for Untold {
    fn record(&self, _fact: &Fact) {}
}

pub struct Node {
    pub store: Arc<dyn Ports>,
    pub intake: Arc<Intake>,
    pub desk: Arc<ScheduleDesk>,
    _engine: Engine,
    _tasks: Arc<MachineTasks>,
}

pub struct Field {
    pub clock: Arc<ShiftedClock>,
    pub sink: Arc<Sink>,
    pub nodes: Vec<Node>,
    _place: Option<TempDir>,
}

pub fn caller() -> Caller {
    Caller { tenant: "acme".into(), environment: "live".into(), namespace: "main".into(), key: "key_1".into() }
}

impl Field {
    /// Of one process: its engines share a file.
    pub fn over_a_file() -> Self {
        let clock = Arc::new(ShiftedClock::default());
        let place = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&place.path().join("belfry.db"), clock.clone()).unwrap();
        let stores = (0..NODES).map(|_| store.clone() as Arc<dyn Ports>).collect();
        Self { _place: Some(place), ..Self::over(stores, clock) }
    }

    /// Each with connections of its own.
    pub async fn over_redis() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let clock = Arc::new(ShiftedClock::default());
        let prefix = format!("due{}", NEXT.fetch_add(1, Ordering::SeqCst));
        let mut stores: Vec<Arc<dyn Ports>> = Vec::new();
        for _ in 0..NODES {
            let clocks = Clocks { node: clock.clone(), store: StoreClock::Own(clock.clone()) };
            let names = Names::new(prefix.clone(), 16);
            let link = Link::to(&crate::redis::shared()).unwrap();
            let store = RedisStore::new(link, names, clocks, Arc::new(Unwatched), crate::redis::mark());
            store.prepare().await.unwrap();
            stores.push(store);
        }
        Self::over(stores, clock)
    }

    fn over(stores: Vec<Arc<dyn Ports>>, clock: Arc<ShiftedClock>) -> Self {
        let sink = Arc::new(Sink { clock: clock.clone(), seen: Mutex::default() });
        let provider = || Provider { channel: Arc::new(Mail(sink.clone())), concurrency: 64, pace: None };
        let policy = Arc::new(Policy {
            providers: [(OUTBOX.to_owned(), provider()), ("mail".to_owned(), provider())].into(),
            routes: [(ChannelKind::Email, vec![Route::any("mail")])].into(),
            ..policy()
        });
        let nodes = (0..).zip(stores).map(|(number, store)| node((number, store), &policy, &clock)).collect();
        Self { clock, sink, nodes, _place: None }
    }

    /// A node, by turns.
    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number % NODES]
    }

    /// A full minute that lies well ahead.
    pub fn full_minute(&self) -> UnixMs {
        let now = self.clock.now().0;
        UnixMs(now - now.rem_euclid(60_000) + 10 * 60_000)
    }

    /// Time passes until so long before `at`.
    pub fn go_to(&self, before: Duration, at: UnixMs) {
        let ahead = at.minus(before).since(self.clock.now());
        assert!(!ahead.is_zero(), "the preparations took too long");
        self.clock.forward(ahead);
    }

    pub async fn is_idle(&self) -> bool {
        let depths = self.nodes[0].store.depths().await.unwrap();
        depths.lanes.iter().all(|lane| lane.waiting == 0 && lane.sending == 0)
    }
}

fn node((number, store): (usize, Arc<dyn Ports>), policy: &Arc<Policy>, clock: &Arc<ShiftedClock>) -> Node {
    let (now, facts, tasks) = (policy.clone(), Arc::new(Untold), Arc::new(MachineTasks::default()));
    let ports = IntakePorts {
        deliveries: store.clone(),
        content: Arc::new(Plain),
        recipients: store.clone(),
        suppressions: store.clone(),
        preferences: store.clone(),
        gatherings: store.clone(),
        clock: clock.clone(),
        dice: Arc::new(MachineDice),
        facts: facts.clone(),
        policy: Arc::new(move || now.clone()),
    };
    let intake = Arc::new(Intake::new(ports, &[7; 32]));
    let deps = engine::Deps {
        deliveries: store.clone(),
        paces: store.clone(),
        caps: store.clone(),
        render: Arc::new(Plain),
        recipients: store.clone(),
        suppressions: store.clone(),
        preferences: store.clone(),
        gatherings: store.clone(),
        pauses: Arc::new(Board::new(store.clone())),
        seen_token: Arc::new(|id: DeliveryId| id.to_string()),
        clock: clock.clone(),
        dice: Arc::new(MachineDice),
        tasks: tasks.clone(),
        facts: facts.clone(),
        policy: watch::channel(policy.clone()).1,
    };
    let (poll, purge_every) = (Duration::from_secs(1), Duration::from_secs(3600));
    let (_, receipts) = mpsc::channel(1);
    let engine = Engine::start(deps, Settings { worker: format!("node-{number}"), poll, purge_every }, receipts);
    let firing = schedules::Deps {
        schedules: store.clone(),
        holds: store.clone(),
        intake: intake.clone(),
        clock: clock.clone(),
        facts: facts.clone(),
    };
    schedules::start(firing, &*tasks);
    let desk = Arc::new(ScheduleDesk::new(store.clone(), intake.clone(), clock.clone(), facts));
    Node { store, intake, desk, _engine: engine, _tasks: tasks }
}

/// Waits, off the threads that the nodes run on, until these have gone out and nothing else waits.
pub fn until_all_went_out(field: &Field, ids: &[NotificationId]) {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        crate::peers::until::until("all went out", Duration::from_secs(40), || {
            (field.sink.has_all(ids) && runtime.block_on(field.is_idle())).then_some(())
        });
    });
}
