//! The composition: the only place that names concrete stores and channels.

mod front;
mod keys;
mod listener;
mod parts;
pub mod probe;
mod providers;
pub mod render;
pub mod restored;
mod roles;
mod stores;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use belfry_domain::Pace;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::config::{Config, ConfigErrors, Note, Problem, StoreKind};
use crate::content::{Content, TemplateProblem};
use crate::engine::Engine;
use crate::facts::{Fact, FactSink, Start};
use crate::http::server::ServerLimits;
use crate::http::{self, Drain};
use crate::machine::{MachineClock, MachineDice, MachineTasks};
use crate::ports::clock::{Clock, Dice};
use crate::ports::pauses::Board;
use crate::ports::policy::Policy;
use crate::telemetry::{Names, Recorder};

pub use crate::channel::web_push::vapid;
use front::{Front, Watch};
use parts::Parts;
use providers::Providers;
pub use roles::{AllRoles, Role, Roles};
pub use stores::{Away, NotBegun, Stores, Surroundings};

/// After the grace, what was broken off still has to be written down.
const SETTLE_GRACE: Duration = Duration::from_secs(3);
/// Receipts that wait to be applied.
const RECEIPTS: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
pub struct StartOptions {
    /// Everything in memory, gone at the end.
    pub ephemeral: bool,
    /// Listen on this port instead of the configured one; 0 takes a free one.
    pub port: Option<u16>,
    /// What this node does; a store that only one node can have wants all.
    pub roles: Roles,
    /// The store was restored from a backup: what was due by now is held until a person releases it.
    pub after_restore: bool,
}

/// A running server.
pub struct RunningApp {
    pub address: SocketAddr,
    /// The first API key, where this start made one: shown once, stored hashed.
    pub first_key: Option<String>,
    pub roles: Roles,
    node: String,
    config: Mutex<Config>,
    stores: Stores,
    providers: Providers,
    engine: Engine,
    tasks: Arc<MachineTasks>,
    recorder: Arc<Recorder>,
    policy: watch::Sender<Arc<Policy>>,
    content: watch::Sender<Arc<Content>>,
    limit: watch::Sender<Option<Pace>>,
    drain: Drain,
    serving: JoinSet<()>,
    grace: Duration,
}

/// Listens, opens everything, starts the engine. Answers the API when it returns, and until then that it
/// lives and what it waits for.
///
/// # Errors
/// The store cannot be opened, a provider's settings or a template do not hold together, or the
/// address is taken. Nothing goes on running then.
pub async fn start(config: Config, options: StartOptions) -> anyhow::Result<RunningApp> {
    start_telling(config, options, |_| {}).await
}

/// As [`start`]. `listening` hears where, before the store is there.
///
/// # Errors
/// As [`start`], and those of `listening`.
pub async fn start_telling(
    config: Config,
    options: StartOptions,
    listening: impl FnOnce(SocketAddr),
) -> anyhow::Result<RunningApp> {
    let roles = roles::allowed(&config, options)?;
    let mut address = config.http.listen;
    if let Some(port) = options.port {
        address.set_port(port);
    }
    // First of all: an address that is taken must not cost a look into the store.
    let listener = listener::bind(&config, options, address).await?;
    let address = listener.local_addr()?;
    let clock = Arc::new(MachineClock);
    let recorder = Arc::new(Recorder::new(names(&config), clock.clone()));
    let watch = Arc::new(Watch::new(recorder.clone(), clock.clone()));
    let front = Front::open(&config, listener, address, roles, &watch);
    listening(address);
    let around = Surroundings { clock: clock.clone(), watch: watch.clone(), patient: true, begins: true };
    let stores = Stores::open(&config, options.ephemeral, around).await?;
    // Before anything of this node could claim.
    restored::at_start(&stores, clock.as_ref(), watch.as_ref(), options.after_restore).await?;
    let content = load_content(&config)?;
    render::keep_current(&content, stores.installation.as_ref()).await?;
    let (receipts, inbox) = mpsc::channel(RECEIPTS);
    let providers = Providers::new(&config, stores.outbox.clone(), clock.clone(), receipts);
    let parts = Parts {
        node: format!("node-{:08x}", MachineDice.roll() >> 32),
        roles,
        policy: watch::Sender::new(Arc::new(providers.policy(&config, address)?)),
        content: watch::Sender::new(Arc::new(content)),
        limit: watch::Sender::new(config.limit()),
        tasks: Arc::default(),
        clock,
        recorder,
        pauses: Arc::new(Board::new(stores.pauses.clone())),
        stores,
    };
    providers::tell_certificates(&parts.policy.borrow(), &*parts.recorder);
    let first_key = parts.first_key(&config).await?;
    // Before anything is done by its clock.
    parts.take_part().await;
    let deps = parts.api(&config, &providers, &front.drain, address).await?;
    let engine = parts.work(&config, inbox, &deps.intake).await?;
    front.current.replace(if roles.has(Role::Api) { http::router(deps) } else { http::operations(deps) });
    let Front { drain, serving, .. } = front;
    let grace = config.engine.shutdown_grace.0;
    let Parts { node, tasks, recorder, stores, policy, content, limit, .. } = parts;
    Ok(RunningApp {
        address,
        first_key,
        roles,
        node,
        config: Mutex::new(config),
        stores,
        providers,
        engine,
        tasks,
        recorder,
        policy,
        content,
        limit,
        drain,
        serving,
        grace,
    })
}

/// Checks what a configuration's own checks cannot see, without opening or connecting anything: what
/// this lets through, [`start`] takes.
///
/// # Errors
/// Every problem, by key.
pub fn check(config: &Config) -> Result<(), ConfigErrors> {
    load_content(config).map(drop)
}

fn names(config: &Config) -> Names {
    Names::new(config.classes.keys().map(String::as_str), config.provider_names())
        .with_caps(config.caps.keys().map(String::as_str))
}

fn load_content(config: &Config) -> Result<Content, ConfigErrors> {
    let key = "templates.path";
    let place = config.templates.path.display();
    let content = Content::load_or_built_in(&config.templates.path).map_err(|problems| {
        let one = |problem: TemplateProblem| {
            let of_the_folder = problem.template.is_empty() && problem.file.is_empty();
            let what = problem.to_string();
            let what = if of_the_folder { what } else { format!("{place}/{}", what.trim_start_matches('/')) };
            Problem { key: key.to_owned(), origin: config.origin(key), what }
        };
        ConfigErrors { problems: problems.into_iter().map(one).collect() }
    })?;
    let problems = uncounted(config, &content);
    if problems.is_empty() { Ok(content) } else { Err(ConfigErrors { problems }) }
}

/// Templates that caps count and that there are not: such a cap would let everything through.
fn uncounted(config: &Config, content: &Content) -> Vec<Problem> {
    let known: Vec<&str> = content.names().collect();
    let mut problems = Vec::new();
    for (cap, of) in &config.caps {
        for name in of.templates.iter().filter(|name| !known.contains(&name.as_str())) {
            let key = format!("caps.{cap}.templates");
            let what = format!("there is no template \"{name}\"; there are {}", known.join(", "));
            problems.push(Problem { origin: config.origin(&key), key, what });
        }
    }
    problems
}

/// On a thread of its own that nobody joins: a disk that does not answer must hold up neither the
/// signals nor the end of the runtime.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> anyhow::Result<T> {
    let (give, given) = oneshot::channel();
    let reading = move || drop(give.send(work()));
    std::thread::Builder::new().name("reload".into()).spawn(reading).context("no thread for reading")?;
    given.await.context("reading broke off")?
}

fn server_limits(config: &Config) -> ServerLimits {
    ServerLimits {
        most_connections: usize::try_from(config.http.max_connections).unwrap_or(usize::MAX),
        header_timeout: config.http.header_timeout.0,
        idle_timeout: config.http.idle_timeout.0,
        write_timeout: config.http.write_timeout.0,
        grace: config.engine.shutdown_grace.0,
        ..ServerLimits::default()
    }
}

impl RunningApp {
    /// Swaps classes, providers, routes, secrets and templates for those that are read now, all or
    /// nothing. Open circuits get a fresh look. Either end is a fact. Whoever no longer waits drops it:
    /// nothing has changed then.
    ///
    /// # Errors
    /// What does not hold together, or needs a restart; the old configuration stays in force.
    pub async fn reload(
        &self,
        read: impl FnOnce() -> Result<Config, ConfigErrors> + Send + 'static,
    ) -> anyhow::Result<()> {
        let files = beside(move || {
            let next = read()?;
            let content = load_content(&next)?;
            Ok((next, content))
        });
        let done = match files.await {
            Ok((next, content)) => self.swap(next, content).await,
            Err(problem) => Err(problem),
        };
        match &done {
            Ok(()) => self.recorder.record(&Fact::Reloaded),
            Err(problem) => self.recorder.record(&Fact::ReloadRefused { problem: format!("{problem:#}") }),
        }
        done
    }

    async fn swap(&self, next: Config, content: Content) -> anyhow::Result<()> {
        let fixed = self.config.lock().unwrap_or_else(PoisonError::into_inner).needs_restart(&next);
        anyhow::ensure!(fixed.is_empty(), "these keys need a restart: {}", fixed.join(", "));
        let policy = self.providers.policy(&next, self.address)?;
        render::keep_current(&content, self.stores.installation.as_ref()).await?;
        self.recorder.set_names(names(&next));
        providers::tell_certificates(&policy, &*self.recorder);
        self.content.send_replace(Arc::new(content));
        self.policy.send_replace(Arc::new(policy));
        self.limit.send_replace(next.limit());
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = next;
        self.engine.reset_circuits();
        self.tell_notes();
        Ok(())
    }

    fn tell_notes(&self) {
        let notes = self.config.lock().unwrap_or_else(PoisonError::into_inner).notes();
        for Note { key, what, .. } in notes {
            self.recorder.record(&Fact::ConfigNoted { key, what });
        }
    }

    /// Tells that requests are answered, and on what. `key_file`: where the first key was left.
    pub fn tell_started(&self, config_file: Option<&Path>, key_file: Option<&Path>) {
        let shown = |path: &Path| path.display().to_string();
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let redis = &config.store.redis;
        let (store, store_at, durability) = match config.store.kind {
            _ if self.stores.are_in_memory() => ("memory", String::new(), "none"),
            StoreKind::Sqlite => ("sqlite", shown(&config.store.sqlite.path), "fsync"),
            StoreKind::Redis => ("redis", stores::place(redis), redis.durability.as_str()),
        };
        self.recorder.record(&Fact::Started(Box::new(Start {
            version: env!("CARGO_PKG_VERSION"),
            listen: self.address,
            store,
            store_at,
            durability: durability.to_owned(),
            roles: self.roles.to_string(),
            config: config_file.map(shown),
            providers: config.providers.keys().cloned().collect(),
            key_file: key_file.map(shown),
        })));
        drop(config);
        self.tell_notes();
    }

    /// Tells that somebody asked for the end; [`Self::stop`] follows.
    pub fn tell_end_asked(&self, signal: &'static str) {
        self.recorder.record(&Fact::EndAsked { signal });
    }

    /// Stops taking requests and claims, lets what is open finish within the grace, breaks off the
    /// rest, writes everything down and lets go of the store.
    pub async fn stop(mut self) {
        let began = MachineClock.boot();
        self.recorder.record(&Fact::Draining { calls: self.engine.in_flight(), grace: self.grace });
        self.drain.begin();
        self.stores.leave(&self.node).await;
        tokio::join!(self.engine.drain(self.grace, SETTLE_GRACE), async {
            // The listener's task only ends by itself: its end says nothing more.
            while self.serving.join_next().await.is_some() {}
        });
        let broken_off = self.engine.in_flight();
        self.tasks.end().await;
        self.stores.close().await;
        self.recorder.record(&Fact::Stopped { took: MachineClock.boot().saturating_sub(began), broken_off });
    }
}
