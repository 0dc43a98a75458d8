//! What the handlers share: the rooms behind them, and the one way to wait for a store.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use super::auth::KeyCache;
use super::drain::Drain;
use super::limit::{LimitNow, Limiter, Slip, TooMuch};
use super::problem::{Code, Problem};
use super::restored::HoldSeen;
use crate::facts::{Fact, FactSink};
use crate::intake::accept::{Intake, PolicyNow};
use crate::intake::fields::FieldProblem;
use crate::intake::pages::PageDesk;
use crate::intake::pauses::Pausing;
use crate::intake::preferences::PreferenceDesk;
use crate::intake::registrar::Registrar;
use crate::intake::restored::Restored;
use crate::intake::schedules::ScheduleDesk;
use crate::intake::suppressions::Blocklist;
use crate::ports::StoreError;
use crate::ports::admin::{ApiKey, ApiKeys};
use crate::ports::circuits::OpenCircuits;
use crate::ports::clock::{Clock, Dice};
use crate::ports::deliveries::Deliveries;
use crate::ports::outbox::{Misbehaviours, OutboxMessages};

/// Counts the workers that take part, where several nodes share the work: `None` where one does all of it.
pub type Workers = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<usize>, StoreError>> + Send + Sync>;

/// Everything that the API needs from outside.
#[derive(Clone)]
pub struct Deps {
    pub intake: Arc<Intake>,
    pub deliveries: Arc<dyn Deliveries>,
    pub api_keys: Arc<dyn ApiKeys>,
    /// What is held since the store was restored from a backup.
    pub restored: Arc<Restored>,
    /// Recipients that are kept here.
    pub registrar: Arc<Registrar>,
    pub blocklist: Arc<Blocklist>,
    /// What recipients want.
    pub preferences: Arc<PreferenceDesk>,
    /// What recipients do on their own pages.
    pub pages: Arc<PageDesk>,
    pub policy: PolicyNow,
    pub pausing: Arc<Pausing>,
    /// What is sent again and again.
    pub schedules: Arc<ScheduleDesk>,
    pub outbox: Arc<dyn OutboxMessages>,
    pub misbehaviours: Arc<Misbehaviours>,
    /// Whether the switches may be set over the API.
    pub misbehave_allowed: bool,
    pub clock: Arc<dyn Clock>,
    /// For new API keys.
    pub dice: Arc<dyn Dice>,
    pub facts: Arc<dyn FactSink>,
    /// The metrics page, in OpenMetrics text.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// This node's open circuits.
    pub circuits: OpenCircuits,
    /// An admin key from the environment: stored nowhere, its `hash` set like that of any other.
    pub bootstrap: Option<ApiKey>,
    /// The environments that are configured, besides `live` and `test`.
    pub environments: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Without a final slash; problems point below it.
    pub public_url: String,
    /// One sentence: what a crash of the store can lose.
    pub durability: String,
    /// What this node does of the whole, as an operator names it.
    pub roles: Vec<&'static str>,
    pub workers: Workers,
    pub drain: Drain,
    pub limits: ApiLimits,
    /// How often each key may call.
    pub limit: LimitNow,
}

/// How long and how much.
#[derive(Clone, Copy, Debug)]
pub struct ApiLimits {
    /// A store that does not answer within it is away; below 2 s, so that a caller hears it by then.
    pub store_deadline: Duration,
    /// From the first byte of a body to its last.
    pub body_deadline: Duration,
    /// How many bodies over 1 MiB are read at once.
    pub large_bodies: usize,
    /// How long a key is believed without asking the store: a revoked one works so much longer.
    pub key_cache: Duration,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            store_deadline: Duration::from_millis(1800),
            body_deadline: Duration::from_secs(30),
            large_bodies: 4,
            key_cache: Duration::from_secs(3),
        }
    }
}

/// The state of the router.
pub struct Api {
    pub deps: Deps,
    pub key_cache: KeyCache,
    pub hold: HoldSeen,
    pub large_bodies: Arc<Semaphore>,
    pub limiter: Limiter,
}

pub type Shared = Arc<Api>;

impl Api {
    #[must_use]
    pub fn new(deps: Deps) -> Self {
        let key_cache = KeyCache::new(deps.limits.key_cache);
        let large_bodies = Arc::new(Semaphore::new(deps.limits.large_bodies));
        let limiter = Limiter::new(deps.limit.clone(), deps.clock.clone());
        Self { deps, key_cache, hold: HoldSeen::default(), large_bodies, limiter }
    }

    /// Counts `cost` calls of the key; what it has left then is noted for the headers.
    ///
    /// # Errors
    /// 429 for now; 422 for a batch that costs more than the key can ever save up.
    pub fn count(&self, key: &ApiKey, slip: &Slip, cost: u32) -> Result<(), Problem> {
        match self.limiter.spend(&key.hash, cost) {
            Ok(standing) => {
                slip.note(standing);
                Ok(())
            }
            Err(TooMuch::Now { standing, retry_after }) => {
                slip.note(Some(standing));
                let detail = "The key calls more often than it may. Nothing was done and nothing is counted; send the \
                              same request again after Retry-After.";
                Err(Problem { retry_after, ..Problem::new(Code::RateLimited, detail) })
            }
            Err(TooMuch::Ever { most }) => Err(Problem::invalid(vec![FieldProblem::new(
                "/items",
                format!("must hold at most {most} items: each counts as a call, and a key may make no more at once"),
            )])),
        }
    }

    /// Waits for the store, but not long. A call that is given up may still have its effect: every
    /// call made here is safe to repeat.
    ///
    /// # Errors
    /// A 503 where the store is away, a 500 where it holds something unreadable.
    pub async fn stored<T>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, Problem> {
        self.asked(verb, call).await.map_err(|error| match error {
            StoreError::Corrupt(_) => {
                Problem::new(Code::Internal, "The store holds something that cannot be read; an operator has to look.")
            }
            StoreError::Unavailable(_) => Problem::new(
                Code::StoreUnavailable,
                "The store did not answer. Send the same request again, with the same key.",
            ),
        })
    }

    /// The same with the store's own words, which are for operators only.
    ///
    /// # Errors
    /// [`StoreError`]; that the store is away has been told.
    pub async fn asked<T>(
        &self,
        verb: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let late = StoreError::Unavailable("no answer in time".into());
        let found = tokio::time::timeout(self.deps.limits.store_deadline, call).await.unwrap_or(Err(late));
        if let Err(why @ StoreError::Unavailable(_)) = &found {
            self.deps.facts.record(&Fact::StoreUnavailable { verb, why: why.clone() });
        }
        found
    }
}
