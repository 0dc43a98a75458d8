//! Counters and histograms. One exhaustive match: a new fact does not compile until it is counted.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::step::StepFact;
use belfry_domain::timeline::Hop;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::depth::DepthGauges;
use super::families::{Families, NEAR_WINDOW};
use super::labels::{Label, Names, method, status};
use super::pace::PaceGauges;
use super::schedules::ScheduleCounts;
use crate::facts::{Fact, ProviderNews};
use crate::ports::channel::Service;
use crate::ports::deliveries::Depths;
use crate::ports::store_news::StoreNews;

pub(super) struct Metrics {
    registry: Registry,
    families: Families,
    depth: DepthGauges,
    paces: PaceGauges,
    schedules: ScheduleCounts,
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
        let schedules = ScheduleCounts::default();
        schedules.register(&mut registry);
        let build = prometheus_client::metrics::info::Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "This build", build);
        Self { registry, families, depth, paces, schedules, names: RwLock::new(names) }
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
            Fact::DigestMade { notification: _, class, items, part: _ } => self.digest(class, *items),
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
            Fact::StoreUnavailable { verb, why: _ } => self.store_failed(verb),
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
            Fact::Schedule { of: _, news } => self.schedules.count(news),
            Fact::SchedulesUnreadable { count } => self.schedules.could_not_read(*count),
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

    fn store_failed(&self, verb: &'static str) {
        self.families.store_up.set(0);
        self.families.store_failed.get_or_create(&[("verb", verb.into())]).inc();
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

    fn digest(&self, class: &str, items: usize) {
        self.accepted(class, 1);
        self.families.folded.get_or_create(&[("class", self.class(class))]).inc_by(items as u64);
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
