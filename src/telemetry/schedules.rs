//! What schedules do: lines, and how many slots came to what, how late.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tracing::{error, info, warn};

use super::labels::Label;
use crate::facts::{ScheduleNews, ScheduleOf};

const SCHEDULES: &str = "belfry::schedules";

type Slots = Family<[(&'static str, Label); 1], Counter>;

pub(super) struct ScheduleCounts {
    slots: Slots,
    late: Histogram,
    unreadable: Counter,
}

impl Default for ScheduleCounts {
    fn default() -> Self {
        let late = Histogram::new([0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0, 86_400.0, 604_800.0]);
        Self { slots: Slots::default(), late, unreadable: Counter::default() }
    }
}

impl ScheduleCounts {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("schedule_slots", "What became of the slots of schedules", self.slots.clone());
        let help = "How long after it was due a slot was seen to";
        registry.register_with_unit("schedule_lateness", help, Unit::Seconds, self.late.clone());
        let help = "Times that a due schedule could not be read";
        registry.register("schedules_unreadable", help, self.unreadable.clone());
    }

    pub fn count(&self, news: &ScheduleNews) {
        match news {
            ScheduleNews::Sent { late, .. } => self.slot("accepted", Some(*late), 1),
            ScheduleNews::Refused { late, .. } => self.slot("refused", Some(*late), 1),
            ScheduleNews::Missed { slots, .. } => self.slot("missed", None, *slots),
            // What people do is told in lines, and each request in its own metric.
            ScheduleNews::Set { .. }
            | ScheduleNews::Paused { .. }
            | ScheduleNews::Resumed { .. }
            | ScheduleNews::Removed { .. }
            | ScheduleNews::Over => {}
        }
    }

    fn slot(&self, outcome: &'static str, late: Option<Duration>, count: u32) {
        self.slots.get_or_create(&[("outcome", outcome.into())]).inc_by(u64::from(count));
        late.into_iter().for_each(|late| self.late.observe(late.as_secs_f64()));
    }

    pub fn could_not_read(&self, count: u32) {
        self.unreadable.inc_by(u64::from(count));
    }
}

pub(super) fn write(of: &ScheduleOf, news: &ScheduleNews) {
    let ScheduleOf { tenant, environment, name } = of;
    match news {
        ScheduleNews::Set { by } => {
            info!(target: SCHEDULES, fact = "schedule_set", tenant, environment, name, by, "a schedule was put");
        }
        ScheduleNews::Paused { by } => {
            info!(target: SCHEDULES, fact = "schedule_paused", tenant, environment, name, by, "a schedule was paused");
        }
        ScheduleNews::Resumed { by } => {
            info!(target: SCHEDULES, fact = "schedule_resumed", tenant, environment, name, by, "a schedule was resumed");
        }
        ScheduleNews::Removed { by } => {
            info!(target: SCHEDULES, fact = "schedule_removed", tenant, environment, name, by, "a schedule was removed");
        }
        ScheduleNews::Sent { notification, late } => {
            let late_ms = u64::try_from(late.as_millis()).unwrap_or(u64::MAX);
            info!(target: SCHEDULES, fact = "schedule_sent", tenant, environment, name, %notification, late_ms,
                "what a schedule sends was accepted");
        }
        ScheduleNews::Refused { pointers, .. } => {
            let pointers = pointers.join(" ");
            warn!(target: SCHEDULES, fact = "schedule_refused", tenant, environment, name, pointers,
                "what a schedule sends was refused; it goes on with its next run");
        }
        ScheduleNews::Missed { slots, and_older } => {
            warn!(target: SCHEDULES, fact = "schedule_missed", tenant, environment, name, slots, and_older,
                "runs of a schedule were let go: no node was there");
        }
        ScheduleNews::Over => {
            info!(target: SCHEDULES, fact = "schedule_over", tenant, environment, name, "a schedule has no run any more");
        }
    }
}

pub(super) fn could_not_read(count: u32) {
    error!(target: SCHEDULES, fact = "schedules_unreadable", count, "schedules that are due cannot be read; they stay");
}
