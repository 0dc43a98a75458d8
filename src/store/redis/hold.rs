//! The hold after a restore. It stands once for the installation, which says since when, and in every
//! shard, where claims compare it: a claim is one script on one slot.

use belfry_domain::UnixMs;
use redis::Value;

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::Need;
use super::store::{Ask, RedisStore, decimal, signed, those_that_answered};
use crate::ports::deliveries::MOST_ITEMS;
use crate::ports::holds::{HeldPage, Holds};

/// Where the hold says by when.
const HELD: &str = "";

/// How far a reading of what is held has come in a shard, as its script takes and answers it.
type Inner = [Vec<u8>; 5];

#[async_trait::async_trait]
impl Holds for RedisStore {
    async fn hold(&self, at: UnixMs) -> Result<UnixMs> {
        let stands = self.installation("put_hold", vec![signed(at.0)], Need::Durable).await?;
        let at = moment(&stands.ok_or_else(|| corrupt("the hold"))?)?.unwrap_or(at);
        self.in_all_shards("put", at).await?;
        Ok(at)
    }

    async fn standing(&self) -> Result<Option<UnixMs>> {
        let calls = (0..self.names.shards()).map(|shard| async move {
            let script = &self.scripts.standing;
            let answer = self.run(Ask { shard, script, keys: Vec::new(), args: Vec::new(), need: Need::Done }).await?;
            let [hold] = answer.try_into().map_err(|_| corrupt("an answer"))?;
            moment(&hold)
        });
        Ok(those_that_answered(futures::future::join_all(calls).await)?.into_iter().flatten().max())
    }

    async fn held_back(&self, after: Option<&str>, limit: u16) -> Result<HeldPage> {
        self.due_by(HELD, after, limit).await
    }

    async fn release(&self, at: UnixMs) -> Result<()> {
        // The installation's last: what is left half way is found held again, and can be released again.
        self.in_all_shards("release", at).await?;
        self.installation("drop_hold", vec![signed(at.0)], Need::Durable).await.map(drop)
    }
}

impl RedisStore {
    /// What waits and is due by a score, [`HELD`] being that of the hold.
    pub(super) async fn due_by(&self, by: &str, after: Option<&str>, limit: u16) -> Result<HeldPage> {
        let limit = usize::from(limit).clamp(1, MOST_ITEMS);
        let known = |(shard, _): &(u16, Inner)| *shard < self.names.shards();
        let (first, mut inner) = after.and_then(read_place).filter(known).unwrap_or_default();
        let mut page = HeldPage::default();
        for shard in first..self.names.shards() {
            let room = limit - page.deliveries.len();
            let (deliveries, next) = self.due_by_in(shard, (by, room), std::mem::take(&mut inner)).await?;
            page.deliveries.extend(deliveries);
            if let Some(next) = next {
                page.next = Some(place(shard, &next));
                break;
            }
            if page.deliveries.len() == limit && shard + 1 < self.names.shards() {
                page.next = Some(place(shard + 1, &Inner::default()));
                break;
            }
        }
        Ok(page)
    }

    async fn in_all_shards(&self, verb: &str, at: UnixMs) -> Result<()> {
        let calls = (0..self.names.shards()).map(|shard| async move {
            let args = vec![verb.as_bytes().to_vec(), signed(at.0)];
            let script = &self.scripts.hold;
            self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Durable }).await?;
            self.woken(shard);
            Ok(())
        });
        futures::future::try_join_all(calls).await.map(drop)
    }

    /// The hold as the installation has it.
    pub(super) async fn hold_of_installation(&self) -> Result<Option<UnixMs>> {
        let found = self.installation("hold", Vec::new(), Need::Done).await?;
        found.as_ref().map_or(Ok(None), moment)
    }

    /// Puts the hold that stands into shards that it has not come to: a start that was to hold died
    /// half way, or a shard has lost it.
    pub(super) async fn spread_hold(&self) -> Result<()> {
        while let Some(at) = self.hold_of_installation().await? {
            self.in_all_shards("put", at).await?;
            if self.hold_of_installation().await? == Some(at) {
                break;
            }
            // It was released meanwhile.
            self.in_all_shards("release", at).await?;
        }
        Ok(())
    }

    async fn due_by_in(
        &self,
        shard: u16,
        (by, most): (&str, usize),
        after: Inner,
    ) -> Result<(Vec<belfry_domain::Delivery>, Option<Inner>)> {
        let mut args = vec![decimal(most as u64)];
        let [part, ring, tenant, score, member] = after;
        args.extend([part, ring, tenant, score, member, by.as_bytes().to_vec()]);
        let script = &self.scripts.held_back;
        let answer = self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Done }).await?;
        // What ends in nothing is that much shorter.
        let mut answer = answer.into_iter();
        let found = answers::list(answer.next().ok_or_else(|| corrupt("an answer"))?)?;
        let mut deliveries = Vec::with_capacity(found.len());
        for value in found {
            // One that cannot be read stays held, and must not keep the others from being shown.
            deliveries.extend(codec::read_delivery(&answers::bytes(value)?).ok().map(|read| read.delivery));
        }
        let next = match answer.next() {
            None | Some(Value::Nil | Value::Boolean(false)) => None,
            Some(next) => {
                let [part, ring, tenant, score, member] = answers::parts::<5>(next)?;
                let bytes = answers::bytes;
                Some([bytes(part)?, bytes(ring)?, bytes(tenant)?, bytes(score)?, bytes(member)?])
            }
        };
        Ok((deliveries, next))
    }
}

/// A hold as scripts answer it: its moment, or nothing.
pub(super) fn moment(value: &Value) -> Result<Option<UnixMs>> {
    match value {
        Value::Nil | Value::Boolean(false) => Ok(None),
        other => Ok(answers::score(other)?.map(UnixMs)),
    }
}

/// A shard and a place in it, as a text of hexadecimal digits and dots.
fn place(shard: u16, inner: &Inner) -> String {
    let parts: Vec<String> = inner.iter().map(|part| belfry_domain::hex(part)).collect();
    format!("{shard}.{}", parts.join("."))
}

fn read_place(text: &str) -> Option<(u16, Inner)> {
    let (shard, rest) = text.split_once('.')?;
    let parts: Option<Vec<Vec<u8>>> = rest.split('.').map(codec::all_digits).collect();
    let inner: Inner = parts?.try_into().ok()?;
    // What is no score would fail in the script.
    let score = std::str::from_utf8(&inner[3]).ok()?;
    let is_score = score.is_empty() || score.parse::<f64>().is_ok_and(f64::is_finite);
    is_score.then_some((shard.parse().ok()?, inner))
}
