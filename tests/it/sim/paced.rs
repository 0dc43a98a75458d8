//! A provider's pace over several nodes: never exceeded, whoever dies and whatever is lost, and used.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::facts::Fact;
use belfry::ports::clock::Boot;
use belfry::ports::deliveries::Owner;
use belfry_domain::timeline::Happened;
use belfry_domain::warm_up::{WarmDay, WarmUp};
use belfry_domain::{ChannelKind, Delivery, Pace, PacePlan};

use super::check;
use super::door::Intent;
use super::executor::Rng;
use super::scenario::{Plan, Run, owner};
use super::world::Effect;

fn intents(count: usize, class: &'static str) -> Vec<Intent> {
    (0..count)
        .map(|number| Intent {
            tenant: "acme",
            key: format!("{class}-{number}"),
            class,
            channel: ChannelKind::Email,
            at: Duration::ZERO,
            send_after: Duration::ZERO,
            repeats: 0,
            cancel: false,
        })
        .collect()
}

fn plan(seed: u64, nodes: usize, intents: Vec<Intent>, pace: impl Into<PacePlan>) -> Plan {
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
        pace: Some(pace.into()),
        caps: BTreeMap::new(),
    }
}

fn pace(rate: u32, burst: u32) -> Pace {
    Pace::new(rate, Duration::from_secs(1), Some(burst)).unwrap()
}

/// The first two moments between which there were too many calls: in any time `t` at most
/// `rate * t / per + burst`.
fn too_fast(called_at: &[Boot], pace: Pace) -> Option<(Boot, Boot)> {
    for (first, from) in called_at.iter().enumerate() {
        for (to, until) in called_at.iter().enumerate().skip(first) {
            let calls = u128::try_from(to - first + 1).unwrap();
            let beyond = calls.saturating_sub(pace.burst().into()) * pace.per().as_nanos();
            if beyond > u128::from(pace.rate()) * (*until - *from).as_nanos() {
                return Some((*from, *until));
            }
        }
    }
    None
}

/// Of the one call: 1 unless it had been claimed before.
fn fence_of_the_call(delivery: &Delivery) -> u64 {
    let fences = delivery.timeline.entries.iter().filter_map(|entry| match &entry.happened {
        Happened::Attempt { claim, .. } => Some(claim.fence),
        _ => None,
    });
    let fences: Vec<u64> = fences.collect();
    assert_eq!(fences.len(), 1, "{:?}", delivery.timeline);
    fences[0]
}

#[test]
fn what_is_too_fast_is_seen() {
    let at = |ms: [u64; 4]| ms.map(Duration::from_millis);
    assert_eq!(too_fast(&at([0, 0, 100, 200]), pace(10, 2)), None);
    let (from, until) = (Duration::ZERO, Duration::from_millis(199));
    assert_eq!(too_fast(&at([0, 0, 100, 199]), pace(10, 2)), Some((from, until)));
}

#[test]
fn nodes_together_never_exceed_a_pace_while_they_die_and_sleep_and_answers_are_lost() {
    for seed in 0..60 {
        let mut rng = Rng(seed ^ 0x9ace);
        let nodes = 1 + usize::try_from(rng.below(4)).unwrap();
        let pace = pace(1 + u32::try_from(rng.below(40)).unwrap(), 1 + u32::try_from(rng.below(9)).unwrap());
        let mut all = intents(20, "receipt");
        all.extend(intents(20, "marketing"));
        all.extend(intents(5, "code"));
        let mut plan = plan(seed, nodes, all.clone(), pace);
        plan.faults = true;
        plan.crashes =
            (1..=nodes).map(|node| (node, (0..rng.below(4)).map(|_| 1 + rng.below(900)).collect())).collect();
        let run = Run::new(plan);
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &all, at_rest), Vec::<String>::new(), "seed {seed}");
        let told = run.world.told();
        assert_eq!(too_fast(&told.called_at, pace), None, "seed {seed}: {nodes} nodes, {pace:?}");
    }
}

/// What waits goes out as fast as is allowed, by all nodes, and what waits holds no claim.
#[test]
fn a_pace_is_used_by_all_nodes_and_what_waits_is_not_claimed() {
    for nodes in [1, 2, 3, 5] {
        let pace = pace(20, 6);
        let all = intents(200, "receipt");
        let run = Run::new(plan(7, nodes, all.clone(), pace));
        assert!(run.play());
        let told = run.world.told();
        assert_eq!(too_fast(&told.called_at, pace), None, "{nodes} nodes");
        let took = told.called_at[199] - told.called_at[0];
        // 10 s at the full rate. Nodes that come begin with nothing, and what cannot be split evenly rounds down.
        assert!(took < Duration::from_secs(13), "{nodes} nodes: {took:?}");
        let shares: BTreeMap<u32, usize> = told
            .facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::PaceShared { parts, of: 6, .. } => Some(*parts),
                _ => None,
            })
            .fold(BTreeMap::new(), |mut all, parts| {
                *all.entry(parts).or_default() += 1;
                all
            });
        assert!(shares.contains_key(&(6 / u32::try_from(nodes).unwrap())), "{nodes} nodes: {shares:?}");
        drop(told);
        let ids = run.world.told().acknowledged.clone();
        let fences = ids.into_values().map(|id| fence_of_the_call(&run.record(id).unwrap().deliveries[0]));
        let claimed_again = fences.filter(|fence| *fence > 1).count();
        // Only what was set aside when other nodes came and took a part.
        assert!(claimed_again <= if nodes == 1 { 0 } else { 6 }, "{nodes} nodes: {claimed_again}");
    }
}

/// A code need not wait for the marketing that was there before it.
#[test]
fn one_call_is_kept_for_what_is_urgent() {
    let pace = pace(1, 3);
    let mut all = intents(30, "marketing");
    all.push(Intent { at: Duration::from_secs(15), ..intents(1, "code").remove(0) });
    let run = Run::new(plan(3, 1, all, pace));
    assert!(run.play());
    let told = run.world.told();
    let code = run.record(told.acknowledged["code-0"]).unwrap();
    let effect = told.effects.iter().find(|effect| effect.delivery == code.deliveries[0].id).unwrap();
    assert!(effect.at.since(code.notification.created_at) < Duration::from_millis(100));
    assert_eq!(too_fast(&told.called_at, pace), None);
}

/// A new sending domain sends as much as its day allows, and the full rate as soon as its warm-up is over.
#[test]
fn a_warm_up_slows_all_nodes_until_its_last_day_is_over() {
    for nodes in [1, 3] {
        let (first, full) = (pace(10, 6), pace(40, 6));
        let over_after = Duration::from_secs(8);
        let all = intents(300, "receipt");
        // Of the same seed, so that it begins at the same moment.
        let starts = Run::new(plan(11, nodes, Vec::new(), full)).world.started_at;
        let starts = starts.plus(over_after).minus(Duration::from_secs(24 * 3600));
        let warm_up = WarmUp::new(starts, vec![864_000]).unwrap();
        let run = Run::new(plan(11, nodes, all, PacePlan::new(full, Some(warm_up))));
        let over_at = run.world.sim.now() + over_after;
        assert!(run.play());
        let told = run.world.told();
        let over = told.called_at.partition_point(|at| *at < over_at);
        let (warming, after) = told.called_at.split_at(over);
        assert_eq!((too_fast(warming, first), too_fast(after, full)), (None, None), "{nodes} nodes");
        // A rate of 10 for 8 s, less what nodes that come begin with; then 40 a second, from nothing again.
        assert!((50..=86).contains(&warming.len()), "{nodes} nodes: {}", warming.len());
        let took = *after.last().unwrap() - after[0];
        assert!(took < Duration::from_secs(8), "{nodes} nodes: {took:?}");
        let paced = told.facts.iter().filter_map(|fact| match fact {
            Fact::Paced { pace, warming, .. } => Some((pace.rate(), *warming)),
            _ => None,
        });
        let expected = [(864_000, Some(WarmDay { day: 1, of: 1 })), (40, None)];
        let steps: Vec<_> = paced.collect();
        assert_eq!(steps.iter().filter(|step| **step == expected[0]).count(), nodes);
        assert_eq!(steps.iter().filter(|step| **step == expected[1]).count(), nodes);
        assert_eq!(steps.len(), 2 * nodes);
    }
}

/// Whoever comes with little waits for a turn each, not for all that another tenant has waiting.
#[test]
fn tenants_take_turns_within_a_pace() {
    for nodes in [1, 3] {
        let mut all: Vec<Intent> =
            intents(200, "receipt").into_iter().map(|it| Intent { tenant: "loud", ..it }).collect();
        let later = Duration::from_secs(5);
        let quiet = (0..5).map(|number| Intent {
            tenant: "quiet",
            key: format!("quiet-{number}"),
            at: later,
            ..intents(1, "receipt").remove(0)
        });
        all.extend(quiet);
        let run = Run::new(plan(5, nodes, all, pace(10, 3)));
        assert!(run.play());
        let told = run.world.told();
        let of_quiet = |effect: &&Effect| {
            (0..5).any(|number| {
                let owner = Owner { tenant: "quiet".into(), ..owner() };
                let record = run.record_of(&owner, told.acknowledged[&format!("quiet-{number}")]).unwrap();
                record.deliveries[0].id == effect.delivery
            })
        };
        let last = told.effects.iter().filter(of_quiet).map(|effect| effect.at).max().unwrap();
        let from = run.world.started_at.plus(later);
        let meanwhile = told.effects.iter().filter(|effect| effect.at > from && effect.at <= last).count();
        // A turn of the other's for each of the five, and what was under way already.
        assert!(meanwhile <= 10 + 2 * nodes, "{nodes} nodes: {meanwhile}");
    }
}
