//! Delivered end to end without the door: a full store, then the engine in this program until all of
//! it is settled; and the bare loop beside it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use async_trait::async_trait;
use belfry::content::inputs::Inputs;
use belfry::content::{Content, hash};
use belfry::engine::{Deps, Engine, Made, Render, RenderFault, Settings};
use belfry::machine::{MachineClock, MachineDice, MachineTasks};
use belfry::ports::channel::{Channel, LeaseGate};
use belfry::ports::clock::Clock;
use belfry::ports::deliveries::{Deliveries, MOST_ITEMS, NewNotification};
use belfry::ports::links::LinkPolicy;
use belfry::ports::message::{Address, Outgoing, Rendered};
use belfry::ports::policy::{OUTBOX, Policy, Provider, Route};
use belfry::telemetry::{Names, Recorder};
use belfry_domain::caps::Cap;
use belfry_domain::class::RetryPolicy;
use belfry_domain::{ChannelKind, Class, Delivery, NotificationId, Order, Priority};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::records::Shape;
use crate::redis_server::Persistence;
use crate::stores::{Place, StoreKind};

/// The provider of everything that is measured.
pub(crate) const PROVIDER: &str = "main";
const DAY: Duration = Duration::from_secs(86_400);

/// A run of the engine over a full store.
pub(crate) struct Delivered {
    pub kind: StoreKind,
    pub shape: Shape,
    pub order: Order,
    pub messages: usize,
    pub channel: Arc<dyn Channel>,
    /// Of the provider. A quarter of it is kept for urgent lanes.
    pub concurrency: u16,
    /// That every message comes under.
    pub caps: Vec<Cap>,
}

impl Delivered {
    /// Messages a second.
    pub(crate) async fn run(self) -> Result<f64> {
        let place = Place::new(self.kind, Persistence::EverySecond).await?;
        let store = place.open()?;
        fill(&store.deliveries, self.shape, 0..self.messages).await?;
        let class = class(self.shape.class, self.order, self.shape.priority);
        let mut policy = policy(vec![class], self.channel, self.concurrency);
        if !self.caps.is_empty() {
            policy.caps.insert(self.shape.class.to_owned(), self.caps);
        }
        let (_policy, policy) = watch::channel(Arc::new(policy));
        let (_receipts, inbox) = mpsc::channel(16);
        let tasks = Arc::new(MachineTasks::default());
        let deps = Deps {
            deliveries: store.deliveries.clone(),
            paces: store.paces.clone(),
            caps: store.caps.clone(),
            recipients: store.recipients.clone(),
            suppressions: store.suppressions.clone(),
            preferences: store.preferences.clone(),
            gatherings: store.gatherings.clone(),
            pauses: store.pauses.clone(),
            render: Arc::new(Renderer(Content::built_in().ok().context("the templates")?)),
            seen_token: Arc::new(|id| format!("seen {id}")),
            clock: Arc::new(MachineClock),
            dice: Arc::new(MachineDice),
            tasks: tasks.clone(),
            facts: Arc::new(Recorder::new(Names::new([self.shape.class], [PROVIDER]), Arc::new(MachineClock))),
            policy,
        };
        let started = Instant::now();
        let engine = Engine::start(deps, settings(), inbox);
        settled(&store.deliveries).await?;
        let reached = rate(self.messages, started);
        engine.drain(Duration::from_secs(5), Duration::from_secs(5)).await;
        tasks.end().await;
        store.close().await;
        place.stop().await?;
        Ok(reached)
    }
}

/// As the server's own.
pub(crate) fn settings() -> Settings {
    Settings { worker: "bench".into(), poll: Duration::from_secs(1), purge_every: Duration::from_secs(3_600) }
}

/// Everything on either channel that is measured goes to one provider.
pub(crate) fn policy(classes: Vec<Class>, channel: Arc<dyn Channel>, concurrency: u16) -> Policy {
    let provider = Provider { channel, concurrency, pace: None };
    Policy {
        rules: BTreeMap::new(),
        classes: classes.into_iter().map(|class| (class.name.clone(), class)).collect(),
        caps: BTreeMap::new(),
        providers: BTreeMap::from([(PROVIDER.to_owned(), provider.clone()), (OUTBOX.to_owned(), provider)]),
        routes: [ChannelKind::Email, ChannelKind::Webhook, ChannelKind::Apns]
            .map(|channel| (channel, vec![Route::any(PROVIDER)]))
            .into(),
        environments: BTreeMap::new(),
        links: LinkPolicy::default(),
        keep_record: DAY * 15,
    }
}

pub(crate) fn class(name: &str, order: Order, priority: Priority) -> Class {
    Class {
        name: name.to_owned(),
        order,
        priority,
        expiry: DAY * 3,
        retry: RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(60), max_attempts: 10 },
        resend_limit: 0,
        lease: Duration::from_secs(30),
        window: DAY * 15,
        receipt_window: DAY * 3,
        keep_content: DAY * 3,
        channels: vec![ChannelKind::Email, ChannelKind::Webhook],
        required: false,
        budget_exempt: false,
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn rate(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

/// Accepts the numbered ones, in as large calls as there are, eight at a time.
pub(crate) async fn fill(store: &Arc<dyn Deliveries>, shape: Shape, numbers: std::ops::Range<usize>) -> Result<()> {
    let mut filling = JoinSet::new();
    for from in numbers.clone().step_by(MOST_ITEMS) {
        let to = numbers.end.min(from + MOST_ITEMS);
        let batch: Vec<_> = (from..to).map(|at| shape.planned(at, MachineClock.now())).collect();
        let store = store.clone();
        filling.spawn(async move { store.accept(batch).await });
        if filling.len() >= 8
            && let Some(done) = filling.join_next().await
        {
            done??;
        }
    }
    while let Some(done) = filling.join_next().await {
        done??;
    }
    Ok(())
}

/// Returns once nothing waits and nothing is being sent.
async fn settled(store: &Arc<dyn Deliveries>) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(120);
    while Instant::now() < until {
        let depths = store.depths().await?;
        if depths.lanes.iter().all(|lane| lane.waiting + lane.sending == 0) {
            ensure!(depths.parked + depths.unknown == 0, "not all went through");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("not all settled within two minutes")
}

/// A lease that covers everything.
pub(crate) struct Always;

impl LeaseGate for Always {
    fn covers(&self) -> bool {
        true
    }
}

/// The message as the engine hands it to a channel.
pub(crate) fn outgoing(content: &Content, new: &NewNotification) -> Result<Outgoing> {
    let delivery: &Delivery = &new.deliveries[0];
    let inputs: Inputs = serde_json::from_str(&new.inputs)?;
    let (slot, address) = inputs.to.slots(delivery.channel).remove(0);
    Ok(Outgoing {
        channel: delivery.channel,
        tenant: new.notification.tenant.clone(),
        environment: new.notification.environment.clone(),
        notification: new.notification.id,
        delivery: delivery.id,
        send: 1,
        send_key: delivery.id.send_key(1),
        message_key: new.notification.id.message_key(1),
        created_at: new.notification.created_at,
        expires_at: delivery.expires_at,
        address,
        message: rendered(content, &inputs, delivery.channel, &slot)?,
        collapse: None,
        seen_token: None,
    })
}

fn rendered(content: &Content, inputs: &Inputs, channel: ChannelKind, slot: &str) -> Result<Rendered> {
    content.render(inputs, channel, slot).ok().context("the message")
}

/// As the program renders: from the frozen inputs, every time.
pub(crate) struct Renderer(pub Content);

#[async_trait]
impl Render for Renderer {
    async fn render(
        &self,
        _of: NotificationId,
        inputs: &str,
        channel: ChannelKind,
        slot: &str,
    ) -> Result<Made, RenderFault> {
        let broken = |what: &str| RenderFault::Broken(what.to_owned());
        let inputs: Inputs = serde_json::from_str(inputs).map_err(|_| broken("inputs"))?;
        let message = rendered(&self.0, &inputs, channel, slot).map_err(|_| broken("content"))?;
        let found: Option<(String, Address)> = inputs.to.slots(channel).into_iter().find(|(name, _)| name == slot);
        let (_, address) = found.ok_or_else(|| broken("address"))?;
        let hash = hash(&message);
        Ok(Made { address, message, hash })
    }
}

/// Works through all of it with so many at once, each taking the next; returns how many a second.
pub(crate) async fn loop_over<T, F, R>(all: Vec<T>, at_once: usize, work: F) -> Result<f64>
where
    T: Send + 'static,
    F: Fn(T) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = Result<()>> + Send + 'static,
{
    let count = all.len();
    let next = Arc::new(std::sync::Mutex::new(all.into_iter()));
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let (next, work) = (next.clone(), work.clone());
        workers.spawn(async move {
            loop {
                let one = next.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                let Some(one) = one else { return anyhow::Ok(()) };
                work(one).await?;
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(rate(count, started))
}
