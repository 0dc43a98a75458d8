//! The three ages, shard after shard.

use super::answers;
use super::codec::{Result, corrupt};
use super::link::Need;
use super::store::{Ask, RedisStore, decimal, signed};
use crate::ports::deliveries::{PurgeAsk, Purged};

/// Most of each age in one script.
const MOST: u32 = 128;

impl RedisStore {
    pub(super) async fn purge_all(&self, ask: PurgeAsk) -> Result<Purged> {
        let mut purged = Purged::default();
        let mut failed = None;
        for shard in 0..self.names.shards() {
            // One that cannot be asked must not let the others fill up.
            if let Err(error) = self.purge_shard(shard, ask, &mut purged).await {
                failed = Some(error);
            }
        }
        match failed {
            Some(error) if purged == Purged::default() => Err(error),
            _ => {
                self.purge_templates(ask.now).await?;
                Ok(purged)
            }
        }
    }

    async fn purge_shard(&self, shard: u16, ask: PurgeAsk, purged: &mut Purged) -> Result<()> {
        loop {
            let left = |done: u32| u32::from(ask.limit).saturating_sub(done).min(MOST);
            let most = [left(purged.contents), left(purged.records), left(purged.tombstones)];
            let mut args = vec![signed(ask.now.0), signed(ask.now.minus(ask.keep_record).0)];
            args.extend(most.map(decimal));
            let script = &self.scripts.purge;
            let answer = self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Done }).await?;
            let counts: [redis::Value; 3] = answer.try_into().map_err(|_| corrupt("an answer"))?;
            let mut done = [0; 3];
            for (done, count) in done.iter_mut().zip(&counts) {
                *done = u32::try_from(answers::number(count)?).unwrap_or(0);
            }
            purged.contents += done[0];
            purged.records += done[1];
            purged.tombstones += done[2];
            if !(0..3).any(|age| done[age] == MOST && done[age] == most[age]) {
                return Ok(());
            }
        }
    }
}
