//! A delivery in every state, and one of every event.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::admission::Verdict;
use belfry_domain::class::RetryPolicy;
use belfry_domain::delivery::{DeferWhy, NewDelivery, ParkWhy, State, Stop};
use belfry_domain::device::Undeliverable;
use belfry_domain::gather::{self, Gathering, Slot};
use belfry_domain::key::KeyKind;
use belfry_domain::notification::Fingerprint;
use belfry_domain::outcome::{Looked, RepeatGuard, ThrottleScope};
use belfry_domain::timeline::{ClaimMark, Hop, ReceiptKind, Resolution};
use belfry_domain::{
    Action, Asked, ChannelKind, Class, Delivery, Env, Event, Lane, Notification, NotificationId, Order, Outcome,
    Priority, UnixMs, Why, WhyCode, child_key,
};

pub(crate) const ACCEPTED_AT: UnixMs = UnixMs(1_700_000_000_000);
/// When the events of the table happen.
pub(crate) const NOW: UnixMs = UnixMs(ACCEPTED_AT.0 + 60_000);
pub(crate) const FENCE: u64 = 7;

pub(crate) fn class(order: Order) -> Class {
    Class {
        name: match order {
            Order::SendThenRecord => "receipt".into(),
            Order::RecordThenSend => "marketing".into(),
        },
        order,
        priority: Priority::Normal,
        expiry: Duration::from_secs(3_600),
        retry: RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(60), max_attempts: 3 },
        resend_limit: u32::from(order == Order::SendThenRecord),
        lease: Duration::from_secs(30),
        window: Duration::from_secs(15 * 86_400),
        receipt_window: Duration::from_secs(72 * 3_600),
        keep_content: Duration::from_secs(3 * 86_400),
        channels: vec![ChannelKind::Email],
        required: false,
        budget_exempt: false,
    }
}

pub(crate) fn fresh(class: &Class) -> Delivery {
    Delivery::new(NewDelivery {
        notification: NotificationId::http("default", "live", "main", "order-42/shipped"),
        channel: ChannelKind::Email,
        slot: "to".into(),
        class: class.name.clone(),
        lane: Lane::new("main", class.priority),
        tenant: "default".into(),
        created_at: ACCEPTED_AT,
        send_at: None,
        expires_at: ACCEPTED_AT.plus(class.expiry),
        lease: class.lease,
        content_hash: "5f".repeat(32),
        address_mask: "a…@example.com".into(),
        address_hash: "0c".repeat(32),
        device: None,
        via: Hop::Http,
    })
}

pub(crate) fn notification(class: &Class) -> Notification {
    Notification {
        id: NotificationId::http("default", "live", "main", "order-42/shipped"),
        tenant: "default".into(),
        environment: "live".into(),
        class: class.name.clone(),
        created_at: ACCEPTED_AT,
        remembered_until: ACCEPTED_AT.plus(class.window),
        via: Hop::Http,
        template: None,
        scope: None,
        reference: None,
        group: None,
        recipient: None,
        left_out: Vec::new(),
        digest: None,
        gathered: Vec::new(),
        collapse: None,
        send_at: None,
        expires_at: ACCEPTED_AT.plus(class.expiry),
        traceparent: None,
        metadata: None,
        fingerprint: Fingerprint { whole: "0c".repeat(32), parts: BTreeMap::new() },
        keep_content_ms: 0,
    }
}

pub(crate) const fn env(receipts: bool) -> Env {
    Env { now: NOW, jitter: u64::MAX / 2, receipts, guard: RepeatGuard::None }
}

pub(crate) fn mark(fence: u64) -> ClaimMark {
    ClaimMark { worker: "w1".into(), fence }
}

pub(crate) fn action(number: u32, asked: Asked) -> Action {
    Action { key: child_key(KeyKind::Http, &[b"action", &number.to_be_bytes()]), asked }
}

/// Every state, with what of its history decides what follows. Names are for people.
pub(crate) fn states(class: &Class) -> Vec<(&'static str, Delivery)> {
    let with = |change: &dyn Fn(&mut Delivery)| {
        let mut delivery = fresh(class);
        change(&mut delivery);
        delivery
    };
    let sending = |change: &dyn Fn(&mut Delivery)| {
        with(&|it| {
            it.state = State::Sending { fence: FENCE };
            change(it);
        })
    };
    let ended = |state: State| {
        with(&|it| {
            it.state = state;
            it.ended_at = Some(ACCEPTED_AT);
        })
    };
    let until = NOW.plus(Duration::from_secs(10));
    let open_receipt = with(&|it| {
        it.state = State::Accepted;
        it.receipt_until = Some(NOW);
    });
    let mut all = vec![
        ("scheduled", with(&|it| it.state = State::Scheduled { until })),
        ("queued", fresh(class)),
        ("deferred", with(&|it| it.state = State::Deferred { until, why: DeferWhy::Retry })),
        ("gathering", with(&|it| gather(it, None))),
        ("gathering, put into a digest", with(&|it| gather(it, Some(digest())))),
        (
            "gathering, put into a digest, stop asked",
            with(&|it| {
                gather(it, Some(digest()));
                it.stop = Some(cancel());
            }),
        ),
        ("gathering, claimed", sending(&|it| it.gathering = Some(Gathering::new(slot())))),
        ("sending", sending(&|_| {})),
        ("sending, stop asked", sending(&|it| it.stop = Some(cancel()))),
        ("sending, last attempt", sending(&|it| it.attempts = class.retry.max_attempts - 1)),
        ("accepted, receipt may come", open_receipt),
        ("accepted", ended(State::Accepted)),
        ("delivered", ended(State::Delivered)),
        ("bounced", ended(State::Bounced)),
        ("failed", ended(State::Failed)),
        ("expired", ended(State::Expired)),
        ("suppressed", ended(State::Suppressed)),
        ("cancelled", ended(State::Cancelled)),
        ("superseded", ended(State::Superseded)),
        ("unknown", ended(State::Unknown)),
    ];
    all.extend(ParkWhy::ALL.iter().map(|why| (park_name(*why), ended(State::Parked { why: *why }))));
    all.extend(by_order(class));
    all
}

/// The states whose history only one order has.
fn by_order(class: &Class) -> Vec<(&'static str, Delivery)> {
    let with = |state: State, change: &dyn Fn(&mut Delivery)| {
        let mut delivery = fresh(class);
        delivery.state = state;
        change(&mut delivery);
        delivery
    };
    let sending = State::Sending { fence: FENCE };
    if class.at_most_once() {
        return vec![("sending, spent", with(sending, &|it| it.spent = true))];
    }
    let resent = |it: &mut Delivery| {
        it.maybe_sent = true;
        it.unknowns = 1;
        it.attempts = 1;
        it.first_unknown_at = Some(ACCEPTED_AT);
    };
    let waiting = State::Deferred { until: NOW.plus(Duration::from_secs(10)), why: DeferWhy::Retry };
    vec![
        ("deferred, may have arrived", with(waiting, &resent)),
        ("sending, may have arrived", with(sending, &resent)),
        ("sending alone for the third time", with(sending, &|it| (it.lapses, it.lapses_alone) = (4, 2))),
    ]
}

pub(crate) fn slot() -> Slot {
    let group = gather::group(["default", "live", "digest", "comments", "activity", "v1", "en", "email", "0c0c"]);
    Slot { group, until: NOW.plus(Duration::from_secs(20)) }
}

pub(crate) fn digest() -> NotificationId {
    slot().digest(0)
}

fn gather(it: &mut Delivery, into: Option<NotificationId>) {
    it.rev = 1;
    it.gathering = Some(Gathering { slot: slot(), into });
    it.state = State::Deferred { until: slot().until, why: DeferWhy::Gathering };
}

const fn park_name(why: ParkWhy) -> &'static str {
    match why {
        ParkWhy::MayHaveArrived => "parked, may have arrived",
        ParkWhy::AttemptsExhausted => "parked, attempts used up",
        ParkWhy::Poison => "parked, poison",
        ParkWhy::Drift => "parked, drift",
        ParkWhy::UnrecognisedAnswer => "parked, unrecognised answer",
    }
}

pub(crate) fn cancel() -> Stop {
    Stop::Cancel { by: "key_1".into(), why: "the order was called off".into() }
}

pub(crate) fn outcomes() -> Vec<(&'static str, Outcome)> {
    let why = Why::new;
    let throttled = |scope, code| Outcome::Throttled { after: Duration::from_secs(120), scope, why: Why::new(code) };
    vec![
        ("accepted", Outcome::Accepted { provider_ref: Some("q-1".into()), why: why(WhyCode::Ok) }),
        ("refused", Outcome::Refused { why: why(WhyCode::PolicyRefused) }),
        ("recipient gone", Outcome::RecipientGone { since: None, why: why(WhyCode::NoSuchRecipient) }),
        ("try later", Outcome::NotAccepted { retry_after: None, why: why(WhyCode::TryLater) }),
        (
            "try later in 30 s",
            Outcome::NotAccepted { retry_after: Some(Duration::from_secs(30)), why: why(WhyCode::TryLater) },
        ),
        ("unrecognised", Outcome::NotAccepted { retry_after: None, why: why(WhyCode::Unrecognised) }),
        ("recipient throttled", throttled(ThrottleScope::Recipient, WhyCode::RateLimited)),
        ("provider throttled", throttled(ThrottleScope::Provider, WhyCode::RateLimited)),
        ("login refused", throttled(ThrottleScope::Credential, WhyCode::CredentialRefused)),
        ("unknown", Outcome::Unknown { retry_after: None, why: why(WhyCode::CutAfter) }),
    ]
}

/// One of every event, as the claim with [`FENCE`] would bring it.
pub(crate) fn events() -> Vec<(String, Event)> {
    let mut all: Vec<(String, Event)> = vec![
        ("admitted: call".into(), Event::Admitted(Verdict::Call)),
        ("admitted: expired".into(), Event::Admitted(Verdict::Expire)),
        ("admitted: cancelled".into(), Event::Admitted(Verdict::Stop(cancel()))),
        ("admitted: superseded".into(), Event::Admitted(Verdict::Stop(Stop::Supersede { by_version: 3 }))),
        ("admitted: suppressed".into(), Event::Admitted(Verdict::Suppress(Why::new(WhyCode::Unsubscribed)))),
        ("admitted: over a cap".into(), over_cap()),
        ("admitted: on hold".into(), Event::Admitted(Verdict::Hold { until: soon(), why: DeferWhy::QuietHours })),
        ("held by the budget".into(), held(DeferWhy::Budget)),
        ("held by the circuit".into(), held(DeferWhy::Breaker)),
        ("released".into(), Event::Released),
        ("cannot be made".into(), Event::Uncallable(Why::new(WhyCode::RenderFailed))),
        ("gathered".into(), Event::Gathered(slot())),
        ("folding".into(), Event::Folding { into: digest() }),
        ("folding into another part".into(), Event::Folding { into: slot().digest(1) }),
        ("not folded".into(), Event::Unfolded { from: digest() }),
        ("folded".into(), Event::Folded { into: digest() }),
        ("drifted".into(), Event::Drifted),
        ("its device is dead".into(), Event::Undeliverable(Undeliverable::Dead)),
        ("its refusal was not about its token".into(), Event::Spared),
        ("its device has another token".into(), Event::Readdressed { hash: "ab".into(), mask: "…1234".into() }),
    ];
    let took = Duration::from_millis(5);
    for (name, outcome) in outcomes() {
        all.push((format!("called: {name}"), Event::Called { claim: mark(FENCE), outcome, took }));
    }
    let stranger = Event::Called { claim: mark(FENCE - 1), outcome: outcomes().remove(0).1, took };
    all.push(("called by an older claim: accepted".into(), stranger));
    all.push(("looked up: found".into(), Event::LookedUp(Looked::Found { provider_ref: None })));
    all.push(("looked up: not yet".into(), Event::LookedUp(Looked::NotYet)));
    all.push(("looked up: absent".into(), Event::LookedUp(Looked::Absent)));
    all.push(("lapsed".into(), Event::Lapsed { claim: mark(FENCE), alone: false }));
    all.push(("lapsed alone".into(), Event::Lapsed { claim: mark(FENCE), alone: true }));
    for (name, outcome) in outcomes().into_iter().filter(|(name, _)| ["accepted", "unknown"].contains(name)) {
        all.push((format!("stale worker: {name}"), Event::Stale { send: 1, claim: mark(FENCE - 1), outcome }));
    }
    all.push(("cancel asked".into(), Event::StopAsked(cancel())));
    all.push(("newer version".into(), Event::StopAsked(Stop::Supersede { by_version: 3 })));
    all.extend(ReceiptKind::ALL.iter().map(|kind| (format!("receipt: {kind}"), Event::Receipt(*kind))));
    all.push(("receipt window closed".into(), Event::ReceiptWindowClosed));
    let act = |asked| Event::Act { by: "key_1".to_owned(), action: action(1, asked) };
    all.push(("redrive".into(), act(Asked::Redrive { after_send: 1 })));
    all.push(("redrive of an older send".into(), act(Asked::Redrive { after_send: 0 })));
    all.push(("send again".into(), act(Asked::SendAgain { after_send: 1 })));
    all.push(("send again, older".into(), act(Asked::SendAgain { after_send: 0 })));
    for to in Resolution::ALL {
        let asked = Asked::Resolve { to: *to, why: "asked the recipient".into() };
        all.push((format!("resolved: {to}"), act(asked)));
    }
    all
}

fn held(why: DeferWhy) -> Event {
    Event::Held { until: soon(), why }
}

fn over_cap() -> Event {
    Event::Admitted(Verdict::OverCap { cap: "receipts_per_order".into(), opens: soon() })
}

fn soon() -> UnixMs {
    NOW.plus(Duration::from_secs(5))
}
