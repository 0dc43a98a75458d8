//! Collapse groups: each in a shard of its own, as its deliveries are in many.

use std::collections::{BTreeMap, HashMap};

use belfry_domain::UnixMs;

use super::answers;
use super::codec::{self, Result};
use super::link::Need;
use super::store::{Ask, RedisStore, signed};
use crate::ports::deliveries::CollapseGroup;

impl RedisStore {
    /// Raises each group to the version, if it is below, and keeps it until then at the least.
    pub(super) async fn raise(&self, groups: Vec<(CollapseGroup, UnixMs)>) -> Result<()> {
        let mut by_shard: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
        for (group, until) in groups {
            let args = by_shard.entry(self.names.shard_of_text(&group.group)).or_default();
            args.extend([group.group.into_bytes(), codec::version_text(group.version).into_bytes(), signed(until.0)]);
        }
        let calls = by_shard.into_iter().map(|(shard, args)| {
            let script = &self.scripts.raise;
            self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Durable })
        });
        futures::future::try_join_all(calls).await?;
        Ok(())
    }

    /// The newest version of each group, `None` where none is kept; nothing of those whose shard could not
    /// be asked.
    pub(super) async fn newest(&self, groups: Vec<String>) -> HashMap<String, Option<i64>> {
        let mut by_shard: BTreeMap<u16, Vec<String>> = BTreeMap::new();
        for group in groups {
            let of_shard = by_shard.entry(self.names.shard_of_text(&group)).or_default();
            if !of_shard.contains(&group) {
                of_shard.push(group);
            }
        }
        let calls = by_shard.into_iter().map(|(shard, groups)| async move {
            let args = groups.iter().map(|group| group.clone().into_bytes()).collect();
            let script = &self.scripts.newest;
            let answer = self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Done }).await?;
            let versions = answers::list(answer.into_iter().next().unwrap_or(redis::Value::Nil))?;
            let mut newest = Vec::new();
            for (group, version) in groups.into_iter().zip(versions) {
                let version = answers::maybe_bytes(version)?;
                newest.push((group, version.map(|text| codec::version_of(&text)).transpose()?));
            }
            Result::Ok(newest)
        });
        futures::future::join_all(calls).await.into_iter().flatten().flatten().collect()
    }
}
