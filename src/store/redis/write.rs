//! Conditional writes: each item compared and written by its shard's script.

use std::collections::BTreeMap;

use belfry_domain::{Delivery, DeliveryId, Lane, State, UnixMs};
use redis::Value;

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::Need;
use super::memory::{Memory, Settled};
use super::script::Script;
use super::store::{Ask, RedisStore, decimal, signed, those_that_answered};
use crate::ports::deliveries::{Held, Reclaim, Renewed, Settle, Spend, Token, Written};

/// No delivery has it.
const NO_REV: [u8; 6] = [0xff; 6];

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
        let items = claims.iter().map(|(id, token)| Item { id: *id, args: vec![codec::token_bytes(*token)] }).collect();
        let answers = self.each(&self.scripts.renew, items, Need::Done).await?;
        let now = self.clock.now();
        let renewed = claims.iter().zip(answers).filter_map(|((id, token), answer)| Some((id, token, answer?))).map(
            |(id, token, answer)| {
                let held = answers::number(&answer)? == 1;
                self.memory(*id).renewed(now, *id, *token, held);
                Ok(Renewed { id: *id, held })
            },
        );
        renewed.collect()
    }

    pub(super) async fn spend_all(&self, batch: &[Spend]) -> Result<Vec<Written>> {
        let item = |one: &Spend| {
            let revs = [one.rev, one.rev.saturating_add(1)].map(|rev| codec::six(rev).to_vec());
            Item { id: one.id, args: [vec![codec::token_bytes(one.token)], revs.into()].concat() }
        };
        let answers = self.each(&self.scripts.spend, batch.iter().map(item).collect(), Need::Durable).await?;
        let each = batch.iter().zip(answers).map(|(one, answer)| {
            let written = self.written(one.id, answer)?;
            match written {
                Written::Done => self.memory(one.id).spent(one.id, one.token, one.rev + 1),
                Written::Stale | Written::Gone => self.memory(one.id).lost(one.id, one.token),
                Written::Moved(_) | Written::Away => {}
            }
            Ok(written)
        });
        each.collect()
    }

    pub(super) async fn settle_all(&self, batch: &[Settle]) -> Result<Vec<Written>> {
        let settled = |one: &Settle| {
            let [fixed, lane, body] = next_args(&one.next);
            Settled { id: one.next.id, token: one.token, rev: one.next.rev, fixed, lane, body }
        };
        let settled: Vec<Settled> = batch.iter().map(settled).collect();
        let item = |(one, settled): (&Settle, &Settled)| {
            let decided_on = match one.next.state {
                // A settle may go on under its claim, never under another's number.
                State::Sending { fence } if fence != one.token.fence => NO_REV,
                _ => codec::six(one.next.rev.wrapping_sub(1)),
            };
            let revs = [decided_on.to_vec(), codec::six(settled.rev).to_vec()];
            let next = [settled.fixed.clone(), settled.lane.clone(), settled.body.clone()];
            Item { id: settled.id, args: [&[codec::token_bytes(one.token)][..], &revs, &next].concat() }
        };
        let items = batch.iter().zip(&settled).map(item).collect();
        let answers = self.each(&self.scripts.settle, items, Need::Done).await;
        let answers = self.wake_for(batch.iter().map(|one| &one.next), answers)?;
        let now = self.clock.now();
        let each = batch.iter().zip(settled).zip(answers).map(|((one, settled), answer)| {
            let written = self.written(settled.id, answer)?;
            let memory = self.memory(settled.id);
            match written {
                Written::Done => memory.settled(now, settled, matches!(one.next.state, State::Sending { .. })),
                Written::Stale | Written::Gone => memory.lost(settled.id, settled.token),
                Written::Moved(_) | Written::Away => {}
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
            let named = if let State::Sending { fence } = next.state { codec::six(fence).to_vec() } else { Vec::new() };
            let mut args = vec![codec::six(next.rev.wrapping_sub(1)).to_vec(), named];
            args.extend(next_args(next));
            Item { id: next.id, args }
        };
        let items = batch.iter().map(item).collect();
        let answers = self.each(&self.scripts.apply, items, Need::Durable).await;
        let answers = self.wake_for(batch.iter(), answers)?;
        // What a claim takes is known to it; nobody else takes anything out of a queue.
        for next in batch.iter().filter(|next| !next.state.waiting()) {
            self.shards[usize::from(self.names.shard_of(&next.id.0))].goes(&next.lane);
        }
        let each = batch.iter().zip(answers).map(|(next, answer)| match answer {
            Some(Value::BulkString(value)) => {
                // After a lost reply the same write finds itself stored already.
                let stored = self.readable(next.id, codec::read_delivery(&value)).map(|read| read.delivery);
                Ok(match stored {
                    Some(stored) if stored == *next => Written::Done,
                    Some(stored) => Written::Moved(Box::new(stored)),
                    None => Written::Gone,
                })
            }
            other => self.written(next.id, other),
        });
        each.collect()
    }

    pub(super) async fn reclaim_all(&self, batch: &[Reclaim]) -> Result<Vec<Written>> {
        let item = |one: &Reclaim| {
            let decided_on = codec::six(one.next.rev.wrapping_sub(1)).to_vec();
            let mut args = vec![codec::token_bytes(one.seen.token), signed(one.seen.lease_until.0), decided_on];
            args.extend(next_args(&one.next));
            Item { id: one.next.id, args }
        };
        let items = batch.iter().map(item).collect();
        let answers = self.each(&self.scripts.reclaim, items, Need::Done).await;
        let answers = self.wake_for(batch.iter().map(|one| &one.next), answers)?;
        let each = batch.iter().zip(answers).map(|(one, answer)| match answer {
            Some(Value::Array(stale)) => {
                let stored = stale.into_iter().nth(1).ok_or_else(|| corrupt("an answer"))?;
                let read = codec::read_delivery(&answers::bytes(stored)?);
                // The reply to the same reclaim was lost, or it was settled.
                let same = self.readable(one.next.id, read).is_some_and(|stored| stored.delivery == one.next);
                Ok(if same { Written::Done } else { Written::Stale })
            }
            other => self.written(one.next.id, other),
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

    /// Each item's answer, in the order of the batch; items of one shard share a call. Nothing for those
    /// whose shard could not be asked, where another could: it must not hold up what is elsewhere.
    async fn each(&self, script: &Script, items: Vec<Item>, need: Need) -> Result<Vec<Option<Value>>> {
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
        let answers = futures::future::join_all(calls).await;
        let mut all: Vec<Option<Value>> = vec![None; count];
        if count > 0 {
            for (place, answer) in those_that_answered(answers)?.into_iter().flatten() {
                all[place] = Some(answer);
            }
        }
        Ok(all)
    }

    fn written(&self, id: DeliveryId, answer: Option<Value>) -> Result<Written> {
        let Some(answer) = answer else { return Ok(Written::Away) };
        match answer {
            Value::Int(1) => Ok(Written::Done),
            Value::Int(2) => Ok(Written::Stale),
            Value::Int(3) => Ok(Written::Gone),
            Value::BulkString(value) => {
                let moved = self.readable(id, codec::read_delivery(&value));
                Ok(moved.map_or(Written::Gone, |read| Written::Moved(Box::new(read.delivery))))
            }
            _ => Err(corrupt("an answer")),
        }
    }

    /// Tells whoever claims what waits now. Where an answer was lost it may have been done.
    fn wake_for<'a>(
        &self,
        written: impl Iterator<Item = &'a Delivery>,
        answers: Result<Vec<Option<Value>>>,
    ) -> Result<Vec<Option<Value>>> {
        let known = answers.as_ref().map_or(&[][..], Vec::as_slice);
        let mut coming: BTreeMap<u16, Vec<(&Lane, bool, UnixMs)>> = BTreeMap::new();
        for (at, next) in written.enumerate() {
            let shard = self.names.shard_of(&next.id.0);
            match known.get(at).and_then(Option::as_ref) {
                Some(Value::Int(1)) if next.state.waiting() => {
                    coming.entry(shard).or_default().push((&next.lane, next.claim_alone(), next.due_at));
                }
                None if next.state.waiting() => self.woken(shard),
                Some(_) | None => {}
            }
        }
        coming.into_iter().for_each(|(shard, waiting)| self.coming(shard, waiting.into_iter()));
        answers
    }
}

fn next_args(next: &Delivery) -> [Vec<u8>; 3] {
    [codec::fixed(next), next.lane.to_string().into_bytes(), codec::body(next)]
}
