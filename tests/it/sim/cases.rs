//! Conditions that real users met, where time itself is the condition: in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::delivery::ParkWhy;
use belfry_domain::timeline::Happened;
use belfry_domain::{ChannelKind, State, UnixMs};

use super::check;
use super::door::Intent;
use super::provider::POISON;
use super::render::UNWINDS;
use super::scenario::{Plan, Run};
use super::world::{Failover, LEASE};

fn intent(key: String, class: &'static str) -> Intent {
    Intent {
        tenant: "acme",
        key,
        class,
        channel: ChannelKind::Email,
        at: Duration::from_millis(100),
        send_after: Duration::ZERO,
        repeats: 0,
        cancel: false,
    }
}

fn plan(seed: u64, nodes: usize, intents: Vec<Intent>) -> Plan {
    let (crashes, slow) = (BTreeMap::new(), Duration::ZERO);
    Plan {
        seed,
        nodes,
        intents,
        faults: false,
        bug: None,
        crashes,
        clock_steps: false,
        slow,
        pace: None,
        caps: BTreeMap::new(),
    }
}

/// Four workers, and a message for a time beyond three leases: one effect, never early.
#[test]
fn case_8_a_far_schedule_is_sent_once_and_never_early() {
    for seed in 0..20 {
        let mut far = intent("far".into(), "receipt");
        far.send_after = 3 * LEASE + Duration::from_millis(seed * 7);
        let run = Run::new(plan(seed, 4, vec![far.clone()]));
        assert!(run.play());
        let told = run.world.told();
        let id = told.acknowledged["far"];
        let effects = told.effects.clone();
        drop(told);
        let record = run.record(id).unwrap();
        let due = record.notification.send_at.unwrap();
        assert_eq!(effects.len(), 1, "seed {seed}");
        assert!(effects[0].at >= due, "seed {seed}: early by {:?}", due.since(effects[0].at));
        assert!(effects[0].at.since(due) < Duration::from_secs(1), "seed {seed}: late");
    }
}

/// Everything comes due in the same millisecond while both nodes die again and again: nothing is
/// lost between the due index and a worker, and nothing is doubled at the claim.
#[test]
fn case_16_due_in_one_millisecond_while_workers_die() {
    for seed in 0..6 {
        let due = Duration::from_secs(4);
        let intents: Vec<Intent> = (0..200)
            .map(|number| Intent {
                tenant: "acme",
                send_after: due,
                at: Duration::ZERO,
                ..intent(format!("item-{number}"), if number % 2 == 0 { "receipt" } else { "marketing" })
            })
            .collect();
        let mut plan = plan(seed, 2, intents.clone());
        plan.crashes = [(1, vec![700 + seed * 131, 400, 900]), (2, vec![1_100 + seed * 57, 600])].into();
        let run = Run::new(plan);
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &intents, at_rest), Vec::<String>::new(), "seed {seed}");
        assert!(run.world.told().crashes > 0, "seed {seed}: nobody died");
        let early = |at: UnixMs, due: UnixMs| at < due;
        let due_at = |run: &Run| {
            let id = run.world.told().acknowledged["item-0"];
            run.record(id).unwrap().notification.send_at.unwrap()
        };
        let due = due_at(&run);
        assert!(run.world.told().effects.iter().all(|effect| !early(effect.at, due)), "seed {seed}: early");
    }
}

/// The provider takes three leases to answer; the worker lives and renews: nobody else takes over.
#[test]
fn case_64_slow_is_not_stuck() {
    for seed in 0..10 {
        let intents: Vec<Intent> = (0..4).map(|number| intent(format!("slow-{number}"), "receipt")).collect();
        let mut plan = plan(seed, 2, intents.clone());
        plan.slow = 3 * LEASE;
        let run = Run::new(plan);
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &intents, at_rest), Vec::<String>::new(), "seed {seed}");
        let told = run.world.told();
        assert_eq!(told.effects.len(), intents.len(), "seed {seed}: restarted while it was only slow");
        let lapsed = told.facts.iter().filter(|fact| format!("{fact:?}").contains("Lapsed")).count();
        assert_eq!(lapsed, 0, "seed {seed}");
    }
}

/// A message that kills every worker that sends it: it ends parked after proving itself alone, and
/// takes nobody else down with it.
#[test]
fn a_message_that_kills_its_worker_is_parked_alone() {
    for seed in 0..6 {
        let mut intents: Vec<Intent> = (0..12).map(|number| intent(format!("good-{number}"), "receipt")).collect();
        intents.push(intent(POISON.into(), "receipt"));
        let run = Run::new(plan(seed, 2, intents.clone()));
        assert!(run.play(), "seed {seed}");
        let end = |key: &str| {
            let id = run.world.told().acknowledged[key];
            run.record(id).unwrap().deliveries.remove(0)
        };
        let parked = end(POISON);
        assert_eq!(parked.state, State::Parked { why: ParkWhy::Poison }, "seed {seed}");
        assert_eq!((parked.lapses, parked.lapses_alone), (5, 3), "seed {seed}");
        for intent in &intents[..12] {
            assert_eq!(end(&intent.key).state, State::Accepted, "seed {seed}: {}", intent.key);
        }
    }
}

/// A panic outside the call leaves no claim behind that is renewed for ever: it lapses, comes up
/// again, and ends parked. Nothing was sent, and its worker goes on with the others.
#[test]
fn a_panic_before_the_call_does_not_keep_its_claim() {
    for seed in 0..6 {
        let intents = vec![intent(UNWINDS.into(), "receipt"), intent("good".into(), "receipt")];
        let run = Run::new(plan(seed, 1, intents));
        assert!(run.play(), "seed {seed}: something never came to an end");
        let end = |key: &str| {
            let id = run.world.told().acknowledged[key];
            run.record(id).unwrap().deliveries.remove(0).state
        };
        assert_eq!(end(UNWINDS), State::Parked { why: ParkWhy::Poison }, "seed {seed}");
        assert_eq!(end("good"), State::Accepted, "seed {seed}");
        assert_eq!(run.world.told().effects.len(), 1, "seed {seed}");
    }
}

/// The wait for a replica is answered by the new primary, which never had the claim.
#[test]
fn no_call_is_made_under_a_claim_that_a_failover_took_along() {
    for seed in 0..20 {
        let intents: Vec<Intent> =
            ["receipt", "code"].into_iter().map(|class| intent(class.to_owned(), class)).collect();
        let run = Run::new(plan(seed, 2, intents.clone()));
        run.world.told().failover = Failover::ToCome;
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &intents, at_rest), Vec::<String>::new(), "seed {seed}");
        let told = run.world.told();
        let Failover::Done { lost, .. } = &told.failover else { panic!("seed {seed}: nothing waited") };
        assert!(!lost.is_empty(), "seed {seed}");
        for id in told.acknowledged.values() {
            let record = run.record(*id).unwrap();
            let delivery = &record.deliveries[0];
            let effects = told.effects.iter().filter(|effect| effect.delivery == delivery.id).count();
            assert_eq!((delivery.state, effects), (State::Accepted, 1), "seed {seed}");
            for entry in &delivery.timeline.entries {
                let Happened::Attempt { claim, .. } = &entry.happened else { continue };
                let under_lost = lost.iter().any(|(id, token)| (*id, token.fence) == (delivery.id, claim.fence));
                assert!(!under_lost, "seed {seed}: {:?}", delivery.timeline);
            }
        }
    }
}
