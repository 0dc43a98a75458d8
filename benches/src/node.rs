//! A Belfry node whose provider is webhook-like: the real door, engine and store around the bench's
//! own sender, which no configuration can name; or, put together in the same way, around the real
//! sender of mails. A child of its own.
//!
//! `node STORE AT SINK PATH CALLS`, where for mails the path is `smtp`

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use belfry::app::render::Templates;
use belfry::content::Content;
use belfry::engine::{self, Engine};
use belfry::http::drain::Drain;
use belfry::http::server::{Server, ServerLimits};
use belfry::http::{ApiLimits, Deps, keys};
use belfry::intake::accept::{Intake, IntakePorts};
use belfry::intake::pages::PageDesk;
use belfry::intake::pauses::Pausing;
use belfry::intake::preferences::PreferenceDesk;
use belfry::intake::registrar::Registrar;
use belfry::intake::restored::Restored;
use belfry::intake::schedules::ScheduleDesk;
use belfry::intake::suppressions::Blocklist;
use belfry::machine::{MachineClock, MachineDice, MachineTasks};
use belfry::ports::admin::{ApiKey, Can};
use belfry::ports::channel::Channel;
use belfry::ports::outbox::Misbehaviours;
use belfry::ports::policy::Policy;
use belfry::telemetry::{Names, Recorder};
use belfry_domain::{Order, Priority, UnixMs};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::child::KEY;
use crate::delivered::{PROVIDER, class, policy, settings};
use crate::smtp;
use crate::stores::Opened;
use crate::webhook_sender::{Sender, WebhookLike};
use crate::webhook_sink::{NOW, SLOW};

/// In place of a path: the sink takes mails.
pub(crate) const SMTP: &str = "smtp";

/// Runs until it is asked to end.
pub(crate) fn serve(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut next = |what: &'static str| arguments.next().context(what);
    let (kind, at, sink) = (next("a store")?.parse()?, next("its place")?, next("a sink")?);
    let path = next("a path")?;
    let concurrency = next("calls at once")?.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Opened::at(kind, &at)?;
        let channel: Arc<dyn Channel> = match path.as_str() {
            SMTP => Arc::new(smtp::channel(&sink)?),
            SLOW => Arc::new(WebhookLike(Sender::new(&sink, SLOW))),
            _ => Arc::new(WebhookLike(Sender::new(&sink, NOW))),
        };
        let classes = vec![
            class("receipt", Order::SendThenRecord, Priority::Normal),
            class("marketing", Order::RecordThenSend, Priority::Low),
            class("code", Order::SendThenRecord, Priority::High),
        ];
        run(store, policy(classes, channel, concurrency)).await
    })
}

async fn run(store: Opened, policy: Policy) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let recorder =
        Arc::new(Recorder::new(Names::new(["receipt", "marketing", "code"], [PROVIDER]), Arc::new(MachineClock)));
    let policy = watch::Sender::new(Arc::new(policy));
    let content = watch::Sender::new(Arc::new(Content::built_in().ok().context("the templates")?));
    let templates = Templates::new(content.subscribe(), store.installation.clone(), store.deliveries.clone());
    let tasks = Arc::new(MachineTasks::default());
    let (_receipts, inbox) = mpsc::channel(16);
    let deps = engine::Deps {
        deliveries: store.deliveries.clone(),
        paces: store.paces.clone(),
        caps: store.caps.clone(),
        recipients: store.recipients.clone(),
        suppressions: store.suppressions.clone(),
        preferences: store.preferences.clone(),
        gatherings: store.gatherings.clone(),
        pauses: store.pauses.clone(),
        render: Arc::new(templates.clone()),
        seen_token: Arc::new(|id| format!("seen {id}")),
        clock: Arc::new(MachineClock),
        dice: Arc::new(MachineDice),
        tasks: tasks.clone(),
        facts: recorder.clone(),
        policy: policy.subscribe(),
    };
    let engine = Engine::start(deps, settings(), inbox);
    let drain = Drain::default();
    let deps = api(&store, &policy, templates, recorder.clone(), (drain.clone(), address)).await?;
    let server = Server { limits: ServerLimits::default(), drain: drain.clone(), facts: recorder };
    let serving = tokio::spawn(async move { server.serve(listener, belfry::http::router(deps)).await });
    println!("http://{address}");
    signal(SignalKind::terminate())?.recv().await;
    drain.begin();
    engine.drain(Duration::from_secs(5), Duration::from_secs(5)).await;
    serving.await?;
    tasks.end().await;
    store.close().await;
    Ok(())
}

fn ports(
    store: &Opened,
    policy: watch::Receiver<Arc<Policy>>,
    templates: Templates,
    facts: Arc<Recorder>,
) -> IntakePorts {
    IntakePorts {
        deliveries: store.deliveries.clone(),
        content: Arc::new(templates),
        recipients: store.recipients.clone(),
        suppressions: store.suppressions.clone(),
        preferences: store.preferences.clone(),
        gatherings: store.gatherings.clone(),
        clock: Arc::new(MachineClock),
        dice: Arc::new(MachineDice),
        facts,
        policy: Arc::new(move || policy.borrow().clone()),
    }
}

async fn api(
    store: &Opened,
    policy: &watch::Sender<Arc<Policy>>,
    templates: Templates,
    recorder: Arc<Recorder>,
    (drain, address): (Drain, SocketAddr),
) -> Result<Deps> {
    let secret = store.installation.secret([7; 32]).await?;
    let policy = policy.subscribe();
    let ports = ports(store, policy, templates, recorder.clone());
    let metrics = recorder.clone();
    let clock = Arc::new(MachineClock);
    let preferences = Arc::new(PreferenceDesk::new(store.preferences.clone(), clock.clone(), ports.policy.clone()));
    let pages = PageDesk::new(
        (store.suppressions.clone(), preferences.clone()),
        clock.clone(),
        ports.facts.clone(),
        ports.policy.clone(),
    );
    let pausing = Pausing::new(store.pauses.clone(), clock.clone(), recorder.clone(), ports.policy.clone());
    let blocklist = Blocklist::new(store.suppressions.clone(), clock, ports.policy.clone(), &secret);
    let policy = ports.policy.clone();
    let intake = Arc::new(Intake::new(ports, &secret));
    let (schedules, clock) = (store.schedules.clone(), Arc::new(MachineClock));
    let schedules = ScheduleDesk::new(schedules, intake.clone(), clock, recorder.clone());
    Ok(Deps {
        policy,
        intake,
        deliveries: store.deliveries.clone(),
        api_keys: store.api_keys.clone(),
        restored: Arc::new(Restored::new(
            store.holds.clone(),
            store.deliveries.clone(),
            Arc::new(MachineClock),
            recorder.clone(),
        )),
        registrar: Arc::new(Registrar::new(store.recipients.clone(), Arc::new(MachineClock), &secret)),
        blocklist: Arc::new(blocklist),
        preferences,
        pages: Arc::new(pages),
        pausing: Arc::new(pausing),
        schedules: Arc::new(schedules),
        outbox: store.outbox.clone(),
        misbehaviours: Arc::new(Misbehaviours::default()),
        misbehave_allowed: false,
        clock: Arc::new(MachineClock),
        dice: Arc::new(MachineDice),
        facts: recorder,
        metrics: Arc::new(move || metrics.exposition()),
        circuits: Arc::new(Vec::new),
        bootstrap: Some(bootstrap()),
        environments: Arc::new(Vec::new),
        roles: vec!["api"],
        workers: Arc::new(|| Box::pin(async { Ok(None) })),
        public_url: format!("http://{address}"),
        durability: "As its store has it.".into(),
        drain,
        limit: Arc::new(|| None),
        limits: ApiLimits::default(),
    })
}

fn bootstrap() -> ApiKey {
    let hash = keys::hash(KEY);
    ApiKey {
        id: keys::public_id(&hash),
        name: None,
        tenant: "default".into(),
        environment: "live".into(),
        namespace: "main".into(),
        can: BTreeSet::from([Can::Send, Can::Read, Can::Admin]).into_iter().collect(),
        hash,
        operator: true,
        created_at: UnixMs(0),
        revoked_at: None,
    }
}
