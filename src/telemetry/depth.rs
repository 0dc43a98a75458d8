//! What waits, by lane, and what is unclear: gauges set from the store's own count.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use belfry_domain::UnixMs;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{Label, Names};
use crate::ports::deliveries::{Depths, LaneDepth};

type LaneLabels = [(&'static str, Label); 2];
pub(super) type Seconds = Gauge<f64, AtomicU64>;

#[derive(Default)]
pub(super) struct DepthGauges {
    due: Family<LaneLabels, Gauge>,
    waiting: Family<LaneLabels, Gauge>,
    sending: Family<LaneLabels, Gauge>,
    oldest_due: Family<LaneLabels, Seconds>,
    unknown: Gauge,
    oldest_unknown: Seconds,
    parked: Gauge,
    held_back: Gauge,
    /// The lanes shown last, so that one that is gone goes from the gauges too.
    shown: Mutex<Vec<LaneLabels>>,
}

#[derive(Default)]
struct Sum {
    due: u64,
    waiting: u64,
    sending: u64,
    oldest_due: Option<UnixMs>,
}

impl Sum {
    fn add(&mut self, lane: &LaneDepth) {
        self.due += lane.due;
        self.waiting += lane.waiting;
        self.sending += lane.sending;
        self.oldest_due = self.oldest_due.into_iter().chain(lane.oldest_due).min();
    }
}

impl DepthGauges {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("lane_due", "Deliveries that may be claimed now", self.due.clone());
        registry.register("lane_waiting", "Deliveries whose time has not come", self.waiting.clone());
        registry.register("lane_sending", "Deliveries under a claim", self.sending.clone());
        let help = "Age of the delivery that has been due longest";
        registry.register_with_unit("lane_oldest_due", help, Unit::Seconds, self.oldest_due.clone());
        registry.register("unknown_deliveries", "Deliveries whose outcome is not known", self.unknown.clone());
        let help = "Age of the longest unknown outcome";
        registry.register_with_unit("oldest_unknown", help, Unit::Seconds, self.oldest_unknown.clone());
        registry.register("parked_deliveries", "Deliveries that need a person", self.parked.clone());
        let help = "Deliveries held because the store was restored from a backup";
        registry.register("held_after_restore", help, self.held_back.clone());
    }

    pub fn set(&self, depths: &Depths, now: UnixMs, names: &Names) {
        let mut sums: BTreeMap<LaneLabels, Sum> = BTreeMap::new();
        for lane in &depths.lanes {
            let priority = Label::from(lane.lane.priority.name());
            let labels = [("provider", names.provider(&lane.lane.provider)), ("priority", priority)];
            sums.entry(labels).or_default().add(lane);
        }
        for (labels, sum) in &sums {
            self.due.get_or_create(labels).set(whole(sum.due));
            self.waiting.get_or_create(labels).set(whole(sum.waiting));
            self.sending.get_or_create(labels).set(whole(sum.sending));
            self.oldest_due.get_or_create(labels).set(age(sum.oldest_due, now));
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in shown.iter().filter(|labels| !sums.contains_key(*labels)) {
            self.due.remove(gone);
            self.waiting.remove(gone);
            self.sending.remove(gone);
            self.oldest_due.remove(gone);
        }
        *shown = sums.into_keys().collect();
        drop(shown);
        self.unknown.set(whole(depths.unknown));
        self.oldest_unknown.set(age(depths.oldest_unknown, now));
        self.parked.set(whole(depths.parked));
        self.held_back.set(whole(depths.held_back));
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn age(since: Option<UnixMs>, now: UnixMs) -> f64 {
    since.map_or(0.0, |since| now.since(since).as_secs_f64())
}
