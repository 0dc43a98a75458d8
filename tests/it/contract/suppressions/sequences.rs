//! Random sequences of operations, on every store side by side and against the model.

use std::collections::BTreeMap;

use belfry::ports::deliveries::Owner;
use belfry::ports::suppressions::{Put, Suppressed, SuppressionId};
use belfry_domain::UnixMs;
use belfry_domain::suppression::SuppressionKind;

use super::{all_listed, suppressed};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, in_a_cluster, in_a_file, in_memory, in_redis};
use crate::contract::recipients::other;
use crate::peers::rng::Rng;

const ADDRESSES: [&str; 3] = ["ann", "bob", "eve"];
/// Of no category, and of so many: of one address there is more to say than there is room for.
const CATEGORIES: u64 = 12;

fn any<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[usize::try_from(rng.below(all.len() as u64)).unwrap()]
}

/// Of one owner.
type Model = BTreeMap<SuppressionId, Suppressed>;

fn any_entry(rng: &mut Rng, now: UnixMs) -> Suppressed {
    let near = |rng: &mut Rng| UnixMs(now.0 + i64::try_from(rng.below(40)).unwrap() - 20);
    let since = near(rng);
    let until = rng.chance(50).then(|| near(rng));
    let kind = any(rng, SuppressionKind::ALL);
    let category = rng.below(CATEGORIES).checked_sub(1).map(|number| number.to_string());
    let note = rng.chance(30).then(|| format!("note {}", rng.below(3)));
    // Mostly of one.
    let address = if rng.chance(70) { ADDRESSES[0] } else { any(rng, &ADDRESSES) };
    Suppressed { kind, category, until, note, ..suppressed(address, since) }
}

fn put(model: &mut Model, owner: &Owner, entry: &Suppressed) -> Put {
    let id = entry.id(owner);
    let over = |one: &Suppressed| one.until.is_some_and(|until| until <= entry.since);
    let here = |one: &SuppressionId| one.address == id.address;
    if !model.contains_key(&id) {
        let room = if entry.category.is_some() { 32 } else { 40 };
        if model.keys().filter(|one| here(one)).count() >= room {
            model.retain(|at, one| !(here(at) && over(one)));
        }
        if model.keys().filter(|one| here(one)).count() >= room {
            return Put::TooMany;
        }
    }
    let before = model.get(&id).filter(|before| !over(before));
    let kept = Suppressed { since: before.map_or(entry.since, |before| before.since), ..entry.clone() };
    model.insert(id, kept.clone());
    Put::Kept(Box::new(kept))
}

#[tokio::test]
async fn all_stores_do_what_the_model_does() {
    let (mut refused, mut most) = (0, 0);
    for seed in 0..4 {
        let stores = [in_memory(), in_a_file(), in_redis(), in_a_cluster()];
        let mut owners = [acme(), other()].map(|owner| (owner, Model::default()));
        let mut rng = Rng(seed);
        for step in 0..180 {
            let which = usize::try_from(rng.below(2)).unwrap();
            let (owner, model) = &mut owners[which];
            let now = stores[0].now();
            if rng.chance(5) {
                let id = any_entry(&mut rng, now).id(any(&mut rng, &[&acme(), &other()]));
                for store in &stores {
                    store.store.lift(owner, id).await.unwrap();
                }
                model.remove(&id);
            } else {
                let entry = any_entry(&mut rng, now);
                let told = put(model, owner, &entry);
                for store in &stores {
                    assert_eq!(store.store.put(owner, &entry).await, Ok(told.clone()), "seed {seed}, step {step}");
                }
                refused += usize::from(told == Put::TooMany);
                most = most.max(model.len());
            }
            compare(&stores, &owners, &format!("seed {seed}, step {step}")).await;
        }
    }
    // It was about something.
    assert!(refused > 0 && most > 32, "{refused} {most}");
}

async fn compare(stores: &[Harness], owners: &[(Owner, Model)], at: &str) {
    for (owner, model) in owners {
        let mut all: Vec<_> = model.values().cloned().collect();
        all.sort_by_key(|entry| std::cmp::Reverse((entry.since, entry.id(owner))));
        for store in stores {
            assert_eq!(all_listed(store, owner, 7).await, all, "{at}");
            for address in ADDRESSES {
                let whom = suppressed(address, UnixMs(0)).addressee(owner);
                let expected: Vec<_> = model.values().filter(|entry| entry.addressee(owner) == whom).cloned().collect();
                assert_eq!(store.about(&whom).await, expected, "{at}");
            }
        }
    }
}
