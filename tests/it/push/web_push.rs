//! Web push against a strict push service, whose browsers decrypt what comes.

#[path = "web_push_cases.rs"]
mod cases;
#[path = "web_push_outcomes.rs"]
mod outcomes;
#[path = "web_push_python.rs"]
mod python;
#[path = "web_push_services.rs"]
mod services;
#[path = "web_push_tokens.rs"]
mod tokens;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use belfry::channel::web_push::WebPushChannel;
use belfry::channel::web_push::config::{WebPushConfig, WebPushTimeouts};
use belfry::channel::web_push::vapid;
use belfry::ports::channel::{Call, Channel as _, LeaseGate};
use belfry::ports::clock::{Boot, Clock};
use belfry::ports::message::{Address, Outgoing, PushSettings, Rendered};
use belfry::ports::span::Span;
use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Outcome, UnixMs, WhyCode};

use crate::peers::web_push_sim::{PushService, Speaks};

/// Bounds every wait of a test; never a measure of anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// 2023-11-14T22:13:20Z.
const START: UnixMs = UnixMs(1_700_000_000_000);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Wall clock and boot clock, each moved by the test.
struct Hands(Mutex<(UnixMs, Boot)>);

#[async_trait]
impl Clock for Hands {
    fn now(&self) -> UnixMs {
        self.0.lock().unwrap().0
    }

    fn boot(&self) -> Boot {
        self.0.lock().unwrap().1
    }

    async fn sleep_until(&self, _until: Boot) {
        unreachable!("the channel waits by no clock of ours")
    }
}

impl Hands {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new((START, Duration::from_secs(100)))))
    }

    /// Both move, as time does.
    fn pass(&self, span: Duration) {
        let mut hands = self.0.lock().unwrap();
        *hands = (hands.0.plus(span), hands.1 + span);
    }

    /// The wall clock is set; no time passes.
    fn step_to(&self, now: UnixMs) {
        self.0.lock().unwrap().0 = now;
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

/// Long enough that no deadline of the product decides unless the test shortens it.
fn config(ca: &str) -> WebPushConfig {
    let long = Span::secs(60);
    WebPushConfig {
        vapid_key_file: None,
        vapid_key: Some(vapid::generate().pem),
        subject: "mailto:push@example.com".to_owned(),
        app: None,
        ca_file: None,
        ca: Some(ca.to_owned()),
        allow_internal: true,
        connections: 1,
        streams: 50,
        timeouts: WebPushTimeouts { connect: long, answer: long, body: long },
    }
}

/// A push service, a channel that trusts it, and the clock that the channel goes by.
struct Bed {
    service: PushService,
    channel: WebPushChannel,
    clock: Arc<Hands>,
}

impl Bed {
    async fn new() -> Self {
        Self::speaking(Speaks::Http2, |_| {}).await
    }

    async fn speaking(speaks: Speaks, change: impl FnOnce(&mut WebPushConfig)) -> Self {
        let service = PushService::start(speaks, START.0).await;
        let mut config = config(&service.ca);
        change(&mut config);
        let clock = Hands::new();
        let channel = WebPushChannel::new(&config, clock.clone()).unwrap();
        Self { service, channel, clock }
    }

    /// A browser's address, subscribed with the channel's own key.
    fn browser(&self) -> String {
        self.service.subscribe(self.channel.application_server_key())
    }

    async fn send(&self, out: &Outgoing) -> Outcome {
        send(&self.channel, out, &call()).await
    }
}

/// Bounded by the tests' patience. No outcome may tell the endpoint.
async fn send(channel: &WebPushChannel, out: &Outgoing, call: &Call) -> Outcome {
    let sent = tokio::time::timeout(PATIENCE, channel.send(out, call)).await;
    let outcome = sent.expect("the channel does not come back");
    let told = format!("{outcome:?} {out:?} {channel:?}");
    for secret in out.address.0.split(['"', '/', ':']).filter(|part| part.len() > 15) {
        assert!(!told.contains(secret), "{told}");
    }
    outcome
}

/// A push of the intent `key` to `address`, for an hour.
fn outgoing(key: &str, address: &str, payload: &str) -> Outgoing {
    let notification = NotificationId::http("default", "live", "main", key);
    let delivery = DeliveryId::of(notification, "web_push", "dev_1");
    Outgoing {
        channel: ChannelKind::WebPush,
        tenant: "default".to_owned(),
        environment: "live".to_owned(),
        notification,
        delivery,
        send: 1,
        send_key: delivery.send_key(1),
        message_key: child_key(KeyKind::Message, &[notification.0.as_bytes(), &1_u32.to_be_bytes()]),
        created_at: START,
        expires_at: START.plus(HOUR),
        address: Address(address.to_owned()),
        message: Rendered::Push { payload: payload.to_owned(), settings: PushSettings::default() },
        collapse: None,
        seen_token: Some("seen.token".to_owned()),
    }
}

fn code(outcome: &Outcome) -> WhyCode {
    outcome.why().code
}
