//! Conditional writes: each item compared and written by its shard's script.

use std::collections::BTreeMap;

use belfry_domain::{Delivery, DeliveryId, State};
use redis::Value;

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::Need;
use super::memory::{Memory, Settled};
use super::script::Script;
use super::store::{Ask, RedisStore, decimal, signed, those_that_answered};
use crate::ports::deliveries::{Held, Reclaim, Renewed, Settle, Spend, Token, Written};

/// One item of a batch: its delivery, and what its script takes.
struct Item {
    id: DeliveryId,
    args: Vec<Vec<u8>>,
}

/// What a batch has for one shard, and where in the batch it stands.
#[derive(Default)]
struct Part {
    places: Vec<usize>,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl RedisStore {
    pub(super) async fn renew_all(&self, claims: &[(DeliveryId, Token)]) -> Result<Vec<Renewed>> {
        let items = claims.iter().map(|(id, token)| Item { id: *id, args: token_args(*token).into() }).collect();
        let answers = self.each(&self.scripts.renew, items, Need::Done).await?;
        let now = self.clock.now();
        let renewed = claims.iter().zip(answers).map(|((id, token), answer)| {
            let held = answers::number(&answer)? == 1;
            self.memory(*id).renewed(now, *id, *token, held);
            Ok(Renewed { id: *id, held })
        });
        renewed.collect()
    }

    pub(super) async fn spend_all(&self, batch: &[Spend]) -> Result<Vec<Written>> {
        let item = |one: &Spend| {
            let [fence, nonce] = token_args(one.token);
            Item { id: one.id, args: vec![fence, nonce, decimal(one.rev)] }
        };
        let answers = self.each(&self.scripts.spend, batch.iter().map(item).collect(), Need::Durable).await?;
        let each = batch.iter().zip(answers).map(|(one, answer)| {
            let written = written(answer)?;
            match written {
                Written::Done => self.memory(one.id).spent(one.id, one.token, one.rev + 1),
                Written::Stale | Written::Gone => self.memory(one.id).lost(one.id, one.token),
                Written::Moved(_) => {}
            }
            Ok(written)
        });
        each.collect()
    }

    pub(super) async fn settle_all(&self, batch: &[Settle]) -> Result<Vec<Written>> {
        let item = |one: &Settle| {
            let [fence, nonce] = token_args(one.token);
            let mut args = vec![fence, nonce, decimal(one.next.rev), decimal(named_fence(&one.next))];
            args.extend(next_args(&one.next)?);
            Ok(Item { id: one.next.id, args })
        };
        let items = batch.iter().map(item).collect::<Result<_>>()?;
        let answers = self.each(&self.scripts.settle, items, Need::Done).await?;
        self.wake_for(batch.iter().map(|one| &one.next));
        let now = self.clock.now();
        let each = batch.iter().zip(answers).map(|(one, answer)| {
            let (next, written) = (&one.next, written(answer)?);
            match written {
                Written::Done => {
                    let [fixed, lane, body] = next_args(next)?;
                    let settled = Settled { id: next.id, token: one.token, rev: next.rev, fixed, lane, body };
                    let holds = matches!(next.state, State::Sending { .. });
                    self.memory(next.id).settled(now, settled, holds);
                }
                Written::Stale | Written::Gone => self.memory(next.id).lost(next.id, one.token),
                Written::Moved(_) => {}
            }
            Ok(written)
        });
        each.collect()
    }

    fn memory(&self, id: DeliveryId) -> &Memory {
        &self.shards[usize::from(self.names.shard_of(&id.0))].memory
    }

    pub(super) async fn apply_all(&self, batch: &[Delivery]) -> Result<Vec<Written>> {
        let item = |next: &Delivery| {
            let mut args = vec![decimal(next.rev), decimal(named_fence(next))];
            args.extend(next_args(next)?);
            Ok(Item { id: next.id, args })
        };
        let items = batch.iter().map(item).collect::<Result<_>>()?;
        let answers = self.each(&self.scripts.apply, items, Need::Durable).await?;
        self.wake_for(batch.iter());
        let each = batch.iter().zip(answers).map(|(next, answer)| match answer {
            Value::BulkString(value) => {
                // After a lost reply the same write finds itself stored already.
                let stored = codec::read_delivery(&value)?.delivery;
                Ok(if stored == *next { Written::Done } else { Written::Moved(Box::new(stored)) })
            }
            other => written(other),
        });
        each.collect()
    }

    pub(super) async fn reclaim_all(&self, batch: &[Reclaim]) -> Result<Vec<Written>> {
        let item = |one: &Reclaim| {
            let [fence, nonce] = token_args(one.seen.token);
            let mut args = vec![fence, nonce, signed(one.seen.lease_until.0), decimal(one.next.rev)];
            args.extend(next_args(&one.next)?);
            Ok(Item { id: one.next.id, args })
        };
        let items = batch.iter().map(item).collect::<Result<_>>()?;
        let answers = self.each(&self.scripts.reclaim, items, Need::Done).await?;
        self.wake_for(batch.iter().map(|one| &one.next));
        let each = batch.iter().zip(answers).map(|(one, answer)| match answer {
            Value::Array(stale) => {
                let stored = stale.into_iter().nth(1).ok_or_else(|| corrupt("an answer"))?;
                let stored = codec::read_delivery(&answers::bytes(stored)?)?.delivery;
                // The reply to the same reclaim was lost, or it was settled.
                Ok(if stored == one.next { Written::Done } else { Written::Stale })
            }
            other => written(other),
        });
        each.collect()
    }

    pub(super) async fn all_held(&self, limit: u32) -> Result<Vec<Held>> {
        let calls = (0..self.names.shards()).map(|shard| {
            let script = &self.scripts.held;
            self.run(Ask { shard, script, keys: Vec::new(), args: vec![decimal(limit)], need: Need::Done })
        });
        let mut all = Vec::new();
        for answer in those_that_answered(futures::future::join_all(calls).await)? {
            let [now, claims] = answer.try_into().map_err(|_| corrupt("an answer"))?;
            let now = answers::number(&now)?;
            for claim in answers::list(claims)? {
                let [id, head] = answers::parts(claim)?;
                let head = codec::read_claim(&answers::bytes(head)?)?;
                all.push(Held {
                    id: DeliveryId(codec::key_of(&answers::bytes(id)?)?),
                    token: head.token,
                    worker: head.worker,
                    lease_until: head.lapse,
                    lapsed: head.lapse.0 <= now,
                    lease: std::time::Duration::from_millis(head.lease_ms),
                    alone: head.alone,
                });
            }
        }
        all.sort_by_key(|held| held.lease_until);
        all.truncate(limit as usize);
        Ok(all)
    }

    /// Each item's answer, in the order of the batch; items of one shard share a call.
    async fn each(&self, script: &Script, items: Vec<Item>, need: Need) -> Result<Vec<Value>> {
        let mut by_shard: BTreeMap<u16, Part> = BTreeMap::new();
        let count = items.len();
        for (place, item) in items.into_iter().enumerate() {
            let part = by_shard.entry(self.names.shard_of(&item.id.0)).or_default();
            part.places.push(place);
            part.keys.push(self.names.delivery(item.id));
            part.args.extend(item.args);
        }
        let calls = by_shard.into_iter().map(|(shard, Part { places, keys, args })| async move {
            let answer = self.run(Ask { shard, script, keys, args, need }).await?;
            let [answers] = answer.try_into().map_err(|_| corrupt("an answer"))?;
            let answers = answers::list(answers)?;
            if answers.len() != places.len() {
                return Err(corrupt("an answer"));
            }
            Ok(places.into_iter().zip(answers))
        });
        let mut all: Vec<(usize, Value)> = Vec::with_capacity(count);
        for answers in futures::future::try_join_all(calls).await? {
            all.extend(answers);
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, answer)| answer).collect())
    }

    fn wake_for<'a>(&self, written: impl Iterator<Item = &'a Delivery>) {
        let mut shards: Vec<u16> =
            written.filter(|next| next.state.waiting()).map(|next| self.names.shard_of(&next.id.0)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards.into_iter().for_each(|shard| self.woken(shard));
    }
}

fn written(answer: Value) -> Result<Written> {
    match answer {
        Value::Int(1) => Ok(Written::Done),
        Value::Int(2) => Ok(Written::Stale),
        Value::Int(3) => Ok(Written::Gone),
        Value::BulkString(value) => Ok(Written::Moved(Box::new(codec::read_delivery(&value)?.delivery))),
        _ => Err(corrupt("an answer")),
    }
}

fn token_args(token: Token) -> [Vec<u8>; 2] {
    [decimal(token.fence), token.nonce.to_be_bytes().to_vec()]
}

/// A settle may go on under its claim, never under another's number.
fn named_fence(next: &Delivery) -> u64 {
    if let State::Sending { fence } = next.state { fence } else { 0 }
}

fn next_args(next: &Delivery) -> Result<[Vec<u8>; 3]> {
    Ok([codec::fixed(next), next.lane.to_string().into_bytes(), codec::body(next)?])
}
