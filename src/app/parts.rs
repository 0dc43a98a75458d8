//! What a start has before it listens, and the rooms that are made of it.

use std::net::SocketAddr;
use std::sync::Arc;

use belfry_domain::Pace;
use tokio::sync::{mpsc, watch};

use super::providers::Providers;
use super::render::Templates;
use super::{Role, Roles, Stores, keys};
use crate::config::Config;
use crate::content::Content;
use crate::engine::{self, Duties, Engine};
use crate::gatherer;
use crate::http::limit::LimitNow;
use crate::http::{ApiLimits, Deps, Drain};
use crate::intake::accept::{Intake, IntakePorts, PolicyNow};
use crate::intake::canonical::Secret;
use crate::intake::pages::PageDesk;
use crate::intake::pauses::Pausing;
use crate::intake::preferences::PreferenceDesk;
use crate::intake::registrar::Registrar;
use crate::intake::schedules::ScheduleDesk;
use crate::intake::suppressions::Blocklist;
use crate::machine::{MachineClock, MachineDice, MachineTasks};
use crate::ports::StoreError;
use crate::ports::channel::Receipt;
use crate::ports::clock::{Dice, Tasks as _};
use crate::ports::pauses::Board;
use crate::ports::policy::Policy;
use crate::ports::suppressions::Suppressions;
use crate::schedules;
use crate::telemetry::Recorder;

/// What a start has before it listens.
pub(super) struct Parts {
    /// This node's name in claims, new at every start.
    pub(super) node: String,
    pub(super) roles: Roles,
    pub(super) clock: Arc<MachineClock>,
    pub(super) tasks: Arc<MachineTasks>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) stores: Stores,
    /// What is paused, for all rooms.
    pub(super) pauses: Arc<Board>,
    pub(super) policy: watch::Sender<Arc<Policy>>,
    pub(super) content: watch::Sender<Arc<Content>>,
    /// How often each API key may call.
    pub(super) limit: watch::Sender<Option<Pace>>,
}

impl Parts {
    /// Where nobody can use one nobody would find it.
    pub(super) async fn first_key(&self, config: &Config) -> anyhow::Result<Option<String>> {
        if !self.roles.has(Role::Api) {
            return Ok(None);
        }
        keys::first(config, &self.stores, self.clock.as_ref()).await
    }

    /// Others leave to this node what it prefers: only where it works.
    pub(super) async fn take_part(&self) {
        self.stores.join(&self.node, self.roles.has(Role::Worker)).await;
    }

    pub(super) async fn api(
        &self,
        config: &Config,
        providers: &Providers,
        drain: &Drain,
        address: SocketAddr,
    ) -> anyhow::Result<Deps> {
        let secret = self.stores.installation.secret(fresh_secret()).await?;
        let policy = self.policy.subscribe();
        let policy: PolicyNow = Arc::new(move || policy.borrow().clone());
        let ports = IntakePorts {
            deliveries: self.stores.deliveries.clone(),
            content: Arc::new(self.templates()),
            recipients: self.stores.recipients.clone(),
            suppressions: self.stores.suppressions.clone(),
            preferences: self.stores.preferences.clone(),
            gatherings: self.stores.gatherings.clone(),
            clock: self.clock.clone(),
            dice: Arc::new(MachineDice),
            facts: self.recorder.clone(),
            policy: policy.clone(),
        };
        let (recorder, circuits) = (self.recorder.clone(), self.recorder.clone());
        let preferences = PreferenceDesk::new(self.stores.preferences.clone(), self.clock.clone(), policy.clone());
        let preferences = Arc::new(preferences);
        let page_ports: (Arc<dyn Suppressions>, _) = (self.stores.suppressions.clone(), preferences.clone());
        let pages = PageDesk::new(page_ports, self.clock.clone(), self.recorder.clone(), policy.clone());
        let now = policy.clone();
        let blocklist = Blocklist::new(self.stores.suppressions.clone(), self.clock.clone(), policy, &secret);
        let pausing =
            Pausing::new(self.pauses.clone(), self.clock.clone(), self.recorder.clone(), ports.policy.clone());
        let policy = self.policy.subscribe();
        let intake = Arc::new(Intake::new(ports, &secret));
        let (clock, facts) = (self.clock.clone(), self.recorder.clone());
        let schedules = ScheduleDesk::new(self.stores.schedules.clone(), intake.clone(), clock, facts);
        Ok(Deps {
            intake,
            schedules: Arc::new(schedules),
            deliveries: self.stores.deliveries.clone(),
            api_keys: self.stores.api_keys.clone(),
            restored: Arc::new(self.stores.restored(self.clock.clone(), self.recorder.clone())),
            registrar: Arc::new(Registrar::new(self.stores.recipients.clone(), self.clock.clone(), &secret)),
            blocklist: Arc::new(blocklist),
            preferences,
            pages: Arc::new(pages),
            policy: now,
            pausing: Arc::new(pausing),
            outbox: self.stores.outbox.clone(),
            misbehaviours: providers.misbehaviours(),
            misbehave_allowed: config.misbehave_allowed(),
            clock: self.clock.clone(),
            dice: Arc::new(MachineDice),
            facts: self.recorder.clone(),
            metrics: Arc::new(move || recorder.exposition()),
            circuits: Arc::new(move || circuits.open_circuits()),
            bootstrap: keys::bootstrap(config),
            environments: Arc::new(move || policy.borrow().environments.keys().cloned().collect()),
            public_url: config.public_url(address),
            durability: self.stores.durability.clone(),
            roles: self.roles.names(),
            workers: self.stores.workers(),
            drain: drain.clone(),
            limit: self.limit_now(),
            limits: ApiLimits { body_deadline: config.http.body_timeout.0, ..ApiLimits::default() },
        })
    }

    /// Starts all that works by itself, as far as this node works.
    pub(super) async fn work(
        &self,
        config: &Config,
        inbox: mpsc::Receiver<Receipt>,
        intake: &Arc<Intake>,
    ) -> Result<Engine, StoreError> {
        let engine = self.engine(config, inbox).await?;
        if self.roles.has(Role::Worker) {
            self.gather(intake.clone());
            self.send_schedules(intake.clone());
        }
        Ok(engine)
    }

    /// Starts what makes digests.
    fn gather(&self, intake: Arc<Intake>) {
        let deps = gatherer::Deps {
            intake,
            gatherings: self.stores.gatherings.clone(),
            holds: self.stores.holds.clone(),
            clock: self.clock.clone(),
            dice: Arc::new(MachineDice),
            facts: self.recorder.clone(),
        };
        self.tasks.start("gatherer", Box::pin(gatherer::run(deps)));
    }

    /// Sends what schedules say.
    fn send_schedules(&self, intake: Arc<Intake>) {
        let deps = schedules::Deps {
            schedules: self.stores.schedules.clone(),
            holds: self.stores.holds.clone(),
            intake,
            clock: self.clock.clone(),
            facts: self.recorder.clone(),
        };
        schedules::start(deps, &*self.tasks);
    }

    fn limit_now(&self) -> LimitNow {
        let limit = self.limit.subscribe();
        Arc::new(move || *limit.borrow())
    }

    fn templates(&self) -> Templates {
        let Stores { installation, deliveries, .. } = &self.stores;
        Templates::new(self.content.subscribe(), installation.clone(), deliveries.clone())
    }

    async fn engine(&self, config: &Config, inbox: mpsc::Receiver<Receipt>) -> Result<Engine, StoreError> {
        let secret = Secret::new(&self.stores.installation.secret(fresh_secret()).await?);
        let deps = engine::Deps {
            deliveries: self.stores.deliveries.clone(),
            paces: self.stores.paces.clone(),
            caps: self.stores.caps.clone(),
            render: Arc::new(self.templates()),
            recipients: self.stores.recipients.clone(),
            suppressions: self.stores.suppressions.clone(),
            preferences: self.stores.preferences.clone(),
            gatherings: self.stores.gatherings.clone(),
            pauses: self.pauses.clone(),
            seen_token: Arc::new(move |id| crate::intake::seen::token(&secret, id)),
            clock: self.clock.clone(),
            dice: Arc::new(MachineDice),
            tasks: self.tasks.clone(),
            facts: self.recorder.clone(),
            policy: self.policy.subscribe(),
        };
        let settings = engine::Settings {
            worker: self.node.clone(),
            poll: config.engine.poll.0,
            purge_every: config.engine.purge.0,
        };
        let duties = Duties { work: self.roles.has(Role::Worker), sweep: self.roles.has(Role::Scheduler) };
        Ok(Engine::start_with(duties, deps, settings, inbox))
    }
}

fn fresh_secret() -> [u8; 32] {
    let mut secret = [0; 32];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&MachineDice.roll().to_be_bytes());
    }
    secret
}
