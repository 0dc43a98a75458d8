//! One node of a drill: a door and an engine over its own line to the store, all of whose tasks can be
//! dropped at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belfry_domain::class::RetryPolicy;
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, NotificationId, Order, Priority};
use tokio::sync::{mpsc, watch};

use super::life::Life;
use super::line::Line;
use super::provider::{DrillChannel, Mailbox};
use super::scene::{Class, Way};
use super::{Guard, Place};
use crate::engine::{Deps, Duties, Engine, Settings};
use crate::facts::{Fact, FactSink};
use crate::intake::accept::{Intake, IntakePorts};
use crate::intake::answer::Answer;
use crate::intake::caller::Caller;
use crate::intake::json;
use crate::intake::plan::Arrival;
use crate::intake::stored::{Asker, Stored};
use crate::machine::{MachineClock, MachineTasks};
use crate::ports::clock::Dice;
use crate::ports::links::LinkPolicy;
use crate::ports::pauses::Board;
use crate::ports::policy::{OUTBOX, Policy, Provider, Route};

/// Short, so that a drill is: of every class.
pub const LEASE: Duration = Duration::from_millis(500);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// All nodes of one play share these.
pub struct Scenery {
    pub place: Place,
    pub mailbox: Arc<Mailbox>,
    pub off: Option<Guard>,
    pub dice: Arc<SeededDice>,
    /// Repeats that a door recognised.
    pub recognised: Arc<Recognised>,
}

pub struct Node {
    name: &'static str,
    pub life: Arc<Life>,
    tasks: Arc<MachineTasks>,
    intake: Intake,
    off: Option<Guard>,
    deps: Deps,
    engine: Mutex<Option<Engine>>,
}

/// One try of a caller.
#[derive(Clone, Debug)]
pub struct Try {
    pub key: String,
    pub class: Class,
    pub way: Way,
    pub unique: Option<&'static str>,
}

impl Node {
    pub fn new(scenery: &Scenery, which: usize, life: Life) -> Self {
        let (clock, tasks): (Arc<MachineClock>, Arc<MachineTasks>) = (Arc::new(MachineClock), Arc::default());
        let life = Arc::new(life);
        let line = Arc::new(Line {
            inner: scenery.place.nodes[which].clone(),
            life: life.clone(),
            off: scenery.off,
            clock: clock.clone(),
            tasks: tasks.clone(),
        });
        let channel = DrillChannel { mailbox: scenery.mailbox.clone(), life: life.clone(), off: scenery.off };
        let policy = Arc::new(policy(Provider { channel: Arc::new(channel), concurrency: 4, pace: None }));
        let now = policy.clone();
        let ports = IntakePorts {
            deliveries: line.clone(),
            content: scenery.place.content.clone(),
            recipients: scenery.place.recipients.clone(),
            suppressions: scenery.place.suppressions.clone(),
            preferences: scenery.place.preferences.clone(),
            gatherings: scenery.place.gatherings.clone(),
            clock: clock.clone(),
            dice: scenery.dice.clone(),
            facts: scenery.recognised.clone(),
            policy: Arc::new(move || now.clone()),
        };
        let deps = Deps {
            seen_token: Arc::new(|id| format!("seen {id}")),
            deliveries: line.clone(),
            paces: scenery.place.paces.clone(),
            caps: scenery.place.caps.clone(),
            recipients: scenery.place.recipients.clone(),
            suppressions: scenery.place.suppressions.clone(),
            preferences: scenery.place.preferences.clone(),
            gatherings: scenery.place.gatherings.clone(),
            pauses: Arc::new(Board::new(scenery.place.pauses.clone())),
            render: scenery.place.render.clone(),
            clock,
            dice: scenery.dice.clone(),
            tasks: tasks.clone(),
            facts: scenery.recognised.clone(),
            policy: watch::Sender::new(policy.clone()).subscribe(),
        };
        let name = ["a", "b"][which];
        let (intake, off) = (Intake::new(ports, &[7; 32]), scenery.off);
        Self { name, life, tasks, intake, off, deps, engine: Mutex::default() }
    }

    /// Starts claiming; `all`: and sweeping.
    pub fn work(&self, all: bool) {
        let duties = Duties { work: true, sweep: all };
        let settings = Settings { worker: format!("drill-{}", self.name), poll: LEASE / 4, purge_every: DAY };
        // No provider here sends receipts.
        let (_, inbox) = mpsc::channel(1);
        let engine = Engine::start_with(duties, self.deps.clone(), settings, inbox);
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
    }

    /// Finishes what it has in hand, and claims nothing more.
    pub async fn finish(&self) {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(engine) = engine {
            engine.drain(LEASE * 10, LEASE).await;
        }
    }

    /// As `kill -9`: nothing of it gets any further, and nothing is tidied up.
    pub async fn kill(&self) {
        self.life.kill();
        self.tasks.end().await;
    }

    /// The id, or `None` where there was no answer that says it is kept.
    pub async fn submit(&self, asked: &Try) -> Option<NotificationId> {
        let namespace = match self.off {
            Some(Guard::SharedRecord) => format!("keys-of-{}", self.name),
            _ => "main".to_owned(),
        };
        let caller = Caller { tenant: TENANT.into(), environment: ENVIRONMENT.into(), namespace, key: KEY.into() };
        let unique = asked.unique.map(|unique| format!(r#""unique":"{unique}","#)).unwrap_or_default();
        let body = format!(r#"{{"class":"{}",{unique}{}}}"#, asked.class.name(), asked.way.message());
        let arrival = Arrival { key: asked.key.clone(), via: Hop::Http, traceparent: None };
        let node = json::parse(body.as_bytes()).ok()?;
        let candidate =
            self.intake.prepare(Asker { caller: &caller, stored: &Stored::default() }, &arrival, &node, None);
        match self.intake.accept(&caller, vec![candidate]).await.ok()?.pop()? {
            Answer::Created(receipt) | Answer::Replayed(receipt) => receipt.id.parse().ok(),
            Answer::Remembered(_) | Answer::Mismatch { .. } | Answer::Refused(_) => None,
        }
    }
}

pub const TENANT: &str = "drill";
pub const ENVIRONMENT: &str = "live";
const KEY: &str = "key_000000000000";

fn policy(provider: Provider) -> Policy {
    Policy {
        rules: BTreeMap::new(),
        classes: Class::ALL.iter().map(|class| (class.name().to_owned(), class.config())).collect(),
        caps: BTreeMap::new(),
        providers: [(OUTBOX.to_owned(), provider.clone()), ("drill".to_owned(), provider)].into(),
        routes: [ChannelKind::Email, ChannelKind::Apns].map(|channel| (channel, vec![Route::any("drill")])).into(),
        environments: BTreeMap::new(),
        links: LinkPolicy::default(),
        keep_record: DAY * 15,
    }
}

impl Way {
    /// To whom, and what: the end of a request.
    const fn message(self) -> &'static str {
        match self {
            Self::Mail | Self::Keyed => {
                r#""to":{"email":"ada@example.com"},"channels":["email"],"content":{"subject":"Order 42 has shipped","text":"It is on its way."}"#
            }
            Self::Phone => {
                r#""to":{"devices":[{"kind":"apns","token":"00ff00ff00ff00ff"}]},"channels":["apns"],"content":{"push":{"title":"Order 42 has shipped","body":"It is on its way."}}"#
            }
        }
    }
}

impl Class {
    fn config(self) -> belfry_domain::Class {
        let order = match self {
            Self::SendThenRecord => Order::SendThenRecord,
            Self::RecordThenSend => Order::RecordThenSend,
        };
        belfry_domain::Class {
            name: self.name().to_owned(),
            order,
            priority: Priority::Normal,
            expiry: DAY,
            retry: RetryPolicy { base: LEASE / 10, cap: LEASE, max_attempts: 10 },
            resend_limit: if order == Order::SendThenRecord { 4 } else { 0 },
            lease: LEASE,
            window: DAY * 15,
            receipt_window: DAY,
            keep_content: DAY,
            channels: vec![ChannelKind::Email],
            required: false,
            budget_exempt: true,
        }
    }
}

/// Counts what doors recognised.
#[derive(Default)]
pub struct Recognised(AtomicUsize);

impl Recognised {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl FactSink for Recognised {
    fn record(&self, fact: &Fact) {
        if matches!(fact, Fact::RepeatCaught { .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The same numbers for the same seed (splitmix64).
pub struct SeededDice(AtomicU64);

impl SeededDice {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Dice for SeededDice {
    fn roll(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut word = self.0.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}
