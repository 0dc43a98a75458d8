//! Schedules as callers ask for them: read and checked, with the notification as it will be asked for, kept, and told
//! with their next runs.

use std::sync::Arc;

use belfry_domain::UnixMs;
use belfry_domain::schedule::{Cron, MOST_CAUGHT_UP, MOST_CRON, Missed, Rhythm};

use super::accept::Intake;
use super::actions::MOST_TRIES;
use super::caller::Caller;
use super::fields::{FieldProblem, Object, Problems, line};
use super::json::{Node, Value};
use super::registrar::Put;
use super::stored::Asker;
use crate::facts::{Fact, FactSink, ScheduleNews, ScheduleOf};
use crate::ports::StoreError;
use crate::ports::clock::Clock;
use crate::ports::deliveries::Owner;
use crate::ports::schedules::{Kept, Paused, Schedule, SchedulePage, Schedules, Wrote};

pub const MEMBERS: &[&str] = &["cron", "time_zone", "missed", "until", "enabled", "notification"];
pub const MISSED: &[&str] = &["policy", "most"];
pub const POLICIES: &[&str] = &["skip", "catch_up"];
/// Members of a notification that say when, or which: of a schedule its slot says both.
pub const NOT_SCHEDULED: &[&str] = &["unique", "send_at", "expires_at", "intent_at"];
/// Largest notification, as written.
pub const MOST_NOTIFICATION_BYTES: usize = 32 * 1024;
/// Next runs that are told.
pub const RUNS_SHOWN: usize = 5;
/// What is asked for under a name.
#[derive(Clone, Debug)]
pub struct Wanted {
    rhythm: Rhythm,
    time_zone: String,
    missed: Missed,
    /// Absent: as it stands, and running where it is new.
    enabled: Option<bool>,
    notification: String,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulePut {
    Kept(Box<Put<Schedule>>),
    TooMany,
}

/// Where schedules are set by hand.
pub struct ScheduleDesk {
    book: Arc<dyn Schedules>,
    intake: Arc<Intake>,
    clock: Arc<dyn Clock>,
    facts: Arc<dyn FactSink>,
}

impl ScheduleDesk {
    #[must_use]
    pub const fn new(
        book: Arc<dyn Schedules>,
        intake: Arc<Intake>,
        clock: Arc<dyn Clock>,
        facts: Arc<dyn FactSink>,
    ) -> Self {
        Self { book, intake, clock, facts }
    }

    /// Reads what is asked for under `name`; its notification is prepared as it will be at a slot.
    ///
    /// # Errors
    /// Every bad field.
    pub fn read(&self, asker: Asker<'_>, name: &str, node: &Node<'_>) -> Result<Wanted, Vec<FieldProblem>> {
        let mut problems = Problems::default();
        let Some(object) = Object::open(node, "", MEMBERS, &mut problems) else { return Err(problems.all()) };
        for required in ["cron", "time_zone", "notification"] {
            if !object.has(required) {
                problems.add(object.at(required), "is required");
            }
        }
        let now = self.clock.now();
        let (rhythm, time_zone) = rhythm(&object, now, &mut problems).unzip();
        let missed = missed(&object, &mut problems);
        let enabled = enabled(&object, &mut problems);
        let notification = object.get("notification").map(|node| {
            self.check((asker, name), node, &mut problems);
            node.raw.to_owned()
        });
        match (rhythm, time_zone, notification) {
            (Some(rhythm), Some(time_zone), Some(notification)) if problems.is_empty() => {
                Ok(Wanted { rhythm, time_zone, missed, enabled, notification })
            }
            _ => Err(problems.all()),
        }
    }

    fn check(&self, (asker, name): (Asker<'_>, &str), node: &Node<'_>, problems: &mut Problems) {
        if node.raw.len() > MOST_NOTIFICATION_BYTES {
            let detail = format!("must have at most {MOST_NOTIFICATION_BYTES} bytes, has {}", node.raw.len());
            return problems.add("/notification", detail);
        }
        for member in NOT_SCHEDULED.iter().filter(|member| node.member(member).is_some()) {
            problems.add(format!("/notification/{member}"), "is said by the schedule: each of its slots is an intent");
        }
        let candidate = self.intake.prepare_slot(asker, name, self.clock.now(), node);
        for problem in candidate.refused() {
            let pointer = format!("/notification{}", problem.pointer);
            if !problems.lasting.iter().any(|known| known.pointer == pointer) {
                problems.add(pointer, problem.detail.clone());
            }
        }
    }

    /// Keeps what is asked for in place of what was; the same again changes nothing. What is due and not yet sent stays
    /// due unless the times change.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it. So for every verb here.
    pub async fn put(&self, caller: &Caller, name: &str, wanted: &Wanted) -> Result<SchedulePut, StoreError> {
        let owner = caller.owner();
        for _ in 0..MOST_TRIES {
            let before = self.book.schedule(&owner, name).await?;
            let next = self.planned(caller, name, wanted, before.as_ref().map(|kept| &kept.schedule));
            let unchanged = before.as_ref().is_some_and(|kept| kept.schedule == next);
            match self.write(&owner, name, before.as_ref(), Some(&next)).await? {
                Wrote::Other => {}
                Wrote::TooMany => return Ok(SchedulePut::TooMany),
                Wrote::Done => {
                    if !unchanged {
                        self.tell(&next, ScheduleNews::Set { by: caller.key.clone() });
                    }
                    return Ok(SchedulePut::Kept(Box::new(Put { now: next, is_new: before.is_none() })));
                }
            }
        }
        Err(many_at_once())
    }

    /// As it would be kept; nothing is.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn tried(&self, caller: &Caller, name: &str, wanted: &Wanted) -> Result<Schedule, StoreError> {
        let before = self.book.schedule(&caller.owner(), name).await?;
        Ok(self.planned(caller, name, wanted, before.as_ref().map(|kept| &kept.schedule)))
    }

    fn planned(&self, caller: &Caller, name: &str, wanted: &Wanted, before: Option<&Schedule>) -> Schedule {
        let now = self.clock.now();
        let Wanted { rhythm, time_zone, missed, enabled, notification } = wanted;
        let cron = rhythm.cron.to_string();
        let paused = match (enabled, before.and_then(|before| before.paused.clone())) {
            (Some(true), _) => None,
            (Some(false), None) => Some(Paused { since: now, by: caller.key.clone() }),
            (Some(false) | None, stood) => stood,
        };
        let same_times = before.is_some_and(|before| before.cron == cron && before.time_zone == *time_zone);
        // What is due is not lost to a change of its text. One that lies further ahead than it can comes of a clock that
        // was wrong.
        let due = before.and_then(|before| before.next).filter(|next| same_times && *next <= now);
        let next = due.filter(|due| rhythm.until.is_none_or(|until| *due <= until)).or_else(|| rhythm.after(now));
        let new = Schedule {
            tenant: caller.tenant.clone(),
            environment: caller.environment.clone(),
            name: name.to_owned(),
            cron,
            time_zone: time_zone.clone(),
            missed: *missed,
            until: rhythm.until,
            notification: notification.clone(),
            next: next.filter(|_| paused.is_none()),
            paused,
            created_at: before.map_or(now, |before| before.created_at),
            changed_at: before.map_or(now, |before| before.changed_at),
            by: before.map_or_else(|| caller.key.clone(), |before| before.by.clone()),
            last: before.and_then(|before| before.last.clone()),
            missed_count: before.map_or(0, |before| before.missed_count),
        };
        if before == Some(&new) { new } else { Schedule { changed_at: now, by: caller.key.clone(), ..new } }
    }

    /// # Errors
    /// As [`Self::put`].
    pub async fn of(&self, owner: &Owner, name: &str) -> Result<Option<Schedule>, StoreError> {
        Ok(self.book.schedule(owner, name).await?.map(|kept| kept.schedule))
    }

    /// # Errors
    /// As [`Self::put`].
    pub async fn listed(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SchedulePage, StoreError> {
        self.book.schedules(owner, after, limit).await
    }

    /// Stops it: from the answer on no slot is sent. What was accepted before goes on. `None`: there is none.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn pause(&self, caller: &Caller, name: &str) -> Result<Option<Schedule>, StoreError> {
        let paused = Paused { since: self.clock.now(), by: caller.key.clone() };
        let change = |it: &Schedule| {
            let stood = it.paused.clone();
            Schedule { paused: stood.or_else(|| Some(paused.clone())), next: None, ..it.clone() }
        };
        self.change(caller, name, (change, |by| ScheduleNews::Paused { by })).await
    }

    /// Lets it go on with the next slot: what fell into the pause was not missed.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn resume(&self, caller: &Caller, name: &str) -> Result<Option<Schedule>, StoreError> {
        let now = self.clock.now();
        let change = |it: &Schedule| match it.paused {
            Some(_) => Schedule { paused: None, next: it.rhythm().and_then(|it| it.after(now)), ..it.clone() },
            None => it.clone(),
        };
        self.change(caller, name, (change, |by| ScheduleNews::Resumed { by })).await
    }

    async fn change(
        &self,
        caller: &Caller,
        name: &str,
        (change, news): (impl Fn(&Schedule) -> Schedule + Sync, fn(String) -> ScheduleNews),
    ) -> Result<Option<Schedule>, StoreError> {
        let owner = caller.owner();
        for _ in 0..MOST_TRIES {
            let Some(before) = self.book.schedule(&owner, name).await? else { return Ok(None) };
            let next = change(&before.schedule);
            if self.write(&owner, name, Some(&before), Some(&next)).await? == Wrote::Done {
                if next != before.schedule {
                    self.tell(&next, news(caller.key.clone()));
                }
                return Ok(Some(next));
            }
        }
        Err(many_at_once())
    }

    /// Removes it: from the answer on no slot is sent. What was accepted before goes on.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub async fn remove(&self, caller: &Caller, name: &str) -> Result<(), StoreError> {
        let owner = caller.owner();
        for _ in 0..MOST_TRIES {
            let before = self.book.schedule(&owner, name).await?;
            if self.write(&owner, name, before.as_ref(), None).await? == Wrote::Done {
                if let Some(before) = before {
                    self.tell(&before.schedule, ScheduleNews::Removed { by: caller.key.clone() });
                }
                return Ok(());
            }
        }
        Err(many_at_once())
    }

    /// Also where nothing changes: the answer waits for what was read to be durable.
    async fn write(
        &self,
        owner: &Owner,
        name: &str,
        before: Option<&Kept>,
        next: Option<&Schedule>,
    ) -> Result<Wrote, StoreError> {
        self.book.write_schedule(owner, name, before.map(|kept| kept.written.as_str()), next).await
    }

    fn tell(&self, schedule: &Schedule, news: ScheduleNews) {
        self.facts.record(&Fact::Schedule { of: ScheduleOf::new(schedule), news });
    }
}

/// When it is due next, the first [`RUNS_SHOWN`] times; of one that is paused or over never.
#[must_use]
pub fn next_runs(schedule: &Schedule) -> Vec<UnixMs> {
    let (Some(rhythm), Some(next)) = (schedule.rhythm(), schedule.look_at()) else { return Vec::new() };
    std::iter::once(next).chain(rhythm.runs(next, RUNS_SHOWN - 1)).collect()
}

/// Why there is no room for one more.
#[must_use]
pub fn too_many() -> String {
    let most = crate::ports::schedules::MOST_SCHEDULES;
    format!("The tenant has as many schedules in this environment as there may be, {most}. Remove some.")
}

fn many_at_once() -> StoreError {
    StoreError::Unavailable("too many are changing this schedule at once".into())
}

/// With the zone as it is written.
fn rhythm(object: &Object<'_, '_>, now: UnixMs, problems: &mut Problems) -> Option<(Rhythm, String)> {
    let cron = object
        .text("cron", line(MOST_CRON), problems)
        .and_then(|text| text.parse::<Cron>().map_err(|wrong| problems.add("/cron", wrong.to_string())).ok());
    let zone = object.text("time_zone", line(64), problems).and_then(|name| match name.parse() {
        Ok(zone) => Some((zone, name)),
        Err(_) => {
            problems.add("/time_zone", "must be an IANA time zone such as Europe/Stockholm");
            None
        }
    });
    let until = object.instant("until", problems);
    let (cron, (zone, name)) = (cron?, zone?);
    let rhythm = Rhythm { cron, zone, until };
    if rhythm.after(now).is_none() {
        problems.add(if until.is_some() { "/until" } else { "/cron" }, "leaves no run from now on");
    }
    Some((rhythm, name))
}

fn missed(object: &Object<'_, '_>, problems: &mut Problems) -> Missed {
    let Some(node) = object.get("missed") else { return Missed::Skip };
    let Some(missed) = Object::open(node, "/missed", MISSED, problems) else { return Missed::Skip };
    let policy = missed.text("policy", line(16), problems);
    let most = missed.integer("most", problems);
    match policy.as_deref() {
        Some("skip") => {
            if missed.has("most") {
                problems.add("/missed/most", "belongs to catch_up");
            }
            Missed::Skip
        }
        Some("catch_up") => {
            let fits =
                most.and_then(|most| u16::try_from(most).ok()).filter(|most| (1..=MOST_CAUGHT_UP).contains(most));
            if fits.is_none() {
                problems.add("/missed/most", format!("must be from 1 to {MOST_CAUGHT_UP}: so many are made up for"));
            }
            Missed::CatchUp { most: fits.unwrap_or(1) }
        }
        Some(_) | None => {
            problems.add("/missed/policy", format!("must be one of {}", POLICIES.join(", ")));
            Missed::Skip
        }
    }
}

fn enabled(object: &Object<'_, '_>, problems: &mut Problems) -> Option<bool> {
    match &object.get("enabled")?.value {
        Value::Bool(enabled) => Some(*enabled),
        _ => {
            problems.add("/enabled", "must be true or false");
            None
        }
    }
}
