//! A crash before every poll of a crash-free run, and the table of guarantees made from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use belfry_domain::ChannelKind;

use super::check;
use super::door::Intent;
use super::scenario::{Plan, Run};
use super::world::Phase;
use crate::peers::guarantees;

fn plan(seed: u64, class: &'static str, crash: Option<u64>) -> Plan {
    let intent = Intent {
        tenant: "acme",
        key: "the-intent".into(),
        class,
        channel: ChannelKind::Email,
        at: Duration::from_millis(500),
        send_after: Duration::ZERO,
        repeats: 1,
        cancel: false,
    };
    let crashes = crash.map(|poll| (1, vec![poll])).into_iter().collect();
    Plan {
        seed,
        nodes: 1,
        intents: vec![intent],
        faults: false,
        bug: None,
        crashes,
        clock_steps: false,
        slow: Duration::ZERO,
        pace: None,
        caps: BTreeMap::new(),
    }
}

#[derive(Default)]
struct Seen {
    effects: BTreeSet<usize>,
    ends: BTreeSet<&'static str>,
    crashes: usize,
}

/// Every poll of the crash-free run, for a few seeds (other seeds, other interleavings).
fn sweep(class: &'static str) -> BTreeMap<Phase, Seen> {
    let mut table: BTreeMap<Phase, Seen> = BTreeMap::new();
    for seed in 0..8 {
        let crash_free = Run::new(plan(seed, class, None));
        assert!(crash_free.play());
        assert_eq!(crash_free.world.told().effects.len(), 1, "one intent, one effect");
        let polls = crash_free.world.sim.polls(1);
        for poll in 1..=polls {
            let plan = plan(seed, class, Some(poll));
            let intents = plan.intents.clone();
            let run = Run::new(plan);
            let at_rest = run.play();
            let broken = check::broken(&run, &intents, at_rest);
            assert!(broken.is_empty(), "{class}, seed {seed}, crash before poll {poll}: {broken:#?}");
            note(&mut table, &run);
        }
    }
    table
}

fn note(table: &mut BTreeMap<Phase, Seen>, run: &Run) {
    let told = run.world.told();
    // The run came to rest before the crash was due.
    let Some(phase) = told.phase_at_crash else { return };
    let effects = told.effects.len();
    let id = *told.acknowledged.values().next().expect("the caller was told yes");
    drop(told);
    let seen = table.entry(phase).or_default();
    seen.effects.insert(effects);
    seen.crashes += 1;
    for delivery in run.record(id).expect("acknowledged, so on record").deliveries {
        seen.ends.insert(delivery.state.name().name());
    }
}

fn cell(seen: Option<&Seen>) -> String {
    let Some(seen) = seen else { return "–".into() };
    let effects: Vec<String> = seen.effects.iter().map(ToString::to_string).collect();
    let ends: Vec<&str> = seen.ends.iter().copied().collect();
    format!("{} ({})", effects.join(" or "), ends.join(", "))
}

fn page() -> String {
    let at_least_once = sweep("receipt");
    let at_most_once = sweep("marketing");
    let mut page = String::from(include_str!("guarantees_head.md"));
    page.push_str(
        "\n| the worker dies | send_then_record (at least once) | record_then_send (at most once) |\n|---|---|---|\n",
    );
    for phase in Phase::ALL {
        let cells = [cell(at_least_once.get(&phase)), cell(at_most_once.get(&phase))];
        writeln!(page, "| {} | {} | {} |", phase.describe(), cells[0], cells[1]).unwrap();
    }
    page.push_str(include_str!("guarantees_tail.md"));
    page
}

#[test]
fn a_crash_before_every_poll_keeps_every_promise() {
    let page = page();
    let stored = guarantees::first(|| page.clone());
    assert!(stored == page, "docs/guarantees.md is not what the sweep found; run it with UPDATE_DOCS=1\n{page}");
}
