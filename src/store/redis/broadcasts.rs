//! Broadcasts: those of an owner stand in one hash, under the tag that the owner's digest says; chunks of rows are spread
//! over all tags. What is changed is written over what was read, by its rev.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use belfry_domain::BroadcastId;
use belfry_domain::broadcast::Broadcast;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal};
use crate::ports::StoreError;
use crate::ports::broadcasts::{
    ActivePage, Broadcasts, ChunkAt, MOST_ACTIVE, MOST_BROADCASTS, MOST_CLEARED, Made, owner_of,
};
use crate::ports::deliveries::Owner;
use crate::store::registry::digest;

/// The rev stands in front, in so many digits.
const REV: usize = 16;

fn rev(rev: u64) -> Vec<u8> {
    format!("{rev:0REV$}").into_bytes()
}

fn value(it: &Broadcast) -> Result<Vec<u8>> {
    let mut value = rev(it.rev);
    serde_json::to_writer(&mut value, it).map_err(|_| StoreError::Corrupt("a broadcast cannot be written".into()))?;
    Ok(value)
}

fn read(value: &[u8]) -> Result<Broadcast> {
    let body = value.get(REV..).ok_or_else(|| corrupt("a broadcast"))?;
    serde_json::from_slice(body).map_err(|_| corrupt("a broadcast"))
}

/// On the list of those that somebody has to look after.
fn member(owner: &[u8; 16], id: BroadcastId) -> Vec<u8> {
    [owner.as_slice(), id.0.as_bytes()].concat()
}

fn digest_of(owner: &Owner) -> [u8; 16] {
    digest(&[&owner.tenant, &owner.environment])
}

/// A place among those to look after: the shard and the member, in hex.
fn place(text: &str) -> Option<(u16, Vec<u8>)> {
    let (shard, member) = text.split_once('.')?;
    Some((shard.parse().ok()?, super::codec::all_digits(member)?))
}

#[async_trait]
impl Broadcasts for RedisStore {
    async fn create_broadcast(&self, new: &Broadcast, says: &str) -> Result<Made> {
        let (whose, text) = (digest_of(&owner_of(new)), value(new)?);
        let most = decimal(MOST_BROADCASTS as u64);
        let args = vec![new.id.0.as_bytes().to_vec(), text.clone(), says.as_bytes().to_vec(), most];
        let answer = self.broadcast_verb("create", self.keys_of_broadcast(&whose, new.id), args, Need::Durable).await?;
        let mut stands = answers::list(answer)?.into_iter();
        let (Some(kept), Some(said)) = (stands.next(), stands.next()) else { return Ok(Made::TooMany) };
        let (kept, said) = (answers::bytes(kept)?, answers::text(said)?);
        if kept == text && said == says {
            return Ok(Made::New);
        }
        Ok(Made::Known(Box::new(read(&kept)?), said))
    }

    async fn write_broadcast(&self, next: &Broadcast) -> Result<bool> {
        let whose = digest_of(&owner_of(next));
        let listed = if next.is_active() { b"1" } else { b"0" };
        let args = vec![
            next.id.0.as_bytes().to_vec(),
            rev(next.rev.saturating_sub(1)),
            value(next)?,
            member(&whose, next.id),
            listed.to_vec(),
        ];
        let keys = self.keys_of_broadcast(&whose, next.id)[..2].to_vec();
        Ok(answers::number(&self.broadcast_verb("write", keys, args, Need::Durable).await?)? == 1)
    }

    async fn remove_broadcast(&self, it: &Broadcast) -> Result<bool> {
        let whose = digest_of(&owner_of(it));
        let args = vec![it.id.0.as_bytes().to_vec(), rev(it.rev), member(&whose, it.id)];
        let keys = self.keys_of_broadcast(&whose, it.id);
        Ok(answers::number(&self.broadcast_verb("remove", keys, args, Need::Durable).await?)? == 1)
    }

    async fn broadcast(&self, owner: &Owner, id: BroadcastId) -> Result<Option<Broadcast>> {
        let keys = vec![self.names.broadcasts(&digest_of(owner))];
        let args = vec![id.0.as_bytes().to_vec()];
        let found = answers::bytes(self.broadcast_verb("one", keys, args, Need::Done).await?)?;
        if found.is_empty() { Ok(None) } else { read(&found).map(Some) }
    }

    async fn said_by(&self, owner: &Owner, id: BroadcastId) -> Result<Option<String>> {
        self.text_at(self.names.said_by(&digest_of(owner), id)).await
    }

    async fn broadcasts(&self, owner: &Owner) -> Result<Vec<Broadcast>> {
        let keys = vec![self.names.broadcasts(&digest_of(owner))];
        let found = answers::list(self.broadcast_verb("all", keys, Vec::new(), Need::Done).await?)?;
        let mut all: Vec<Broadcast> =
            found.into_iter().map(|value| read(&answers::bytes(value)?)).collect::<Result<_>>()?;
        all.sort_by_key(|one| Reverse((one.created_at, one.id)));
        Ok(all)
    }

    async fn active_broadcasts(&self, after: Option<&str>, limit: u16) -> Result<ActivePage> {
        self.in_time()?;
        let limit = usize::from(limit.clamp(1, MOST_ACTIVE));
        let (from, mut after) = after.and_then(place).map_or((0, None), |(shard, member)| (shard, Some(member)));
        let (mut page, mut away) = (ActivePage::default(), None);
        for shard in from..self.names.shards() {
            let room = limit - page.broadcasts.len();
            let begin = after.take().map_or_else(|| b"-".to_vec(), |member| [b"(".as_slice(), &member].concat());
            let found = match self.active_in(shard, begin, room).await {
                Ok(found) => found,
                Err(why) => {
                    away = Some(why);
                    continue;
                }
            };
            let full = found.len() >= room;
            let last = found.last().map(|(member, _)| belfry_domain::hex(member));
            page.broadcasts.extend(found.iter().filter_map(|(_, value)| read(value).ok()));
            if full {
                page.next = last.map(|member| format!("{shard}.{member}"));
                return Ok(page);
            }
        }
        match away {
            Some(why) if page.broadcasts.is_empty() => Err(why),
            _ => Ok(page),
        }
    }

    async fn put_rows(&self, at: ChunkAt, rows: &str) -> Result<()> {
        let (keys, args) = (vec![self.names.chunk(at)], vec![rows.as_bytes().to_vec()]);
        self.broadcast_verb("put", keys, args, Need::Durable).await.map(drop)
    }

    async fn rows(&self, at: ChunkAt) -> Result<Option<String>> {
        self.text_at(self.names.chunk(at)).await
    }

    async fn clear_rows(&self, of: BroadcastId, upload: u32, chunks: Range<u32>) -> Result<()> {
        let mut by_shard: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
        for chunk in chunks.take(MOST_CLEARED as usize) {
            let at = ChunkAt { broadcast: of, upload, chunk };
            by_shard.entry(self.names.shard_of_chunk(at)).or_default().push(self.names.chunk(at));
        }
        let calls = by_shard.into_values().map(|keys| self.broadcast_verb("clear", keys, Vec::new(), Need::Done));
        futures::future::try_join_all(calls).await.map(drop)
    }
}

impl RedisStore {
    /// Owner's, list, says.
    fn keys_of_broadcast(&self, owner: &[u8; 16], id: BroadcastId) -> Vec<Vec<u8>> {
        let list = self.names.walks(self.names.shard_of_digest(owner));
        vec![self.names.broadcasts(owner), list, self.names.said_by(owner, id)]
    }

    async fn active_in(&self, shard: u16, from: Vec<u8>, limit: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let (keys, args) = (vec![self.names.walks(shard)], vec![from, decimal(limit as u64)]);
        let mut found = answers::list(self.broadcast_verb("active", keys, args, Need::Done).await?)?.into_iter();
        let mut pairs = Vec::new();
        while let (Some(member), Some(value)) = (found.next(), found.next()) {
            pairs.push((answers::bytes(member)?, answers::bytes(value)?));
        }
        Ok(pairs)
    }

    async fn text_at(&self, key: Vec<u8>) -> Result<Option<String>> {
        let answer = self.broadcast_verb("text", vec![key], Vec::new(), Need::Done).await?;
        let Some(bytes) = answers::maybe_bytes(answer)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|_| corrupt("a broadcast's text"))
    }

    async fn broadcast_verb(&self, verb: &str, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>, need: Need) -> Result<Value> {
        self.same_installation()?;
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let call = Call { script: &self.scripts.broadcast, keys, args: all, need, generation: None };
        // An answer ends before what is nil in it.
        Ok(answers::list(self.link.run(call).await?)?.into_iter().next().unwrap_or(Value::Nil))
    }
}
