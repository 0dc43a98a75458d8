//! Whether the installation is still the one that this node works on: somebody may have emptied the
//! server under it, or begun another one there.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::Need;
use super::store::{LAYOUT, RedisStore, decimal};
use crate::ports::StoreError;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

impl RedisStore {
    /// Looks every second, as long as the store is there.
    pub fn look_after_installation(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tasks.spawn(look_after(self.this.clone()));
    }

    /// Puts back layout, shard count and secret where they are gone: what nodes make of ids and fingerprints
    /// depends on them, and a node that starts now would draw another secret. Where another installation has
    /// been begun there, this node does nothing more until its own is back.
    pub(super) async fn stand(&self) -> Result<()> {
        let secret = self.secret.get().map(|secret| secret.to_vec()).unwrap_or_default();
        let args = vec![decimal(LAYOUT), decimal(self.names.shards()), secret.clone()];
        let found = self.installation_of_any("stand", args, Need::Done).await?.ok_or_else(|| corrupt("an answer"))?;
        let [layout, shards, stored] = answers::parts(found)?;
        let stored = answers::maybe_bytes(stored)?.unwrap_or_default();
        let same = answers::number(&layout)? == i64::try_from(LAYOUT).unwrap_or(i64::MAX)
            && answers::number(&shards)? == i64::from(self.names.shards())
            && (secret.is_empty() || secret == stored);
        self.elsewhere.store(!same, Ordering::SeqCst);
        Ok(())
    }

    /// # Errors
    /// [`StoreError::Unavailable`]: what is there now is not what this node has begun on.
    pub(super) fn same_installation(&self) -> Result<()> {
        if self.elsewhere.load(Ordering::SeqCst) {
            let text = "another installation has been begun on this Redis since this node was started; \
                        bring the former one back, or start the node again";
            return Err(StoreError::Unavailable(text.into()));
        }
        Ok(())
    }

    /// A verb about the installation as a whole.
    pub(super) async fn installation(&self, verb: &str, args: Vec<Vec<u8>>, need: Need) -> Result<Option<Value>> {
        self.same_installation()?;
        self.installation_of_any(verb, args, need).await
    }
}

async fn look_after(store: Weak<RedisStore>) {
    loop {
        let Some(here) = store.upgrade() else { return };
        // Who cannot be asked now is asked again.
        here.stand().await.ok();
        let (clock, until) = (here.clock.clone(), here.clock.boot() + EVERY);
        drop(here);
        clock.sleep_until(until).await;
    }
}
