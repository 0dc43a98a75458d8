//! Random sequences of operations, on every store side by side and against the model.

use belfry::ports::deliveries::Owner;
use belfry::ports::recipients::{DeadToken, DeviceRef, NewDevice, Recipients, Registered};
use belfry_domain::device::TokenFault;
use belfry_domain::{ChannelKind, UnixMs};

use super::model::Model;
use super::{all_dead, device, of, other, profile, word};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, in_a_cluster, in_a_file, in_memory, in_redis};
use crate::peers::rng::Rng;

const RECIPIENTS: [&str; 3] = ["ann", "bob", "eve"];
const DEVICES: [&str; 3] = ["pad", "phone", "watch"];
const TOKENS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The stores, and a model for each of two owners.
struct Run {
    rng: Rng,
    stores: Vec<Harness>,
    owners: [(Owner, Model); 2],
}

fn any<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[usize::try_from(rng.below(all.len() as u64)).unwrap()]
}

impl Run {
    fn new(seed: u64, stores: Vec<Harness>) -> Self {
        Self { rng: Rng(seed), stores, owners: [acme(), other()].map(|owner| (owner, Model::default())) }
    }

    fn now(&self) -> UnixMs {
        self.stores[0].now()
    }

    fn any_device(&mut self) -> DeviceRef {
        of(any(&mut self.rng, &RECIPIENTS), any(&mut self.rng, &DEVICES))
    }

    fn any_registration(&mut self) -> (String, NewDevice) {
        let DeviceRef { recipient, device: id } = self.any_device();
        let mut new = device(&id, any(&mut self.rng, &TOKENS));
        if self.rng.chance(10) {
            new.kind = ChannelKind::Fcm;
        }
        if self.rng.chance(10) {
            new.app = None;
        }
        (recipient, new)
    }

    fn any_word(&mut self) -> DeadToken {
        let fault = any(&mut self.rng, &[TokenFault::Unregistered, TokenFault::BadToken, TokenFault::WrongApp]);
        let at = |rng: &mut Rng, now: UnixMs| UnixMs(now.0 + i64::try_from(rng.below(40)).unwrap() - 20);
        let now = self.now();
        let heard_at = at(&mut self.rng, now);
        let mut word = word(&self.any_device(), any(&mut self.rng, &TOKENS), fault, heard_at);
        if self.rng.chance(40) {
            word.since = Some(at(&mut self.rng, now));
        }
        if self.rng.chance(10) {
            (word.recipient, word.device) = (None, None);
        }
        word
    }

    /// One call on every store, perhaps twice, as after a lost reply: each answers what the model does.
    async fn step(&mut self) {
        let of_whom = usize::from(self.rng.chance(20));
        let twice = self.rng.chance(20);
        match self.rng.below(20) {
            0 => {
                let by = i64::try_from(self.rng.below(60)).unwrap() - 20;
                self.stores.iter().for_each(|h| h.clock.step(by));
            }
            1..4 => {
                let recipient = any(&mut self.rng, &RECIPIENTS);
                let profile = profile(any(&mut self.rng, &TOKENS));
                self.owners[of_whom].1.profiles.insert(recipient.into(), profile.clone());
                for h in &self.stores {
                    h.store.put_profile(&self.owners[of_whom].0, recipient, &profile).await.unwrap();
                }
            }
            4..11 => self.register(of_whom, twice).await,
            11..14 => self.remove(of_whom).await,
            14..18 => self.bury(of_whom, twice).await,
            _ => {
                let (owner, model) = &self.owners[of_whom];
                let dead = model.dead(UnixMs(0));
                if dead.is_empty() {
                    return;
                }
                let (owner, word) = (owner.clone(), any(&mut self.rng, &dead.iter().collect::<Vec<_>>()).clone());
                self.owners[of_whom].1.exhume(&word);
                for h in &self.stores {
                    h.store.exhume(&owner, &word).await.unwrap();
                }
            }
        }
    }

    async fn register(&mut self, of_whom: usize, twice: bool) {
        let (recipient, new) = self.any_registration();
        let now = self.now();
        let (owner, model) = &mut self.owners[of_whom];
        for _ in 0..if twice { 2 } else { 1 } {
            let expected = model.register(&recipient, &new, now).unwrap();
            for h in &self.stores {
                let registered = Recipients::register(&*h.store, owner, &recipient, &new, now).await.unwrap();
                assert_eq!(registered, Registered::Kept(Box::new(expected.clone())));
            }
        }
    }

    async fn remove(&mut self, of_whom: usize) {
        let named = self.any_device();
        let whole = self.rng.chance(40);
        let (owner, model) = &mut self.owners[of_whom];
        let expected = if whole { model.remove_recipient(&named.recipient) } else { model.remove_device(&named) };
        for h in &self.stores {
            let removed = if whole {
                h.store.remove_recipient(owner, &named.recipient).await
            } else {
                h.store.remove_device(owner, &named).await
            };
            assert_eq!(removed.unwrap(), expected);
        }
    }

    async fn bury(&mut self, of_whom: usize, twice: bool) {
        let word = self.any_word();
        let (owner, model) = &mut self.owners[of_whom];
        for _ in 0..if twice { 2 } else { 1 } {
            let expected = model.bury(&word);
            for h in &self.stores {
                let said = Recipients::bury(&*h.store, owner, &word).await.unwrap();
                assert_eq!(said, expected, "{word:?}");
            }
        }
    }

    /// Everything that can be read.
    async fn compare(&self) {
        for (owner, model) in &self.owners {
            for h in &self.stores {
                for recipient in RECIPIENTS {
                    let found = Recipients::recipient(&*h.store, owner, recipient).await.unwrap();
                    assert_eq!(found, model.recipient(recipient));
                    for id in DEVICES {
                        let found = Recipients::device(&*h.store, owner, &of(recipient, id)).await.unwrap();
                        assert_eq!(found.as_ref(), model.devices.get(&(recipient.to_owned(), id.to_owned())));
                    }
                }
                let dead = all_dead(h, owner, UnixMs(0), 3).await;
                // Those of one moment have an order that is the stores' own, and the same in all of them.
                assert_eq!(dead, all_dead(&self.stores[0], owner, UnixMs(0), 100).await);
                let (mut dead, mut expected) = (dead, model.dead(UnixMs(0)));
                assert!(dead.windows(2).all(|pair| pair[0].heard_at <= pair[1].heard_at));
                let key = |one: &DeadToken| (one.heard_at, one.hash.clone(), one.fault);
                dead.sort_by_key(key);
                expected.sort_by_key(key);
                assert_eq!(dead, expected);
            }
        }
    }
}

async fn run(seed: u64, steps: usize, stores: Vec<Harness>) {
    let mut run = Run::new(seed, stores);
    for _ in 0..steps {
        run.step().await;
    }
    run.compare().await;
}

#[tokio::test]
async fn the_store_in_memory_does_what_the_model_does() {
    for seed in 0..60 {
        run(seed, 120, vec![in_memory()]).await;
    }
}

#[tokio::test]
async fn all_stores_do_what_the_model_does() {
    for seed in 100..110 {
        run(seed, 100, vec![in_memory(), in_a_file(), in_redis(), in_a_cluster()]).await;
    }
}
