//! What was heard of tokens: each owner's list, spread over the shards by what is listed.

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal, signed};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::recipients::{DEAD_KEPT_MS, DeadPage, DeadToken, MOST_DEAD};
use crate::store::registry::{self, digest};

/// Of the dead that are too old, so many go with each that comes.
const DROPPED: u64 = 16;

fn owner_digest(owner: &Owner) -> [u8; 16] {
    digest(&[&owner.tenant, &owner.environment])
}

impl RedisStore {
    /// Puts it on the list. The keys that were written.
    pub(super) async fn list_dead(&self, owner: &Owner, word: &DeadToken) -> Result<Vec<Vec<u8>>> {
        let (place, keys) = self.dead_place(owner, word);
        let body =
            serde_json::to_vec(word).map_err(|_| StoreError::Corrupt("a dead token cannot be written".into()))?;
        let args =
            vec![b"add".to_vec(), self.time_arg(), signed(DEAD_KEPT_MS), decimal(DROPPED), place.into_bytes(), body];
        self.run_dead(keys.clone(), args).await?;
        Ok(keys)
    }

    /// Takes it off the list, if it is still this word that stands there.
    pub(super) async fn unlist_dead(&self, owner: &Owner, word: &DeadToken) -> Result<Vec<Vec<u8>>> {
        let (place, keys) = self.dead_place(owner, word);
        self.run_dead(keys.clone(), vec![b"take_back".to_vec(), place.into_bytes()]).await?;
        Ok(keys)
    }

    pub(super) async fn all_dead(&self, owner: &Owner, after: String, limit: u16) -> Result<DeadPage> {
        let limit = limit.clamp(1, MOST_DEAD);
        let owner = owner_digest(owner);
        let parts = (0..self.names.shards()).map(|shard| {
            // One more than is asked for says whether there are more.
            let args = vec![b"list".to_vec(), after.clone().into_bytes(), decimal(limit + 1)];
            self.run_dead(self.names.dead(shard, &owner), args)
        });
        let mut found = Vec::new();
        for part in futures::future::try_join_all(parts).await? {
            let [part] = answers::parts(part)?;
            let mut part = answers::list(part)?.into_iter();
            while let (Some(place), Some(body)) = (part.next(), part.next()) {
                found.push((answers::text(place)?, answers::bytes(body)?));
            }
        }
        found.sort();
        let read = |body: Vec<u8>| serde_json::from_slice(&body).map_err(|_| corrupt("a dead token"));
        registry::dead_page(found, usize::from(limit), read)
    }

    fn dead_place(&self, owner: &Owner, word: &DeadToken) -> (String, Vec<Vec<u8>>) {
        let id = registry::dead_id(word);
        let keys = self.names.dead(self.names.shard_of_text(&id), &owner_digest(owner));
        (registry::dead_time(word.heard_at) + &id, keys)
    }

    async fn run_dead(&self, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<redis::Value> {
        self.same_installation()?;
        let script = &self.scripts.dead;
        self.link.run(Call { script, keys, args, need: Need::Done, generation: None }).await
    }
}
