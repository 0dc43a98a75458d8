//! One log line per fact. What happens to every message stands at `debug`; what an operator wants
//! to know without asking at `info`; what somebody should look at from `warn` on.

use std::time::Duration;

use belfry_domain::breaker::OpenWhy;
use belfry_domain::delivery::StateName;
use belfry_domain::outcome::{OutcomeKind, WhyCode};
use belfry_domain::step::StepFact;
use belfry_domain::timeline::Hop;
use belfry_domain::warm_up::WarmDay;
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, Pace, UnixMs, Why};
use tracing::{debug, error, info, warn};

use super::families::NEAR_WINDOW;
use super::metrics::share_of;
use super::schedules;
use crate::facts::{Fact, NotKept, PauseNews, PauseOf, ProviderNews, Start};
use crate::ports::StoreError;
use crate::ports::certificate::{CertificateEnd, Left};
use crate::ports::span::Span;
use crate::ports::store_news::StoreNews;

const INTAKE: &str = "belfry::intake";
const ENGINE: &str = "belfry::engine";
const STORE: &str = "belfry::store";
const HTTP: &str = "belfry::http";
const SERVER: &str = "belfry::server";
const CONFIG: &str = "belfry::config";

pub(super) fn write(fact: &Fact) {
    match fact {
        Fact::IntentAccepted { notification, class, deliveries } => {
            debug!(target: INTAKE, fact = "intent_accepted", %notification, class, deliveries,
                "a notification was received and is durable");
        }
        Fact::DigestMade { notification, class, items, part } => {
            debug!(target: INTAKE, fact = "digest_made", %notification, class, items, part, "a digest is durable");
        }
        Fact::RepeatCaught { notification, hop, age, window } => repeat(*notification, *hop, *age, *window),
        Fact::FingerprintMismatch { notification, hop } => {
            warn!(target: INTAKE, fact = "fingerprint_mismatch", %notification, %hop,
                "the same key came with another request");
        }
        Fact::Stepped { notification, delivery, class, channel, provider, fact } => {
            let (notification, delivery, channel) = (*notification, *delivery, *channel);
            stepped(&About { notification, delivery, class, channel, provider }, fact);
        }
        Fact::SettleRefused { notification, delivery, outcome } => settle_refused(*notification, *delivery, *outcome),
        Fact::TaskPanicked { task } => error!(target: ENGINE, fact = "task_panicked", task, "a task panicked"),
        Fact::CircuitOpened { provider, service, why, cause } => {
            circuit_opened(provider, service.as_ref().map(|service| service.name), *why, *cause);
        }
        Fact::CircuitClosed { provider, service } => {
            let service = service.as_ref().map(|service| service.name);
            info!(target: ENGINE, fact = "circuit_closed", provider, service, "a provider's circuit closed");
        }
        Fact::Provider { provider, news } => provider_news(provider, *news),
        Fact::Paced { provider, pace, warming } => paced(provider, pace, *warming),
        Fact::PaceShared { provider, parts, of } => {
            info!(target: ENGINE, fact = "pace_shared", provider, parts, of, "this node's share of the provider's pace");
        }
        Fact::Capped { cap, suppressed } => capped(cap, *suppressed),
        Fact::Unsubscribed { class, again } => unsubscribed(class, *again),
        Fact::StoreUnavailable { verb, why } => store_unavailable(verb, why),
        Fact::StoreRecovered => info!(target: STORE, fact = "store_recovered", "the store is back"),
        Fact::Store(news) => store_news(news),
        Fact::HeldAfterRestore { at, kept } => held_after_restore(*at, *kept),
        Fact::HoldReleased { by, at } => hold_released(by, *at),
        Fact::HeldCancelled { by, at, cancelled } => held_cancelled(by, *at, *cancelled),
        Fact::ManyCancelled { by, cancelled, in_flight } => many_cancelled(by, *cancelled, *in_flight),
        Fact::Pause { pause, news } => paused(pause, news),
        Fact::Schedule { of, news } => schedules::write(of, news),
        Fact::SchedulesUnreadable { count } => schedules::could_not_read(*count),
        // Gauges say it better than a line every few seconds, and there are lines of what was set and lifted.
        Fact::PausesStand { count: _ } | Fact::Measured { depths: _, at: _ } => {}
        Fact::Purged { contents, records, tombstones } => {
            debug!(target: STORE, fact = "purged", contents, records, tombstones, "purged what came of age");
        }
        Fact::Started(start) => started(start),
        Fact::EndAsked { signal } => info!(target: SERVER, fact = "end_asked", signal, "asked to end"),
        Fact::Draining { calls, grace } => draining(*calls, *grace),
        Fact::Stopped { took, broken_off } => {
            info!(target: SERVER, fact = "stopped", took_ms = millis(*took), broken_off, "stopped");
        }
        Fact::Reloaded => info!(target: CONFIG, fact = "reloaded", "the configuration was reloaded"),
        Fact::ConfigNoted { key, what } => config_noted(key, what),
        Fact::ReloadRefused { problem } => reload_refused(problem),
        Fact::HttpAnswered { route, method, status, took } => answered(route, method, *status, *took),
    }
}

fn settle_refused(notification: NotificationId, delivery: DeliveryId, outcome: OutcomeKind) {
    warn!(target: ENGINE, fact = "settle_refused", %notification, %delivery, %outcome,
        "a worker settled after its claim had been taken over");
}

fn store_unavailable(verb: &str, why: &StoreError) {
    error!(target: STORE, fact = "store_unavailable", verb, %why, "the store is unavailable");
}

fn config_noted(key: &str, what: &str) {
    warn!(target: CONFIG, fact = "config_noted", key, what, "the configuration is probably not what is meant");
}

fn reload_refused(problem: &str) {
    error!(target: CONFIG, fact = "reload_refused", problem, "the old configuration stays in force");
}

fn draining(calls: usize, grace: Duration) {
    info!(target: SERVER, fact = "draining", calls, grace_s = grace.as_secs(), "draining: no new requests and claims");
}

fn paced(provider: &str, pace: &Pace, warming: Option<WarmDay>) {
    let (rate, per, burst) = (pace.rate(), Span(pace.per()), pace.burst());
    let (day, of) = (warming.map(|warming| warming.day), warming.map(|warming| warming.of));
    info!(target: ENGINE, fact = "paced", provider, rate, %per, burst, warm_up_day = day, of_days = of,
        "how often all nodes together may call the provider");
}

fn capped(cap: &str, suppressed: bool) {
    debug!(target: ENGINE, fact = "capped", cap, suppressed, "a call was not made because a cap is full");
}

fn unsubscribed(class: &str, again: bool) {
    let what = if again { "a recipient subscribed again" } else { "a recipient unsubscribed" };
    info!(target: HTTP, fact = "unsubscribed", class, again, "{what}");
}

fn provider_news(provider: &str, news: ProviderNews) {
    match news {
        ProviderNews::TokenRefused { fault, stored } => {
            info!(target: ENGINE, fact = "token_refused", provider, %fault, stored, "a device token is dead or wrong");
        }
        ProviderNews::TokensSpared { tokens } => {
            warn!(target: ENGINE, fact = "tokens_spared", provider, tokens,
                "most tokens are refused, so that it is not the tokens: those put aside of late are live again");
        }
        ProviderNews::BounceNotKept { why: NotKept::Wave } => {
            warn!(target: ENGINE, fact = "bounce_not_kept", provider, why = "wave",
                "most mailboxes are said not to exist, so that it may be the server: nobody is suppressed for it");
        }
        ProviderNews::BounceNotKept { why: NotKept::Full } => {
            warn!(target: ENGINE, fact = "bounce_not_kept", provider, why = "full",
                "an address that bounced has as many suppressions as there may be: it is not suppressed for it");
        }
        ProviderNews::BouncesLifted { suppressions } => {
            warn!(target: ENGINE, fact = "bounces_lifted", provider, suppressions,
                "most mailboxes are said not to exist: suppressions that came of it of late are lifted");
        }
        ProviderNews::SetupWrong { why } => {
            error!(target: ENGINE, fact = "setup_wrong", provider, %why, "messages are refused because {}",
                Why::new(why).words());
        }
        ProviderNews::WaitCut { asked } => {
            warn!(target: ENGINE, fact = "wait_cut", provider, asked_s = asked.as_secs(),
                "the provider asked for a wait too long to be meant; it is cut to a day");
        }
        ProviderNews::Certificate(end) => certificate(provider, end),
    }
}

fn certificate(provider: &str, CertificateEnd { at, left }: CertificateEnd) {
    let ends = moment(at);
    match left {
        Left::Nothing => error!(target: ENGINE, fact = "certificate_ends", provider, ends,
            "the certificate that the provider knows us by has ended: give a new one and reload"),
        Left::Little => warn!(target: ENGINE, fact = "certificate_ends", provider, ends,
            "the certificate that the provider knows us by ends within 30 days; have a new one made"),
        Left::Enough => info!(target: ENGINE, fact = "certificate_ends", provider, ends,
            "until when the certificate is good that the provider knows us by"),
    }
}

fn answered(route: &str, method: &str, status: u16, took: Duration) {
    let took_ms = millis(took);
    if status >= 500 {
        warn!(target: HTTP, fact = "http_answered", route, method, status, took_ms, "answered");
    } else {
        debug!(target: HTTP, fact = "http_answered", route, method, status, took_ms, "answered");
    }
}

fn started(start: &Start) {
    let Start { version, listen, store, store_at, durability, roles, config, providers, key_file } = start;
    let config = config.as_deref().unwrap_or("defaults");
    let providers = if providers.is_empty() { "outbox".to_owned() } else { providers.join(",") };
    let key_file = key_file.as_deref();
    info!(target: SERVER, fact = "started", version, %listen, store, store_at, durability, roles, config,
        providers, key_file,
        "started");
}

fn held_after_restore(at: UnixMs, kept: bool) {
    let restored_at = moment(at);
    if kept {
        warn!(target: STORE, fact = "held_after_restore", %restored_at, kept,
            "a hold stood in the store already and still counts; if the backup brought it along, see docs/restore.md");
    } else {
        warn!(target: STORE, fact = "held_after_restore", %restored_at, kept,
            "what was due before the store was restored is held: see `belfry restored`");
    }
}

fn hold_released(by: &str, at: UnixMs) {
    warn!(target: STORE, fact = "hold_released", by, restored_at = %moment(at),
        "what was due before the store was restored goes out");
}

fn held_cancelled(by: &str, at: UnixMs, cancelled: u64) {
    warn!(target: STORE, fact = "held_cancelled", by, restored_at = %moment(at), cancelled,
        "cancelled of what was due before the store was restored");
}

fn many_cancelled(by: &str, cancelled: u32, in_flight: u32) {
    warn!(target: ENGINE, fact = "many_cancelled", by, cancelled, in_flight, "cancelled by filter");
}

fn paused(pause: &PauseOf, news: &PauseNews) {
    let PauseOf { id, what, name, tenant, until, forced } = pause;
    let (name, tenant, until) = (name.as_deref(), tenant.as_deref(), until.map(moment));
    match news {
        PauseNews::Set { by } => {
            warn!(target: ENGINE, fact = "paused", %id, what, name, tenant, until, forced, by, "paused");
        }
        PauseNews::Lifted { by } => {
            warn!(target: ENGINE, fact = "resumed", %id, what, name, tenant, by, "resumed: what was held goes on");
        }
        PauseNews::RanOut => {
            warn!(target: ENGINE, fact = "pause_ran_out", %id, what, name, tenant, "a pause ended: what was held goes on");
        }
    }
}

fn moment(at: UnixMs) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| format!("{at:.3}"))
}

fn repeat(notification: NotificationId, hop: Hop, age: Duration, window: Duration) {
    let (age_s, window_s) = (age.as_secs(), window.as_secs());
    if share_of(age, window) >= NEAR_WINDOW {
        warn!(target: INTAKE, fact = "repeat_caught", %notification, %hop, age_s, window_s,
            "a repeat came close to the end of its window");
    } else {
        info!(target: INTAKE, fact = "repeat_caught", %notification, %hop, age_s, window_s,
            "a repeat was recognised");
    }
}

struct About<'a> {
    notification: NotificationId,
    delivery: DeliveryId,
    class: &'a str,
    channel: ChannelKind,
    provider: &'a str,
}

/// The fields every step's line has.
macro_rules! step_line {
    ($level:ident, $about:ident, $fact:literal, $($rest:tt)+) => {
        $level!(target: ENGINE, fact = $fact, notification = %$about.notification, delivery = %$about.delivery,
            class = $about.class, channel = %$about.channel, provider = $about.provider, $($rest)+)
    };
}

fn stepped(about: &About<'_>, fact: &StepFact) {
    match fact {
        StepFact::Attempted { outcome, why, took } => {
            let took_ms = millis(*took);
            let said = attempted(*outcome, *why);
            if *outcome == OutcomeKind::Accepted {
                step_line!(debug, about, "attempted", %outcome, %why, took_ms, "{said}");
            } else {
                step_line!(info, about, "attempted", %outcome, %why, took_ms, "{said}");
            }
        }
        StepFact::Resent => step_line!(warn, about, "resent", "sent again after an unknown outcome"),
        StepFact::UnknownOutcome { why } => {
            step_line!(warn, about, "unknown_outcome", %why, "a call may or may not have had its effect");
        }
        StepFact::Ended { state, for_ } => ended(about, *state, for_.as_secs()),
        StepFact::Lapsed { may_have_sent } => {
            step_line!(warn, about, "lapsed", may_have_sent, "a claim lapsed; its worker did not come back");
        }
        StepFact::StaleReport { outcome } => {
            step_line!(warn, about, "stale_report", %outcome, "a worker told its outcome too late to settle");
        }
        StepFact::ReceiptApplied { kind } => {
            step_line!(debug, about, "receipt_applied", %kind, "the provider's receipt came");
        }
    }
}

/// Never that it was not sent, where that is not known.
const fn attempted(outcome: OutcomeKind, why: WhyCode) -> &'static str {
    match (outcome, why) {
        (OutcomeKind::Accepted, _) => "the provider accepted it",
        (OutcomeKind::Refused, WhyCode::TokenMalformed) => "it was refused here: the token has not the form of one",
        (OutcomeKind::Refused, WhyCode::InternalEndpoint) => {
            "it was refused here: the device's endpoint leads into an internal network"
        }
        (OutcomeKind::Refused, _) => "the provider refused it for good",
        (OutcomeKind::RecipientGone, _) => "the provider refused it: there is no such recipient",
        (OutcomeKind::NotAccepted, _) => "it was definitely not accepted, and may be tried again",
        (OutcomeKind::Throttled, WhyCode::CredentialRefused) => "the provider refused our login",
        (
            OutcomeKind::Throttled,
            WhyCode::SetupRefused | WhyCode::ClockSkew | WhyCode::BadToken | WhyCode::WrongApp,
        ) => "it waits: a setting of ours or at the provider is wrong",
        (OutcomeKind::Throttled, _) => "the provider is busy or asked to wait",
        (OutcomeKind::Unknown, _) => "whether it was accepted is unknown",
    }
}

fn ended(about: &About<'_>, state: StateName, after_s: u64) {
    match state {
        StateName::Accepted | StateName::Delivered => {
            step_line!(debug, about, "ended", %state, after_s, "ended");
        }
        StateName::Unknown | StateName::Parked => {
            step_line!(warn, about, "ended", %state, after_s, "ended; a person should look");
        }
        StateName::Scheduled
        | StateName::Queued
        | StateName::Deferred
        | StateName::Sending
        | StateName::Bounced
        | StateName::Failed
        | StateName::Expired
        | StateName::Suppressed
        | StateName::Cancelled
        | StateName::Superseded => step_line!(info, about, "ended", %state, after_s, "ended"),
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn store_news(news: &StoreNews) {
    match news {
        StoreNews::WentBack { shard, since, until, steps, lost } => {
            error!(target: STORE, fact = "store_went_back", shard, since = since.0, until = until.0, steps,
                lost = lost.len(), "the store has lost what it had acknowledged: possibly lost, from since to until");
            for notification in lost {
                error!(target: STORE, fact = "notification_lost", notification = %notification,
                    "accepted here, and lost by the store: whoever asked for it has to ask again");
            }
        }
        StoreNews::Unreadable { delivery, what } => {
            error!(target: STORE, fact = "store_unreadable", %delivery, what,
                "a stored delivery cannot be read; it stays as it is");
        }
        StoreNews::Awaited { why } => {
            warn!(target: STORE, fact = "store_awaited", why, "the store is away; the start waits for it");
        }
        StoreNews::Astray { ms: Some(ms) } => {
            error!(target: STORE, fact = "clock_astray", ms,
                "this node's clock is ahead of most others' by so much; it accepts and claims nothing until that is mended");
        }
        StoreNews::Astray { ms: None } => {
            info!(target: STORE, fact = "clock_in_time", "this node's clock agrees with the others' again");
        }
        StoreNews::ClockSkew { ms } => {
            warn!(target: STORE, fact = "clock_skew", ms, "how far the store's clock is ahead of this node's");
        }
    }
}

/// One of many services that is away is nobody's fault here, and whoever registers an address can name one: that
/// must not call for an operator.
fn circuit_opened(provider: &str, service: Option<&str>, why: OpenWhy, cause: WhyCode) {
    let (name, cause, hint) = (why.name(), cause.name(), why.hint());
    let away = matches!(why, OpenWhy::Unreachable | OpenWhy::Silent | OpenWhy::Throttled);
    if away && service.is_some() {
        warn!(target: ENGINE, fact = "circuit_opened", provider, service, why = name, cause, hint,
            "a service's circuit opened; its messages wait");
    } else {
        error!(target: ENGINE, fact = "circuit_opened", provider, service, why = name, cause, hint,
            "a provider's circuit opened; its messages wait");
    }
}
