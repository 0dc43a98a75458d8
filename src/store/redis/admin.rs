//! API keys, the installation's secret, frozen templates.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use belfry_domain::UnixMs;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal, signed};
use crate::ports::StoreError;
use crate::ports::admin::{ApiKey, ApiKeys, Installation, KeptTemplate};
use crate::ports::attachments::{Attached, AttachedId};

/// A template that no node has had in use for so long is gone: longer than anything is scheduled ahead
/// (90 days), retried and kept.
const TEMPLATE_KEPT_MS: i64 = 200 * 86_400_000;
const TEMPLATES_PURGED: u64 = 128;
/// In place of a key that is not there, where all of them may be gone.
const KEYS_LOST: i64 = -1;
/// API keys in one answer.
const KEYS_LISTED: usize = 1_000;
const MOST_SHARDS: u16 = 256;

impl RedisStore {
    /// A verb about whatever installation is there.
    pub(super) async fn installation_of_any(
        &self,
        verb: &str,
        args: Vec<Vec<u8>>,
        need: Need,
    ) -> Result<Option<Value>> {
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let keys = vec![self.names.installation("install")];
        let answer =
            self.link.run(Call { script: &self.scripts.admin, keys, args: all, need, generation: None }).await?;
        // An answer ends before what is nil in it.
        Ok(answers::list(answer)?.into_iter().next())
    }

    async fn key(&self, verb: &str, by: &str) -> Result<Option<(Vec<u8>, ApiKey)>> {
        let begun = u64::from(self.begun.load(Ordering::SeqCst));
        let found = self.installation(verb, vec![by.as_bytes().to_vec(), decimal(begun)], Need::Done).await?;
        if matches!(found, Some(Value::Int(KEYS_LOST))) {
            // To say that there is no such key would make callers give up for good.
            let text = "the API keys were lost with what Redis has lost: restore a backup, or create new ones";
            return Err(StoreError::Unavailable(text.into()));
        }
        let Some(body) = found.map(answers::maybe_bytes).transpose()?.flatten() else { return Ok(None) };
        let key = api_key(&body)?;
        Ok(Some((body, key)))
    }

    /// The layout and shard count as they are fixed, those given where they were not yet.
    pub(super) async fn layout(&self, layout: u64, shards: u16) -> Result<(u64, u16)> {
        let args = vec![layout.to_string().into_bytes(), shards.to_string().into_bytes()];
        let fixed = self.installation("layout", args, Need::Durable).await?.ok_or_else(|| corrupt("the layout"))?;
        let [layout, shards] = answers::parts(fixed)?;
        numbers(&layout, &shards)
    }

    /// Likewise; `None` where nothing is fixed, and then nothing is written.
    pub(super) async fn fixed(&self) -> Result<Option<(u64, u16)>> {
        let fixed = self.installation("fixed", Vec::new(), Need::Done).await?.ok_or_else(|| corrupt("the layout"))?;
        match answers::parts(fixed)? {
            [Value::Nil, _] | [_, Value::Nil] => Ok(None),
            [layout, shards] => numbers(&layout, &shards).map(Some),
        }
    }

    /// Says what this node has in use, and drops what no node has had for long.
    pub(super) async fn purge_templates(&self, now: UnixMs) -> Result<()> {
        let in_use: BTreeSet<String> = self.templates.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut args = vec![signed(now.0 - TEMPLATE_KEPT_MS), TEMPLATES_PURGED.to_string().into_bytes(), signed(now.0)];
        args.extend(in_use.into_iter().map(String::into_bytes));
        self.installation("purge_templates", args, Need::Done).await.map(drop)
    }
}

fn numbers(layout: &Value, shards: &Value) -> Result<(u64, u16)> {
    let (layout, shards) = (answers::number(layout)?, answers::number(shards)?);
    let layout = u64::try_from(layout).map_err(|_| corrupt("the layout"))?;
    let shards = u16::try_from(shards).ok().filter(|shards| (1..=MOST_SHARDS).contains(shards));
    Ok((layout, shards.ok_or_else(|| corrupt("the number of shards"))?))
}

fn api_key(body: &[u8]) -> Result<ApiKey> {
    serde_json::from_slice(body).map_err(|_| corrupt("an API key"))
}

fn json(key: &ApiKey) -> Result<Vec<u8>> {
    serde_json::to_vec(key).map_err(|_| StoreError::Corrupt("an API key cannot be written".into()))
}

#[async_trait]
impl ApiKeys for RedisStore {
    async fn create(&self, key: ApiKey) -> Result<()> {
        let args =
            vec![key.id.clone().into_bytes(), key.hash.clone().into_bytes(), signed(key.created_at.0), json(&key)?];
        self.installation("create_key", args, Need::Durable).await.map(drop)
    }

    async fn by_hash(&self, hash: &str) -> Result<Option<ApiKey>> {
        Ok(self.key("key_by_hash", hash).await?.map(|(_, key)| key))
    }

    async fn by_id(&self, id: &str) -> Result<Option<ApiKey>> {
        Ok(self.key("key_by_id", id).await?.map(|(_, key)| key))
    }

    async fn list(&self) -> Result<Vec<ApiKey>> {
        let mut keys = Vec::new();
        loop {
            let part = [keys.len(), keys.len() + KEYS_LISTED - 1].map(|at| decimal(at as u64)).to_vec();
            let found = self.installation("list_keys", part, Need::Done).await?;
            let found = answers::list(found.ok_or_else(|| corrupt("an answer"))?)?;
            let last = found.len() < KEYS_LISTED;
            for body in found {
                keys.push(api_key(&answers::bytes(body)?)?);
            }
            if last {
                return Ok(keys);
            }
        }
    }

    async fn revoke(&self, id: &str, now: UnixMs) -> Result<bool> {
        loop {
            let Some((before, mut key)) = self.key("key_by_id", id).await? else { return Ok(false) };
            if key.revoked_at.is_none() {
                key.revoked_at = Some(now);
            }
            let args = vec![id.as_bytes().to_vec(), before, json(&key)?];
            let put = self.installation("put_key", args, Need::Durable).await?;
            // Else somebody else has written it since: read what.
            if matches!(put, Some(Value::Int(1))) {
                return Ok(true);
            }
        }
    }
}

#[async_trait]
impl Installation for RedisStore {
    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        let stored = self.installation("secret", vec![fresh.to_vec()], Need::Durable).await?;
        let stored = answers::bytes(stored.ok_or_else(|| corrupt("the secret"))?)?;
        let secret: [u8; 32] = stored.try_into().map_err(|_| corrupt("the secret"))?;
        Ok(*self.secret.get_or_init(|| secret))
    }

    async fn keep_template(&self, version: &str, kept: &KeptTemplate) -> Result<()> {
        let digests = kept.attached.iter().flat_map(|one| *one.id.as_bytes()).collect();
        let now = signed(self.clock.now().0);
        let mut args = vec![version.as_bytes().to_vec(), kept.files.as_bytes().to_vec(), now, digests];
        args.extend(kept.attached.iter().map(|one| one.content.to_vec()));
        self.installation("keep_template", args, Need::Durable).await?;
        self.templates.lock().unwrap_or_else(PoisonError::into_inner).insert(version.to_owned());
        Ok(())
    }

    async fn template(&self, version: &str) -> Result<Option<KeptTemplate>> {
        let found = self.installation("template", vec![version.as_bytes().to_vec()], Need::Done).await?;
        let Some(found) = found.filter(|found| matches!(found, Value::Array(_))) else { return Ok(None) };
        let mut parts = answers::list(found)?.into_iter().map(answers::bytes);
        let files = parts.next().ok_or_else(|| corrupt("a template"))??;
        let files = String::from_utf8(files).map_err(|_| corrupt("a template"))?;
        let mut attached = Vec::new();
        while let Some(digest) = parts.next().transpose()? {
            let digest = digest.try_into().map_err(|_| corrupt("a template"))?;
            let content = parts.next().ok_or_else(|| corrupt("a template"))??;
            attached.push(Attached { id: AttachedId::from_bytes(digest), content: content.into() });
        }
        Ok(Some(KeptTemplate { files, attached }))
    }
}
