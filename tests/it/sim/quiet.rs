//! Quiet hours while nodes die: nothing goes out within them, and everything once when they end.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::admission::Rules;
use belfry_domain::quiet::QuietHours;
use belfry_domain::{ChannelKind, State, UnixMs};

use super::check;
use super::door::Intent;
use super::executor::Rng;
use super::scenario::{Plan, Run};

/// 08:20 UTC; the simulation begins a few minutes before.
const OPEN_AT: UnixMs = UnixMs(1_800_001_200_000);

#[test]
fn nothing_goes_out_in_quiet_hours_and_everything_once_when_they_end() {
    let hours = QuietHours::new("08:10", "08:20", "UTC").unwrap();
    let rules = Rules { quiet_hours: Some(hours), ..Rules::default() };
    let rules: BTreeMap<String, Rules> = ["marketing", "receipt"].map(|class| (class.to_owned(), rules.clone())).into();
    for seed in 0..30 {
        let mut rng = Rng(seed ^ 0x9_1e7);
        let intents: Vec<Intent> = ["marketing", "receipt", "code"]
            .into_iter()
            .flat_map(|class| (0..8).map(move |number| (class, number)))
            .map(|(class, number)| Intent {
                tenant: "acme",
                key: format!("{class}-{number}"),
                class,
                channel: ChannelKind::Email,
                at: Duration::from_millis(rng.below(20_000)),
                send_after: Duration::ZERO,
                repeats: rng.below(3),
                cancel: false,
            })
            .collect();
        let nodes = 2;
        let crashes = (1..=nodes).map(|node| (node, (0..rng.below(4)).map(|_| 1 + rng.below(900)).collect())).collect();
        let (faults, slow) = (true, Duration::ZERO);
        let plan = Plan {
            seed,
            nodes,
            intents: intents.clone(),
            faults,
            bug: None,
            crashes,
            clock_steps: false,
            slow,
            pace: None,
            caps: BTreeMap::new(),
        };
        let run = Run::ruled(plan, rules.clone());
        assert!(run.world.started_at < OPEN_AT);
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &intents, at_rest), Vec::<String>::new(), "seed {seed}");
        let told = run.world.told();
        let (mut early, mut waited) = (0, 0);
        for (key, id) in &told.acknowledged {
            let record = run.record(*id).unwrap();
            let mut effects = told.effects.iter().filter(|effect| effect.delivery == record.deliveries[0].id);
            if key.starts_with("code") {
                early += usize::from(effects.any(|effect| effect.at < OPEN_AT));
            } else {
                assert!(effects.all(|effect| effect.at >= OPEN_AT), "seed {seed}: {key}");
                waited += 1;
            }
        }
        // Codes wait for nothing but the faults.
        assert!(early > 0 && waited == 16, "seed {seed}: {early} {waited}");
    }
}

/// At most once, and a provider that takes 400 s for each of the few calls that it takes at once: whoever waits for a
/// turn was decided on long before its call.
fn slow(rules: BTreeMap<String, Rules>) -> Run {
    let intent = |number| Intent {
        tenant: "acme",
        key: format!("{number}"),
        class: "marketing",
        channel: ChannelKind::Email,
        at: Duration::ZERO,
        send_after: Duration::ZERO,
        repeats: 0,
        cancel: false,
    };
    let plan = Plan {
        seed: 3,
        nodes: 1,
        intents: (0..12).map(intent).collect(),
        faults: false,
        bug: None,
        crashes: BTreeMap::new(),
        clock_steps: false,
        slow: Duration::from_secs(400),
        pace: None,
        caps: BTreeMap::new(),
    };
    let run = Run::ruled(plan, rules);
    assert!(run.play());
    let told = run.world.told();
    let state = |id| run.record(id).unwrap().deliveries[0].state;
    let ends: Vec<_> = told.acknowledged.values().map(|id| state(*id)).collect();
    let of = |end| ends.iter().filter(|state| **state == end).count();
    assert!(of(State::Accepted) > 0 && of(State::Expired) > 0, "{ends:?}");
    assert_eq!(of(State::Accepted) + of(State::Expired), 12, "{ends:?}");
    drop(told);
    run
}

#[test]
fn nothing_goes_out_after_its_expiry_however_long_it_waited_for_its_turn() {
    let run = slow(BTreeMap::new());
    let (told, expiry) = (run.world.told(), Duration::from_secs(600));
    // Two waves of calls: the third would begin after 800 s.
    assert!(told.effects.iter().any(|effect| effect.at.since(run.world.started_at) > Duration::from_secs(399)));
    assert!(told.effects.iter().all(|effect| effect.at.since(run.world.started_at) < expiry), "{:?}", told.effects);
}

#[test]
fn nothing_goes_out_in_quiet_hours_that_began_while_it_waited_for_its_turn() {
    // The first calls go out before.
    let minute = run_minute() + 3;
    let from = format!("08:{minute:02}");
    let hours = QuietHours::new(&from, "12:00", "UTC").unwrap();
    let rules = Rules { quiet_hours: Some(hours), ..Rules::default() };
    let run = slow([("marketing".to_owned(), rules)].into());
    let begins = UnixMs(1_800_000_000_000 + minute * 60_000);
    let told = run.world.told();
    assert!(told.effects.iter().all(|effect| effect.at < begins), "{:?}", told.effects);
}

/// Of the hour from eight, in which the simulation begins.
fn run_minute() -> i64 {
    let started_at = super::world::World::new(super::executor::Sim::new(3)).started_at;
    (started_at.0 - 1_800_000_000_000) / 60_000
}
