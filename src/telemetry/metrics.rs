//! Counters and histograms. One exhaustive match: a new fact does not compile until it is counted.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::step::StepFact;
use belfry_domain::timeline::Hop;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::depth::DepthGauges;
use super::labels::{Label, Names, method, status};
use super::pace::PaceGauges;
use crate::facts::{Fact, ProviderNews};
use crate::ports::channel::Service;
use crate::ports::deliveries::Depths;
use crate::ports::store_news::StoreNews;

type Set<const N: usize> = [(&'static str, Label); N];
type Count<const N: usize> = Family<Set<N>, Counter>;
type Spread<const N: usize> = Family<Set<N>, Histogram, fn() -> Histogram>;

/// A repeat that comes this late came close to being taken for new.
pub(super) const NEAR_WINDOW: f64 = 0.9;

/// Declares the families, makes them and registers them under their names, in one place.
macro_rules! families {
    ($($kind:ident $field:ident: $type:ty = $make:expr, $name:literal, $help:literal $(, $unit:expr)?;)+) => {
        struct Families { $($field: $type),+ }

        impl Families {
            fn register(registry: &mut Registry) -> Self {
                $(
                    let $field: $type = $make;
                    families!(@$kind registry, $field, $name, $help $(, $unit)?);
                )+
                Self { $($field),+ }
            }
        }
    };
    (@plain $registry:ident, $field:ident, $name:literal, $help:literal) => {
        $registry.register($name, $help, $field.clone())
    };
    (@timed $registry:ident, $field:ident, $name:literal, $help:literal, $unit:expr) => {
        $registry.register_with_unit($name, $help, $unit, $field.clone())
    };
}

families! {
    plain intents: Count<1> = Family::default(), "intents_accepted", "New intents made durable";
    plain planned: Count<1> = Family::default(), "deliveries_planned", "Deliveries of new intents";
    plain repeats: Count<1> = Family::default(), "repeats", "Recognised repeats by the hop that caught them";
    timed repeat_age: Spread<1> = Family::new_with_constructor(ages), "repeat_age", "Time since the first copy", Unit::Seconds;
    plain repeat_share: Spread<1> = Family::new_with_constructor(shares), "repeat_age_of_window", "Time since the first copy as a share of the window";
    plain near_window: Count<1> = Family::default(), "repeats_near_window", "Repeats that came after nine tenths of the window";
    plain mismatches: Count<1> = Family::default(), "fingerprint_mismatches", "The same key with another body";
    plain attempts: Count<4> = Family::default(), "attempts", "Calls to providers by outcome";
    plain reasons: Count<2> = Family::default(), "attempt_reasons", "Calls to providers by reason";
    timed call: Spread<2> = Family::new_with_constructor(calls), "attempt_duration", "How long calls to providers took", Unit::Seconds;
    plain resends: Count<2> = Family::default(), "resends", "Calls that followed an unknown outcome";
    plain unknowns: Count<3> = Family::default(), "unknown_outcomes", "Outcomes that are not known";
    plain ended: Count<3> = Family::default(), "deliveries_ended", "Deliveries by the state they ended in";
    timed life: Spread<2> = Family::new_with_constructor(ages), "delivery_age_at_end", "From accept to the end", Unit::Seconds;
    plain lapsed: Count<2> = Family::default(), "claims_lapsed", "Claims whose worker did not come back";
    plain stale: Count<1> = Family::default(), "stale_reports", "Outcomes told by a worker whose claim had been taken over";
    plain receipts: Count<2> = Family::default(), "receipts", "Providers' later words";
    plain fenced: Count<1> = Family::default(), "settles_refused", "Settles refused by the fence";
    plain panics: Count<1> = Family::default(), "task_panics", "Tasks that panicked";
    plain circuits: Count<2> = Family::default(), "circuits_opened", "Circuits that opened";
    plain circuit: Family<Set<1>, Gauge> = Family::default(), "circuit_open", "1 while a provider's circuit is open";
    plain service_circuits: Family<Set<2>, Gauge> = Family::default(), "service_circuits_open", "Open circuits of services behind a provider";
    plain tokens_refused: Count<2> = Family::default(), "tokens_refused", "Device tokens that providers called dead or wrong";
    plain tokens_spared: Count<1> = Family::default(), "tokens_spared", "Tokens that are live again because most were refused at once";
    plain bounces_not_kept: Count<2> = Family::default(), "bounces_not_kept", "Bounces that added no suppression";
    plain bounces_lifted: Count<1> = Family::default(), "bounces_lifted", "Suppressions lifted because most mailboxes were said not to exist";
    plain setup_wrong: Count<2> = Family::default(), "setup_refusals", "Messages refused for a setting that only an operator can mend";
    plain waits_cut: Count<1> = Family::default(), "waits_cut", "Waits that providers asked for and that were too long to be meant";
    plain certificates: Family<Set<1>, Gauge> = Family::default(), "certificate_end_timestamp_seconds", "When the certificate ends that a provider knows us by, in seconds since 1970";
    plain pauses: Gauge = Gauge::default(), "pauses", "Pauses that stand, as this node read them last";
    plain capped: Count<2> = Family::default(), "cap_refusals", "Calls that were not made because a cap was full";
    plain unsubscribed: Count<2> = Family::default(), "unsubscribes", "Recipients who unsubscribed by their link, or came back";
    plain store_failed: Count<1> = Family::default(), "store_failures", "Store calls that failed";
    plain store_up: Gauge = Gauge::default(), "store_available", "1 unless the last word about the store was a failure";
    plain went_back: Counter = Counter::default(), "store_went_back", "Times a shard of the store had lost what it had acknowledged";
    plain lost: Counter = Counter::default(), "notifications_lost", "Notifications accepted here that the store has lost";
    plain unreadable: Counter = Counter::default(), "store_unreadable", "Stored deliveries that this node could not read";
    plain skew: Gauge = Gauge::default(), "store_clock_skew_milliseconds", "How far the store's clock was ahead of this node's when that last became, or ceased to be, too much";
    plain purged: Count<1> = Family::default(), "purged", "What came of age and went";
    plain reloads: Count<1> = Family::default(), "reloads", "Reloads of the configuration";
    plain http: Count<3> = Family::default(), "http_requests", "Requests answered";
    timed http_took: Spread<1> = Family::new_with_constructor(requests), "http_request_duration", "How long requests took", Unit::Seconds;
}

fn ages() -> Histogram {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    Histogram::new([
        0.01,
        0.1,
        1.0,
        10.0,
        MINUTE,
        10.0 * MINUTE,
        HOUR,
        6.0 * HOUR,
        DAY,
        3.0 * DAY,
        7.0 * DAY,
        14.0 * DAY,
        15.0 * DAY,
    ])
}

fn shares() -> Histogram {
    Histogram::new([0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, NEAR_WINDOW, 0.95, 1.0])
}

/// Up to beyond RFC 5321's ten minutes after the final dot.
fn calls() -> Histogram {
    Histogram::new([0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0, 60.0, 300.0, 900.0])
}

fn requests() -> Histogram {
    Histogram::new([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0])
}

pub(super) struct Metrics {
    registry: Registry,
    families: Families,
    depth: DepthGauges,
    paces: PaceGauges,
    names: RwLock<Names>,
}

impl Metrics {
    pub fn new(names: Names) -> Self {
        let mut registry = Registry::with_prefix("belfry");
        let families = Families::register(&mut registry);
        families.store_up.set(1);
        let depth = DepthGauges::default();
        depth.register(&mut registry);
        let paces = PaceGauges::default();
        paces.register(&mut registry);
        let build = prometheus_client::metrics::info::Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "This build", build);
        Self { registry, families, depth, paces, names: RwLock::new(names) }
    }

    pub fn set_names(&self, names: Names) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    fn class(&self, name: &str) -> Label {
        self.names.read().unwrap_or_else(PoisonError::into_inner).class(name)
    }

    fn provider(&self, name: &str) -> Label {
        self.names.read().unwrap_or_else(PoisonError::into_inner).provider(name)
    }

    fn cap(&self, name: &str) -> Label {
        self.names.read().unwrap_or_else(PoisonError::into_inner).cap(name)
    }

    fn set_depths(&self, depths: &Depths, now: UnixMs) {
        self.depth.set(depths, now, &self.names.read().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn exposition(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a string cannot fail; half an exposition must not look like a whole one.
            Err(std::fmt::Error) => String::new(),
        }
    }

    pub fn count(&self, fact: &Fact) {
        let all = &self.families;
        match fact {
            Fact::IntentAccepted { notification: _, class, deliveries } => self.accepted(class, *deliveries),
            Fact::RepeatCaught { notification: _, hop, age, window } => self.repeat(*hop, *age, *window),
            Fact::FingerprintMismatch { notification: _, hop } => {
                all.mismatches.get_or_create(&[("hop", hop.name().into())]).inc();
            }
            Fact::Stepped { notification: _, delivery: _, class, channel, provider, fact } => {
                let about = About {
                    class: self.class(class),
                    channel: channel.name().into(),
                    provider: self.provider(provider),
                };
                self.stepped(about, fact);
            }
            Fact::SettleRefused { notification: _, delivery: _, outcome } => {
                all.fenced.get_or_create(&[("outcome", outcome.name().into())]).inc();
            }
            Fact::TaskPanicked { task } => self.panicked(task),
            Fact::CircuitOpened { provider, service, why, cause: _ } => {
                let labels = [("provider", self.provider(provider)), ("why", why.name().into())];
                all.circuits.get_or_create(&labels).inc();
                self.set_own(provider, service.as_ref(), 1);
            }
            Fact::CircuitClosed { provider, service } => self.set_own(provider, service.as_ref(), 0),
            Fact::Provider { provider, news } => self.provider_news(provider, *news),
            Fact::Paced { provider, pace, warming: _ } => self.paces.set(self.provider(provider), pace),
            Fact::PaceShared { provider, parts, of } => self.paces.set_share(self.provider(provider), *parts, *of),
            Fact::Capped { cap, suppressed } => self.capped(cap, *suppressed),
            Fact::Unsubscribed { class, again } => self.unsubscribed(class, *again),
            Fact::StoreUnavailable { verb, why: _ } => {
                all.store_up.set(0);
                all.store_failed.get_or_create(&[("verb", (*verb).into())]).inc();
            }
            Fact::StoreRecovered => {
                all.store_up.set(1);
            }
            Fact::Store(news) => self.store_news(news),
            // The gauges of what is held and paused say as much, and each delivery tells of its end.
            Fact::HeldAfterRestore { .. }
            | Fact::HoldReleased { .. }
            | Fact::HeldCancelled { .. }
            | Fact::ManyCancelled { .. }
            | Fact::Pause { .. } => {}
            Fact::PausesStand { count } => self.pauses_stand(*count),
            Fact::Measured { depths, at } => self.set_depths(depths, *at),
            Fact::Purged { contents, records, tombstones } => self.purged(*contents, *records, *tombstones),
            // A page that answers says as much, and `doctor` what is noted.
            Fact::Started(_)
            | Fact::EndAsked { .. }
            | Fact::Draining { .. }
            | Fact::Stopped { .. }
            | Fact::ConfigNoted { .. } => {}
            Fact::Reloaded => self.reload("done"),
            Fact::ReloadRefused { problem: _ } => self.reload("refused"),
            Fact::HttpAnswered { route, method: verb, status: code, took } => {
                let labels = [("route", (*route).into()), ("method", method(verb)), ("status", status(*code))];
                all.http_took.get_or_create(&[labels[0].clone()]).observe(took.as_secs_f64());
                all.http.get_or_create(&labels).inc();
            }
        }
    }

    fn panicked(&self, task: &'static str) {
        self.families.panics.get_or_create(&[("task", task.into())]).inc();
    }

    /// How many are open of the services behind it is set by itself.
    fn set_own(&self, provider: &str, service: Option<&Service>, open: i64) {
        if service.is_none() {
            self.families.circuit.get_or_create(&[("provider", self.provider(provider))]).set(open);
        }
    }

    /// `count` circuits of services of that name are open behind the provider.
    pub fn set_open(&self, provider: &str, service: &'static str, count: usize) {
        let labels = [("provider", self.provider(provider)), ("service", service.into())];
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.families.service_circuits.get_or_create(&labels).set(count);
    }

    fn purged(&self, contents: u32, records: u32, tombstones: u32) {
        for (age, count) in [("content", contents), ("record", records), ("tombstone", tombstones)] {
            self.families.purged.get_or_create(&[("age", age.into())]).inc_by(u64::from(count));
        }
    }

    fn provider_news(&self, provider: &str, news: ProviderNews) {
        let all = &self.families;
        let provider = ("provider", self.provider(provider));
        match news {
            ProviderNews::TokenRefused { fault, stored: _ } => {
                all.tokens_refused.get_or_create(&[provider, ("fault", fault.name().into())]).inc();
            }
            ProviderNews::TokensSpared { tokens } => {
                all.tokens_spared.get_or_create(&[provider]).inc_by(tokens as u64);
            }
            ProviderNews::BounceNotKept { why } => {
                all.bounces_not_kept.get_or_create(&[provider, ("why", why.name().into())]).inc();
            }
            ProviderNews::BouncesLifted { suppressions } => {
                all.bounces_lifted.get_or_create(&[provider]).inc_by(suppressions as u64);
            }
            ProviderNews::SetupWrong { why } => {
                all.setup_wrong.get_or_create(&[provider, ("why", why.name().into())]).inc();
            }
            ProviderNews::WaitCut { asked: _ } => {
                all.waits_cut.get_or_create(&[provider]).inc();
            }
            ProviderNews::Certificate(end) => {
                all.certificates.get_or_create(&[provider]).set(end.at.0.div_euclid(1000));
            }
        }
    }

    fn capped(&self, cap: &str, suppressed: bool) {
        let then = if suppressed { "suppressed" } else { "deferred" };
        self.families.capped.get_or_create(&[("cap", self.cap(cap)), ("then", then.into())]).inc();
    }

    fn unsubscribed(&self, class: &str, again: bool) {
        let back = if again { "true" } else { "false" };
        self.families.unsubscribed.get_or_create(&[("class", self.class(class)), ("back", back.into())]).inc();
    }

    fn accepted(&self, class: &str, deliveries: usize) {
        let class = self.class(class);
        self.families.intents.get_or_create(&[("class", class.clone())]).inc();
        self.families.planned.get_or_create(&[("class", class)]).inc_by(deliveries as u64);
    }

    fn pauses_stand(&self, count: usize) {
        self.families.pauses.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn reload(&self, result: &'static str) {
        self.families.reloads.get_or_create(&[("result", result.into())]).inc();
    }

    fn store_news(&self, news: &StoreNews) {
        match news {
            StoreNews::WentBack { lost, .. } => {
                self.families.went_back.inc();
                self.families.lost.inc_by(lost.len() as u64);
            }
            StoreNews::Unreadable { .. } => {
                self.families.unreadable.inc();
            }
            // Nobody reads metrics of what does not listen yet.
            StoreNews::Awaited { .. } | StoreNews::Astray { .. } => {}
            StoreNews::ClockSkew { ms } => {
                self.families.skew.set(*ms);
            }
        }
    }

    fn repeat(&self, hop: Hop, age: Duration, window: Duration) {
        let all = &self.families;
        let labels = [("hop", Label::from(hop.name()))];
        all.repeats.get_or_create(&labels).inc();
        all.repeat_age.get_or_create(&labels).observe(age.as_secs_f64());
        let share = share_of(age, window);
        all.repeat_share.get_or_create(&labels).observe(share);
        if share >= NEAR_WINDOW {
            all.near_window.get_or_create(&labels).inc();
        }
    }

    fn stepped(&self, about: About, fact: &StepFact) {
        let all = &self.families;
        let About { class, channel, provider } = about;
        let (class, channel, provider) = (("class", class), ("channel", channel), ("provider", provider));
        match fact {
            StepFact::Attempted { outcome, why, took } => {
                let outcome = ("outcome", Label::from(outcome.name()));
                all.reasons.get_or_create(&[provider.clone(), ("why", why.name().into())]).inc();
                all.call.get_or_create(&[provider.clone(), outcome.clone()]).observe(took.as_secs_f64());
                all.attempts.get_or_create(&[provider, channel, class, outcome]).inc();
            }
            StepFact::Resent => {
                all.resends.get_or_create(&[provider, class]).inc();
            }
            StepFact::UnknownOutcome { why } => {
                all.unknowns.get_or_create(&[provider, class, ("why", why.name().into())]).inc();
            }
            StepFact::Ended { state, for_ } => {
                let state = ("state", Label::from(state.name()));
                all.life.get_or_create(&[class.clone(), state.clone()]).observe(for_.as_secs_f64());
                all.ended.get_or_create(&[channel, class, state]).inc();
            }
            StepFact::Lapsed { may_have_sent } => {
                let may = if *may_have_sent { "yes" } else { "no" };
                all.lapsed.get_or_create(&[provider, ("may_have_sent", may.into())]).inc();
            }
            StepFact::StaleReport { outcome } => {
                all.stale.get_or_create(&[("outcome", outcome.name().into())]).inc();
            }
            StepFact::ReceiptApplied { kind } => {
                all.receipts.get_or_create(&[provider, ("kind", kind.name().into())]).inc();
            }
        }
    }
}

/// Whose step it was, as labels.
struct About {
    class: Label,
    channel: Label,
    provider: Label,
}

/// A window of zero counts as used up.
pub(super) fn share_of(age: Duration, window: Duration) -> f64 {
    if window.is_zero() { 1.0 } else { age.as_secs_f64() / window.as_secs_f64() }
}
