//! What gathers: the slots of a group, its items and when they are due, under the shard that the group says.

use std::collections::BTreeMap;

use async_trait::async_trait;
use belfry_domain::gather::Slot;
use belfry_domain::{DeliveryId, Key, UnixMs};
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal, signed};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::gatherings::{DueSlot, DueSlots, Gatherings, Join, MOST_LOOKED_AT};

/// A group and the digits of its end.
fn packed(slot: Slot) -> Vec<u8> {
    [slot.group.as_bytes().as_slice(), &signed(slot.until.0)].concat()
}

fn unpacked(value: &[u8]) -> Result<Slot> {
    let (group, until) = value.split_at_checked(12).ok_or_else(|| corrupt("a slot"))?;
    let until = std::str::from_utf8(until).ok().and_then(|digits| digits.parse().ok());
    Ok(Slot { group: key(group)?, until: UnixMs(until.ok_or_else(|| corrupt("a slot"))?) })
}

fn key(bytes: &[u8]) -> Result<Key> {
    bytes.try_into().map(Key::from_bytes).map_err(|_| corrupt("an item that gathers"))
}

fn write_owner(owner: &Owner) -> Result<Vec<u8>> {
    let names = (&owner.tenant, &owner.environment);
    serde_json::to_vec(&names).map_err(|_| StoreError::Corrupt("an owner cannot be written".into()))
}

fn read_owner(bytes: &[u8]) -> Result<Owner> {
    let (tenant, environment) = serde_json::from_slice(bytes).map_err(|_| corrupt("the owner of a slot"))?;
    Ok(Owner { tenant, environment })
}

/// Of one shard: when each is due, and the slot.
#[derive(Default)]
struct Due {
    next: Option<UnixMs>,
    slots: Vec<(UnixMs, DueSlot)>,
}

fn read_due(answer: Value) -> Result<Due> {
    let mut parts = answers::list(answer)?.into_iter();
    let next = answers::score(&parts.next().ok_or_else(|| corrupt("an answer"))?)?.map(UnixMs);
    let mut slots = Vec::new();
    while let (Some(slot), Some(due), Some(owner)) = (parts.next(), parts.next(), parts.next()) {
        let slot = unpacked(&answers::bytes(slot)?)?;
        slots.push((UnixMs(answers::number(&due)?), DueSlot { slot, owner: read_owner(&answers::bytes(owner)?)? }));
    }
    Ok(Due { next, slots })
}

#[async_trait]
impl Gatherings for RedisStore {
    async fn join(&self, batch: Vec<Join>) -> Result<Vec<Slot>> {
        self.in_time()?;
        let mut by_shard: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, one) in batch.iter().enumerate() {
            by_shard.entry(self.names.shard_of(&one.group)).or_default().push(at);
        }
        let calls = by_shard.into_iter().map(async |(shard, places)| {
            let mut args = Vec::with_capacity(6 * places.len());
            for one in places.iter().map(|at| &batch[*at]) {
                args.extend([one.group.as_bytes().to_vec(), one.item.0.as_bytes().to_vec(), write_owner(&one.owner)?]);
                let span = i64::try_from(one.gather.span.as_millis()).unwrap_or(i64::MAX);
                args.extend([signed(one.at.0), signed(span), decimal(one.gather.most)]);
            }
            let ends = answers::list(self.gather(shard, "join", args, Need::Durable).await?)?;
            if ends.len() == places.len() { Ok((places, ends)) } else { Err(corrupt("an answer")) }
        });
        let mut slots: Vec<Slot> = batch.iter().map(|one| Slot { group: one.group, until: UnixMs(i64::MIN) }).collect();
        for (places, ends) in futures::future::try_join_all(calls).await? {
            for (at, end) in places.into_iter().zip(ends) {
                slots[at].until = UnixMs(answers::number(&end)?);
            }
        }
        Ok(slots)
    }

    async fn rejoin(&self, of: DueSlot, item: DeliveryId) -> Result<()> {
        let owner = write_owner(&of.owner)?;
        let args = vec![packed(of.slot), signed(of.slot.until.0), owner, item.0.as_bytes().to_vec()];
        self.gather_slot(of.slot, "rejoin", args, Need::Durable).await.map(drop)
    }

    async fn due(&self, now: UnixMs, limit: u16) -> Result<DueSlots> {
        self.in_time()?;
        let asks = (0..self.names.shards())
            .map(async |shard| self.gather(shard, "list", vec![signed(now.0), decimal(limit)], Need::Done).await);
        let (mut all, mut away, mut told) = (Due::default(), None, false);
        for answer in futures::future::join_all(asks).await {
            match answer.and_then(read_due) {
                Ok(one) => {
                    told = true;
                    all.slots.extend(one.slots);
                    all.next = [all.next, one.next].into_iter().flatten().min();
                }
                Err(why) => away = Some(why),
            }
        }
        // What lies in a part that is away waits until that is back.
        if let (Some(why), false) = (away, told) {
            return Err(why);
        }
        all.slots.sort_by_key(|(due, of)| (*due, of.slot));
        all.slots.truncate(limit.into());
        let next = all.next.filter(|_| all.slots.len() < usize::from(limit));
        Ok(DueSlots { slots: all.slots.into_iter().map(|(_, of)| of).collect(), next })
    }

    async fn items(&self, slot: Slot) -> Result<Vec<DeliveryId>> {
        let args = vec![packed(slot), decimal(MOST_LOOKED_AT)];
        let found = answers::list(self.gather_slot(slot, "items", args, Need::Done).await?)?;
        found.into_iter().map(|item| key(&answers::bytes(item)?).map(DeliveryId)).collect()
    }

    async fn leave(&self, slot: Slot, items: Vec<DeliveryId>) -> Result<()> {
        let mut args = vec![packed(slot), signed(slot.until.0)];
        args.extend(items.iter().map(|item| item.0.as_bytes().to_vec()));
        self.gather_slot(slot, "leave", args, Need::Durable).await.map(drop)
    }

    async fn put_off(&self, slot: Slot, until: UnixMs) -> Result<()> {
        self.gather_slot(slot, "put_off", vec![packed(slot), signed(until.0)], Need::Done).await.map(drop)
    }
}

impl RedisStore {
    async fn gather_slot(&self, slot: Slot, verb: &str, args: Vec<Vec<u8>>, need: Need) -> Result<Value> {
        self.gather(self.names.shard_of(&slot.group), verb, args, need).await
    }

    async fn gather(&self, shard: u16, verb: &str, args: Vec<Vec<u8>>, need: Need) -> Result<Value> {
        self.same_installation()?;
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let keys = vec![self.names.gathering(shard)];
        let call = Call { script: &self.scripts.gather, keys, args: all, need, generation: None };
        let [answer] = answers::parts(self.link.run(call).await?)?;
        Ok(answer)
    }
}
