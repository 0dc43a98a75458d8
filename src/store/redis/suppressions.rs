//! Suppressions: what is said of an address stands under the shard that its key says, with its place in that shard's
//! part of the owner's list. A look before a call costs each shard that is asked one script.

use async_trait::async_trait;
use belfry_domain::{Key, UnixMs};
use redis::Value;

use super::answers;
use super::codec::{Result, all_digits, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::suppressions::{
    Addressee, Found, MOST_LISTED, Put, Suppressed, SuppressedPage, SuppressionId, Suppressions, room,
};
use crate::store::registry::{TIME_DIGITS, dead_time, digest};
use crate::store::suppressed;

/// Since when stands in front: an entry that is written anew keeps it.
fn read(value: &[u8]) -> Result<Suppressed> {
    let (times, body) = value.split_at_checked(2 * TIME_DIGITS).ok_or_else(|| corrupt("a suppression"))?;
    let entry: Suppressed = serde_json::from_slice(body).map_err(|_| corrupt("a suppression"))?;
    Ok(Suppressed { since: since(&times[..TIME_DIGITS])?, ..entry })
}

fn since(digits: &[u8]) -> Result<UnixMs> {
    let read = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    read.map(UnixMs).ok_or_else(|| corrupt("a suppression"))
}

/// A place has its id in bytes here.
fn packed(place: &str) -> Option<Vec<u8>> {
    let (time, id) = suppressed::read_place(place)?.split_at(TIME_DIGITS);
    Some([time.as_bytes(), &all_digits(id)?].concat())
}

fn unpacked(place: &[u8]) -> Result<String> {
    let (time, id) = place.split_at_checked(TIME_DIGITS).ok_or_else(|| corrupt("a place"))?;
    let time = std::str::from_utf8(time).map_err(|_| corrupt("a place"))?;
    Ok(format!("{time}{}", belfry_domain::hex(id)))
}

#[async_trait]
impl Suppressions for RedisStore {
    async fn put(&self, owner: &Owner, entry: &Suppressed) -> Result<Put> {
        let id = entry.id(owner);
        let body =
            serde_json::to_vec(entry).map_err(|_| StoreError::Corrupt("a suppression cannot be written".into()))?;
        let until = dead_time(entry.until.unwrap_or(UnixMs(i64::MAX))).into_bytes();
        let since_when = dead_time(entry.since).into_bytes();
        let args =
            vec![id.word.as_bytes().to_vec(), since_when, until, body, decimal(room(entry.category.as_ref()) as u64)];
        let kept = answers::bytes(self.suppression("put", self.keys_of(owner, id), args, Need::Durable).await?)?;
        if kept.is_empty() {
            return Ok(Put::TooMany);
        }
        Ok(Put::Kept(Box::new(Suppressed { since: since(&kept)?, ..entry.clone() })))
    }

    async fn lift(&self, owner: &Owner, id: SuppressionId) -> Result<()> {
        let args = vec![id.word.as_bytes().to_vec()];
        self.suppression("lift", self.keys_of(owner, id), args, Need::Durable).await.map(drop)
    }

    async fn find(&self, whom: Vec<Addressee>) -> Vec<Found> {
        let addresses: Vec<Key> = whom.iter().map(Addressee::key).collect();
        self.of_each(&addresses, |addresses| self.find_in_one(addresses)).await
    }

    async fn listed(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SuppressedPage> {
        let limit = limit.clamp(1, MOST_LISTED);
        let after = match after.and_then(packed) {
            Some(place) => [b"(".as_slice(), &place].concat(),
            None => b"+".to_vec(),
        };
        let owner = digest(&[&owner.tenant, &owner.environment]);
        let parts = (0..self.names.shards()).map(|shard| {
            // One more than is asked for says whether there are more.
            let args = vec![after.clone(), decimal(limit + 1)];
            self.suppression("list", vec![self.names.suppressions(shard, &owner)], args, Need::Done)
        });
        let mut found = Vec::new();
        for part in futures::future::try_join_all(parts).await? {
            let mut part = answers::list(part)?.into_iter();
            while let (Some(place), Some(value)) = (part.next(), part.next()) {
                found.push((unpacked(&answers::bytes(place)?)?, read(&answers::bytes(value)?)?));
            }
        }
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        Ok(suppressed::page(found, limit.into()))
    }
}

impl RedisStore {
    /// Of addresses of one shard.
    async fn find_in_one(&self, addresses: Vec<Key>) -> Vec<Found> {
        let count = addresses.len();
        let keys: Vec<_> = addresses.iter().map(|address| self.names.suppressed(address)).collect();
        let told = match self.suppression("find", keys, Vec::new(), Need::Done).await.and_then(answers::list) {
            Ok(told) if told.len() == count => told,
            Ok(_) => return vec![Err(corrupt("an answer")); count],
            Err(away) => return vec![Err(away); count],
        };
        let entries = |values| answers::list(values)?.into_iter().map(|value| read(&answers::bytes(value)?)).collect();
        told.into_iter().map(entries).collect()
    }

    fn keys_of(&self, owner: &Owner, id: SuppressionId) -> Vec<Vec<u8>> {
        let owner = digest(&[&owner.tenant, &owner.environment]);
        let list = self.names.suppressions(self.names.shard_of(&id.address), &owner);
        vec![self.names.suppressed(&id.address), list]
    }

    async fn suppression(&self, verb: &str, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>, need: Need) -> Result<Value> {
        self.same_installation()?;
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let call = Call { script: &self.scripts.suppression, keys, args: all, need, generation: None };
        let [answer] = answers::parts(self.link.run(call).await?)?;
        Ok(answer)
    }
}
