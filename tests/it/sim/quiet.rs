//! Quiet hours while nodes die: nothing goes out within them, and everything once when they end.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::admission::Rules;
use belfry_domain::quiet::QuietHours;
use belfry_domain::{ChannelKind, UnixMs};

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
