//! Schedules: one text each, all under one tag. What is changed is written over what was read.

use async_trait::async_trait;
use belfry_domain::UnixMs;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal, signed};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::schedules::{
    Kept, MOST_DUE, MOST_LISTED, MOST_SCHEDULES, Schedule, SchedulePage, Schedules, Taken, Wrote, key_of,
};
use crate::store::registry::digest;
use crate::store::scheduled;

fn kept(text: String) -> Result<Kept> {
    scheduled::kept(text).map_err(|_| corrupt("a schedule"))
}

/// A name and what is written under it.
fn named(value: Value) -> Result<(String, String)> {
    let [name, text] = answers::parts(value)?;
    Ok((answers::text(name)?, answers::text(text)?))
}

#[async_trait]
impl Schedules for RedisStore {
    async fn write_schedule(
        &self,
        owner: &Owner,
        name: &str,
        before: Option<&str>,
        next: Option<&Schedule>,
    ) -> Result<Wrote> {
        // Whoever is astray in its clock would move on what is not yet due. Stopping one takes no clock.
        if next.is_some_and(|next| next.look_at().is_some()) {
            self.in_time()?;
        }
        let text = next.map(serde_json::to_vec).transpose();
        let text = text.map_err(|_| StoreError::Corrupt("a schedule cannot be written".into()))?.unwrap_or_default();
        let args = vec![
            key_of(owner, name).as_bytes().to_vec(),
            before.unwrap_or_default().as_bytes().to_vec(),
            text,
            next.and_then(Schedule::look_at).map(|at| signed(at.0)).unwrap_or_default(),
            name.as_bytes().to_vec(),
            decimal(MOST_SCHEDULES as u64),
        ];
        match answers::number(&self.schedule_verb("write", owner, args, Need::Durable).await?)? {
            0 => Ok(Wrote::Other),
            1 => Ok(Wrote::Done),
            2 => Ok(Wrote::TooMany),
            _ => Err(corrupt("an answer")),
        }
    }

    async fn schedule(&self, owner: &Owner, name: &str) -> Result<Option<Kept>> {
        let args = vec![key_of(owner, name).as_bytes().to_vec()];
        let text = answers::text(self.schedule_verb("find", owner, args, Need::Done).await?)?;
        if text.is_empty() { Ok(None) } else { kept(text).map(Some) }
    }

    async fn schedules(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SchedulePage> {
        let limit = limit.clamp(1, MOST_LISTED);
        // Behind everything that begins with the name and the zero byte.
        let from = after.map_or_else(|| b"-".to_vec(), |after| [b"[", after.as_bytes(), b"\x01"].concat());
        // One more than is asked for says whether there are more.
        let args = vec![from, decimal(limit + 1)];
        let found = answers::list(self.schedule_verb("list", owner, args, Need::Done).await?)?;
        Ok(scheduled::page(found.into_iter().map(named).collect::<Result<_>>()?, limit.into()))
    }

    async fn take_due(&self, now: UnixMs, again: UnixMs, limit: u16) -> Result<Taken> {
        self.in_time()?;
        let args = vec![signed(now.0), signed(again.0), decimal(limit.clamp(1, MOST_DUE))];
        let nobody = Owner { tenant: String::new(), environment: String::new() };
        let [first, texts] = answers::parts(self.schedule_verb("due", &nobody, args, Need::Done).await?)?;
        let mut taken = Taken { then: answers::score(&first)?.map(UnixMs), ..Taken::default() };
        for text in answers::list(texts)? {
            match answers::text(text).and_then(kept) {
                Ok(kept) => taken.due.push(kept),
                Err(_) => taken.unreadable += 1,
            }
        }
        Ok(taken)
    }
}

impl RedisStore {
    async fn schedule_verb(&self, verb: &str, owner: &Owner, args: Vec<Vec<u8>>, need: Need) -> Result<Value> {
        self.same_installation()?;
        let mut all = vec![verb.as_bytes().to_vec()];
        all.extend(args);
        let owner = [b"of".as_slice(), &digest(&[&owner.tenant, &owner.environment])].concat();
        let keys = vec![self.names.schedules(b"texts"), self.names.schedules(b"due"), self.names.schedules(&owner)];
        let call = Call { script: &self.scripts.schedule, keys, args: all, need, generation: None };
        let [answer] = answers::parts(self.link.run(call).await?)?;
        Ok(answer)
    }
}
