//! Schedules as the API takes and shows them.

use belfry_domain::schedule::Missed;
use belfry_domain::{NotificationId, UnixMs};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::openapi::ScheduledNotification;
use crate::http::problem::ErrorBody;
use crate::intake::instant::rfc3339;
use crate::intake::schedules::next_runs;
use crate::ports::schedules::{Ran, Run, Schedule};

/// What is sent again and again.
#[derive(ToSchema)]
pub struct NewSchedule {
    /// Minute, hour, day of the month, month and day of the week, as in a crontab: numbers, names (`mon-fri`), lists,
    /// ranges and steps; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
    #[schema(min_length = 1, max_length = 200, examples("0 9 * * mon-fri"))]
    pub cron: String,
    /// The IANA time zone that the times are in. A time that its clocks leave out comes at their jump, one that they show
    /// twice the first time.
    #[schema(min_length = 1, max_length = 64, examples("Europe/Stockholm"))]
    pub time_zone: String,
    /// What becomes of runs at which no node was there. Absent: they are skipped.
    #[schema(nullable = false, required = false)]
    pub missed: Option<MissedRuns>,
    /// The last moment at which it may run.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub until: Option<String>,
    /// `false` has it wait as `/pause` does. Absent: it stays as it is; a new one runs.
    #[schema(nullable = false, required = false)]
    pub enabled: Option<bool>,
    pub notification: ScheduledNotification,
}

/// What becomes of runs at which no node was there.
#[derive(Debug, Serialize, ToSchema)]
pub struct MissedRuns {
    pub policy: MissedPolicy,
    /// With `catch_up`: so many of the latest are made up for, none older than 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100, nullable = false, required = false)]
    pub most: Option<u16>,
}

/// `skip`: nothing. `catch_up`: the latest are sent when a node is there again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum MissedPolicy {
    Skip,
    CatchUp,
}

/// A schedule as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleView {
    pub name: String,
    pub state: ScheduleState,
    pub cron: String,
    pub time_zone: String,
    pub missed: MissedRuns,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub until: Option<String>,
    pub notification: ScheduledSummary,
    /// The next five, in order; none of one that is paused or over.
    #[schema(max_items = 5)]
    pub next_runs: Vec<NextRun>,
    /// The latest run at which something was to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_run: Option<LastRun>,
    /// Runs that were let go because no node was there, since it was made.
    pub missed_runs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub paused_since: Option<String>,
    /// Public name of the key that paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub paused_by: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub changed_at: String,
    /// Public name of the key that put it last.
    pub changed_by: String,
}

/// `over`: it has no run any more.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum ScheduleState {
    Active,
    Paused,
    Over,
}

/// What it sends, without addresses and without what it says.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct ScheduledSummary {
    pub class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub template: Option<String>,
    /// Your own name for whom it goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recipient: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub group: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct NextRun {
    #[schema(format = DateTime)]
    pub at: String,
    /// What a clock in the schedule's zone shows then.
    #[schema(examples("2026-12-24T09:00:00"))]
    pub local: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct LastRun {
    /// When it was due.
    #[schema(format = DateTime)]
    pub due_at: String,
    /// When a node saw to it.
    #[schema(format = DateTime)]
    pub at: String,
    pub outcome: RunOutcome,
    /// What was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub notification: Option<RunNotification>,
    /// Why it was refused: pointers into the schedule, as they would be told now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<ErrorBody>,
}

/// `refused`: what was right when it was put was so no more. It goes on with its next run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum RunOutcome {
    Accepted,
    Refused,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct RunNotification {
    #[schema(pattern = "^ntf_[0-9a-f]{24}$")]
    pub id: String,
    /// Where it can be read.
    pub url: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SchedulePage)]
pub struct ScheduleList {
    #[schema(max_items = 100)]
    pub data: Vec<ScheduleView>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl MissedRuns {
    const fn new(missed: Missed) -> Self {
        match missed {
            Missed::Skip => Self { policy: MissedPolicy::Skip, most: None },
            Missed::CatchUp { most } => Self { policy: MissedPolicy::CatchUp, most: Some(most) },
        }
    }
}

impl ScheduledSummary {
    fn new(notification: &str) -> Self {
        // It was read whole when it was put.
        let read: serde_json::Value = serde_json::from_str(notification).unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        Self {
            class: text(&read["class"]).unwrap_or_default(),
            template: text(&read["template"]),
            recipient: text(&read["to"]["recipient"]),
            scope: text(&read["scope"]),
            reference: text(&read["reference"]),
            group: text(&read["group"]),
        }
    }
}

impl LastRun {
    fn new(Run { slot, at, outcome }: Run) -> Self {
        let notification =
            |id: NotificationId| RunNotification { url: format!("/v1/notifications/{id}"), id: id.to_string() };
        let error =
            |(pointer, detail): (String, String)| ErrorBody { pointer: format!("/notification{pointer}"), detail };
        let (outcome, notification, errors) = match outcome {
            Ran::Accepted { notification: id } => (RunOutcome::Accepted, Some(notification(id)), Vec::new()),
            Ran::Refused { errors } => (RunOutcome::Refused, None, errors.into_iter().map(error).collect()),
        };
        Self { due_at: rfc3339(slot), at: rfc3339(at), outcome, notification, errors }
    }
}

impl ScheduleView {
    #[must_use]
    pub fn new(it: Schedule) -> Self {
        let zone = it.rhythm().map(|rhythm| rhythm.zone);
        let local = |at: UnixMs| zone.as_ref().and_then(|zone| zone.shows(at)).map(|it| it.to_string());
        let run = |at: UnixMs| NextRun { at: rfc3339(at), local: local(at).unwrap_or_default() };
        let state = match (&it.paused, it.next) {
            (Some(_), _) => ScheduleState::Paused,
            (None, Some(_)) => ScheduleState::Active,
            (None, None) => ScheduleState::Over,
        };
        let (paused_since, paused_by) = it.paused.as_ref().map(|it| (rfc3339(it.since), it.by.clone())).unzip();
        Self {
            state,
            next_runs: next_runs(&it).into_iter().map(run).collect(),
            missed: MissedRuns::new(it.missed),
            until: it.until.map(rfc3339),
            notification: ScheduledSummary::new(&it.notification),
            last_run: it.last.map(LastRun::new),
            missed_runs: it.missed_count,
            paused_since,
            paused_by,
            created_at: rfc3339(it.created_at),
            changed_at: rfc3339(it.changed_at),
            changed_by: it.by,
            name: it.name,
            cron: it.cron,
            time_zone: it.time_zone,
        }
    }
}
