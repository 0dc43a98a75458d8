//! Pauses while nodes die: what a node has read to be paused is not called by it, what is exempt flows, and everything
//! goes once when it is resumed.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::ports::clock::Boot;
use belfry::ports::pauses::Pauses as _;
use belfry_domain::admission::Rules;
use belfry_domain::pause::{Pause, Paused};
use belfry_domain::{ChannelKind, State, UnixMs};

use super::bugs::Bug;
use super::check;
use super::door::Intent;
use super::executor::{Rng, WORLD};
use super::scenario::{Plan, Run};
use crate::contract::pauses::pause_of;

/// After this every node has read what is paused.
const READ: Duration = Duration::from_secs(2);
const CLASSES: [&str; 3] = ["code", "receipt", "marketing"];

fn exempt_codes() -> BTreeMap<String, Rules> {
    [("code".to_owned(), Rules { pause_exempt: true, ..Rules::default() })].into()
}

fn intents(rng: &mut Rng, of_each: u64, within: u64) -> Vec<Intent> {
    let numbered = CLASSES.into_iter().flat_map(|class| (0..of_each).map(move |number| (class, number)));
    numbered
        .map(|(class, number)| Intent {
            tenant: "acme",
            key: format!("{class}-{number}"),
            class,
            channel: if rng.chance(75) { ChannelKind::Email } else { ChannelKind::Sms },
            at: Duration::from_millis(rng.below(within)),
            send_after: Duration::ZERO,
            repeats: rng.below(3),
            cancel: rng.chance(10),
        })
        .collect()
}

fn plan(seed: u64, nodes: usize, intents: Vec<Intent>) -> Plan {
    Plan {
        seed,
        nodes,
        intents,
        faults: false,
        bug: None,
        crashes: BTreeMap::new(),
        clock_steps: false,
        slow: Duration::ZERO,
        pace: None,
        caps: BTreeMap::new(),
    }
}

/// One pause, from when to when.
#[derive(Clone, Debug)]
struct Spell {
    pause: Pause,
    from: Duration,
    to: Duration,
}

/// Somebody pauses and resumes, past all faults: what is asked of a node is tried elsewhere.
fn keep(run: &Run, spells: &[Spell]) {
    for spell in spells.iter().cloned() {
        let (world, store) = (run.world.clone(), run.store.clone());
        let task = async move {
            world.sim.sleep(spell.from).await;
            let mut kept = pause_of(spell.pause.paused.clone());
            kept.pause = Pause { since: world.now(), ..spell.pause };
            store.pause(&kept).await.unwrap();
            world.sim.sleep(spell.to.saturating_sub(spell.from)).await;
            store.resume(kept.id()).await.unwrap();
        };
        run.world.sim.start(WORLD, Box::pin(task));
    }
}

fn spell(paused: Paused, (from, to): (u64, u64)) -> Spell {
    let pause = Pause { paused, tenant: None, since: UnixMs(0), until: None, forced: false };
    Spell { pause, from: Duration::from_millis(from), to: Duration::from_millis(to) }
}

/// A seed's whole plan, with pauses of anything.
fn storm(seed: u64, bug: Option<Bug>) -> (Plan, Vec<Spell>) {
    let mut rng = Rng(seed ^ 0x9a05e);
    let nodes = 1 + usize::try_from(rng.below(3)).unwrap();
    let all = [
        Paused::All,
        Paused::Channel(ChannelKind::Email),
        Paused::Provider("mail".into()),
        Paused::Class("marketing".into()),
        Paused::Class("receipt".into()),
        Paused::Class("code".into()),
    ];
    let spells = (0..1 + rng.below(3))
        .map(|_| {
            let paused = all[usize::try_from(rng.below(6)).unwrap()].clone();
            let from = rng.below(8_000);
            let mut spell = spell(paused, (from, from + 2_000 + rng.below(50_000)));
            spell.pause.forced = rng.chance(30);
            spell.pause.tenant = rng.chance(30).then(|| "acme".into());
            spell
        })
        .collect();
    let intents = intents(&mut rng, 6, 20_000);
    let crashes = (1..=nodes).map(|node| (node, (0..rng.below(4)).map(|_| 1 + rng.below(900)).collect())).collect();
    (Plan { faults: true, bug, crashes, clock_steps: rng.chance(20), ..plan(seed, nodes, intents) }, spells)
}

fn played(plan: Plan, spells: &[Spell]) -> (Run, Vec<String>) {
    let intents = plan.intents.clone();
    let run = Run::ruled(plan, exempt_codes());
    keep(&run, spells);
    let at_rest = run.play();
    let broken = check::broken(&run, &intents, at_rest);
    (run, broken)
}

#[test]
fn nothing_that_is_paused_is_called_while_nodes_die_and_sleep_and_answers_are_lost() {
    for seed in 0..120 {
        let (plan, spells) = storm(seed, None);
        let (_, broken) = played(plan, &spells);
        assert_eq!(broken, Vec::<String>::new(), "seed {seed}: {spells:?}");
    }
}

#[test]
fn a_store_that_is_away_taken_for_an_unpaused_one_is_found() {
    let found = (0..60).find(|seed| {
        let (plan, spells) = storm(*seed, Some(Bug::AwayIsUnpaused));
        played(plan, &spells).1.iter().any(|broken| broken.starts_with("called"))
    });
    assert!(found.is_some(), "60 seeds did not find it");
}

/// When a class's messages were called.
fn effects(run: &Run, class: &str) -> Vec<Boot> {
    let told = run.world.told();
    let start = i64::try_from(run.world.sim.now().as_millis()).unwrap();
    let offset = run.world.now().0 - start;
    let of_class = |key: &str| key.starts_with(class);
    let ids: Vec<_> = told.acknowledged.iter().filter(|(key, _)| of_class(key)).map(|(_, id)| *id).collect();
    let mine = |id| ids.iter().any(|one| run.record(*one).unwrap().deliveries.iter().any(|it| it.id == id));
    let found = told.effects.iter().filter(|effect| mine(effect.delivery));
    let mut found: Vec<Boot> =
        found.map(|effect| Duration::from_millis(u64::try_from(effect.at.0 - offset).unwrap())).collect();
    found.sort_unstable();
    found
}

/// Of a provider that is paused as a whole nothing is claimed but what is exempt, so that nothing of the rest is written;
/// and all of it goes at once when it is resumed.
#[test]
fn a_paused_provider_costs_no_claims() {
    let mut rng = Rng(7);
    let intents: Vec<Intent> = intents(&mut rng, 20, 5_000)
        .into_iter()
        // Once the nodes have read it.
        .map(|it| Intent { at: it.at + READ, channel: ChannelKind::Email, repeats: 0, cancel: false, ..it })
        .collect();
    let began = Run::ruled(plan(7, 2, intents.clone()), exempt_codes());
    let start = began.world.sim.now();
    drop(began);
    let spells = [spell(Paused::Provider("mail".into()), (0, 60_000))];
    let run = Run::ruled(plan(7, 2, intents), exempt_codes());
    keep(&run, &spells);
    let (world, store) = (run.world.clone(), run.store.clone());
    let looked = async move {
        world.sim.sleep(Duration::from_secs(59)).await;
        let (mut page, mut waiting) = (store.waiting(None, 128, false).await.unwrap(), Vec::new());
        waiting.append(&mut page.waiting);
        if waiting.len() != 40 || waiting.iter().any(|(it, _)| it.rev != 0 || it.state != State::Queued) {
            world.told().broken.push(format!("{} wait: {waiting:?}", waiting.len()));
        }
    };
    run.world.sim.start(WORLD, Box::pin(looked));
    assert!(run.play());
    assert_eq!(run.world.told().broken, Vec::<String>::new());
    let resumed = start + Duration::from_secs(60);
    assert!(effects(&run, "code").iter().all(|at| *at < start + READ + Duration::from_secs(6)));
    for class in ["receipt", "marketing"] {
        let at = effects(&run, class);
        assert!(at.len() == 20 && at[0] >= resumed && at[19] < resumed + Duration::from_secs(3), "{class}: {at:?}");
    }
}
