use std::time::Duration;

use belfry_domain::NotificationId;

use super::{key, lines, recorder, value};
use crate::facts::{Fact, FactSink as _, ScheduleNews, ScheduleOf};

/// Of a tenant's schedule.
pub(super) fn fact(name: String, notification: NotificationId, by: u64) -> Fact {
    let late = Duration::from_millis(by % 1_000_000);
    let who = || format!("key {by}");
    let news = match by % 9 {
        0 => ScheduleNews::Set { by: who() },
        1 => ScheduleNews::Paused { by: who() },
        2 => ScheduleNews::Resumed { by: who() },
        3 => ScheduleNews::Removed { by: who() },
        4 => ScheduleNews::Sent { notification, late },
        5 => ScheduleNews::Refused { pointers: vec!["/to".into(), "/template".into()], late },
        6 => ScheduleNews::Missed { slots: 3, and_older: by.is_multiple_of(2) },
        7 => ScheduleNews::Over,
        _ => return Fact::SchedulesUnreadable { count: 2 },
    };
    Fact::Schedule { of: ScheduleOf { tenant: "acme".into(), environment: "live".into(), name }, news }
}

#[test]
fn what_became_of_slots_is_counted() {
    let recorder = recorder();
    for by in 0..9 {
        recorder.record(&fact("daily".into(), NotificationId(key(1)), by));
    }
    let text = recorder.exposition();
    for (name, expected) in [
        ("belfry_schedule_slots_total{outcome=\"accepted\"}", "1"),
        ("belfry_schedule_slots_total{outcome=\"refused\"}", "1"),
        ("belfry_schedule_slots_total{outcome=\"missed\"}", "3"),
        ("belfry_schedule_lateness_seconds_count", "2"),
        ("belfry_schedules_unreadable_total", "2"),
    ] {
        assert_eq!(value(&text, name).as_deref(), Some(expected), "{name} in\n{text}");
    }
}

#[test]
fn a_schedule_is_told_of_by_its_name() {
    let recorder = recorder();
    let written = lines(|| (0..8).for_each(|by| recorder.record(&fact("daily".into(), NotificationId(key(1)), by))));
    let facts = ["set", "paused", "resumed", "removed", "sent", "refused", "missed", "over"];
    for (line, fact) in written.iter().zip(facts) {
        assert_eq!(line["fact"], format!("schedule_{fact}"), "{line}");
        assert_eq!((&line["name"], &line["tenant"]), (&"daily".into(), &"acme".into()), "{line}");
    }
    assert_eq!((written.len(), &written[5]["pointers"]), (8, &"/to /template".into()));
}
