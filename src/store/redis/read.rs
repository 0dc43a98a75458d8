//! What is only read.

use std::collections::BTreeMap;

use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, NotificationId, UnixMs};
use redis::Value;

use super::accept::read_record;
use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::Need;
use super::store::{Ask, RedisStore, decimal, signed, those_that_answered};
use crate::ports::attachments::AttachedId;
use crate::ports::deliveries::{Depths, LaneDepth, Owner};

impl RedisStore {
    async fn one(&self, ask: Ask<'_>) -> Result<Value> {
        let [answer] = self.run(ask).await?.try_into().map_err(|_| corrupt("an answer"))?;
        Ok(answer)
    }

    pub(super) async fn load_all(&self, ids: &[DeliveryId]) -> Result<Vec<Delivery>> {
        let mut by_shard: BTreeMap<u16, Vec<DeliveryId>> = BTreeMap::new();
        for id in ids {
            by_shard.entry(self.names.shard_of(&id.0)).or_default().push(*id);
        }
        let calls = by_shard.into_iter().map(|(shard, ids)| async move {
            let keys = ids.iter().map(|id| self.names.delivery(*id)).collect();
            let script = &self.scripts.load;
            let answer = self.one(Ask { shard, script, keys, args: Vec::new(), need: Need::Done }).await?;
            Ok(ids.into_iter().zip(answers::list(answer)?))
        });
        let mut found = Vec::new();
        for (id, value) in those_that_answered(futures::future::join_all(calls).await)?.into_iter().flatten() {
            if let Some(value) = answers::maybe_bytes(value)? {
                found.extend(self.readable(id, codec::read_delivery(&value)).map(|read| read.delivery));
            }
        }
        Ok(found)
    }

    /// Records by a key of theirs, in order; without their inputs.
    pub(super) async fn records(&self, shard: u16, keys: Vec<Vec<u8>>) -> Result<Vec<Result<Option<Record>>>> {
        let script = &self.scripts.read;
        let answer = self.one(Ask { shard, script, keys, args: vec![b"1".to_vec()], need: Need::Done }).await?;
        let each = answers::list(answer)?
            .into_iter()
            .map(|one| Ok(read_record(answers::list(one)?)?.map(|(record, _)| record)));
        Ok(each.collect())
    }

    pub(super) async fn record(&self, owner: &Owner, shard: u16, key: Vec<u8>) -> Result<Option<Record>> {
        let found = self.records(shard, vec![key]).await?.into_iter().next().transpose()?.flatten();
        Ok(found.filter(|record| owner.owns(record)))
    }

    pub(super) async fn inputs_of(&self, id: NotificationId) -> Result<Option<String>> {
        let (shard, keys) = (self.names.shard_of(&id.0), vec![self.names.notification(id)]);
        let script = &self.scripts.read;
        let answer = self.one(Ask { shard, script, keys, args: vec![b"0".to_vec()], need: Need::Done }).await?;
        let Some(record) = answers::list(answer)?.into_iter().next() else { return Ok(None) };
        let Some(value) = answers::list(record)?.into_iter().next() else { return Ok(None) };
        Ok(codec::read_notification(&answers::bytes(value)?)?.inputs)
    }

    pub(super) async fn contents(&self, of: NotificationId, ids: &[AttachedId]) -> Result<Vec<Option<Vec<u8>>>> {
        let shard = self.names.shard_of(&of.0);
        let keys = ids.iter().map(|id| self.names.attached(shard, id)).collect();
        let script = &self.scripts.attached;
        let answer = self.one(Ask { shard, script, keys, args: Vec::new(), need: Need::Done }).await?;
        answers::list(answer)?.into_iter().map(answers::maybe_bytes).collect()
    }

    pub(super) async fn tombstone(&self, id: NotificationId) -> Result<Option<Tombstone>> {
        let shard = self.names.shard_of(&id.0);
        let (script, args) = (&self.scripts.remembered, vec![id.0.as_bytes().to_vec()]);
        let answer = self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Done }).await?;
        // An answer ends before what is nil in it.
        let Some(value) = answer.into_iter().next().map(answers::maybe_bytes).transpose()?.flatten() else {
            return Ok(None);
        };
        codec::read_tombstone(id, &value).map(Some)
    }

    pub(super) async fn overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>> {
        let calls = (0..self.names.shards()).map(|shard| {
            let (script, args) = (&self.scripts.receipts, vec![signed(now.0), decimal(limit)]);
            self.one(Ask { shard, script, keys: Vec::new(), args, need: Need::Done })
        });
        let mut found = Vec::new();
        for answer in those_that_answered(futures::future::join_all(calls).await)? {
            for value in answers::list(answer)? {
                let [id, value] = answers::parts(value)?;
                let id = DeliveryId(codec::key_of(&answers::bytes(id)?)?);
                let read = codec::read_delivery(&answers::bytes(value)?);
                found.extend(self.readable(id, read).map(|read| read.delivery));
            }
        }
        found.sort_by_key(|one| one.receipt_until);
        found.truncate(usize::from(limit));
        Ok(found)
    }

    pub(super) async fn all_depths(&self) -> Result<Depths> {
        let calls = (0..self.names.shards()).map(|shard| {
            let script = &self.scripts.depths;
            self.run(Ask { shard, script, keys: Vec::new(), args: Vec::new(), need: Need::Done })
        });
        let mut depths = Depths::default();
        for answer in those_that_answered(futures::future::join_all(calls).await)? {
            let [unknown, parked, oldest, lanes, hold, held_back] =
                answer.try_into().map_err(|_| corrupt("an answer"))?;
            depths.unknown += count(&unknown)?;
            depths.parked += count(&parked)?;
            depths.oldest_unknown = earlier(depths.oldest_unknown, answers::score(&oldest)?.map(UnixMs));
            depths.restored_at = depths.restored_at.max(super::hold::moment(&hold)?);
            depths.held_back += count(&held_back)?;
            for lane in answers::list(lanes)? {
                add_lane(&mut depths.lanes, lane)?;
            }
        }
        depths.lanes.sort_by(|one, other| one.lane.cmp(&other.lane));
        Ok(depths)
    }
}

fn count(value: &Value) -> Result<u64> {
    Ok(u64::try_from(answers::number(value)?).unwrap_or(0))
}

fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    one.into_iter().chain(other).min()
}

fn add_lane(lanes: &mut Vec<LaneDepth>, value: Value) -> Result<()> {
    let [name, waiting, sending, due, oldest] = answers::parts(value)?;
    let lane = answers::text(name)?.parse().map_err(|_| corrupt("a lane"))?;
    let place = lanes.iter().position(|depth| depth.lane == lane).unwrap_or_else(|| {
        lanes.push(LaneDepth { lane, due: 0, waiting: 0, sending: 0, oldest_due: None });
        lanes.len() - 1
    });
    let depth = &mut lanes[place];
    depth.waiting += count(&waiting)?;
    depth.sending += count(&sending)?;
    depth.due += count(&due)?;
    depth.oldest_due = earlier(depth.oldest_due, answers::score(&oldest)?.map(UnixMs));
    Ok(())
}
