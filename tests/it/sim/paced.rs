//! A provider's pace over several nodes: never exceeded, whoever dies and whatever is lost, and used.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::facts::Fact;
use belfry::ports::clock::Boot;
use belfry_domain::timeline::Happened;
use belfry_domain::{ChannelKind, Delivery, Pace};

use super::check;
use super::door::Intent;
use super::executor::Rng;
use super::scenario::{Plan, Run};

fn intents(count: usize, class: &'static str) -> Vec<Intent> {
    (0..count)
        .map(|number| Intent {
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

fn plan(seed: u64, nodes: usize, intents: Vec<Intent>, pace: Pace) -> Plan {
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
        pace: Some(pace),
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
