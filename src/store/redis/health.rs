//! Whether the store can be worked on, and what it has lost.

use std::collections::BTreeMap;

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::Need;
use super::store::{Ask, RedisStore, decimal};
use crate::ports::StoreError;

impl RedisStore {
    /// The servers are as they should be, and shards take a write and a claim: which do not. A Cluster of which
    /// one server is gone does its work on the others; were all nodes to say that they are not ready, nobody
    /// would send them anything.
    pub(super) async fn probe_all(&self) -> Result<Vec<String>> {
        let probes = (0..self.names.shards()).map(|shard| self.probe_shard(shard));
        let probed = futures::future::join_all(probes).await;
        let there = probed.iter().any(Result::is_ok);
        let mut away: BTreeMap<String, (StoreError, Vec<String>)> = BTreeMap::new();
        for (shard, error) in (0_u16..).zip(probed).filter_map(|(shard, probed)| Some((shard, probed.err()?))) {
            away.entry(error.to_string()).or_insert_with(|| (error, Vec::new())).1.push(shard.to_string());
        }
        if let Some((error, _)) = away.values().next().filter(|_| !there) {
            return Err(error.clone());
        }
        let findings = self.link.check().await;
        // What may drop records is no part that is away, and where no server is as it should be nothing is there.
        let all = findings.len() >= self.link.servers();
        if let Some(finding) = findings.iter().find(|finding| all || finding.loses()) {
            return Err(StoreError::Unavailable(finding.text.clone()));
        }
        let shards = self.names.shards();
        let of_shards = away.into_values().map(|(error, which)| match which.as_slice() {
            [one] => format!("shard {one} of {shards}: {error}"),
            several => format!("shards {} of {shards}: {error}", several.join(", ")),
        });
        Ok(of_shards.chain(findings.into_iter().map(|finding| finding.text)).collect())
    }

    async fn probe_shard(&self, shard: u16) -> Result<()> {
        let script = &self.scripts.probe;
        let answer = self.run(Ask { shard, script, keys: Vec::new(), args: Vec::new(), need: Need::Done }).await?;
        let [same] = answer.try_into().map_err(|_| corrupt("an answer"))?;
        if answers::number(&same)? != 1 {
            return Err(corrupt("a probe"));
        }
        // No worker of this name, and no such lane: what runs is the script that all claims need.
        let args = vec![
            decimal(0_u64),
            codec::worker_name("probe")?.to_vec(),
            vec![0; 8],
            b"n".to_vec(),
            decimal(1_u64),
            decimal(1_u64),
            decimal(0_u64),
            b"probe".to_vec(),
            decimal(1_u64),
            b"probe".to_vec(),
            decimal(1_u64),
        ];
        let script = &self.scripts.claim;
        self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Done }).await.map(drop)
    }

    /// What keeps the servers from being used as they should, whether or not anything was begun there.
    pub async fn unfit(&self) -> Vec<String> {
        self.link.check().await.into_iter().map(|finding| finding.text).collect()
    }

    /// The servers that keep nothing on disk, where no answer waits for one, as far as they tell.
    pub async fn keeping_nothing(&self) -> Vec<String> {
        self.link.keeping_nothing().await
    }

    /// What an operator has to look at: how the servers are set up, and lines about what shards have
    /// lost, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] where they cannot be asked.
    pub async fn findings(&self) -> Result<Vec<String>> {
        let mut findings = self.unfit().await;
        let shards = (0..self.names.shards()).map(|shard| self.look(shard));
        for found in futures::future::try_join_all(shards).await? {
            findings.extend(found.losses);
        }
        Ok(findings)
    }
}
