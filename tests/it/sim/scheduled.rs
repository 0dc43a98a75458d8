//! Schedules while nodes die, answers are lost and clocks step: each slot has one effect, none early, none forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::ports::schedules::{Schedule, Schedules as _, Wrote};
use belfry_domain::schedule::Missed;
use belfry_domain::{ChannelKind, UnixMs};
use futures::FutureExt as _;

use super::bugs::Bug;
use super::check;
use super::door::Intent;
use super::executor::Rng;
use super::scenario::{Plan, Run, owner};
use crate::contract::schedules::of;

const MINUTE: i64 = 60_000;

/// Every slot from the first that it was given to its last.
fn slots(schedule: &Schedule) -> Vec<UnixMs> {
    let rhythm = schedule.rhythm().unwrap();
    std::iter::successors(schedule.next, |slot| rhythm.after(*slot)).collect()
}

fn slot_key(schedule: &Schedule, slot: UnixMs) -> String {
    format!("{}/{}", schedule.name, slot.0)
}

impl Run {
    /// The same with schedules: at rest once all of them are over, their slots acknowledged by [`slot_key`].
    fn scheduled(plan: Plan, schedules: impl FnOnce(UnixMs) -> Vec<Schedule>) -> Self {
        let mut run = Self::new(plan);
        run.scheduled = schedules(run.world.started_at);
        for one in &run.scheduled {
            let wrote = run.store.write_schedule(&owner(), &one.name, None, Some(one)).now_or_never();
            assert_eq!(wrote, Some(Ok(Wrote::Done)));
        }
        run
    }

    fn schedules(&self) -> Vec<Schedule> {
        let page = self.store.schedules(&owner(), None, 100).now_or_never();
        page.expect("the inline store never waits").unwrap().schedules
    }

    /// Whether all slots are seen to; acknowledges those that were sent.
    pub fn slots_seen_to(&self) -> bool {
        if self.scheduled.is_empty() {
            return true;
        }
        if self.schedules().iter().any(|one| one.next.is_some()) {
            return false;
        }
        for (one, slot) in self.scheduled.iter().flat_map(|one| slots(one).into_iter().map(move |slot| (one, slot))) {
            let id = one.notification_id(slot);
            if self.record(id).is_some() {
                self.world.told().acknowledged.insert(slot_key(one, slot), id);
            }
        }
        true
    }
}

fn schedule(name: &str, (class, cron): (&str, &str), missed: Missed, (from, minutes): (UnixMs, i64)) -> Schedule {
    let notification = format!(
        r#"{{"class":"{class}","to":{{"email":"ann@example.com"}},"content":{{"subject":"S","text":"{name}"}}}}"#
    );
    let mut it = Schedule {
        cron: cron.into(),
        missed,
        until: Some(UnixMs(from.0 + minutes * MINUTE)),
        notification,
        ..of(&owner(), name, 0)
    };
    it.next = it.rhythm().unwrap().after(from);
    it
}

fn plan(seed: u64, nodes: usize) -> Plan {
    Plan {
        seed,
        nodes,
        intents: Vec::new(),
        faults: false,
        bug: None,
        crashes: BTreeMap::new(),
        clock_steps: false,
        slow: Duration::ZERO,
        pace: None,
        caps: BTreeMap::new(),
    }
}

const ALL: Missed = Missed::CatchUp { most: 100 };

fn several(from: UnixMs) -> Vec<Schedule> {
    vec![
        schedule("alerts", ("receipt", "* * * * *"), ALL, (from, 6)),
        schedule("offers", ("marketing", "* * * * *"), ALL, (from, 6)),
        schedule("codes", ("code", "*/2 * * * *"), Missed::Skip, (from, 6)),
    ]
}

/// A seed's whole plan.
fn storm(seed: u64, bug: Option<Bug>) -> Plan {
    let mut rng = Rng(seed ^ 0x5c4ed);
    let nodes = 1 + usize::try_from(rng.below(3)).unwrap();
    let crashes = (1..=nodes).map(|node| (node, (0..rng.below(5)).map(|_| 1 + rng.below(1_500)).collect())).collect();
    Plan { faults: true, bug, crashes, clock_steps: rng.chance(40), ..plan(seed, nodes) }
}

/// Every broken promise, in words.
fn broken(run: &Run, given: &[Schedule], at_rest: bool) -> Vec<String> {
    let intent = |key: String| Intent {
        tenant: "acme",
        key,
        class: "",
        channel: ChannelKind::Email,
        at: Duration::ZERO,
        send_after: Duration::ZERO,
        repeats: 0,
        cancel: false,
    };
    let intents: Vec<Intent> =
        given.iter().flat_map(|one| slots(one).into_iter().map(|slot| intent(slot_key(one, slot)))).collect();
    let mut found = check::broken(run, &intents, at_rest);
    for (one, now) in given.iter().flat_map(|one| run.schedules().into_iter().map(move |now| (one, now))) {
        if one.name != now.name {
            continue;
        }
        let all = slots(one);
        let sent: Vec<_> =
            all.iter().filter_map(|slot| Some((slot, run.record(one.notification_id(*slot))?))).collect();
        if sent.len() as u64 + now.missed_count != all.len() as u64 {
            found.push(format!("{}: {} sent and {} missed of {}", one.name, sent.len(), now.missed_count, all.len()));
        }
        if one.missed == ALL && now.missed_count > 0 {
            found.push(format!("{}: {} missed", one.name, now.missed_count));
        }
        for (slot, record) in sent {
            if record.notification.created_at < *slot {
                found.push(format!("{}: {slot:?} was sent early", one.name));
            }
        }
    }
    found
}

fn played(plan: Plan, given: fn(UnixMs) -> Vec<Schedule>) -> (Run, Vec<String>) {
    let run = Run::scheduled(plan, given);
    let schedules = given(run.world.started_at);
    let at_rest = run.play();
    let broken = broken(&run, &schedules, at_rest);
    (run, broken)
}

#[test]
fn each_slot_has_one_effect_while_nodes_die_and_answers_are_lost_and_clocks_step() {
    for seed in 0..150 {
        let (_, broken) = played(storm(seed, None), several);
        assert_eq!(broken, Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_schedule_that_moves_on_before_it_sends_is_found() {
    let found = (0..60).find(|seed| !played(storm(*seed, Some(Bug::MovedOnFirst)), several).1.is_empty());
    assert!(found.is_some(), "60 seeds did not find it");
}

/// A crash before every poll of the one node, around its one slot.
#[test]
fn a_node_that_dies_anywhere_around_a_slot_sends_it_once() {
    let one: fn(UnixMs) -> Vec<Schedule> = |from| vec![schedule("once", ("marketing", "* * * * *"), ALL, (from, 1))];
    let (crash_free, broken) = played(plan(3, 1), one);
    assert_eq!((broken, crash_free.world.told().effects.len()), (Vec::new(), 1));
    let polls = crash_free.world.sim.polls(1);
    let (mut crashed, mut seen) = (0, 0);
    for poll in 1..=polls {
        let (run, broken) = played(Plan { crashes: [(1, vec![poll])].into(), ..plan(3, 1) }, one);
        assert_eq!(broken, Vec::<String>::new(), "crash before poll {poll} of {polls}");
        crashed += run.world.told().crashes;
        seen += run.world.told().effects.len();
    }
    // Of a message that may be lost in its call, nearly all are seen.
    assert!(crashed > polls / 2 && seen as u64 > polls / 2, "{crashed} crashes, {seen} effects in {polls} polls");
}
