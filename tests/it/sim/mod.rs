//! Simulation: virtual time, one thread, seeded; the real engine over the real store core. Nodes
//! die at any poll, replies get lost, workers sleep through their leases, clocks step, callers
//! repeat everything. A failing seed prints itself:
//!
//! `BELFRY_SIM_SEED=<seed> cargo test -p belfry --test it sim::a_thousand -- --nocapture`

mod bugs;
mod capped;
mod cases;
mod check;
mod door;
mod executor;
mod faulty_store;
mod gathered;
mod guarantees;
mod paced;
mod paused;
mod provider;
mod quiet;
mod render;
mod scenario;
mod scheduled;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::ChannelKind;

use bugs::Bug;
use door::Intent;
use executor::Rng;
use scenario::{Plan, Run};

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A seed's whole plan: who asks for what, and which node dies when.
fn plan(seed: u64, bug: Option<Bug>) -> Plan {
    let mut rng = Rng(seed ^ 0x5eed);
    let nodes = 1 + usize::try_from(rng.below(3)).unwrap();
    let intents = (0..6 + rng.below(8))
        .map(|number| Intent {
            tenant: "acme",
            key: format!("intent-{number}"),
            class: ["code", "receipt", "marketing"][usize::try_from(rng.below(3)).unwrap()],
            channel: if rng.chance(75) { ChannelKind::Email } else { ChannelKind::Sms },
            at: Duration::from_millis(rng.below(10_000)),
            send_after: Duration::ZERO,
            repeats: rng.below(3),
            cancel: rng.chance(15),
        })
        .collect();
    let mut crashes = BTreeMap::new();
    for node in 1..=nodes {
        crashes.insert(node, (0..rng.below(4)).map(|_| 1 + rng.below(900)).collect());
    }
    Plan {
        seed,
        nodes,
        intents,
        faults: true,
        bug,
        crashes,
        clock_steps: rng.chance(20),
        slow: Duration::ZERO,
        pace: None,
        caps: BTreeMap::new(),
    }
}

/// The broken promises of one seed.
fn run(seed: u64, bug: Option<Bug>) -> Vec<String> {
    let plan = plan(seed, bug);
    let intents = plan.intents.clone();
    let run = Run::new(plan);
    let at_rest = run.play();
    check::broken(&run, &intents, at_rest)
}

#[test]
fn a_thousand_seeds_keep_every_promise() {
    let seeds = match env_number("BELFRY_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..env_number("BELFRY_SIM_SEEDS").unwrap_or(1_000),
    };
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let broken = run(seed, None);
                    if !broken.is_empty() {
                        failed.lock().unwrap().push((seed, broken));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "replay with BELFRY_SIM_SEED=<seed>: {failed:#?}");
}

#[test]
fn every_planted_bug_is_found() {
    for bug in bugs::ALL {
        let found = (0..400).find(|seed| !run(*seed, Some(bug)).is_empty());
        assert!(found.is_some(), "400 seeds did not find {bug:?}");
        println!("{bug:?}: found by seed {}", found.unwrap());
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..10 {
        let tell = || {
            let run = Run::new(plan(seed, None));
            run.play();
            let told = run.world.told();
            (format!("{:?}", told.facts), told.calls, run.world.sim.now())
        };
        assert_eq!(tell(), tell(), "seed {seed}");
    }
}
