//! Random operations on all stores, compared with a model.

use std::collections::BTreeMap;

use belfry::ports::schedules::{Paused, Schedule, Wrote};
use belfry_domain::UnixMs;

use super::schedule;
use crate::contract::fixture::acme;
use crate::contract::harness::{START, in_a_cluster, in_a_file, in_memory, in_redis};
use crate::peers::rng::Rng;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What is kept, and when to look at it.
#[derive(Default)]
struct Model(BTreeMap<&'static str, (Schedule, Option<i64>)>);

impl Model {
    /// `next` in place of `before`.
    fn write(&mut self, name: &'static str, before: Option<&Schedule>, next: Option<&Schedule>) -> Wrote {
        let now = self.0.get(name).map(|(kept, _)| kept);
        if now != next && now != before {
            return Wrote::Other;
        }
        match next {
            Some(next) => drop(self.0.insert(name, (next.clone(), next.look_at().map(|at| at.0)))),
            None => drop(self.0.remove(name)),
        }
        Wrote::Done
    }

    fn take(&mut self, now: i64, again: i64) -> Vec<&'static str> {
        let mut due: Vec<_> = self.0.iter_mut().filter(|(_, (_, look))| look.is_some_and(|look| look <= now)).collect();
        due.iter_mut().for_each(|(_, (_, look))| *look = Some(again));
        due.into_iter().map(|(name, _)| *name).collect()
    }
}

fn any(rng: &mut Rng, name: &str) -> Option<Schedule> {
    let paused = rng.chance(20).then(|| Paused { since: START, by: "key_1".into() });
    let next = rng.chance(80).then(|| UnixMs(START.0 + rng.below(20).cast_signed()));
    rng.chance(80).then(|| Schedule { paused, next, ..schedule(name, 0) })
}

#[tokio::test]
async fn all_stores_do_what_the_model_does() {
    for seed in 0..4 {
        let stores = [in_memory(), in_a_file(), in_redis(), in_a_cluster()];
        let (mut rng, mut model) = (Rng(seed), Model::default());
        for step in 0..200 {
            let at = format!("seed {seed}, step {step}");
            let name = NAMES[usize::try_from(rng.below(4)).unwrap()];
            if rng.chance(30) {
                let now = START.0 + rng.below(20).cast_signed();
                let again = now + 1 + rng.below(5).cast_signed();
                let due = model.take(now, again);
                for h in &stores {
                    let taken = h.store.take_due(UnixMs(now), UnixMs(again), 9).await.unwrap();
                    let mut names: Vec<_> = taken.due.into_iter().map(|one| one.schedule.name).collect();
                    names.sort();
                    assert_eq!(names, due, "{at}");
                    let then = model.0.values().filter_map(|(_, look)| *look).min();
                    assert_eq!(taken.then.map(|then| then.0), then, "{at}");
                }
                continue;
            }
            let known = model.0.get(name).map(|(kept, _)| kept.clone());
            let before = if rng.chance(70) { known } else { any(&mut rng, name) };
            let next = any(&mut rng, name);
            let expected = model.write(name, before.as_ref(), next.as_ref());
            let written = before.as_ref().map(|before| serde_json::to_string(before).unwrap());
            for h in &stores {
                let wrote = h.store.write_schedule(&acme(), name, written.as_deref(), next.as_ref()).await;
                assert_eq!(wrote, Ok(expected), "{at}");
                let kept = h.scheduled(&acme(), name).await.map(|kept| kept.schedule);
                assert_eq!(kept.as_ref(), model.0.get(name).map(|(kept, _)| kept), "{at}");
            }
        }
    }
}
