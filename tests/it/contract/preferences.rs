//! [`belfry::ports::preferences::PreferenceBook`].

use belfry::ports::deliveries::Owner;
use belfry::ports::preferences::{Person, Wishes};
use belfry_domain::UnixMs;
use belfry_domain::preferences::{Preferences, Switches};

use super::fixture::acme;
use super::harness::{Harness, START, in_a_cluster, in_a_file, in_memory, in_redis};
use super::on_every_store;
use super::recipients::other;
use crate::peers::rng::Rng;

on_every_store!(
    what_is_kept_comes_back_whole,
    it_is_written_only_over_what_was_read,
    the_same_write_again_says_the_same,
    one_look_is_for_many_recipients_of_many_owners,
);

fn person(name: &str) -> Person {
    Person { owner: acme(), recipient: name.into() }
}

/// Told apart by `all` and when.
fn wishes(all: bool, ms: i64) -> Wishes {
    let every = Switches { all: Some(all), ..Switches::default() };
    Wishes {
        preferences: Preferences { every, ..Preferences::default() },
        changed_at: UnixMs(START.0 + ms),
        by: "key_1".into(),
    }
}

impl Harness {
    async fn wanted(&self, whom: &Person) -> Option<Wishes> {
        self.store.preferences(vec![whom.clone()]).await.pop().unwrap().unwrap()
    }
}

async fn what_is_kept_comes_back_whole(h: Harness) {
    let written =
        r#"{"every":{"all":false,"email":true},"categories":{"\"ä\"":{"web_push":false},"news":{"all":true}}}"#;
    let preferences: Preferences = serde_json::from_str(written).unwrap();
    assert_eq!(serde_json::to_string(&preferences).unwrap(), written);
    let full = Wishes { preferences, by: "page".into(), ..wishes(true, 5) };
    let ann = person("ann@example.com:~._-");
    assert_eq!(h.wanted(&ann).await, None);
    assert!(h.store.write(&ann, None, Some(&full)).await.unwrap());
    assert_eq!(h.wanted(&ann).await, Some(full.clone()));
    let elsewhere = Owner { environment: "test".into(), ..acme() };
    for stranger in [other(), elsewhere] {
        assert_eq!(h.wanted(&Person { owner: stranger, ..ann.clone() }).await, None);
    }
    assert!(h.store.write(&ann, Some(&full), None).await.unwrap());
    assert_eq!(h.wanted(&ann).await, None);
}

async fn it_is_written_only_over_what_was_read(h: Harness) {
    let (ann, first, second) = (person("ann"), wishes(true, 1), wishes(false, 2));
    assert!(!h.store.write(&ann, Some(&first), Some(&second)).await.unwrap(), "there is none");
    assert!(h.store.write(&ann, None, Some(&first)).await.unwrap());
    assert!(!h.store.write(&ann, None, Some(&second)).await.unwrap(), "another was first");
    assert!(!h.store.write(&ann, Some(&second), None).await.unwrap());
    assert_eq!(h.wanted(&ann).await, Some(first.clone()));
    assert!(h.store.write(&ann, Some(&first), Some(&second)).await.unwrap());
    assert_eq!(h.wanted(&ann).await, Some(second));
    assert_eq!(h.wanted(&person("bob")).await, None);
}

async fn the_same_write_again_says_the_same(h: Harness) {
    let (ann, first, second) = (person("ann"), wishes(true, 1), wishes(true, 2));
    for (before, next) in [(None, Some(&first)), (Some(&first), Some(&second)), (Some(&second), None)] {
        for _ in 0..3 {
            assert!(h.store.write(&ann, before, next).await.unwrap());
            assert_eq!(h.wanted(&ann).await.as_ref(), next);
        }
    }
}

async fn one_look_is_for_many_recipients_of_many_owners(h: Harness) {
    assert_eq!(h.store.preferences(Vec::new()).await, []);
    let mut whom = Vec::new();
    for number in 0..300 {
        let owner = if number % 2 == 0 { acme() } else { other() };
        let one = Person { owner, recipient: format!("ann {number}") };
        if number % 3 == 0 {
            assert!(h.store.write(&one, None, Some(&wishes(true, number))).await.unwrap());
        }
        whom.push(one);
    }
    // In their order, the same one asked for twice as well.
    whom.push(whom[0].clone());
    let found = h.store.preferences(whom).await;
    assert_eq!(found.len(), 301);
    for (number, found) in (0..300).chain([0]).zip(found) {
        assert_eq!(found, Ok((number % 3 == 0).then(|| wishes(true, number))), "{number}");
    }
}

#[tokio::test]
async fn all_stores_write_what_the_model_writes() {
    for seed in 0..4 {
        let stores = [in_memory(), in_a_file(), in_redis(), in_a_cluster()];
        let mut rng = Rng(seed);
        let mut model = [None::<Wishes>, None];
        let any = |rng: &mut Rng| rng.chance(75).then(|| wishes(rng.chance(50), rng.below(2).cast_signed()));
        for step in 0..200 {
            let which = usize::try_from(rng.below(2)).unwrap();
            let whom = person(["ann", "bob"][which]);
            let before = if rng.chance(50) { model[which].clone() } else { any(&mut rng) };
            let next = any(&mut rng);
            let written = model[which] == before || model[which] == next;
            if written {
                model[which].clone_from(&next);
            }
            for store in &stores {
                let at = format!("seed {seed}, step {step}");
                assert_eq!(store.store.write(&whom, before.as_ref(), next.as_ref()).await, Ok(written), "{at}");
                assert_eq!(store.wanted(&whom).await, model[which], "{at}");
            }
        }
    }
}
