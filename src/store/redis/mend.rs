//! Time travel: a server that has lost what another one acknowledged (a failover, a restored backup) is
//! told by its sequence, which every script compares with the highest that this node has seen. Nothing
//! is read from it nor written to it before it has been mended: fences go above all that were seen, what
//! this node holds and has settled lately is put back, and what is lost is named.

use std::sync::Arc;
use std::time::Duration;

use belfry_domain::{NotificationId, UnixMs};
use redis::Value;

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::{Call, Need, Trouble};
use super::memory::{KEPT_MS, Remembered, Settled};
use super::shard::DOUBTED;
use super::store::{RedisStore, Seen, decimal};
use crate::ports::StoreError;
use crate::ports::deliveries::MOST_ITEMS;
use crate::ports::store_news::StoreNews;

/// What a script says that is asked for less than was seen.
const PAST: &str = "BELFRYPAST";

/// How long a shard that has gone back gives no claims: every node has found out by then.
const OTHERS: Duration = Duration::from_secs(3);

/// What `mend.lua` says of a record that is not there.
const GONE: i64 = 3;

/// Where a shard was found.
pub(super) struct Found {
    pub at: u64,
    pub era: String,
    /// For people: what it lost, oldest first.
    pub losses: Vec<String>,
    /// Of the server: when the shard was last looked at (nothing: never before), and now.
    run_before: String,
    run: String,
}

impl Found {
    /// Its server was started anew since, or is another one. Then others may hold more than it knows, and find
    /// that out by the new era.
    fn is_elsewhere(&self) -> bool {
        !self.run_before.is_empty() && self.run_before != self.run
    }
}

/// One thing to put back.
struct Item {
    key: Vec<u8>,
    args: [Vec<u8>; 6],
}

/// Whether a call was refused because the server has gone back.
pub(super) fn is_past(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Ours(text) if text.starts_with(PAST))
}

/// A shard's loss in a line for people. `period`: from the newest that is known to be there to now. `steps`:
/// how far the shard has come, and how far it had.
fn loss(shard: u16, (since, until): (UnixMs, UnixMs), (at, seen): (u64, u64), lost: usize) -> String {
    let until = codec::moment(until);
    let gone = format!("{lost} that this node had accepted are gone");
    // Of a shard that begins anew nothing is left, however old.
    if at * 100 < seen {
        return format!("shard {shard}: found empty at {until}: all of it is lost, at any age; {gone}");
    }
    let since = codec::moment(since);
    let missing = seen.saturating_sub(at);
    format!("shard {shard}: possibly lost from {since} to {until}: {missing} of its {seen} writes; {gone}")
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
        let known = place.era();
        let found = self.look(shard).await?;
        if found.at >= seen && known.as_deref() == Some(&found.era) && !found.is_elsewhere() {
            // Another call has come first.
            return Ok(());
        }
        let now = self.clock.now();
        let remembered = place.memory.all();
        let (lost, kept) = self.put_back(shard, &remembered).await?;
        place.memory.named(&lost);
        // The shard may have lost the hold as well, and claims go on once it is mended: until it is known
        // whether one stands, it stays away.
        if let Some(at) = self.hold_of_installation().await? {
            let args = vec![b"put".to_vec(), super::store::signed(at.0)];
            self.past(shard, &self.scripts.hold, Vec::new(), args).await?;
        }
        let since = kept.unwrap_or(UnixMs(now.0 - KEPT_MS));
        let line = loss(shard, (since, now), (found.at, seen), lost.len());
        // Whoever is the first to find out begins the era that tells all others.
        let gone_back = found.at < seen;
        let known_here = known.is_some_and(|known| known.trim_end_matches(DOUBTED) == found.era);
        let begins = found.is_elsewhere() || (gone_back && known_here);
        let steps = seen.saturating_sub(found.at);
        // Another server that lacks nothing is no news.
        let is_news = gone_back || !lost.is_empty();
        self.enter(shard, found, begins, (seen, if is_news { &line } else { "" })).await?;
        if is_news {
            self.watch.tell(StoreNews::WentBack { shard, since, until: now, steps, lost });
        }
        self.woken(shard);
        Ok(())
    }

    /// The end of a look at a shard: from now on this node works there. `begins`: a new era, by which all others
    /// find out, and until they can have, no claims are given. `seen`: how far it had come, and what to tell people.
    async fn enter(&self, shard: u16, found: Found, begins: bool, (seen, line): (u64, &str)) -> Result<()> {
        let place = &self.shards[usize::from(shard)];
        let era = if begins { format!("{}-{seen}", self.clock.now().0) } else { String::new() };
        let quiet = decimal(u64::try_from(OTHERS.as_millis()).unwrap_or(u64::MAX));
        let args = vec![
            decimal(seen),
            line.as_bytes().to_vec(),
            found.era.into_bytes(),
            era.into_bytes(),
            found.run.into_bytes(),
            quiet,
        ];
        let answer = self.past(shard, &self.scripts.mended, Vec::new(), args).await?;
        let [sequence, era] = answer.try_into().map_err(|_| corrupt("an answer"))?;
        place.saw(u64::try_from(answers::number(&sequence)?).unwrap_or(0));
        place.enter(answers::text(era)?);
        Ok(())
    }

    /// Learns in which era a shard is, before the first thing that is done there.
    pub(super) async fn arrive(&self, shard: u16) -> Result<()> {
        let place = &self.shards[usize::from(shard)];
        let _one = place.mending.lock().await;
        if place.era().is_none() {
            let found = self.look(shard).await?;
            place.saw(found.at);
            if found.run_before == found.run {
                place.enter(found.era);
            } else {
                let (at, elsewhere) = (found.at, found.is_elsewhere());
                self.enter(shard, found, elsewhere, (at, "")).await?;
            }
        }
        Ok(())
    }

    /// Where a shard is, and the lines of what it has lost.
    pub(super) async fn look(&self, shard: u16) -> Result<Found> {
        let answer = self.past(shard, &self.scripts.look, Vec::new(), Vec::new()).await?;
        let [at, era, losses, before, run] = answer.try_into().map_err(|_| corrupt("an answer"))?;
        Ok(Found {
            at: u64::try_from(answers::number(&at)?).unwrap_or(0),
            era: answers::text(era)?,
            losses: answers::list(losses)?.into_iter().map(answers::text).collect::<Result<_>>()?,
            run_before: answers::text(before)?,
            run: answers::text(run)?,
        })
    }

    /// In the order in which it came about. Returns the accepted that are gone, and when the latest was
    /// accepted that is not.
    async fn put_back(&self, shard: u16, remembered: &Remembered) -> Result<(Vec<NotificationId>, Option<UnixMs>)> {
        let settles = remembered.settles.iter().map(|settled| self.settled_item(settled));
        let claims = remembered.claims.iter().map(|(id, claim)| {
            let worker = codec::worker_name(&claim.worker)?.to_vec();
            let spent = decimal(u64::from(claim.spent));
            let token = claim.token;
            Ok(Item {
                key: self.names.delivery(*id),
                args: [
                    b"c".to_vec(),
                    codec::token_bytes(token),
                    codec::six(claim.rev).to_vec(),
                    worker,
                    spent,
                    Vec::new(),
                ],
            })
        });
        let items = settles.map(Ok).chain(claims).collect::<Result<Vec<_>>>()?;
        self.mend_items(shard, remembered.highest_fence, items).await?;
        let accepts = remembered.accepts.iter().map(|(_, id)| Item {
            key: self.names.notification(*id),
            args: [b"e".to_vec(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()],
        });
        let there = self.mend_items(shard, remembered.highest_fence, accepts.collect()).await?;
        let (gone, kept): (Vec<_>, Vec<_>) =
            remembered.accepts.iter().zip(there).partition(|(_, answer)| *answer == GONE);
        let kept = kept.into_iter().map(|((at, _), _)| *at).max();
        Ok((gone.into_iter().map(|((_, id), _)| *id).collect(), kept))
    }

    fn settled_item(&self, settled: &Settled) -> Item {
        Item {
            key: self.names.delivery(settled.id),
            args: [
                b"s".to_vec(),
                codec::token_bytes(settled.token),
                codec::six(settled.rev).to_vec(),
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
        let (keys, args) = self.framed(shard, &Seen::nothing(), keys, args);
        answers::list(self.link.run(Call { script, keys, args, need: Need::Durable, generation: None }).await?)
    }
}
