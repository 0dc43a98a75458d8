//! APNs against a strict simulator.

#[path = "apns_cases.rs"]
mod cases;
#[path = "apns_connections.rs"]
mod connections;
#[path = "apns_login.rs"]
mod login;
#[path = "apns_node.rs"]
mod node;
#[path = "apns_requests.rs"]
mod requests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use belfry::channel::apns::config::{ApnsConfig, ApnsEnvironment, ApnsTimeouts};
use belfry::channel::apns::{ApnsChannel, Mints};
use belfry::ports::channel::{Call, Channel as _, LeaseGate};
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::message::{Address, Outgoing, PushSettings, Rendered};
use belfry::ports::span::Span;
use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Outcome, UnixMs, WhyCode};

use crate::peers::apns_sim::login::SimKey;
use crate::peers::apns_sim::{ApnsSim, Options, START};

const TOPIC: &str = "com.example.shop";
const TEAM: &str = "TEAM000001";
const KEY_ID: &str = "KEY0000001";

/// Wall clock and boot clock, each stepped by hand.
struct HandClock(Mutex<(UnixMs, Boot)>);

impl HandClock {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new((UnixMs(START * 1000), Duration::from_secs(1)))))
    }

    /// Time passes.
    fn pass(&self, span: Duration) {
        let mut both = self.0.lock().unwrap();
        *both = (both.0.plus(span), both.1 + span);
    }

    /// Somebody sets the wall clock, by so many milliseconds.
    fn set(&self, by: i64) {
        self.0.lock().unwrap().0.0 += by;
    }
}

#[async_trait::async_trait]
impl Clock for HandClock {
    fn now(&self) -> UnixMs {
        self.0.lock().unwrap().0
    }

    fn boot(&self) -> Boot {
        self.0.lock().unwrap().1
    }

    async fn sleep_until(&self, _until: Boot) {
        unreachable!("the channel waits by no clock of ours");
    }
}

struct Covered(bool);

impl LeaseGate for Covered {
    fn covers(&self) -> bool {
        self.0
    }
}

fn call() -> Call {
    Call::new(Arc::new(Covered(true)))
}

fn lapsed_call() -> Call {
    Call::new(Arc::new(Covered(false)))
}

/// One of Apple's, 64 hex digits.
fn token(number: u64) -> String {
    format!("{number:064x}")
}

fn push_to(key: &str, token: &str) -> Outgoing {
    push_of(key, token, r#"{"aps":{"alert":{"title":"Order 42","body":"It is on its way."}}}"#)
}

fn push_of(key: &str, token: &str, payload: &str) -> Outgoing {
    let notification = NotificationId::http("default", "live", "main", key);
    let delivery = DeliveryId::of(notification, "apns", token);
    Outgoing {
        channel: ChannelKind::Apns,
        tenant: "default".to_owned(),
        environment: "live".to_owned(),
        notification,
        delivery,
        send: 1,
        send_key: delivery.send_key(1),
        message_key: child_key(KeyKind::Message, &[notification.0.as_bytes(), &1_u32.to_be_bytes()]),
        created_at: UnixMs(START * 1000),
        expires_at: UnixMs(START * 1000 + 3_600_001),
        address: Address(token.to_owned()),
        message: Rendered::Push { payload: payload.to_owned(), settings: PushSettings::default() },
        collapse: None,
        seen_token: Some("seen-1".to_owned()),
    }
}

/// A simulator, and what a channel to it is made of.
struct Bed {
    sim: ApnsSim,
    key: SimKey,
    clock: Arc<HandClock>,
    mints: Mints,
}

impl Bed {
    async fn new() -> Self {
        Self::with(|options| options).await
    }

    async fn with(change: impl FnOnce(Options) -> Options) -> Self {
        let key = SimKey::new(TEAM, KEY_ID);
        let options = change(Options::new(std::slice::from_ref(&key), &[TOPIC]));
        Self { sim: ApnsSim::start(options).await, key, clock: HandClock::new(), mints: Mints::new() }
    }

    /// Long enough that no deadline of the product decides unless the test shortens it.
    fn config(&self) -> ApnsConfig {
        let long = Span::secs(60);
        ApnsConfig {
            topic: TOPIC.to_owned(),
            environment: ApnsEnvironment::Production,
            url: Some(self.sim.url()),
            team_id: Some(self.key.team.clone()),
            key_id: Some(self.key.id.clone()),
            key_file: None,
            key: Some(self.key.pem.clone().into()),
            certificate_file: None,
            certificate: None,
            ca_file: None,
            ca: Some(self.sim.tls().ca_pem.clone()),
            connections: 2,
            streams: 100,
            timeouts: ApnsTimeouts { connect: long, answer: long, body: long },
            keepalive: long,
            keepalive_wait: long,
            idle: Span::secs(600),
        }
    }

    fn channel(&self) -> ApnsChannel {
        self.channel_of(&self.config())
    }

    fn channel_of(&self, config: &ApnsConfig) -> ApnsChannel {
        ApnsChannel::new(config, &self.mints, self.clock.clone()).unwrap()
    }

    /// Time passes here and there.
    fn pass(&self, span: Duration) {
        self.clock.pass(span);
        self.sim.step(span);
    }
}

async fn send(channel: &ApnsChannel, out: &Outgoing) -> Outcome {
    channel.send(out, &call()).await
}

fn is_accepted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Accepted { .. })
}

fn code(outcome: &Outcome) -> WhyCode {
    outcome.why().code
}
