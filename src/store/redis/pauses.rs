//! Pauses: the installation's, in one small hash, and what waits in the shards.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use belfry_domain::{Notification, NotificationId, UnixMs};
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::Need;
use super::store::{RedisStore, decimal};
use crate::ports::StoreError;
use crate::ports::pauses::{KeptPause, MOST_PAUSES, PauseId, PausePut, Pauses, WaitingPage};
use crate::store::registry::{TIME_DIGITS, dead_time};

/// Since when stands in front: a pause that is written anew keeps it.
fn read(value: &[u8]) -> Result<KeptPause> {
    let (times, body) = value.split_at_checked(2 * TIME_DIGITS).ok_or_else(|| corrupt("a pause"))?;
    let mut kept: KeptPause = serde_json::from_slice(body).map_err(|_| corrupt("a pause"))?;
    kept.pause.since = since(&times[TIME_DIGITS..])?;
    Ok(kept)
}

fn since(digits: &[u8]) -> Result<UnixMs> {
    let read = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    read.map(UnixMs).ok_or_else(|| corrupt("a pause"))
}

fn all(values: Value) -> Result<Vec<KeptPause>> {
    let mut all: Vec<KeptPause> =
        answers::list(values)?.into_iter().map(|value| read(&answers::bytes(value)?)).collect::<Result<_>>()?;
    all.sort_by_key(KeptPause::id);
    Ok(all)
}

fn field(id: PauseId) -> Vec<u8> {
    id.0.to_string().into_bytes()
}

#[async_trait]
impl Pauses for RedisStore {
    async fn pause(&self, new: &KeptPause) -> Result<PausePut> {
        let body = serde_json::to_vec(new).map_err(|_| StoreError::Corrupt("a pause cannot be written".into()))?;
        let until = dead_time(new.pause.until.unwrap_or(UnixMs(i64::MAX))).into_bytes();
        let began = dead_time(new.pause.since).into_bytes();
        let args = vec![field(new.id()), until, began, body, decimal(MOST_PAUSES as u64)];
        let kept = self.installation("put_pause", args, Need::Durable).await?;
        let kept = answers::bytes(kept.ok_or_else(|| corrupt("an answer"))?)?;
        let Some((stood, began)) = kept.split_first() else { return Ok(PausePut::TooMany) };
        let mut pause = Box::new(new.clone());
        pause.pause.since = since(began)?;
        Ok(PausePut::Kept { pause, is_new: *stood != b'1' })
    }

    async fn resume(&self, id: PauseId) -> Result<Option<KeptPause>> {
        let found = self.installation("drop_pause", vec![field(id)], Need::Durable).await?;
        let found = found.map(answers::maybe_bytes).transpose()?.flatten();
        found.as_deref().map(read).transpose()
    }

    async fn pauses(&self) -> Result<Vec<KeptPause>> {
        let found = self.installation("pauses", Vec::new(), Need::Done).await?;
        all(found.ok_or_else(|| corrupt("an answer"))?)
    }

    async fn drop_over(&self, now: UnixMs) -> Result<Vec<KeptPause>> {
        self.in_time()?;
        let over = self.installation("drop_over", vec![dead_time(now).into_bytes()], Need::Durable).await?;
        all(over.ok_or_else(|| corrupt("an answer"))?)
    }

    async fn waiting(&self, after: Option<&str>, limit: u16, notifications: bool) -> Result<WaitingPage> {
        let page = self.due_by("+inf", after, limit).await?;
        let ids = page.deliveries.iter().map(|one| one.notification).filter(|_| notifications).collect();
        let known = self.notifications(&ids).await?;
        let with = page.deliveries.into_iter().map(|one| {
            let notification = known.get(&one.notification).cloned();
            (one, notification)
        });
        Ok(WaitingPage { waiting: with.collect(), next: page.next })
    }
}

impl RedisStore {
    /// Those that can be read.
    async fn notifications(&self, ids: &BTreeSet<NotificationId>) -> Result<BTreeMap<NotificationId, Notification>> {
        let mut by_shard: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
        for id in ids {
            by_shard.entry(self.names.shard_of(&id.0)).or_default().push(self.names.notification(*id));
        }
        let reads = by_shard.into_iter().map(|(shard, keys)| self.records(shard, keys));
        let found = futures::future::try_join_all(reads).await?;
        let readable = found.into_iter().flatten().filter_map(Result::ok).flatten();
        Ok(readable.map(|record| (record.notification.id, record.notification)).collect())
    }
}
