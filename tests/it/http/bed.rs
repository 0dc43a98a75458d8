//! A whole server on a port of its own, over the store in memory, and a client to ask it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use belfry::content::Content;
use belfry::facts::{Fact, FactSink};
use belfry::http::limit::LimitNow;
use belfry::http::server::{Served, Server, ServerLimits};
use belfry::http::{ApiLimits, Deps, Drain, keys};
use belfry::intake::accept::{Intake, IntakePorts, PolicyNow};
use belfry::intake::pages::PageDesk;
use belfry::intake::pauses::Pausing;
use belfry::intake::preferences::PreferenceDesk;
use belfry::intake::registrar::Registrar;
use belfry::intake::restored::Restored;
use belfry::intake::schedules::ScheduleDesk;
use belfry::intake::suppressions::Blocklist;
use belfry::machine::MachineDice;
use belfry::ports::admin::{ApiKey, ApiKeys as _, Can};
use belfry::ports::circuits::OpenCircuits;
use belfry::ports::clock::Clock as _;
use belfry::ports::deliveries::{ClaimAsk, Deliveries, Settle, Written};
use belfry::ports::outbox::Misbehaviours;
use belfry::ports::pauses::Board;
use belfry::ports::policy::OUTBOX;
use belfry::ports::suppressions::Suppressions;
use belfry::store::sqlite::InlineStore;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::timeline::ClaimMark;
use belfry_domain::{Delivery, Env, Event, Lane, Outcome, Priority, UnixMs, Why, WhyCode, step};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::policy::policy;
use super::shifted::ShiftedClock;

pub const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a test waits for what has to come at once.
pub const SOON: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Recorded(pub Mutex<Vec<Fact>>);

impl FactSink for Recorded {
    fn record(&self, fact: &Fact) {
        self.0.lock().unwrap().push(fact.clone());
    }
}

pub struct Bed {
    pub addr: SocketAddr,
    pub store: Arc<InlineStore>,
    pub intake: Arc<Intake>,
    pub clock: Arc<ShiftedClock>,
    pub drain: Drain,
    pub facts: Arc<Recorded>,
    pub misbehaviours: Arc<Misbehaviours>,
    /// Of tenant `acme`, environment `live`, with every permission.
    pub key: String,
    pub client: reqwest::Client,
    pub server: JoinHandle<Served>,
}

/// What a test changes about the bed.
pub struct Plan {
    /// What the accept asks, in place of the store.
    pub suppressions: Option<Arc<dyn Suppressions>>,
    pub deliveries: Option<Arc<dyn Deliveries>>,
    pub limits: ApiLimits,
    pub server: ServerLimits,
    pub bootstrap: Option<String>,
    pub misbehave_allowed: bool,
    pub circuits: OpenCircuits,
    pub limit: LimitNow,
    /// The clock stands still but for what the test sets it forward.
    pub still: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            deliveries: None,
            suppressions: None,
            // The machine that runs the tests may be busy; what is tested about it sets its own.
            limits: ApiLimits { store_deadline: SOON, ..ApiLimits::default() },
            server: ServerLimits::default(),
            bootstrap: None,
            misbehave_allowed: true,
            circuits: Arc::new(Vec::new),
            limit: Arc::new(|| None),
            still: false,
        }
    }
}

fn pausing(
    store: &Arc<InlineStore>,
    clock: &Arc<ShiftedClock>,
    facts: &Arc<Recorded>,
    policy: &PolicyNow,
) -> Arc<Pausing> {
    let board = Arc::new(Board::new(store.clone()));
    Arc::new(Pausing::new(board, clock.clone(), facts.clone(), policy.clone()))
}

fn ports(plan: &Plan, store: &Arc<InlineStore>, clock: &Arc<ShiftedClock>, facts: &Arc<Recorded>) -> IntakePorts {
    let policy = Arc::new(policy());
    IntakePorts {
        deliveries: plan.deliveries.clone().unwrap_or_else(|| store.clone()),
        content: Arc::new(Content::built_in().unwrap()),
        recipients: store.clone(),
        suppressions: plan.suppressions.clone().unwrap_or_else(|| store.clone()),
        preferences: store.clone(),
        gatherings: store.clone(),
        clock: clock.clone(),
        dice: Arc::new(MachineDice),
        facts: facts.clone(),
        policy: Arc::new(move || policy.clone()),
    }
}

impl Bed {
    pub async fn new() -> Self {
        Self::planned(Plan::default()).await
    }

    pub async fn planned(plan: Plan) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // Whoever else installs it in this binary installs the same one.
            drop(rustls::crypto::ring::default_provider().install_default());
        });
        let clock = Arc::new(if plan.still { ShiftedClock::still() } else { ShiftedClock::default() });
        let store = InlineStore::open(clock.clone());
        let facts = Arc::new(Recorded::default());
        let drain = Drain::default();
        let misbehaviours = Arc::new(Misbehaviours::default());
        let ports = ports(&plan, &store, &clock, &facts);
        let preferences = Arc::new(PreferenceDesk::new(store.clone(), clock.clone(), ports.policy.clone()));
        let intake = Arc::new(Intake::new(ports.clone(), &[7; 32]));
        let schedules = ScheduleDesk::new(store.clone(), intake.clone(), clock.clone(), facts.clone());
        let deps = Deps {
            intake: intake.clone(),
            schedules: Arc::new(schedules),
            deliveries: ports.deliveries,
            api_keys: store.clone(),
            restored: Arc::new(Restored::new(store.clone(), store.clone(), clock.clone(), facts.clone())),
            registrar: Arc::new(Registrar::new(store.clone(), clock.clone(), &[7; 32])),
            blocklist: Arc::new(Blocklist::new(store.clone(), clock.clone(), ports.policy.clone(), &[7; 32])),
            preferences: preferences.clone(),
            pages: Arc::new(PageDesk::new(
                (store.clone(), preferences),
                clock.clone(),
                facts.clone(),
                ports.policy.clone(),
            )),
            policy: ports.policy.clone(),
            pausing: pausing(&store, &clock, &facts, &ports.policy),
            outbox: store.clone(),
            misbehaviours: misbehaviours.clone(),
            misbehave_allowed: plan.misbehave_allowed,
            clock: clock.clone(),
            dice: Arc::new(MachineDice),
            facts: facts.clone(),
            metrics: Arc::new(|| "# EOF\n".into()),
            circuits: plan.circuits,
            bootstrap: plan
                .bootstrap
                .map(|key| ApiKey { operator: true, ..stored_key(&key, "default", "live", "main", ALL) }),
            environments: Arc::new(|| vec!["staging".into()]),
            roles: vec!["api", "worker", "scheduler"],
            workers: Arc::new(|| Box::pin(async { Ok(None) })),
            public_url: "https://notify.example.com".into(),
            durability: "nothing".into(),
            drain: drain.clone(),
            limits: plan.limits,
            limit: plan.limit,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let server = Server { limits: plan.server, drain: drain.clone(), facts: facts.clone() };
        let server = tokio::spawn(async move { server.serve(listener, belfry::http::router(deps)).await });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let bed = Self { addr, store, intake, clock, drain, facts, misbehaviours, key: String::new(), client, server };
        let key = bed.make_key("acme", "live", "main", ALL).await;
        Self { key, ..bed }
    }

    /// A stored key.
    pub async fn make_key(&self, tenant: &str, environment: &str, namespace: &str, can: &[Can]) -> String {
        let mut random = [0; keys::RANDOM_BYTES];
        getrandom::fill(&mut random).unwrap();
        let key = keys::mint(environment, random);
        self.store.create(stored_key(&key, tenant, environment, namespace, can)).await.unwrap();
        key
    }

    pub fn ask(&self, method: Method, path: &str) -> Ask<'_> {
        let request = self.client.request(method, format!("http://{}{path}", self.addr)).bearer_auth(&self.key);
        Ask { request, _bed: self }
    }

    pub async fn get(&self, path: &str) -> Told {
        self.ask(Method::GET, path).told().await
    }

    /// Posts a notification.
    pub async fn send(&self, key: &str, body: &Value) -> Told {
        self.ask(Method::POST, "/v1/notifications").key(key).json(body).told().await
    }

    /// Claims the delivery and ends the claim as `event` says.
    pub async fn work(&self, event: impl Fn(ClaimMark) -> Event) -> Delivery {
        let lanes = [Priority::High, Priority::Normal, Priority::Low].map(|priority| (Lane::new(OUTBOX, priority), 1));
        let nonce = getrandom::u64().unwrap();
        let ask = ClaimAsk { worker: "w1".into(), nonce, lanes: lanes.to_vec(), alone: false };
        let claim = self.store.claim(ask).await.unwrap().claims.pop().expect("something is due");
        let mark = ClaimMark { worker: "w1".into(), fence: claim.token.fence };
        let class = &policy().classes[&claim.delivery.class];
        let env = Env { now: self.clock.now(), jitter: 0, receipts: false, guard: RepeatGuard::None };
        let next = step(&claim.delivery, class, event(mark), env).unwrap().next;
        let settled = self.store.settle(vec![Settle { next: next.clone(), token: claim.token }]).await.unwrap();
        assert_eq!(settled, [Written::Done]);
        next
    }

    pub fn told_facts(&self) -> Vec<Fact> {
        self.facts.0.lock().unwrap().clone()
    }
}

pub const ALL: &[Can] = &[Can::Send, Can::Read, Can::Admin];

pub fn stored_key(key: &str, tenant: &str, environment: &str, namespace: &str, can: &[Can]) -> ApiKey {
    let hash = keys::hash(key);
    ApiKey {
        id: keys::public_id(&hash),
        name: None,
        tenant: tenant.into(),
        environment: environment.into(),
        namespace: namespace.into(),
        can: can.to_vec(),
        hash,
        operator: false,
        created_at: UnixMs(0),
        revoked_at: None,
    }
}

pub struct Ask<'a> {
    pub request: reqwest::RequestBuilder,
    _bed: &'a Bed,
}

impl Ask<'_> {
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    pub fn body(mut self, body: impl Into<reqwest::Body>) -> Self {
        self.request = self.request.header("content-type", "application/json").body(body);
        self
    }

    pub async fn told(self) -> Told {
        let answer = tokio::time::timeout(SOON, self.request.send()).await.expect("an answer in time").unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let bytes = answer.bytes().await.unwrap();
        Told { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }
}

#[derive(Clone, Debug)]
pub struct Told {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Told {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn replayed(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    /// Status and code of a problem, whose form is checked on the way.
    pub fn problem(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{body}");
        assert_eq!(body["status"], self.status.as_u16());
        let code = body["code"].as_str().unwrap();
        assert_eq!(body["type"], format!("https://notify.example.com/docs/problems#{code}"));
        assert!(body["instance"].as_str().unwrap().starts_with('/'));
        for member in ["title", "detail"] {
            assert!(!body[member].as_str().unwrap().is_empty());
        }
        (self.status.as_u16(), code.into())
    }

    /// The pointers of a problem's errors.
    pub fn pointers(&self) -> Vec<String> {
        let errors = self.json()["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
    }
}

pub fn called(outcome: impl Fn() -> Outcome) -> impl Fn(ClaimMark) -> Event {
    move |claim| Event::Called { claim, outcome: outcome(), took: Duration::from_millis(5) }
}

pub fn accepted() -> Outcome {
    Outcome::Accepted { provider_ref: Some("ref-1".into()), why: Why::new(WhyCode::Ok) }
}

pub fn refused() -> Outcome {
    Outcome::Refused { why: Why::said(WhyCode::PolicyRefused, "550 5.7.1 no") }
}
