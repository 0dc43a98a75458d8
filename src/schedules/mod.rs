//! Sends what schedules say. Any number of nodes may do so at once: what is sent at a slot has an id of its own, so
//! that the second who comes to it repeats an intent that is known. Sent first, then moved on: whoever dies in between
//! leaves the slot to the next, who finds it sent.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::schedule::Due;
use futures::future::join_all;

use crate::facts::{Fact, FactSink, ScheduleNews, ScheduleOf};
use crate::intake::accept::Intake;
use crate::intake::answer::Answer;
use crate::intake::caller::Caller;
use crate::intake::json;
use crate::intake::stored::{Asker, Stored, may_name, named};
use crate::ports::StoreError;
use crate::ports::clock::{Clock, Tasks};
use crate::ports::holds::Holds;
use crate::ports::schedules::{Kept, MOST_DUE, Ran, Run, Schedule, Schedules, Wrote};

/// The longest between two looks: a schedule that another node was given may be due before all that this one knows of.
const EVERY: Duration = Duration::from_secs(1);
/// What was given to a node and not moved on is given to others after so long.
const AGAIN: Duration = Duration::from_secs(5);
/// A look, or one schedule's slots, that take longer are given up: the store hangs.
const PATIENCE: Duration = Duration::from_secs(4);
const WHY_STOPPED: &str = "The schedule was paused or removed while this was sent.";

/// What this room works with.
#[derive(Clone)]
pub struct Deps {
    pub schedules: Arc<dyn Schedules>,
    pub holds: Arc<dyn Holds>,
    pub intake: Arc<Intake>,
    pub clock: Arc<dyn Clock>,
    pub facts: Arc<dyn FactSink>,
}

/// Starts it, until `tasks` end.
pub fn start(deps: Deps, tasks: &dyn Tasks) {
    tasks.start("schedules", Box::pin(run(deps)));
}

async fn run(deps: Deps) {
    let mut away = false;
    loop {
        let began = deps.clock.boot();
        let looked = within(&deps, look(&deps)).await;
        if let Err(why) = &looked {
            deps.facts.record(&Fact::StoreUnavailable { verb: "schedules", why: why.clone() });
        } else if away {
            deps.facts.record(&Fact::StoreRecovered);
        }
        away = looked.is_err();
        let wait = match looked {
            Ok(then) => then.map_or(EVERY, |then| then.since(deps.clock.now()).min(EVERY)),
            Err(_) => EVERY,
        };
        deps.clock.sleep_until(began + wait).await;
    }
}

async fn within<T>(deps: &Deps, call: impl Future<Output = Result<T, StoreError>> + Send) -> Result<T, StoreError> {
    tokio::select! {
        biased;
        done = call => done,
        () = deps.clock.sleep_until(deps.clock.boot() + PATIENCE) => {
            Err(StoreError::Unavailable("no answer in time".into()))
        }
    }
}

/// Takes what is due and sees to it; when to look again. [`start`] does so again and again.
///
/// # Errors
/// [`StoreError`]: the next look finds what this one left.
pub async fn look(deps: &Deps) -> Result<Option<UnixMs>, StoreError> {
    let now = deps.clock.now();
    let taken = deps.schedules.take_due(now, now.plus(AGAIN), MOST_DUE).await?;
    if taken.unreadable > 0 {
        deps.facts.record(&Fact::SchedulesUnreadable { count: taken.unreadable });
    }
    if taken.due.is_empty() {
        return Ok(taken.then);
    }
    // What was due before the store was restored may have been sent before it was lost.
    let restored = deps.holds.standing().await?;
    // Each for itself: what one of them runs into is no other's trouble.
    let all = join_all(taken.due.into_iter().map(|kept| advance(deps, kept, restored))).await;
    all.into_iter().collect::<Result<(), _>>()?;
    // There may be more than are taken at once.
    Ok(Some(deps.clock.now()))
}

/// Sends what is due of one schedule, and moves it on.
async fn advance(deps: &Deps, kept: Kept, restored: Option<UnixMs>) -> Result<(), StoreError> {
    let Kept { schedule, written } = kept;
    let (Some(rhythm), Some(next)) = (schedule.rhythm(), schedule.next) else {
        // Of a Belfry that knew more zones: it stays for that one.
        deps.facts.record(&Fact::SchedulesUnreadable { count: 1 });
        return Ok(());
    };
    let mut due = rhythm.due(next, schedule.missed, deps.clock.now());
    let held = due.send.iter().filter(|slot| restored.is_some_and(|at| **slot <= at)).count();
    due.send.drain(..held);
    due.missed = due.missed.saturating_add(u32::try_from(held).unwrap_or(u32::MAX));
    let sent = send(deps, &schedule, &due.send).await?;
    let moved = moved_on(&schedule, &due, sent.last().map(|sent| &sent.run));
    let wrote = deps.schedules.write_schedule(&schedule.owner(), &schedule.name, Some(&written), Some(&moved)).await?;
    if wrote == Wrote::Done {
        tell(deps, &schedule, &due, &sent);
        return Ok(());
    }
    stop_if_gone(deps, &schedule, &sent).await
}

fn moved_on(schedule: &Schedule, due: &Due, last: Option<&Run>) -> Schedule {
    Schedule {
        next: due.next,
        last: last.or(schedule.last.as_ref()).cloned(),
        missed_count: schedule.missed_count.saturating_add(due.missed.into()),
        ..schedule.clone()
    }
}

fn caller(schedule: &Schedule) -> Caller {
    Caller {
        tenant: schedule.tenant.clone(),
        environment: schedule.environment.clone(),
        namespace: String::new(),
        key: schedule.by.clone(),
    }
}

/// What became of a slot.
struct Sent {
    run: Run,
    /// It was accepted here and now, and not known before.
    is_new: bool,
}

/// Has the slots accepted, each under its own id. What is refused holds up no other.
async fn send(deps: &Deps, schedule: &Schedule, slots: &[UnixMs]) -> Result<Vec<Sent>, StoreError> {
    if slots.is_empty() {
        return Ok(Vec::new());
    }
    let (caller, text) = (caller(schedule), schedule.notification.as_bytes());
    let unreadable = || StoreError::Corrupt("a schedule's notification".into());
    let names: BTreeSet<String> = match may_name(text) {
        true => named(&json::parse(text).map_err(|_| unreadable())?).into_iter().collect(),
        false => BTreeSet::new(),
    };
    let stored = if names.is_empty() { Stored::default() } else { deps.intake.stored(&caller, names).await? };
    let candidates = {
        let node = json::parse(text).map_err(|_| unreadable())?;
        let asker = Asker { caller: &caller, stored: &stored };
        let one = |slot: &UnixMs| deps.intake.prepare_slot(asker, &schedule.name, *slot, &node);
        slots.iter().map(one).collect()
    };
    let answers = deps.intake.accept(&caller, candidates).await?;
    let at = deps.clock.now();
    let sent = slots.iter().zip(answers).map(|(slot, answer)| Sent {
        is_new: matches!(answer, Answer::Created(_)),
        run: Run { slot: *slot, at, outcome: ran(schedule, *slot, answer) },
    });
    Ok(sent.collect())
}

fn ran(schedule: &Schedule, slot: UnixMs, answer: Answer) -> Ran {
    match answer {
        // Under another text it was sent before somebody changed it.
        Answer::Created(_) | Answer::Replayed(_) | Answer::Remembered(_) | Answer::Mismatch { .. } => {
            Ran::Accepted { notification: schedule.notification_id(slot) }
        }
        Answer::Refused(refusal) => {
            Ran::Refused { errors: refusal.errors.into_iter().map(|one| (one.pointer, one.detail)).collect() }
        }
    }
}

/// Somebody else wrote it. Where they stopped it, what was accepted just now is not to go out.
async fn stop_if_gone(deps: &Deps, schedule: &Schedule, sent: &[Sent]) -> Result<(), StoreError> {
    let now = deps.schedules.schedule(&schedule.owner(), &schedule.name).await?;
    if now.is_some_and(|kept| kept.schedule.paused.is_none()) {
        return Ok(());
    }
    for Sent { run, .. } in sent.iter().filter(|sent| sent.is_new) {
        if let Ran::Accepted { notification } = &run.outcome {
            deps.intake.cancel(&caller(schedule), *notification, WHY_STOPPED).await?;
        }
    }
    Ok(())
}

fn tell(deps: &Deps, schedule: &Schedule, due: &Due, sent: &[Sent]) {
    let of = || ScheduleOf::new(schedule);
    for Run { slot, at, outcome } in sent.iter().map(|sent| &sent.run) {
        let late = at.since(*slot);
        let news = match outcome {
            Ran::Accepted { notification } => ScheduleNews::Sent { notification: *notification, late },
            Ran::Refused { errors } => {
                ScheduleNews::Refused { pointers: errors.iter().map(|(pointer, _)| pointer.clone()).collect(), late }
            }
        };
        deps.facts.record(&Fact::Schedule { of: of(), news });
    }
    if due.missed > 0 || due.and_older {
        deps.facts.record(&Fact::Schedule {
            of: of(),
            news: ScheduleNews::Missed { slots: due.missed, and_older: due.and_older },
        });
    }
    if due.next.is_none() {
        deps.facts.record(&Fact::Schedule { of: of(), news: ScheduleNews::Over });
    }
}
