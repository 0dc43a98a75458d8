//! Random sequences of operations, on every store side by side and against the model: repeats,
//! zombies, wrong revs, clocks that step either way, purges in between.

use std::time::Duration;

use belfry::ports::deliveries::{Claim, ClaimAsk, PurgeAsk, Reclaim, Settle, Spend};
use belfry_domain::delivery::{DeferWhy, ParkWhy};
use belfry_domain::{Delivery, Lane, Priority, State, UnixMs};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::depths::depths;
use super::model::Model;
use crate::contract::fixture::{LEASE_MS, WINDOW_MS, due_in, everything, in_group, in_lane, intent_of, next};
use crate::contract::harness::{Harness, START, in_a_file, in_memory, in_one_shard};
use crate::contract::holds::all_held_back;

#[derive(Clone, Debug)]
enum Op {
    Accept { key: u8, lane: u8, slots: u8, delay: i64, version: i64 },
    Claim { nonce: u8, lanes: Vec<(u8, u16)>, alone: bool },
    Renew { of: usize, wrong: bool },
    Spend { of: usize, rev: u64 },
    Settle { of: usize, fresh: bool, how: u8 },
    Apply { of: usize, rev: u64, how: u8 },
    Reclaim { of: usize, how: u8 },
    Step(i64),
    Purge,
    Hold,
    Release,
}

fn op() -> impl Strategy<Value = Op> {
    let delay = prop_oneof![3 => Just(0), 1 => 1..100_000_i64];
    let lanes = prop::collection::vec((0..3_u8, 0..5_u16), 1..4);
    prop_oneof![
        6 => (0..12_u8, 0..3_u8, 1..3_u8, delay, -1..4_i64)
            .prop_map(|(key, lane, slots, delay, version)| Op::Accept { key, lane, slots, delay, version }),
        6 => (any::<u8>(), lanes, prop::bool::weighted(0.2))
            .prop_map(|(nonce, lanes, alone)| Op::Claim { nonce: nonce % 24, lanes, alone }),
        2 => (any::<usize>(), prop::bool::weighted(0.2)).prop_map(|(of, wrong)| Op::Renew { of, wrong }),
        2 => (any::<usize>(), 0..3_u64).prop_map(|(of, rev)| Op::Spend { of, rev }),
        5 => (any::<usize>(), prop::bool::weighted(0.8), 0..9_u8)
            .prop_map(|(of, fresh, how)| Op::Settle { of, fresh, how }),
        3 => (any::<usize>(), 0..3_u64, 0..9_u8).prop_map(|(of, rev, how)| Op::Apply { of, rev, how }),
        3 => (any::<usize>(), 0..9_u8).prop_map(|(of, how)| Op::Reclaim { of, how }),
        3 => prop_oneof![Just(1), Just(LEASE_MS), -LEASE_MS..2 * LEASE_MS, Just(WINDOW_MS / 4), -WINDOW_MS / 8..0]
            .prop_map(Op::Step),
        1 => Just(Op::Purge),
        1 => Just(Op::Hold),
        1 => Just(Op::Release),
    ]
}

fn lane(n: u8) -> Lane {
    let lanes = [("a", Priority::High), ("a", Priority::Low), ("b", Priority::Normal)];
    let (provider, priority) = lanes[usize::from(n) % lanes.len()];
    Lane::new(provider, priority)
}

/// One of the things that may become of a delivery.
fn become_of(now: UnixMs, delivery: &Delivery, how: u8) -> Delivery {
    let end = |state| Delivery { ended_at: Some(now), receipt_until: None, ..next(delivery, state) };
    let waiting = |state, due_at| Delivery { due_at, ended_at: None, spent: false, ..next(delivery, state) };
    let until = now.plus(Duration::from_secs(5));
    match how {
        0 => end(State::Delivered),
        1 => end(State::Failed),
        2 => end(State::Unknown),
        3 => end(State::Parked { why: ParkWhy::Poison }),
        4 => waiting(State::Queued, now),
        5 => Delivery { lapses: delivery.lapses + 1, ..waiting(State::Queued, now) },
        6 => waiting(State::Deferred { until, why: DeferWhy::Retry }, until),
        7 => Delivery { receipt_until: Some(until), ended_at: None, ..next(delivery, State::Accepted) },
        _ => Delivery { lane: lane(how), ..next(delivery, delivery.state) },
    }
}

/// The stores, the model, and what was seen so far.
struct Run {
    stores: Vec<Harness>,
    model: Model,
    claims: Vec<Claim>,
}

impl Run {
    fn now(&self) -> UnixMs {
        self.stores[0].now()
    }

    /// The same call on every store: the same answer, which is the model's.
    async fn call(&mut self, op: &Op, times: usize) {
        let now = self.now();
        match op {
            Op::Accept { .. } => self.accept(op, times).await,
            Op::Claim { nonce, lanes, alone } => {
                let mut asked: Vec<(Lane, u16)> = Vec::new();
                for (at, most) in lanes {
                    if asked.iter().all(|(other, _)| *other != lane(*at)) {
                        asked.push((lane(*at), *most));
                    }
                }
                let worker = format!("w{}", nonce % 2);
                for _ in 0..times {
                    self.claim(ClaimAsk {
                        worker: worker.clone(),
                        nonce: u64::from(*nonce),
                        lanes: asked.clone(),
                        alone: *alone,
                    })
                    .await;
                }
            }
            Op::Step(ms) => self.stores.iter().for_each(|store| store.clock.step(*ms)),
            Op::Purge => {
                let ask = PurgeAsk { now, keep_record: Duration::from_millis(WINDOW_MS as u64 / 3), limit: 100 };
                for _ in 0..times {
                    let expected = self.model.purge(ask);
                    for store in &self.stores {
                        assert_eq!(store.store.purge(ask).await.unwrap(), expected);
                    }
                }
            }
            Op::Hold => self.hold(now, times).await,
            Op::Release => self.release(now).await,
            Op::Apply { of, rev, how } => {
                let all: Vec<&Delivery> = self.model.deliveries().collect();
                let Some(delivery) = all.get(of.checked_rem(all.len()).unwrap_or(0)) else { return };
                let next = become_of(now, delivery, *how);
                // Mostly the right rev; else one too low or too high.
                let next = Delivery { rev: (next.rev + rev).saturating_sub(u64::from(*rev > 0) * 2).max(1), ..next };
                for _ in 0..times {
                    let expected = [self.model.apply(&next)];
                    for store in &self.stores {
                        assert_eq!(store.store.apply(vec![next.clone()]).await.unwrap(), expected);
                    }
                }
            }
            Op::Renew { .. } | Op::Spend { .. } | Op::Settle { .. } | Op::Reclaim { .. } => {
                self.call_held(op, times).await
            }
        }
    }

    async fn hold(&mut self, now: UnixMs, times: usize) {
        for _ in 0..times {
            let expected = self.model.hold(now);
            for store in &self.stores {
                assert_eq!(store.store.hold(now).await.unwrap(), expected);
            }
        }
    }

    /// Another hold than the one that stands, and then that one.
    async fn release(&mut self, now: UnixMs) {
        let stands = self.model.standing();
        for at in [Some(UnixMs(now.0 - 1)), stands].into_iter().flatten() {
            self.model.release(at);
            for store in &self.stores {
                store.store.release(at).await.unwrap();
            }
        }
    }

    async fn accept(&mut self, op: &Op, times: usize) {
        let Op::Accept { key, lane: at, slots, delay, version } = op else { return };
        let tenant = ["acme", "other", "third"][usize::from(key % 3)];
        let plain = intent_of(&self.stores[0], &format!("k{key}"), tenant, usize::from(*slots));
        let mut intent = in_lane(due_in(plain, *delay), &lane(*at));
        if *version >= 0 {
            intent = in_group(intent, &format!("g{}", key % 2), *version);
        }
        for _ in 0..times {
            let expected = format!("{:?}", [self.model.accept(&intent)]);
            for store in &self.stores {
                let answer = store.store.accept(vec![intent.clone()]).await.unwrap();
                assert_eq!(format!("{answer:?}"), expected);
            }
        }
    }

    async fn claim(&mut self, ask: ClaimAsk) {
        let now = self.now();
        let first = self.stores[0].claims(ask.clone()).await;
        for store in &self.stores[1..] {
            assert_eq!(format!("{:?}", store.claims(ask.clone()).await), format!("{first:?}"));
        }
        self.model.claimed(now, &ask, &first);
        self.claims.extend(first.claims);
    }

    /// What speaks of a claim: any that was ever given out, held or not.
    async fn call_held(&mut self, op: &Op, times: usize) {
        let now = self.now();
        let (Op::Renew { of, .. } | Op::Spend { of, .. } | Op::Settle { of, .. } | Op::Reclaim { of, .. }) = op else {
            return;
        };
        let Some(claim) = self.claims.get(of.checked_rem(self.claims.len()).unwrap_or(0)).cloned() else { return };
        let (id, mut token) = (claim.delivery.id, claim.token);
        let stored = self.model.stored(id).cloned().unwrap_or_else(|| claim.delivery.clone());
        match op {
            Op::Renew { wrong, .. } => {
                token.nonce += u64::from(*wrong);
                for _ in 0..times {
                    let held = self.model.renew(now, id, token);
                    for store in &self.stores {
                        assert_eq!(store.store.renew(vec![(id, token)]).await.unwrap()[0].held, held);
                    }
                }
            }
            Op::Spend { rev, .. } => {
                let spend = Spend { id, token, rev: (stored.rev + rev).saturating_sub(1) };
                for _ in 0..times {
                    let expected = [self.model.spend(&spend)];
                    for store in &self.stores {
                        assert_eq!(store.store.spend(vec![spend]).await.unwrap(), expected);
                    }
                }
            }
            Op::Settle { fresh, how, .. } => {
                let next = become_of(now, if *fresh { &stored } else { &claim.delivery }, *how);
                let settle = Settle { next, token };
                for _ in 0..times {
                    let expected = [self.model.settle(&settle)];
                    for store in &self.stores {
                        assert_eq!(store.store.settle(vec![settle.clone()]).await.unwrap(), expected);
                    }
                }
            }
            _ => {
                let Some(seen) = self.model.held(now).into_iter().find(|held| held.id == id) else { return };
                let reclaim = Reclaim { next: become_of(now, &stored, how_to_reclaim(op)), seen };
                for _ in 0..times {
                    let expected = [self.model.reclaim(now, &reclaim)];
                    for store in &self.stores {
                        assert_eq!(store.store.reclaim(vec![reclaim.clone()]).await.unwrap(), expected);
                    }
                }
            }
        }
    }

    /// Everything that can be read.
    async fn compare(&self) {
        let now = self.now();
        for h in &self.stores {
            let mut held = h.store.held(1_000).await.unwrap();
            assert!(held.windows(2).all(|pair| pair[0].lease_until <= pair[1].lease_until));
            held.sort_by_key(|held| (held.lease_until, held.id));
            assert_eq!(held, self.model.held(now));
            assert_eq!(depths(h).await, self.model.depths(now));
            assert_eq!(h.store.standing().await.unwrap(), self.model.standing());
            let mut held_back = all_held_back(h, 2).await;
            held_back.sort_by_key(|one| one.id);
            assert_eq!(held_back.iter().collect::<Vec<_>>(), self.model.held_back());
            for kept in &self.model.kept {
                let owner = belfry::ports::deliveries::Owner {
                    tenant: kept.record.notification.tenant.clone(),
                    environment: kept.record.notification.environment.clone(),
                };
                let id = kept.record.notification.id;
                assert_eq!(h.store.read(&owner, id).await.unwrap().as_ref(), Some(&kept.record));
                assert_eq!(h.store.inputs(id).await.unwrap(), kept.inputs);
                let state = Some(kept.record.state());
                let query = belfry::ports::search::Query { state, ..everything(owner.clone()) };
                let found = h.store.search(query).await.unwrap().records;
                let same = |other: &&super::model::Kept| {
                    other.record.state() == kept.record.state() && other.record.notification.tenant == owner.tenant
                };
                let expected: Vec<_> = self.model.kept.iter().rev().filter(same).map(|one| &one.record).collect();
                assert_eq!(found.iter().collect::<Vec<_>>(), expected);
            }
        }
    }
}

/// A reclaim always ends the claim.
fn how_to_reclaim(op: &Op) -> u8 {
    match op {
        Op::Reclaim { how, .. } => how % 8,
        _ => 4,
    }
}

fn run(ops: &[(Op, bool)], stores: &[fn() -> Harness]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stores = stores.iter().map(|open| open()).collect();
        let mut run = Run { stores, model: Model::default(), claims: Vec::new() };
        assert_eq!(run.now(), START);
        for (op, twice) in ops {
            // Twice the very same, as after a lost reply.
            run.call(op, if *twice { 2 } else { 1 }).await;
        }
        run.compare().await;
    });
}

fn ops(most: usize) -> impl Strategy<Value = Vec<(Op, bool)>> {
    prop::collection::vec((op(), prop::bool::weighted(0.2)), 1..most)
}

proptest! {
    #![proptest_config(Config { cases: 400, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_store_in_memory_does_what_the_model_does(ops in ops(80)) {
        run(&ops, &[in_memory]);
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..Config::default() })]

    #[test]
    fn all_stores_do_what_the_model_does(ops in ops(80)) {
        run(&ops, &[in_memory, in_a_file, in_one_shard]);
    }
}
