//! Random sequences of operations, on every store side by side and against the model.

use std::collections::BTreeMap;

use belfry::ports::deliveries::Owner;
use belfry::ports::suppressions::{Suppressed, SuppressionId};
use belfry_domain::UnixMs;
use belfry_domain::suppression::SuppressionKind;

use super::{all_listed, suppressed};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, in_a_cluster, in_a_file, in_memory, in_redis};
use crate::contract::recipients::other;
use crate::peers::rng::Rng;

const ADDRESSES: [&str; 4] = ["ann", "bob", "eve", "joe"];
const CATEGORIES: [Option<&str>; 3] = [None, Some("news"), Some("offers")];

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
    let category = any(rng, &CATEGORIES).map(str::to_owned);
    let note = rng.chance(30).then(|| format!("note {}", rng.below(3)));
    Suppressed { kind, category, until, note, ..suppressed(any(rng, &ADDRESSES), since) }
}

/// As it is kept.
fn put(model: &mut Model, owner: &Owner, entry: &Suppressed) -> Suppressed {
    let id = entry.id(owner);
    let before = model.get(&id).filter(|before| before.until.is_none_or(|until| until > entry.since));
    let kept = Suppressed { since: before.map_or(entry.since, |before| before.since), ..entry.clone() };
    model.insert(id, kept.clone());
    kept
}

#[tokio::test]
async fn all_stores_do_what_the_model_does() {
    for seed in 0..4 {
        let stores = [in_memory(), in_a_file(), in_redis(), in_a_cluster()];
        let mut owners = [acme(), other()].map(|owner| (owner, Model::default()));
        let mut rng = Rng(seed);
        for step in 0..150 {
            let which = usize::try_from(rng.below(2)).unwrap();
            let (owner, model) = &mut owners[which];
            let now = stores[0].now();
            if rng.chance(20) {
                let id = any_entry(&mut rng, now).id(any(&mut rng, &[&acme(), &other()]));
                for store in &stores {
                    store.store.lift(owner, id).await.unwrap();
                }
                model.remove(&id);
            } else {
                let entry = any_entry(&mut rng, now);
                let kept = put(model, owner, &entry);
                for store in &stores {
                    assert_eq!(store.suppress(owner, &entry).await, kept, "seed {seed}, step {step}");
                }
            }
            compare(&stores, &owners, &format!("seed {seed}, step {step}")).await;
        }
    }
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
