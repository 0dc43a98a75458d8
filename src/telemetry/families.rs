//! The families of counters and histograms, and their names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::Label;

type Set<const N: usize> = [(&'static str, Label); N];
type Count<const N: usize> = Family<Set<N>, Counter>;
type Spread<const N: usize> = Family<Set<N>, Histogram, fn() -> Histogram>;

/// A repeat that comes this late came close to being taken for new.
pub(super) const NEAR_WINDOW: f64 = 0.9;

/// Declares the families, makes them and registers them under their names, in one place.
macro_rules! families {
    ($($kind:ident $field:ident: $type:ty = $make:expr, $name:literal, $help:literal $(, $unit:expr)?;)+) => {
        pub(super) struct Families { $(pub(super) $field: $type),+ }

        impl Families {
            pub(super) fn register(registry: &mut Registry) -> Self {
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
    plain folded: Count<1> = Family::default(), "items_gathered", "Notifications that went out as part of a digest";
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
