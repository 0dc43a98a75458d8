//! The engine: from due to settled. Claims what is due, makes the calls, renews the leases, settles
//! what came of it, and takes over what others left. Decides nothing about states itself: that is
//! [`belfry_domain::step`]. Knows ports, domain and content; no store, channel or HTTP.

mod admission;
mod attempt;
mod batcher;
mod calls;
mod caps;
mod claimer;
mod confirm;
mod devices;
mod gathering;
mod health;
mod last_look;
mod ledger;
mod look;
mod pacer;
mod pauses;
mod permits;
mod receipts;
mod renewer;
mod services;
mod settle;
mod spare;
mod suppressions;
mod sweeper;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::step::Env;
use belfry_domain::{ChannelKind, DeliveryId, Lane, NotificationId, Priority};
use futures::FutureExt;
use tokio::sync::{Notify, mpsc, watch};

use crate::facts::{Fact, FactSink};
use crate::ports::StoreError;
use crate::ports::caps::Caps;
use crate::ports::channel::Receipt;
use crate::ports::clock::{Boot, BoxFuture, Clock, Dice, Tasks};
use crate::ports::deliveries::Deliveries;
use crate::ports::gatherings::Gatherings;
use crate::ports::message::{Address, Rendered};
use crate::ports::paces::Paces;
use crate::ports::pauses::Board;
use crate::ports::policy::{Policy, Provider};
use crate::ports::preferences::PreferenceBook;
use crate::ports::recipients::{Recipients, StoredSlot};
use crate::ports::suppressions::Suppressions;

/// One message, made from frozen inputs.
pub struct Made {
    pub address: Address,
    pub message: Rendered,
    /// Hex SHA-256 of the message before signing.
    pub hash: String,
}

/// Why a message cannot be made.
#[derive(Debug)]
pub enum RenderFault {
    /// It never can; the text names file and line, never data.
    Broken(String),
    /// Its frozen template, or what is attached, could not be read just now.
    Store(StoreError),
}

/// Makes messages from frozen inputs: pure but for fetching a frozen template, and what is attached.
#[async_trait]
pub trait Render: Send + Sync + 'static {
    async fn render(
        &self,
        of: NotificationId,
        inputs: &str,
        channel: ChannelKind,
        slot: &str,
    ) -> Result<Made, RenderFault>;

    /// The stored device behind an address slot; nothing where the address came with the request.
    fn stored_slot(&self, _inputs: &str, _slot: &str) -> Option<StoredSlot> {
        None
    }

    /// The recipient's time zone, as it was given or stored at the accept.
    fn time_zone(&self, _inputs: &str) -> Option<String> {
        None
    }

    /// App and environment of a device slot, as they were given.
    fn named_device(&self, _inputs: &str, _slot: &str) -> Option<(Option<String>, Option<String>)> {
        None
    }
}

/// What the engine works with.
#[derive(Clone)]
pub struct Deps {
    pub deliveries: Arc<dyn Deliveries>,
    pub paces: Arc<dyn Paces>,
    pub caps: Arc<dyn Caps>,
    pub render: Arc<dyn Render>,
    pub recipients: Arc<dyn Recipients>,
    pub suppressions: Arc<dyn Suppressions>,
    pub preferences: Arc<dyn PreferenceBook>,
    pub gatherings: Arc<dyn Gatherings>,
    /// What is paused, as this node knows it.
    pub pauses: Arc<Board>,
    /// What a device shows to say that it saw a delivery.
    pub seen_token: Arc<dyn Fn(DeliveryId) -> String + Send + Sync>,
    pub clock: Arc<dyn Clock>,
    pub dice: Arc<dyn Dice>,
    pub tasks: Arc<dyn Tasks>,
    pub facts: Arc<dyn FactSink>,
    pub policy: watch::Receiver<Arc<Policy>>,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// This node's name in claims.
    pub worker: String,
    /// How long to wait for a wake-up before looking anyway.
    pub poll: Duration,
    /// How often the three ages are purged.
    pub purge_every: Duration,
}

/// What of the work an engine does; others on the same store do the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// Claims, calls, renews, settles, and hears the providers' later words.
    pub work: bool,
    /// Takes over what others left, closes receipt windows, purges, measures.
    pub sweep: bool,
}

impl Duties {
    pub const ALL: Self = Self { work: true, sweep: true };
}

/// Everything that the engine's tasks share.
pub(crate) struct Shared {
    deps: Deps,
    settings: Settings,
    ledger: ledger::Ledger,
    permits: permits::Permits,
    pacer: pacer::Pacer,
    calls: calls::Calls,
    /// At most once: who may record now that a call is about to be made.
    spending: calls::Calls,
    health: health::Health,
    services: services::Services,
    tokens: tokens::Tokens,
    bounces: suppressions::Bounces,
    settler: settle::Settler,
    books: caps::Books,
    /// No new claims.
    draining: watch::Sender<bool>,
    /// Open calls are broken off.
    cut_off: watch::Sender<bool>,
    /// Something that has to run alone may be due.
    alone_hint: AtomicBool,
    /// Something runs alone. One at a time: what a poison message takes down with it must not look
    /// like poison itself.
    alone_runs: AtomicBool,
    /// Lanes with waiting deliveries whose provider is gone from the configuration.
    orphans: watch::Sender<Vec<Lane>>,
    /// The claimer has something to look at: a permit, a circuit, a reclaim.
    nudge: Notify,
}

/// A running engine.
pub struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts all of it. `receipts` are the providers' later words.
    #[must_use]
    pub fn start(deps: Deps, settings: Settings, receipts: mpsc::Receiver<Receipt>) -> Self {
        Self::start_with(Duties::ALL, deps, settings, receipts)
    }

    /// Starts only what this node is there for.
    #[must_use]
    pub fn start_with(duties: Duties, deps: Deps, settings: Settings, receipts: mpsc::Receiver<Receipt>) -> Self {
        let (settler, batches) = settle::Settler::new(deps.clone());
        let (books, places) = caps::Books::new(&deps);
        let shared = Arc::new(Shared {
            ledger: ledger::Ledger::new(deps.clock.clone()),
            permits: permits::Permits::default(),
            pacer: pacer::Pacer::default(),
            calls: calls::Calls::default(),
            spending: calls::Calls::default(),
            health: health::Health::default(),
            services: services::Services::default(),
            tokens: tokens::Tokens::default(),
            bounces: suppressions::Bounces::default(),
            settler,
            books,
            draining: watch::channel(false).0,
            cut_off: watch::channel(false).0,
            alone_hint: AtomicBool::new(true),
            alone_runs: AtomicBool::new(false),
            orphans: watch::channel(Vec::new()).0,
            nudge: Notify::new(),
            settings,
            deps,
        });
        // On every node: whoever asks it is told what is paused.
        shared.keep_running("pauses", pauses::run);
        if duties.work {
            shared.start_work(batches, receipts);
            places.start(&shared);
        }
        match duties {
            Duties { sweep: true, .. } => shared.keep_running("sweeper", sweeper::run),
            // Somebody else sweeps; which lanes are left over has to be known here all the same.
            Duties { work: true, .. } => shared.keep_running("orphans", sweeper::look_for_orphans),
            Duties { .. } => {}
        }
        Self { shared }
    }

    /// Stops claiming, waits up to `grace` for open calls, then breaks them off: what had been
    /// committed settles `unknown`, the rest goes back to the queue. Returns when all is settled or
    /// `settle_grace` has passed as well.
    pub async fn drain(&self, grace: Duration, settle_grace: Duration) {
        let shared = &self.shared;
        shared.draining.send_replace(true);
        shared.nudge.notify_one();
        let clock = &shared.deps.clock;
        let until = clock.boot() + grace;
        if !shared.idle_by(until).await {
            shared.cut_off.send_replace(true);
            shared.idle_by(until + settle_grace).await;
        }
        pacer::leave(shared).await;
    }

    /// Claims in hand: calls under way, and those that are next.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.permits.in_flight()
    }

    /// Closes every circuit: providers were reconfigured and deserve a fresh look. What waited behind an
    /// open one goes out at a growing rate.
    pub fn reset_circuits(&self) {
        for (provider, service) in self.shared.health.mended(self.shared.deps.clock.boot()) {
            self.shared.circuit_closed(&provider, service);
        }
        self.shared.tokens.begin_all_anew();
        self.shared.bounces.begin_all_anew();
        self.shared.nudge.notify_one();
    }
}

impl Shared {
    fn start_work(self: &Arc<Self>, batches: settle::Loops, receipts: mpsc::Receiver<Receipt>) {
        let (settles, spends) = (batches.settles, batches.spends);
        self.keep_running("settle batches", move |_| {
            let settles = settles.clone();
            async move { settles.run().await }
        });
        self.keep_running("spend batches", move |_| {
            let spends = spends.clone();
            async move { spends.run().await }
        });
        self.keep_running("pacer", pacer::run);
        self.keep_running("claimer", claimer::run);
        self.keep_running("renewer", renewer::run);
        let inbox = Arc::new(tokio::sync::Mutex::new(receipts));
        self.keep_running("receipts", move |shared| receipts::run(shared, inbox.clone()));
    }

    /// Restarts `run` after a panic: a task that died silently would stop deliveries for good.
    fn keep_running<F, R>(self: &Arc<Self>, name: &'static str, run: F)
    where
        F: Fn(Arc<Self>) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let shared = self.clone();
        let task: BoxFuture = Box::pin(async move {
            while std::panic::AssertUnwindSafe(run(shared.clone())).catch_unwind().await.is_err() {
                shared.deps.facts.record(&Fact::TaskPanicked { task: name });
                shared.pause(Duration::from_secs(1)).await;
            }
        });
        self.deps.tasks.start(name, task);
    }

    async fn pause(&self, wait: Duration) {
        self.deps.clock.sleep_until(self.deps.clock.boot() + wait).await;
    }

    async fn idle_by(&self, until: Boot) -> bool {
        loop {
            let ended = self.permits.something_ended();
            if self.permits.idle() {
                return true;
            }
            tokio::select! {
                biased;
                () = ended => {}
                () = self.deps.clock.sleep_until(until) => return self.permits.idle(),
            }
        }
    }

    fn policy(&self) -> Arc<Policy> {
        self.deps.policy.borrow().clone()
    }

    fn draining(&self) -> bool {
        *self.draining.borrow()
    }

    fn env(&self, provider: Option<&Provider>) -> Env {
        Env {
            now: self.deps.clock.now(),
            jitter: self.deps.dice.roll(),
            receipts: provider.is_some_and(|it| it.channel.receipts()),
            guard: provider.map_or(RepeatGuard::None, |it| it.channel.repeat_guard()),
        }
    }

    /// The shortest lease of any class: what renewals and sweeps keep pace with.
    fn shortest_lease(&self) -> Duration {
        self.policy().classes.values().map(|class| class.lease).min().unwrap_or(Duration::from_secs(30))
    }

    fn look_for_alone(&self) {
        self.alone_hint.store(true, Ordering::Relaxed);
        self.nudge.notify_one();
    }
}

/// Held by the attempt that runs alone, however it ends.
pub(crate) struct Alone(Arc<Shared>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.alone_runs.store(false, Ordering::SeqCst);
        self.0.look_for_alone();
    }
}

/// All lanes of a provider, the urgent first.
fn lanes_of(provider: &str) -> impl Iterator<Item = Lane> {
    Priority::ALL.iter().map(move |priority| Lane::new(provider, *priority))
}
