//! Random sequences of operations, on every store side by side and against the model in the domain.

use std::time::Duration;

use belfry::ports::caps::{Ended, Room, TakeAsk, TakeEnd, Taken};
use belfry_domain::caps::{Cap, Fate, Ledgers, Per, Take, Then};
use belfry_domain::{KeyKind, child_key};

use super::call;
use crate::contract::harness::{Harness, in_a_cluster, in_a_file, in_memory, in_redis};
use crate::peers::rng::Rng;

fn caps() -> Vec<Cap> {
    [(1, 10), (2, 30), (3, 45), (7, 60), (200, 90)]
        .map(|(limit, seconds)| Cap {
            name: format!("{limit}"),
            per: Per::Scope,
            limit,
            window: Duration::from_secs(seconds),
            then: Then::Defer,
            classes: Vec::new(),
            channels: Vec::new(),
            templates: Vec::new(),
        })
        .into()
}

struct Run {
    rng: Rng,
    stores: Vec<Harness>,
    model: Ledgers,
    caps: Vec<Cap>,
}

impl Run {
    /// Some of the caps, one or the other ledger of each.
    fn any_takes(&mut self) -> Vec<(Room, usize)> {
        let mut all = Vec::new();
        for (at, cap) in self.caps.iter().enumerate() {
            if self.rng.chance(50) {
                let whose = [u8::from(self.rng.chance(20))];
                let ledger = child_key(KeyKind::Cap, &[cap.name.as_bytes(), &whose]);
                all.push((Room { ledger, limit: cap.limit, window: cap.window }, at));
            }
        }
        all.sort_by_key(|(room, _)| room.ledger);
        all
    }

    async fn step(&mut self) {
        let by = i64::try_from(self.rng.below(1_500)).unwrap();
        self.stores.iter().for_each(|h| h.clock.step(by));
        let takes = self.any_takes();
        let reservation = call(u32::try_from(self.rng.below(40)).unwrap());
        let times = if self.rng.chance(20) { 2 } else { 1 };
        for _ in 0..times {
            if self.rng.chance(60) {
                self.take(&takes, reservation).await;
            } else {
                let fate = if self.rng.chance(50) { Fate::Counts } else { Fate::GivenBack };
                self.end(&takes, reservation, fate).await;
            }
        }
    }

    async fn take(&mut self, takes: &[(Room, usize)], reservation: belfry_domain::Key) {
        let longest = Duration::from_millis(self.rng.below(20_000));
        let now = self.stores[0].now();
        let asked: Vec<Take> =
            takes.iter().map(|(room, cap)| Take { key: room.ledger, cap: &self.caps[*cap] }).collect();
        let expected = match self.model.take(now, &asked, reservation, longest) {
            Ok(()) => Taken::All,
            Err((cap, full)) => {
                let at = asked.iter().position(|take| take.cap.name == cap.name).unwrap();
                Taken::Full { at, full, now }
            }
        };
        let rooms: Vec<Room> = takes.iter().map(|(room, _)| *room).collect();
        for h in &self.stores {
            let ask = TakeAsk { rooms: rooms.clone(), reservation, longest };
            assert_eq!(h.store.take(vec![ask]).await.unwrap(), [expected]);
        }
    }

    async fn end(&mut self, takes: &[(Room, usize)], reservation: belfry_domain::Key, fate: Fate) {
        let now = self.stores[0].now();
        let asked: Vec<Take> =
            takes.iter().map(|(room, cap)| Take { key: room.ledger, cap: &self.caps[*cap] }).collect();
        match fate {
            Fate::Counts => self.model.count(now, &asked, reservation),
            Fate::GivenBack => self.model.give_back(&asked, reservation),
        }
        let ledgers: Vec<_> = takes.iter().map(|(room, _)| room.ledger).collect();
        for h in &self.stores {
            let end = TakeEnd { ledgers: ledgers.clone(), reservation, fate };
            assert_eq!(h.store.end(vec![end]).await.unwrap(), [Ended::Done]);
        }
    }
}

async fn run(seed: u64, steps: usize, stores: Vec<Harness>) {
    let mut run = Run { rng: Rng(seed), stores, model: Ledgers::default(), caps: caps() };
    for _ in 0..steps {
        run.step().await;
    }
}

#[tokio::test]
async fn the_store_in_memory_does_what_the_model_does() {
    for seed in 0..60 {
        run(seed, 300, vec![in_memory()]).await;
    }
}

#[tokio::test]
async fn all_stores_do_what_the_model_does() {
    for seed in 100..105 {
        run(seed, 150, vec![in_memory(), in_a_file(), in_redis(), in_a_cluster()]).await;
    }
}
