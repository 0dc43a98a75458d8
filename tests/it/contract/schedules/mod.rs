//! [`belfry::ports::schedules::Schedules`].

mod due;
mod kept;
mod sequences;

use belfry::ports::deliveries::Owner;
use belfry::ports::schedules::{Kept, Schedule, Wrote};
use belfry_domain::UnixMs;
use belfry_domain::schedule::Missed;

use super::fixture::acme;
use super::harness::{Harness, START};

/// Due so long after the start.
pub(crate) fn schedule(name: &str, due_in: i64) -> Schedule {
    of(&acme(), name, due_in)
}

pub(crate) fn of(owner: &Owner, name: &str, due_in: i64) -> Schedule {
    Schedule {
        tenant: owner.tenant.clone(),
        environment: owner.environment.clone(),
        name: name.into(),
        cron: "*/5 9-17 * * mon-fri".into(),
        time_zone: "Europe/Stockholm".into(),
        missed: Missed::Skip,
        until: None,
        notification: r#"{"class":"digest","to":{"email":"ann@example.com"}}"#.into(),
        paused: None,
        created_at: START,
        changed_at: START,
        by: "key_1".into(),
        next: Some(UnixMs(START.0 + due_in)),
        last: None,
        missed_count: 0,
    }
}

impl Harness {
    pub(crate) async fn scheduled(&self, owner: &Owner, name: &str) -> Option<Kept> {
        self.store.schedule(owner, name).await.unwrap()
    }

    /// Writes a new one.
    pub(crate) async fn keep(&self, new: &Schedule) {
        assert_eq!(self.store.write_schedule(&new.owner(), &new.name, None, Some(new)).await.unwrap(), Wrote::Done);
    }
}
