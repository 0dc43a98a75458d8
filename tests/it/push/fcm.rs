//! FCM against a strict stand-in.

#[path = "fcm_admin.rs"]
mod admin;
#[path = "fcm_answers.rs"]
mod answers;
#[path = "fcm_cases.rs"]
mod cases;
#[path = "fcm_schema.rs"]
mod schema;
#[path = "fcm_tokens.rs"]
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belfry::channel::fcm::FcmChannel;
use belfry::channel::fcm::config::{FcmConfig, FcmTimeouts};
use belfry::ports::channel::{Call, Channel as _, LeaseGate};
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::message::{Address, Outgoing, PushSettings, Rendered};
use belfry::ports::span::Span;
use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Outcome, UnixMs, WhyCode};

use crate::peers::fcm_sim::{FcmSim, PATIENCE, START};

/// Stands still until it is stepped; wall clock and boot clock each for itself.
pub struct SteppedClock {
    now_ms: AtomicI64,
    boot_ms: AtomicU64,
}

impl SteppedClock {
    pub fn new() -> Self {
        Self { now_ms: AtomicI64::new(START * 1000), boot_ms: AtomicU64::new(5_000) }
    }

    pub fn step_now(&self, seconds: i64) {
        self.now_ms.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    pub fn step_boot(&self, by: Duration) {
        self.boot_ms.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for SteppedClock {
    fn now(&self) -> UnixMs {
        UnixMs(self.now_ms.load(Ordering::SeqCst))
    }

    fn boot(&self) -> Boot {
        Duration::from_millis(self.boot_ms.load(Ordering::SeqCst))
    }

    async fn sleep_until(&self, until: Boot) {
        unreachable!("the channel waits on no clock of ours: {until:?}");
    }
}

/// The stand-in with a device, and the channel that is led to it.
pub struct Bed {
    pub sim: FcmSim,
    pub clock: Arc<SteppedClock>,
    pub channel: FcmChannel,
}

pub const PHONE: &str = "cIj4:APA91bPhone";

impl Bed {
    pub async fn new() -> Self {
        Self::with(FcmSim::start().await, |_| {})
    }

    pub fn with(sim: FcmSim, change: impl FnOnce(&mut FcmConfig)) -> Self {
        sim.device(PHONE);
        let clock = Arc::new(SteppedClock::new());
        let mut config = config(&sim);
        change(&mut config);
        let channel = FcmChannel::new(&config, clock.clone()).unwrap();
        Self { sim, clock, channel }
    }

    /// Everybody's time goes on.
    pub fn step(&self, by: Duration) {
        self.clock.step_now(i64::try_from(by.as_secs()).unwrap());
        self.clock.step_boot(by);
        self.sim.step(by);
    }

    pub async fn send(&self, out: &Outgoing) -> Outcome {
        within(self.channel.send(out, &call())).await
    }

    /// A push to the phone.
    pub async fn push(&self, key: &str) -> Outcome {
        self.send(&push_to(PHONE, key)).await
    }
}

pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("the channel does not come back")
}

/// Long enough that no deadline of the product decides unless the test shortens it.
pub fn config(sim: &FcmSim) -> FcmConfig {
    let long = Span::secs(60);
    FcmConfig {
        service_account_file: None,
        service_account: Some(sim.key_file().into()),
        project: None,
        app: None,
        url: sim.url(),
        ca_file: None,
        ca: Some(sim.ca.clone()),
        connections: 2,
        streams: 100,
        timeouts: FcmTimeouts { connect: long, answer: long, body: long },
    }
}

/// Deadlines for tests in which nothing comes: longer than a busy machine takes for what does come.
pub fn impatient(config: &mut FcmConfig) {
    let short = Span::secs(3);
    config.timeouts = FcmTimeouts { answer: short, body: short, ..config.timeouts.clone() };
}

pub fn outgoing(token: &str, key: &str, payload: &str) -> Outgoing {
    let notification = NotificationId::http("default", "live", "main", key);
    let delivery = DeliveryId::of(notification, "fcm", token);
    Outgoing {
        channel: ChannelKind::Fcm,
        tenant: "default".to_owned(),
        environment: "live".to_owned(),
        notification,
        delivery,
        send: 1,
        send_key: delivery.send_key(1),
        message_key: child_key(KeyKind::Message, &[notification.0.as_bytes()]),
        created_at: UnixMs(START * 1000),
        expires_at: UnixMs(START * 1000).plus(Duration::from_secs(3600)),
        address: Address(token.to_owned()),
        message: Rendered::Push { payload: payload.to_owned(), settings: PushSettings::default() },
        collapse: None,
        seen_token: Some("s33n".to_owned()),
    }
}

/// Of the intent `key`, which is also its title.
pub fn push_to(token: &str, key: &str) -> Outgoing {
    outgoing(token, key, &format!(r#"{{"notification":{{"title":"{key}"}},"data":{{"order":"42"}}}}"#))
}

/// A claim that lapses after so many looks at it.
struct Covers(AtomicU64);

impl LeaseGate for Covers {
    fn covers(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

pub fn call_that_lapses_after(looks: u64) -> Call {
    Call::new(Arc::new(Covers(AtomicU64::new(looks))))
}

pub fn call() -> Call {
    call_that_lapses_after(u64::MAX)
}

pub fn code(outcome: &Outcome) -> WhyCode {
    outcome.why().code
}
