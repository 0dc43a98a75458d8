use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belfry_domain::breaker::OpenWhy;
use belfry_domain::delivery::StateName;
use belfry_domain::device::TokenFault;
use belfry_domain::key::{Key, KeyKind, child_key};
use belfry_domain::outcome::{OutcomeKind, WhyCode};
use belfry_domain::step::StepFact;
use belfry_domain::timeline::{Hop, ReceiptKind};
use belfry_domain::{ChannelKind, DeliveryId, Lane, NotificationId, Priority, UnixMs};
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::facts::{NotKept, ProviderNews};
use crate::ports::StoreError;
use crate::ports::certificate::CertificateEnd;
use crate::ports::channel::Service;
use crate::ports::deliveries::{Depths, LaneDepth};

mod caps;
mod circuits;
mod paces;
mod schedules;

fn recorder() -> Recorder {
    let names = Names::new(["code", "receipt"], ["main", "outbox"]).with_caps(["daily"]);
    Recorder::new(names, Arc::new(outages::tests::At::default()))
}

fn key(n: u64) -> Key {
    child_key(KeyKind::Http, &[&n.to_be_bytes()])
}

/// A spread-out sequence without a random source: the n-th number of a full-period generator.
fn mix(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

fn pick<T: Copy>(all: &[T], by: u64) -> T {
    all[(by % all.len() as u64) as usize]
}

/// None, or one of two that have no name of their own and one that has.
fn service(n: u64) -> Option<Service> {
    let name = if n.is_multiple_of(2) { "known" } else { "another" };
    let known = n.is_multiple_of(2);
    (!n.is_multiple_of(4)).then(|| Service { key: format!("https://push{n}.example"), name, known })
}

fn news(a: u64, b: u64) -> ProviderNews {
    match a % 6 {
        0 => ProviderNews::TokenRefused { fault: pick(TokenFault::ALL, b), stored: b.is_multiple_of(2) },
        1 => ProviderNews::TokensSpared { tokens: 3 },
        2 => ProviderNews::SetupWrong { why: pick(WhyCode::ALL, b) },
        3 => ProviderNews::BounceNotKept { why: pick(&[NotKept::Wave, NotKept::Full], b) },
        4 => ProviderNews::Certificate(CertificateEnd::seen(UnixMs(2_000_000_000_000), UnixMs(0))),
        _ => ProviderNews::WaitCut { asked: Duration::from_secs(b % 1_000_000) },
    }
}

/// Names, statuses and problems out of the blue; everything else out of its closed set.
fn random_fact(n: u64) -> Fact {
    let (a, b, c) = (mix(n), mix(n ^ 0xabcd), mix(n ^ 0x1234_5678));
    let name = |by: u64| if by.is_multiple_of(3) { "receipt".to_owned() } else { format!("tenant text {by}") };
    let took = Duration::from_millis(b % 1_000_000);
    let (outcome, why) = (pick(OutcomeKind::ALL, b), pick(WhyCode::ALL, c));
    let step = match c % 7 {
        0 => StepFact::Attempted { outcome, why, took },
        1 => StepFact::Resent,
        2 => StepFact::UnknownOutcome { why },
        3 => StepFact::Ended { state: pick(StateName::ALL, b), for_: took },
        4 => StepFact::Lapsed { may_have_sent: b.is_multiple_of(2) },
        5 => StepFact::StaleReport { outcome },
        _ => StepFact::ReceiptApplied { kind: pick(ReceiptKind::ALL, b) },
    };
    let notification = NotificationId(key(b));
    let hop = pick(Hop::ALL, b);
    let why = pick(&[OpenWhy::Credential, OpenWhy::Unreachable, OpenWhy::Throttled], c);
    match a % 18 {
        0 => Fact::IntentAccepted { notification, class: name(b), deliveries: 1 },
        1 => Fact::RepeatCaught { notification, hop, age: took, window: Duration::from_secs(c % 900) },
        2 => Fact::FingerprintMismatch { notification, hop },
        3..=6 => Fact::Stepped {
            notification,
            delivery: DeliveryId(key(a)),
            class: name(b),
            channel: pick(ChannelKind::ALL, c),
            provider: name(c),
            fact: step,
        },
        7 => Fact::SettleRefused { notification, delivery: DeliveryId(key(a)), outcome },
        8 => Fact::CircuitOpened { provider: name(b), service: service(c), why, cause: WhyCode::Unreachable },
        9 => Fact::CircuitClosed { provider: name(b), service: service(c) },
        10 => paces::fact(name(b), c),
        11 => Fact::StoreUnavailable { verb: "settle", why: StoreError::Unavailable(name(c)) },
        12 => Fact::Purged { contents: 1, records: 2, tombstones: 3 },
        13 => Fact::ReloadRefused { problem: name(b) },
        14 => Fact::Provider { provider: name(b), news: news(b, c) },
        15 | 16 => schedules::fact(name(b), notification, c),
        _ => Fact::HttpAnswered {
            route: "/v1/notifications/{id}",
            method: pick(&["GET", "POST", "BREW"], b),
            status: (c % 65_536) as u16,
            took,
        },
    }
}

fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

#[test]
fn case_82_series_stay_bounded_whatever_comes_in() {
    let recorder = recorder();
    for n in 0..50_000 {
        recorder.record(&random_fact(n));
    }
    let half_way = series(&recorder.exposition());
    for n in 50_000..100_000 {
        recorder.record(&random_fact(n));
    }
    for n in 0..1_000 {
        let lane = Lane::new(format!("gone provider {n}"), pick(Priority::ALL, n));
        let depth = LaneDepth { lane, due: 1, waiting: 1, sending: 1, oldest_due: None };
        recorder.record(&Fact::Measured { depths: Depths { lanes: vec![depth], ..Depths::default() }, at: UnixMs(0) });
    }
    let text = recorder.exposition();
    assert!(half_way < 2_500 && series(&text) < half_way + half_way / 10 + 20, "{half_way} {}", series(&text));
    assert!(!text.contains("tenant text") && !text.contains("gone provider"));
    assert!(text.contains("class=\"other\"") && text.contains("status=\"other\"") && text.contains("method=\"other\""));
}

/// The value of the series that starts with `name`.
fn value(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
}

#[test]
fn what_is_heard_of_providers_is_counted() {
    let recorder = recorder();
    for news in [
        ProviderNews::TokenRefused { fault: TokenFault::BadToken, stored: true },
        ProviderNews::TokensSpared { tokens: 3 },
        ProviderNews::BounceNotKept { why: NotKept::Full },
        ProviderNews::BouncesLifted { suppressions: 4 },
        ProviderNews::SetupWrong { why: WhyCode::ThirdPartyRefused },
        ProviderNews::WaitCut { asked: Duration::MAX },
        ProviderNews::Certificate(CertificateEnd::seen(UnixMs(2_000_000_000_999), UnixMs(0))),
    ] {
        recorder.record(&Fact::Provider { provider: "main".into(), news });
    }
    let text = recorder.exposition();
    for (name, expected) in [
        ("belfry_tokens_refused_total{provider=\"main\",fault=\"bad_token\"}", "1"),
        ("belfry_tokens_spared_total{provider=\"main\"}", "3"),
        ("belfry_bounces_not_kept_total{provider=\"main\",why=\"full\"}", "1"),
        ("belfry_bounces_lifted_total{provider=\"main\"}", "4"),
        ("belfry_setup_refusals_total{provider=\"main\",why=\"third_party_refused\"}", "1"),
        ("belfry_waits_cut_total{provider=\"main\"}", "1"),
        ("belfry_certificate_end_timestamp_seconds{provider=\"main\"}", "2000000000"),
    ] {
        assert_eq!(value(&text, name).as_deref(), Some(expected), "{name} in\n{text}");
    }
}

#[test]
fn facts_are_counted_under_their_names() {
    let recorder = recorder();
    let notification = NotificationId(key(1));
    let hour = Duration::from_secs(3_600);
    recorder.record(&Fact::IntentAccepted { notification, class: "code".into(), deliveries: 3 });
    recorder.record(&Fact::RepeatCaught { notification, hop: Hop::Unique, age: hour, window: hour * 100 });
    recorder.record(&Fact::RepeatCaught { notification, hop: Hop::Http, age: hour * 95, window: hour * 100 });
    recorder.record(&Fact::FingerprintMismatch { notification, hop: Hop::Batch });
    recorder.record(&Fact::SettleRefused {
        notification,
        delivery: DeliveryId(key(2)),
        outcome: OutcomeKind::Accepted,
    });
    recorder.record(&Fact::StoreUnavailable { verb: "claim", why: StoreError::Unavailable("refused".into()) });
    let (provider, why, cause) = (|| "main".to_owned(), OpenWhy::Credential, WhyCode::CredentialRefused);
    recorder.record(&Fact::CircuitOpened { provider: provider(), service: None, why, cause });
    for number in [1, 3, 3] {
        recorder.record(&Fact::CircuitOpened { provider: provider(), service: service(number), why, cause });
    }
    for fact in [
        StepFact::Attempted { outcome: OutcomeKind::Unknown, why: WhyCode::CutAfter, took: hour },
        StepFact::UnknownOutcome { why: WhyCode::CutAfter },
        StepFact::Ended { state: StateName::Unknown, for_: hour },
    ] {
        let (class, channel, provider) = ("code".to_owned(), ChannelKind::Email, "main".to_owned());
        let delivery = DeliveryId(key(2));
        recorder.record(&Fact::Stepped { notification, delivery, class, channel, provider, fact });
    }
    recorder.record(&Fact::HttpAnswered { route: "/livez", method: "GET", status: 200, took: Duration::ZERO });
    let text = recorder.exposition();
    for (name, expected) in [
        ("belfry_intents_accepted_total{class=\"code\"}", "1"),
        ("belfry_deliveries_planned_total{class=\"code\"}", "3"),
        ("belfry_repeats_total{hop=\"unique\"}", "1"),
        ("belfry_repeat_age_seconds_bucket{le=\"3600.0\",hop=\"unique\"}", "1"),
        ("belfry_repeat_age_of_window_bucket{le=\"0.01\",hop=\"unique\"}", "1"),
        ("belfry_repeat_age_of_window_bucket{le=\"0.9\",hop=\"http\"}", "0"),
        ("belfry_repeats_near_window_total{hop=\"http\"}", "1"),
        ("belfry_fingerprint_mismatches_total{hop=\"batch\"}", "1"),
        ("belfry_settles_refused_total{outcome=\"accepted\"}", "1"),
        ("belfry_store_available", "0"),
        ("belfry_store_failures_total{verb=\"claim\"}", "1"),
        ("belfry_circuit_open{provider=\"main\"}", "1"),
        ("belfry_service_circuits_open{provider=\"main\",service=\"another\"}", "2"),
        ("belfry_attempts_total{provider=\"main\",channel=\"email\",class=\"code\",outcome=\"unknown\"}", "1"),
        ("belfry_unknown_outcomes_total{provider=\"main\",class=\"code\",why=\"cut_after\"}", "1"),
        ("belfry_deliveries_ended_total{channel=\"email\",class=\"code\",state=\"unknown\"}", "1"),
        ("belfry_http_requests_total{route=\"/livez\",method=\"GET\",status=\"200\"}", "1"),
    ] {
        assert_eq!(value(&text, name).as_deref(), Some(expected), "{name} in\n{text}");
    }
    recorder.record(&Fact::StoreRecovered);
    recorder.record(&Fact::CircuitClosed { provider: provider(), service: None });
    recorder.record(&Fact::CircuitClosed { provider: provider(), service: service(1) });
    let text = recorder.exposition();
    assert_eq!(value(&text, "belfry_store_available").as_deref(), Some("1"));
    assert_eq!(value(&text, "belfry_circuit_open{provider=\"main\"}").as_deref(), Some("0"));
}

#[test]
fn what_a_store_finds_out_is_counted() {
    let recorder = recorder();
    let notification = NotificationId(key(1));
    let lost = vec![notification, notification];
    recorder.tell(StoreNews::WentBack { shard: 3, since: UnixMs(1), until: UnixMs(2), steps: 7, lost });
    recorder.tell(StoreNews::ClockSkew { ms: -6_000 });
    let text = recorder.exposition();
    for (name, expected) in [
        ("belfry_store_went_back_total", "1"),
        ("belfry_notifications_lost_total", "2"),
        ("belfry_store_clock_skew_milliseconds", "-6000"),
    ] {
        assert_eq!(value(&text, name).as_deref(), Some(expected), "{name} in\n{text}");
    }
}

#[test]
fn depths_become_gauges_and_a_lane_that_is_gone_goes() {
    let recorder = recorder();
    let lane = |provider: &str, due, oldest| LaneDepth {
        lane: Lane::new(provider, Priority::High),
        due,
        waiting: 4,
        sending: 2,
        oldest_due: oldest,
    };
    let mut depths = Depths {
        lanes: vec![
            lane("main", 7, Some(UnixMs(4_000))),
            lane("old", 1, Some(UnixMs(3_000))),
            lane("older", 2, Some(UnixMs(2_000))),
        ],
        unknown: 5,
        oldest_unknown: Some(UnixMs(1_000)),
        parked: 6,
        restored_at: Some(UnixMs(500)),
        held_back: 8,
    };
    recorder.record(&Fact::Measured { depths: depths.clone(), at: UnixMs(10_000) });
    let text = recorder.exposition();
    for (name, expected) in [
        ("belfry_lane_due{provider=\"main\",priority=\"high\"}", "7"),
        ("belfry_lane_oldest_due_seconds{provider=\"main\",priority=\"high\"}", "6.0"),
        ("belfry_lane_due{provider=\"other\",priority=\"high\"}", "3"),
        ("belfry_lane_oldest_due_seconds{provider=\"other\",priority=\"high\"}", "8.0"),
        ("belfry_unknown_deliveries", "5"),
        ("belfry_oldest_unknown_seconds", "9.0"),
        ("belfry_parked_deliveries", "6"),
        ("belfry_held_after_restore", "8"),
    ] {
        assert_eq!(value(&text, name).as_deref(), Some(expected), "{name} in\n{text}");
    }
    depths.lanes.truncate(1);
    recorder.record(&Fact::Measured { depths: depths.clone(), at: UnixMs(10_000) });
    assert_eq!(value(&recorder.exposition(), "belfry_lane_due{provider=\"other\",priority=\"high\"}"), None);
}

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Page {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The JSON lines written while `record` runs. It runs twice: a line that another test came upon
/// first, without a subscriber, counts as switched off until everything is asked anew.
fn lines(record: impl Fn()) -> Vec<serde_json::Value> {
    let page = Page::default();
    let layer = tracing_subscriber::fmt::layer().with_writer(page.clone()).json().flatten_event(true);
    let filter: Targets = "trace".parse().unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(filter).with(layer), || {
        record();
        tracing::callsite::rebuild_interest_cache();
        page.0.lock().unwrap().clear();
        record();
    });
    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_fact_is_one_line_that_names_it() {
    let recorder = recorder(); // Outages are told of once for each reason, which has tests of its own.
    use ProviderNews::{BounceNotKept as Bounce, SetupWrong as Setup, WaitCut as Wait};
    let reminded = |fact: &Fact| match fact {
        Fact::Provider { news, .. } => matches!(news, Setup { .. } | Wait { .. } | Bounce { .. }),
        fact => matches!(fact, Fact::StoreUnavailable { .. }),
    };
    let all: Vec<Fact> = (0..500).map(random_fact).filter(|fact| !reminded(fact)).collect();
    let written = lines(|| all.iter().for_each(|fact| recorder.record(fact)));
    assert_eq!(written.len(), all.len());
    assert!(written.iter().all(|line| line["fact"].is_string() && line["level"].is_string()));
    let notification = NotificationId(key(1));
    let day = Duration::from_secs(86_400);
    let written = lines(|| {
        recorder.record(&Fact::RepeatCaught { notification, hop: Hop::Http, age: day, window: day * 15 });
        recorder.record(&Fact::RepeatCaught { notification, hop: Hop::Http, age: day * 14, window: day * 15 });
    });
    let of = |at: usize, key: &str| written[at][key].clone();
    assert_eq!(
        (of(0, "level"), of(0, "hop"), of(0, "age_s"), of(0, "notification")),
        ("INFO".into(), "http".into(), 86_400.into(), notification.to_string().into())
    );
    assert_eq!(of(1, "level"), "WARN", "a repeat near its window's end is an alert");
}

fn attempted(outcome: OutcomeKind, why: WhyCode) -> Fact {
    Fact::Stepped {
        notification: NotificationId(key(1)),
        delivery: DeliveryId(key(2)),
        class: "code".into(),
        channel: ChannelKind::Email,
        provider: "main".into(),
        fact: StepFact::Attempted { outcome, why, took: Duration::ZERO },
    }
}

#[test]
fn each_outcome_has_words_of_its_own_and_an_unknown_one_is_never_called_not_sent() {
    let recorder = recorder();
    let written = lines(|| {
        OutcomeKind::ALL.iter().for_each(|outcome| recorder.record(&attempted(*outcome, WhyCode::TryLater)));
        recorder.record(&attempted(OutcomeKind::Throttled, WhyCode::CredentialRefused));
    });
    let said: Vec<_> = written.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect();
    let different: std::collections::BTreeSet<_> = said.iter().collect();
    assert_eq!(different.len(), OutcomeKind::ALL.len() + 1, "{said:?}");
    for (line, said) in written.iter().zip(&said) {
        assert_eq!(said.contains("unknown"), line["outcome"] == "unknown", "{said}");
        assert_eq!(line["notification"], NotificationId(key(1)).to_string());
        assert_eq!(line["delivery"], DeliveryId(key(2)).to_string());
    }
}
