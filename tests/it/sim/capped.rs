//! Caps over several nodes: in no window more effects than a cap allows, whoever dies and whatever is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::facts::Fact;
use belfry_domain::caps::{self, Cap, Per, Then};
use belfry_domain::timeline::Happened;
use belfry_domain::{ChannelKind, State, UnixMs};

use super::bugs::{self, Bug};
use super::check;
use super::door::Intent;
use super::executor::Rng;
use super::scenario::{Plan, Run};

fn cap(name: &str, (limit, window): (u32, u64), classes: &[&str], channels: &[ChannelKind]) -> Cap {
    Cap {
        name: name.into(),
        per: Per::Address,
        limit,
        window: Duration::from_secs(window),
        then: Then::Defer,
        classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        channels: channels.to_vec(),
        templates: Vec::new(),
    }
}

/// As the configuration has them.
fn by_class(caps: &[Cap]) -> BTreeMap<String, Vec<Cap>> {
    let mut all: BTreeMap<String, Vec<Cap>> = BTreeMap::new();
    for cap in caps {
        for class in &cap.classes {
            all.entry(class.clone()).or_default().push(cap.clone());
        }
    }
    all
}

fn intent(number: u64, class: &'static str, channel: ChannelKind, at: Duration) -> Intent {
    Intent {
        tenant: "acme",
        key: format!("{class}-{number}"),
        class,
        channel,
        at,
        send_after: Duration::ZERO,
        repeats: 0,
        cancel: false,
    }
}

fn at_once(count: u64, class: &'static str) -> Vec<Intent> {
    (0..count).map(|number| intent(number, class, ChannelKind::Email, Duration::ZERO)).collect()
}

fn plan(seed: u64, nodes: usize, intents: Vec<Intent>, caps: &[Cap]) -> Plan {
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
        caps: by_class(caps),
    }
}

/// The first window that holds too many.
fn too_many(effects: &[UnixMs], cap: &Cap) -> Option<(UnixMs, UnixMs)> {
    let limit = usize::try_from(cap.limit).unwrap();
    effects.windows(limit + 1).find(|run| run[limit].since(run[0]) < cap.window).map(|run| (run[0], run[limit]))
}

/// When the effects were that a cap counts; all go to one address on each channel.
fn counted(run: &Run, cap: &Cap, channel: ChannelKind) -> Vec<UnixMs> {
    let ids = run.world.told().acknowledged.clone();
    let deliveries: Vec<_> = ids.into_values().flat_map(|id| run.record(id).unwrap().deliveries).collect();
    let counts = |channel_of: ChannelKind, class: &String| {
        channel_of == channel
            && cap.classes.contains(class)
            && (cap.channels.is_empty() || cap.channels.contains(&channel_of))
    };
    let told = run.world.told();
    let of = |id| deliveries.iter().find(|one| one.id == id).unwrap();
    let mut at: Vec<UnixMs> = told
        .effects
        .iter()
        .filter(|effect| counts(of(effect.delivery).channel, &of(effect.delivery).class))
        .map(|effect| effect.at)
        .collect();
    at.sort_unstable();
    at
}

fn exceeded(run: &Run, caps: &[Cap]) -> Vec<String> {
    let mut found = Vec::new();
    for cap in caps {
        for channel in [ChannelKind::Email, ChannelKind::Sms] {
            if let Some(window) = too_many(&counted(run, cap, channel), cap) {
                found.push(format!("{} on {channel}: {window:?}", cap.name));
            }
        }
    }
    found
}

#[test]
fn a_window_that_holds_too_many_is_seen() {
    let cap = cap("two", (2, 1), &[], &[]);
    let at = |ms: [i64; 4]| ms.map(UnixMs);
    assert_eq!(too_many(&at([0, 0, 1_000, 1_000]), &cap), None);
    assert_eq!(too_many(&at([0, 0, 999, 1_000]), &cap), Some((UnixMs(0), UnixMs(999))));
}

/// A seed's whole plan, with caps of any size.
fn storm(seed: u64, bug: Option<Bug>) -> (Plan, Vec<Cap>) {
    let mut rng = Rng(seed ^ 0xca9);
    let nodes = 1 + usize::try_from(rng.below(3)).unwrap();
    let mut size = |limit, window| (1 + u32::try_from(rng.below(limit)).unwrap(), 1 + rng.below(window));
    let caps = vec![
        cap("both", size(8, 10), &["marketing", "receipt"], &[]),
        cap("mails", size(6, 20), &["receipt"], &[ChannelKind::Email]),
        cap("nudges", size(4, 5), &["marketing"], &[]),
    ];
    let intents: Vec<Intent> = (0..24)
        .map(|number| {
            let class = ["receipt", "marketing"][usize::try_from(rng.below(2)).unwrap()];
            let channel = if rng.chance(75) { ChannelKind::Email } else { ChannelKind::Sms };
            intent(number, class, channel, Duration::from_millis(rng.below(15_000)))
        })
        .collect();
    let crashes = (1..=nodes).map(|node| (node, (0..rng.below(4)).map(|_| 1 + rng.below(900)).collect())).collect();
    (Plan { faults: true, bug, crashes, ..plan(seed, nodes, intents, &caps) }, caps)
}

#[test]
fn no_window_holds_more_effects_than_its_cap_while_nodes_die_and_sleep_and_answers_are_lost() {
    let (mut refusals, mut effects) = (0, 0);
    for seed in 0..60 {
        let (plan, caps) = storm(seed, None);
        let intents = plan.intents.clone();
        let run = Run::new(plan);
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &intents, at_rest), Vec::<String>::new(), "seed {seed}");
        assert_eq!(exceeded(&run, &caps), Vec::<String>::new(), "seed {seed}: {caps:?}");
        let told = run.world.told();
        refusals += told.facts.iter().filter(|fact| matches!(fact, Fact::Capped { .. })).count();
        effects += told.effects.len();
    }
    // It was about something.
    assert!(refusals > 300 && effects > 500, "{refusals} refusals, {effects} effects");
}

#[test]
fn bugs_planted_in_caps_are_found() {
    for bug in bugs::OF_CAPS {
        let found = (0..60).find(|seed| {
            let (plan, caps) = storm(*seed, Some(bug));
            let run = Run::new(plan);
            run.play();
            !exceeded(&run, &caps).is_empty()
        });
        assert!(found.is_some(), "60 seeds did not find {bug:?}");
    }
}

/// What waits goes out as soon as there is room.
#[test]
fn a_cap_is_used_to_its_limit() {
    for (nodes, class) in [(1, "receipt"), (3, "receipt"), (1, "marketing"), (3, "marketing")] {
        let caps = [cap("three", (3, 10), &[class], &[])];
        let run = Run::new(plan(5, nodes, at_once(12, class), &caps));
        assert!(run.play());
        let at = counted(&run, &caps[0], ChannelKind::Email);
        assert_eq!((at.len(), too_many(&at, &caps[0])), (12, None), "{nodes} nodes, {class}");
        // Four windows. What looks again for calls under way does so within a window.
        assert!(at[11].since(at[0]) < Duration::from_secs(40), "{nodes} nodes, {class}: {at:?}");
    }
}

#[test]
fn what_is_too_many_ends_suppressed_and_says_by_what() {
    for class in ["receipt", "marketing"] {
        let caps = [Cap { then: Then::Suppress, ..cap("three", (3, 60), &[class], &[]) }];
        let run = Run::new(plan(9, 2, at_once(10, class), &caps));
        assert!(run.play());
        let at = counted(&run, &caps[0], ChannelKind::Email);
        assert_eq!(at.len(), 3, "{class}");
        let ids = run.world.told().acknowledged.clone();
        let ended: Vec<_> = ids.into_values().map(|id| run.record(id).unwrap().deliveries.remove(0)).collect();
        let suppressed: Vec<_> = ended.iter().filter(|one| one.state == State::Suppressed).collect();
        assert_eq!(suppressed.len(), 7, "{class}");
        for one in suppressed {
            let [.., entry, _] = &one.timeline.entries[..] else { panic!("{:?}", one.timeline) };
            let Happened::CapFull { cap, opens } = &entry.happened else { panic!("{:?}", one.timeline) };
            // Not before the first of the three is out of the window, and by when all are.
            assert_eq!(cap, "three");
            assert!(*opens >= at[0].plus(Duration::from_secs(60)), "{opens:?} {at:?}");
            assert!(*opens < at[2].plus(Duration::from_secs(120)), "{opens:?} {at:?}");
            let reason = "Suppressed: as many as the cap \"three\" allows were counted, and there is no room before 2";
            assert!(one.reason().starts_with(reason), "{}", one.reason());
            assert_eq!(one.attempts, 0);
        }
        let told = run.world.told();
        let of_three = |fact: &&Fact| matches!(fact, Fact::Capped { cap, suppressed: true } if cap == "three");
        assert_eq!(told.facts.iter().filter(of_three).count(), 7, "{class}");
    }
}

/// Whichever poll its worker dies at, where there is room for one in an hour: a place that was taken for a call that was
/// not made must not stand in the way of that call.
#[test]
fn case_31_what_a_dead_worker_took_for_no_call_does_not_hold_up_its_message() {
    let caps = [cap("one", (1, 3_600), &["marketing"], &[])];
    let intents = at_once(1, "marketing");
    let crash_free = Run::new(plan(4, 1, intents.clone(), &caps));
    assert!(crash_free.play());
    let (mut left_behind, mut spent) = (0, 0);
    for poll in 1..=crash_free.world.sim.polls(1) {
        let mut plan = plan(4, 1, intents.clone(), &caps);
        plan.crashes = [(1, vec![poll])].into();
        let run = Run::new(plan);
        let at_rest = run.play();
        assert_eq!(check::broken(&run, &intents, at_rest), Vec::<String>::new(), "poll {poll}");
        let id = run.world.told().acknowledged["marketing-0"];
        let delivery = run.record(id).unwrap().deliveries.remove(0);
        match delivery.state {
            State::Accepted => {}
            State::Unknown => spent += 1,
            other => panic!("poll {poll}: {other:?}, {}", delivery.reason()),
        }
        left_behind += caps::left_behind(&delivery).count();
    }
    assert!(left_behind > 0 && spent > 0, "{left_behind} {spent}");
}
