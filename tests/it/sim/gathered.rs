//! Digests while nodes die: every item that was acknowledged ends in one digest, was cancelled in time, or expired; none is
//! in two, and no digest goes out twice against its class's order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use belfry::gatherer;
use belfry::intake::accept::{Intake, IntakePorts};
use belfry_domain::admission::Rules;
use belfry_domain::delivery::Stop;
use belfry_domain::gather::Gather;
use belfry_domain::notification::Record;
use belfry_domain::{ChannelKind, NotificationId, State};

use super::bugs::Bug;
use super::check;
use super::door::{Door, Intent};
use super::executor::{NodeId, Rng};
use super::scenario::{Plan, Run};

const SPAN: Duration = Duration::from_secs(4);
const CLASSES: [&str; 2] = ["receipt", "marketing"];

fn gathering() -> BTreeMap<String, Rules> {
    let gather = Some(Gather { span: SPAN, most: 4 });
    CLASSES.map(|class| (class.to_owned(), Rules { gather, ..Rules::default() })).into()
}

/// What makes digests on a node, as a server starts it.
pub(super) fn start(node: NodeId, door: Door, run: &Run) {
    let shell = door.shell.clone();
    let policy = door.policy.clone();
    let ports = IntakePorts { policy: Arc::new(move || policy.clone()), ..door.ports() };
    let deps = gatherer::Deps {
        intake: Arc::new(Intake::new(ports, &[7; 32])),
        gatherings: door.gatherings,
        holds: run.store.clone(),
        clock: shell.clone(),
        dice: shell.clone(),
        facts: shell,
    };
    run.world.sim.start(node, Box::pin(gatherer::run(deps)));
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
            cancel: rng.chance(15),
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

fn storm(seed: u64, bug: Option<Bug>) -> Plan {
    let mut rng = Rng(seed ^ 0xd19e57);
    let nodes = 1 + usize::try_from(rng.below(3)).unwrap();
    let intents = intents(&mut rng, 8, 12_000);
    let crashes = (1..=nodes).map(|node| (node, (0..rng.below(5)).map(|_| 1 + rng.below(1_500)).collect())).collect();
    Plan { faults: true, bug, crashes, clock_steps: rng.chance(20), ..plan(seed, nodes, intents) }
}

fn played(plan: Plan) -> (Run, Vec<String>) {
    let intents = plan.intents.clone();
    let run = Run::ruled(plan, gathering());
    let at_rest = run.play();
    let mut broken = check::broken(&run, &intents, at_rest);
    broken.extend(unfolded(&run));
    (run, broken)
}

/// Where each item's end and its digest do not agree.
fn unfolded(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_digests: BTreeMap<NotificationId, BTreeSet<NotificationId>> = BTreeMap::new();
    for item in items(run) {
        let id = item.notification.id;
        let one = &item.deliveries[0];
        match (&one.stop, one.state) {
            (Some(Stop::Fold { into }), State::Cancelled) => match run.record(*into) {
                Some(digest) if digest.notification.gathered.contains(&id) => {
                    let members = digest.notification.gathered.iter().copied().collect::<BTreeSet<_>>();
                    if members.len() != digest.notification.gathered.len() {
                        found.push(format!("{into} has an item twice"));
                    }
                    in_digests.insert(*into, members);
                }
                Some(_) => found.push(format!("{id} is not in {into}, which it says it is in")),
                None => found.push(format!("{id} went into {into}, and there is none")),
            },
            (Some(Stop::Cancel { .. }), State::Cancelled) | (_, State::Expired) => {}
            (_, state) => found.push(format!("{id} gathered and is {state:?}")),
        }
    }
    let mut seen = BTreeMap::new();
    for (digest, members) in &in_digests {
        for member in members {
            if let Some(other) = seen.insert(*member, *digest) {
                found.push(format!("{member} is in {digest} and in {other}"));
            }
            let says = run.record(*member).and_then(|item| item.deliveries[0].folded_into());
            if says != Some(*digest) {
                found.push(format!("{digest} has {member}, which says {says:?}"));
            }
        }
    }
    found
}

fn items(run: &Run) -> Vec<Record> {
    let ids: Vec<NotificationId> = run.world.told().acknowledged.values().copied().collect();
    ids.into_iter().filter_map(|id| run.record(id)).collect()
}

fn digests(run: &Run) -> Vec<Record> {
    let ids: BTreeSet<_> = items(run).iter().filter_map(|item| item.deliveries[0].folded_into()).collect();
    ids.into_iter().filter_map(|id| run.record(id)).collect()
}

#[test]
fn no_item_is_lost_or_told_twice_while_nodes_die_and_answers_are_lost() {
    let mut folded = 0;
    for seed in 0..150 {
        let (run, broken) = played(storm(seed, None));
        assert_eq!(broken, Vec::<String>::new(), "seed {seed}");
        folded += digests(&run).len();
    }
    assert!(folded > 300, "{folded} digests in 150 runs");
}

/// At every poll of a run that nothing goes wrong in: marked, accepted, ended, left.
#[test]
fn a_node_that_dies_anywhere_loses_and_repeats_no_item() {
    let intents = || {
        let mut rng = Rng(11);
        intents(&mut rng, 3, 900).into_iter().map(|it| Intent { repeats: 1, cancel: false, ..it }).collect::<Vec<_>>()
    };
    let (run, broken) = played(plan(11, 1, intents()));
    assert_eq!(broken, Vec::<String>::new());
    let polls = run.world.sim.polls(1);
    assert!(polls > 100, "{polls}");
    for poll in 1..=polls {
        let mut plan = plan(11, 1, intents());
        plan.crashes = [(1, vec![poll])].into();
        let (_, broken) = played(plan);
        assert_eq!(broken, Vec::<String>::new(), "died before poll {poll}");
    }
}

#[test]
fn items_of_one_slot_go_out_as_one_message_at_its_end_and_a_full_one_at_once() {
    let of = |number: u64, at: u64| Intent {
        key: format!("receipt-{number}"),
        at: Duration::from_millis(at),
        class: "receipt",
        channel: ChannelKind::Email,
        tenant: "acme",
        send_after: Duration::ZERO,
        repeats: 2,
        cancel: false,
    };
    // Three wait for the end; seven fill one slot and leave three in the next.
    for (count, sizes) in [(3_u64, vec![3]), (7, vec![4, 3])] {
        let intents: Vec<Intent> = (0..count).map(|number| of(number, 100 * number)).collect();
        let (run, broken) = played(plan(count, 2, intents));
        assert_eq!(broken, Vec::<String>::new());
        let mut all = digests(&run);
        all.sort_by_key(|digest| digest.notification.created_at);
        let found: Vec<usize> = all.iter().map(|digest| digest.notification.gathered.len()).collect();
        assert_eq!(found, sizes);
        assert_eq!(run.world.told().effects.len(), sizes.len());
        let first = items(&run).iter().map(|item| item.notification.created_at).min().unwrap();
        let waited: Vec<Duration> = all.iter().map(|digest| digest.notification.created_at.since(first)).collect();
        if count == 3 {
            assert!(waited[0] >= SPAN && waited[0] < SPAN + Duration::from_secs(3), "{waited:?}");
        } else {
            assert!(waited[0] < SPAN && waited[1] >= SPAN, "{waited:?}");
        }
    }
}

/// What a digest holds is what its items said, in their order.
#[test]
fn a_digest_holds_the_data_of_all_its_items_the_oldest_first() {
    let mut rng = Rng(3);
    let intents: Vec<Intent> = intents(&mut rng, 3, 3_000)
        .into_iter()
        .map(|it| Intent { channel: ChannelKind::Email, cancel: false, ..it })
        .collect();
    let (run, broken) = played(plan(3, 2, intents.clone()));
    assert_eq!(broken, Vec::<String>::new());
    for digest in digests(&run) {
        let mut mine: Vec<&Intent> = intents.iter().filter(|it| it.class == digest.notification.class).collect();
        mine.sort_by_key(|it| it.at);
        let inputs = run.inputs(digest.notification.id).unwrap();
        let inputs: serde_json::Value = serde_json::from_str(&inputs).unwrap();
        let told = &inputs["source"]["template"]["data"];
        let keys: Vec<_> = told["items"].as_array().unwrap().iter().map(|it| it["data"]["key"].clone()).collect();
        assert_eq!(keys, mine.iter().map(|it| it.key.as_str()).collect::<Vec<_>>());
        assert_eq!(told["count"], keys.len());
    }
}

#[test]
fn items_that_are_not_marked_before_their_digest_is_made_are_found() {
    let found = (0..60).find(|seed| {
        let (_, broken) = played(storm(*seed, Some(Bug::UnmarkedItems)));
        broken.iter().any(|one| one.contains("which says None"))
    });
    assert!(found.is_some(), "60 seeds did not find it");
}
