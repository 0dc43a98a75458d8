//! Mail: the sender beside a hand-pipelined loop, and delivered end to end (claimed, rendered, sent,
//! settled) beside the same sender in a bare loop. All on as many connections to the same sink.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use async_trait::async_trait;
use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::SmtpConfig;
use belfry::content::inputs::Inputs;
use belfry::content::{Content, hash};
use belfry::engine::{Deps, Engine, Made, Render, RenderFault, Settings};
use belfry::machine::{MachineClock, MachineDice, MachineTasks};
use belfry::ports::channel::{Call, Channel, LeaseGate};
use belfry::ports::clock::Clock;
use belfry::ports::deliveries::{Deliveries, MOST_ITEMS, NewNotification};
use belfry::ports::message::{Address, Outgoing, Rendered};
use belfry::ports::policy::{OUTBOX, Policy, Provider};
use belfry::store::sqlite::SqliteStore;
use belfry::telemetry::{Names, Recorder};
use belfry_domain::class::RetryPolicy;
use belfry_domain::{ChannelKind, Class, Delivery, Order, Outcome, Priority};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::Plan;
use crate::accept::row;
use crate::records::planned;
use crate::rows::Report;
use crate::smtp_sink::Sink;

const MESSAGES: usize = 12_000;
const CONNECTIONS: usize = 8;
const PROVIDER: &str = "main";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let sink = Sink::start().await?;
    let mut sender = row("SMTP sender ÷ hand-pipelined loop", "mails/s", 0.4, 0.5);
    let mut delivered = row("delivered by SMTP, at least once ÷ bare loop, same sender", "mails/s", 0.75, 0.90);
    let mut once = row("delivered by SMTP, at most once ÷ bare loop, same sender", "mails/s", 0.45, 0.55);
    for _ in 0..plan.rounds {
        let pipelined = pipelined(&sink).await?;
        sender.rounds.push((sent(&sink).await?, pipelined));
        let bare = bare(&sink).await?;
        delivered.rounds.push((end_to_end(&sink, Order::SendThenRecord).await?, bare));
        once.rounds.push((end_to_end(&sink, Order::RecordThenSend).await?, bare));
    }
    report.rows.extend([sender, delivered, once]);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn rate(since: Instant) -> f64 {
    MESSAGES as f64 / since.elapsed().as_secs_f64()
}

fn channel(sink: &Sink) -> Result<SmtpChannel> {
    let config: SmtpConfig = serde_json::from_value(serde_json::json!({
        "url": format!("smtp://{}", sink.address),
        "from": "Shop <shop@example.com>",
        "helo": "bench.example",
        "connections": CONNECTIONS,
        "reuse": { "messages": 1_000_000 },
    }))?;
    Ok(SmtpChannel::new(&config)?)
}

async fn pipelined(sink: &Sink) -> Result<f64> {
    let content = Content::built_in().ok().context("the templates")?;
    let out = outgoing(&content, &planned(0, MachineClock.now(), Duration::ZERO, PROVIDER))?;
    let mail = channel(sink)?.build(&out).context("the mail")?;
    let body = String::from_utf8(mail.bytes)?;
    let started = Instant::now();
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, body) = (sink.address.clone(), body.clone());
        connections.spawn(async move { Sink::pipelined(&address, MESSAGES / CONNECTIONS, &body).await });
    }
    while let Some(done) = connections.join_next().await {
        done??;
    }
    Ok(rate(started))
}

/// Nothing but the sender: messages made beforehand.
async fn sent(sink: &Sink) -> Result<f64> {
    let content = Content::built_in().ok().context("the templates")?;
    let made = |at| outgoing(&content, &planned(at, MachineClock.now(), Duration::ZERO, PROVIDER));
    let all: Vec<Outgoing> = (0..MESSAGES).map(made).collect::<Result<_>>()?;
    let channel = Arc::new(channel(sink)?);
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for share in all.chunks(MESSAGES / CONNECTIONS) {
        let (channel, share) = (channel.clone(), share.to_vec());
        workers.spawn(async move {
            for out in &share {
                let outcome = channel.send(out, &Call::new(Arc::new(Always))).await;
                ensure!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
            }
            Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(rate(started))
}

/// Makes each message from the same inputs and sends it: no claim, no record.
async fn bare(sink: &Sink) -> Result<f64> {
    let channel = Arc::new(channel(sink)?);
    let content = Arc::new(Content::built_in().ok().context("the templates")?);
    let all: Vec<NewNotification> =
        (0..MESSAGES).map(|at| planned(at, MachineClock.now(), Duration::ZERO, PROVIDER)).collect();
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for share in all.chunks(MESSAGES / CONNECTIONS) {
        let (channel, content, share) = (channel.clone(), content.clone(), share.to_vec());
        workers.spawn(async move {
            for new in &share {
                let outcome = channel.send(&outgoing(&content, new)?, &Call::new(Arc::new(Always))).await;
                ensure!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
            }
            Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(rate(started))
}

/// A lease that covers everything.
struct Always;

impl LeaseGate for Always {
    fn covers(&self) -> bool {
        true
    }
}

fn outgoing(content: &Content, new: &NewNotification) -> Result<Outgoing> {
    let delivery: &Delivery = &new.deliveries[0];
    let inputs: Inputs = serde_json::from_str(&new.inputs)?;
    let (_, address) = inputs.to.slots(ChannelKind::Email).remove(0);
    Ok(Outgoing {
        channel: ChannelKind::Email,
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
        message: rendered(content, &inputs, "to")?,
        collapse: None,
    })
}

fn rendered(content: &Content, inputs: &Inputs, slot: &str) -> Result<Rendered> {
    content.render(inputs, ChannelKind::Email, slot).ok().context("the message")
}

/// As the program renders: from the frozen inputs, every time.
struct Renderer(Content);

#[async_trait]
impl Render for Renderer {
    async fn render(&self, inputs: &str, channel: ChannelKind, slot: &str) -> Result<Made, RenderFault> {
        let broken = |what: &str| RenderFault::Broken(what.to_owned());
        let inputs: Inputs = serde_json::from_str(inputs).map_err(|_| broken("inputs"))?;
        let message = rendered(&self.0, &inputs, slot).map_err(|_| broken("content"))?;
        let found: Option<(String, Address)> = inputs.to.slots(channel).into_iter().find(|(name, _)| name == slot);
        let (_, address) = found.ok_or_else(|| broken("address"))?;
        let hash = hash(&message);
        Ok(Made { address, message, hash })
    }
}

/// A full store, then the engine until all of it is settled.
async fn end_to_end(sink: &Sink, order: Order) -> Result<f64> {
    let folder = tempfile::tempdir_in(crate::child::target())?;
    let clock = Arc::new(MachineClock);
    let store = filled(&folder.path().join("belfry.db"), &clock).await?;
    let provider = Provider { channel: Arc::new(channel(sink)?), concurrency: u16::try_from(CONNECTIONS)? };
    let policy = Policy {
        classes: BTreeMap::from([("receipt".to_owned(), class(order))]),
        providers: BTreeMap::from([(PROVIDER.to_owned(), provider.clone()), (OUTBOX.to_owned(), provider)]),
        routes: BTreeMap::from([(ChannelKind::Email, PROVIDER.to_owned())]),
        environments: BTreeMap::new(),
        keep_record: Duration::from_secs(15 * 86_400),
    };
    let (_policy, policy_now) = watch::channel(Arc::new(policy));
    let (_receipts, inbox) = mpsc::channel(16);
    let deps = Deps {
        deliveries: store.clone(),
        render: Arc::new(Renderer(Content::built_in().ok().context("the templates")?)),
        clock,
        dice: Arc::new(MachineDice),
        tasks: Arc::new(MachineTasks::default()),
        facts: Arc::new(Recorder::new(Names::new(["receipt"], [PROVIDER]))),
        policy: policy_now,
    };
    let settings =
        Settings { worker: "bench".into(), poll: Duration::from_secs(1), purge_every: Duration::from_secs(3_600) };
    let started = Instant::now();
    let engine = Engine::start(deps, settings, inbox);
    settled(&store).await?;
    let reached = rate(started);
    engine.drain(Duration::from_secs(5), Duration::from_secs(5)).await;
    store.close().await;
    Ok(reached)
}

async fn filled(path: &Path, clock: &Arc<MachineClock>) -> Result<Arc<SqliteStore>> {
    let store = SqliteStore::open(path, clock.clone())?;
    for from in (0..MESSAGES).step_by(MOST_ITEMS) {
        let numbers = from..MESSAGES.min(from + MOST_ITEMS);
        store.accept(numbers.map(|at| planned(at, clock.now(), Duration::ZERO, PROVIDER)).collect()).await?;
    }
    Ok(store)
}

/// Returns once nothing waits and nothing is being sent.
async fn settled(store: &SqliteStore) -> Result<()> {
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

fn class(order: Order) -> Class {
    Class {
        name: "receipt".into(),
        order,
        priority: Priority::Normal,
        expiry: Duration::from_secs(3 * 86_400),
        retry: RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(60), max_attempts: 10 },
        resend_limit: 0,
        lease: Duration::from_secs(30),
        window: Duration::from_secs(15 * 86_400),
        receipt_window: Duration::from_secs(3 * 86_400),
        keep_content: Duration::from_secs(3 * 86_400),
        channels: vec![ChannelKind::Email],
        required: false,
        budget_exempt: false,
    }
}
