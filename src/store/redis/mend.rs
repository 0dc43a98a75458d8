//! Time travel: a server that has lost what another one acknowledged (a failover, a restored backup) is
//! told by its sequence, which every script compares with the highest that this node has seen. Nothing
//! is read from it nor written to it before it has been mended: fences go above all that were seen, what
//! this node holds and has settled lately is put back, and what is lost is named.

use std::sync::Arc;

use belfry_domain::{NotificationId, UnixMs};
use redis::Value;

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::{Call, Need, Trouble};
use super::memory::{Missing, Settled};
use super::store::{RedisStore, decimal};
use crate::ports::StoreError;
use crate::ports::deliveries::MOST_ITEMS;
use crate::ports::store_news::StoreNews;

/// What a script says that is asked for less than was seen.
const PAST: &str = "BELFRYPAST";

/// One thing to put back.
struct Item {
    key: Vec<u8>,
    args: [Vec<u8>; 7],
}

/// Whether a call was refused because the server has gone back.
pub(super) fn is_past(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Ours(text) if text.starts_with(PAST))
}

impl RedisStore {
    /// Mends a shard, and goes on doing so when whoever asked no longer waits: half done, it would be
    /// found mended.
    pub(super) async fn mended(&self, shard: u16) -> Result<()> {
        let away = || StoreError::Unavailable("the store is closing".into());
        let store = self.this.upgrade().ok_or_else(away)?;
        let task = {
            let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (told, heard) = tokio::sync::oneshot::channel();
            tasks.spawn(async move { drop(told.send(store.mend(shard).await)) });
            heard
        };
        task.await.map_err(|_| away())?
    }

    async fn mend(self: Arc<Self>, shard: u16) -> Result<()> {
        let place = &self.shards[usize::from(shard)];
        let _one = place.mending.lock().await;
        let seen = place.sequence();
        let (at, _) = self.look(shard).await?;
        if at >= seen {
            // Another call has come first.
            return Ok(());
        }
        let missing = place.memory.missing(at);
        let now = self.clock.now();
        let lost = self.put_back(shard, &missing).await?;
        let since = missing.since.unwrap_or(UnixMs(now.0 - 60_000));
        let line = format!(
            "{} possibly lost: {} to {} ({} of {} steps; {} accepted here are gone)",
            place_name(shard),
            codec::moment(since),
            codec::moment(now),
            seen - at,
            seen,
            lost.len(),
        );
        let args = vec![decimal(seen), line.into_bytes()];
        self.past(shard, &self.scripts.mended, Vec::new(), args).await?;
        self.watch.tell(StoreNews::WentBack { shard, since, until: now, steps: seen - at, lost });
        self.woken(shard);
        Ok(())
    }

    /// Where a shard is, and the lines of what it has lost.
    pub(super) async fn look(&self, shard: u16) -> Result<(u64, Vec<String>)> {
        let answer = self.past(shard, &self.scripts.look, Vec::new(), Vec::new()).await?;
        let [at, losses] = answer.try_into().map_err(|_| corrupt("an answer"))?;
        let losses = answers::list(losses)?.into_iter().map(answers::text).collect::<Result<_>>()?;
        Ok((u64::try_from(answers::number(&at)?).unwrap_or(0), losses))
    }

    /// In the order in which it came about. Returns the accepted that are gone.
    async fn put_back(&self, shard: u16, missing: &Missing) -> Result<Vec<NotificationId>> {
        let settles = missing.settles.iter().map(|settled| self.settled_item(settled));
        let claims = missing.claims.iter().map(|(id, claim)| {
            let worker = codec::worker_name(&claim.worker)?.to_vec();
            let spent = decimal(u64::from(claim.spent));
            let token = claim.token;
            Ok(Item {
                key: self.names.delivery(*id),
                args: [
                    b"c".to_vec(),
                    decimal(token.fence),
                    token.nonce.to_be_bytes().to_vec(),
                    decimal(claim.rev),
                    worker,
                    spent,
                    Vec::new(),
                ],
            })
        });
        let items = settles.map(Ok).chain(claims).collect::<Result<Vec<_>>>()?;
        self.mend_items(shard, missing.highest_fence, items).await?;
        let accepts = missing.accepts.iter().map(|id| Item {
            key: self.names.notification(*id),
            args: [b"e".to_vec(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()],
        });
        let there = self.mend_items(shard, missing.highest_fence, accepts.collect()).await?;
        Ok(missing.accepts.iter().zip(there).filter(|(_, answer)| *answer == 3).map(|(id, _)| *id).collect())
    }

    fn settled_item(&self, settled: &Settled) -> Item {
        Item {
            key: self.names.delivery(settled.id),
            args: [
                b"s".to_vec(),
                decimal(settled.token.fence),
                settled.token.nonce.to_be_bytes().to_vec(),
                decimal(settled.rev),
                settled.fixed.clone(),
                settled.lane.clone(),
                settled.body.clone(),
            ],
        }
    }

    async fn mend_items(&self, shard: u16, fence: u64, items: Vec<Item>) -> Result<Vec<i64>> {
        let mut all = Vec::with_capacity(items.len());
        let mut items = items.into_iter().peekable();
        let mut first = true;
        // Once at the least: the fences go up whether or not there is anything to put back.
        while std::mem::take(&mut first) || items.peek().is_some() {
            let (mut keys, mut args) = (Vec::new(), vec![decimal(fence)]);
            for item in items.by_ref().take(MOST_ITEMS) {
                keys.push(item.key);
                args.extend(item.args);
            }
            let answer = self.past(shard, &self.scripts.mend, keys, args).await?;
            let [_, answers] = answer.try_into().map_err(|_| corrupt("an answer"))?;
            for answer in answers::list(answers)? {
                all.push(answers::number(&answer)?);
            }
        }
        Ok(all)
    }

    /// A call that is not refused for being too early: it is what mends.
    async fn past(
        &self,
        shard: u16,
        script: &super::script::Script,
        keys: Vec<Vec<u8>>,
        args: Vec<Vec<u8>>,
    ) -> Result<Vec<Value>> {
        let (keys, args) = self.framed(shard, 0, keys, args);
        answers::list(self.link.run(Call { script, keys, args, need: Need::Durable }).await?)
    }
}

fn place_name(shard: u16) -> String {
    format!("shard {shard}")
}
