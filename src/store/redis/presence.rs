//! Which nodes there are, and which of them a shard is preferred by: two nodes that ask the same shard
//! at once find little for each. What nobody has taken after a while anybody takes.

use std::sync::{MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::answers;
use super::codec::Result;
use super::link::{Call, Need};
use super::store::{Ask, RedisStore, signed};
use crate::ports::StoreError;
use crate::ports::store_news::StoreNews;
use belfry_domain::UnixMs;
use belfry_domain::skew::{APART_MS, astray};

/// How often a node says that it is there.
const EVERY: Duration = Duration::from_secs(1);
/// A node that has not said so for so long is gone.
const GONE: Duration = Duration::from_secs(4);
/// An answer that took longer says too little about the time.
const PROMPT: Duration = Duration::from_secs(2);

/// So long something has been due when nodes take it that its shard is not preferred by.
pub(super) const HELP_AFTER: Duration = Duration::from_secs(2);

/// Of a node, as the script takes it.
#[derive(Clone, Copy)]
enum Says {
    Leaves = 0,
    There = 1,
    Nothing = 2,
    OnlyTheTime = 3,
}

/// What a node may do by its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Time {
    /// It compares it with nobody's.
    #[default]
    Alone,
    /// Nobody has answered yet.
    NotCompared,
    Right,
    /// So far ahead of most others' (milliseconds).
    Astray(i64),
}

/// This node's clock among the others'.
#[derive(Debug, Default)]
pub(super) struct Timepiece {
    time: Time,
    /// Of the store's, when it was seen last.
    ahead: Option<i64>,
}

impl RedisStore {
    /// Compares its clock with those of the others under this name, and where it `works` shares the shards with them,
    /// until [`Self::leave`]. Until the first answer it accepts and claims nothing.
    pub async fn join(&self, node: &str, works: bool) {
        self.timepiece().time = Time::NotCompared;
        let says = if works { Says::There } else { Says::OnlyTheTime };
        // Where it fails it is said again within a second.
        self.say_present(node, says).await.ok();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let staying = tasks.spawn(stay(self.this.clone(), node.to_owned(), says));
        *self.staying.lock().unwrap_or_else(PoisonError::into_inner) = Some(staying);
        // Also while it drains: others wait only so long for a node to find out what a server has lost.
        tasks.spawn(look_after_claims(self.this.clone()));
    }

    /// Leaves what it prefers to the others.
    ///
    /// # Errors
    /// [`crate::ports::StoreError`]; the others find out by themselves.
    pub async fn leave(&self, node: &str) -> Result<()> {
        // Or it would come back within a second, and the others leave it its shards while it drains.
        if let Some(staying) = self.staying.lock().unwrap_or_else(PoisonError::into_inner).take() {
            staying.abort();
        }
        self.say_present(node, Says::Leaves).await.map(drop)
    }

    /// Whether a shard knows all that this node has seen of it; it is mended where it does not.
    async fn is_known(&self, shard: u16) -> bool {
        let script = &self.scripts.standing;
        self.run(Ask { shard, script, keys: Vec::new(), args: Vec::new(), need: Need::Done }).await.is_ok()
    }

    /// Those that take part now.
    ///
    /// # Errors
    /// [`crate::ports::StoreError`]
    pub async fn nodes(&self) -> Result<Vec<String>> {
        self.say_present("", Says::Nothing).await
    }

    async fn say_present(&self, node: &str, says: Says) -> Result<Vec<String>> {
        let args = vec![
            self.time_arg(),
            node.as_bytes().to_vec(),
            signed(GONE.as_millis().try_into().unwrap_or(i64::MAX)),
            signed(says as i64),
            self.timepiece().ahead.map(signed).unwrap_or_default(),
        ];
        let keys = vec![self.names.installation("nodes"), self.names.installation("clocks")];
        let asked_at = self.clock.boot();
        let answer = self
            .link
            .run(Call { script: &self.scripts.present, keys, args, need: Need::Done, generation: None })
            .await?;
        let [now, nodes, clocks] = answers::parts(answer)?;
        let now = UnixMs(answers::number(&now)?);
        self.saw_time(now);
        if matches!(says, Says::There | Says::OnlyTheTime) {
            // A slow answer says what time it was when it was given, and not what it is.
            let prompt = self.clock.boot() <= asked_at + PROMPT;
            let clocks: Vec<i64> = answers::list(clocks)?.iter().map(answers::number).collect::<Result<_>>()?;
            self.compare(prompt.then(|| self.clock.now().0.saturating_sub(now.0)), &clocks);
        }
        answers::list(nodes)?.into_iter().map(answers::text).collect()
    }

    fn timepiece(&self) -> MutexGuard<'_, Timepiece> {
        self.timepiece.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `ahead` of the store's clock, which is one of those that it is compared with.
    fn compare(&self, ahead: Option<i64>, clocks: &[i64]) {
        let mut piece = self.timepiece();
        let time = match ahead.map(|ahead| astray(ahead, &[clocks, &[0]].concat())) {
            Some(Some(ms)) => Time::Astray(ms),
            Some(None) => Time::Right,
            None if piece.time == Time::NotCompared => Time::Right,
            None => piece.time,
        };
        let was = std::mem::replace(&mut piece.time, time);
        piece.ahead = ahead.or(piece.ahead);
        drop(piece);
        let ms = |time| if let Time::Astray(ms) = time { Some(ms) } else { None };
        if ms(was).is_some() != ms(time).is_some() {
            self.watch.tell(StoreNews::Astray { ms: ms(time) });
        }
        if was == Time::NotCompared {
            self.due.raise();
        }
    }

    /// Whether this node may go by its own clock: one that is hours ahead lets codes expire, sends early what is
    /// scheduled, and ends what somebody paused.
    ///
    /// # Errors
    /// It may not. Others do the work.
    pub(super) fn in_time(&self) -> Result<()> {
        let why = match self.timepiece().time {
            Time::Alone | Time::Right => return Ok(()),
            Time::NotCompared => "this node has not yet compared its clock with the others'".to_owned(),
            Time::Astray(ms) => {
                let (seconds, way) = (ms.unsigned_abs() / 1000, if ms > 0 { "ahead of" } else { "behind" });
                format!(
                    "the clock of this node is {seconds} s {way} most others': it takes no part until that is mended"
                )
            }
        };
        Err(StoreError::Unavailable(why))
    }
}

async fn stay(store: Weak<RedisStore>, node: String, says: Says) {
    loop {
        let Some(here) = store.upgrade() else { return };
        // While the store is away everybody keeps what they had.
        let nodes = here.say_present(&node, says).await;
        if let (Ok(nodes), Says::There) = (nodes, says) {
            for (shard, place) in (0..).zip(&here.shards) {
                if place.prefer(preferred_by(shard, &nodes).is_none_or(|one| one == node)) {
                    here.woken(shard);
                }
            }
        }
        let (clock, until) = (here.clock.clone(), here.clock.boot() + EVERY);
        drop(here);
        clock.sleep_until(until).await;
    }
}

/// Asks something of every shard where this node is at something, so that it soon finds out whether the shard
/// still knows.
async fn look_after_claims(store: Weak<RedisStore>) {
    loop {
        let Some(here) = store.upgrade() else { return };
        let shards = (0..).zip(&here.shards).filter(|(_, place)| place.memory.has_claims());
        // Who cannot be asked now is asked again.
        futures::future::join_all(shards.map(|(shard, _)| here.is_known(shard))).await;
        let (clock, until) = (here.clock.clone(), here.clock.boot() + EVERY);
        drop(here);
        clock.sleep_until(until).await;
    }
}

/// The same on all nodes, and moved only for the shards of a node that comes or goes.
fn preferred_by(shard: u16, nodes: &[String]) -> Option<&str> {
    let weight = |node: &&str| {
        let mut hash = Sha256::new();
        hash.update(shard.to_be_bytes());
        hash.update(node.as_bytes());
        hash.finalize()
    };
    nodes.iter().map(String::as_str).max_by_key(weight)
}

/// Whether two clocks so far apart (milliseconds) are worth an alert.
pub(super) const fn is_skewed(ms: i64) -> bool {
    ms.saturating_abs() > APART_MS
}

#[cfg(test)]
mod tests {
    use super::preferred_by;

    #[test]
    fn a_node_that_goes_leaves_only_its_own_shards() {
        let nodes: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let before: Vec<_> = (0..16).map(|shard| preferred_by(shard, &nodes).unwrap()).collect();
        let without: Vec<_> = (0..16).map(|shard| preferred_by(shard, &nodes[..2]).unwrap()).collect();
        assert!(["a", "b", "c"].iter().all(|node| before.contains(node)), "{before:?}");
        for (before, after) in before.iter().zip(&without) {
            assert!(before == after || *before == "c", "{before} to {after}");
        }
        assert_eq!(preferred_by(0, &[]), None);
    }
}
