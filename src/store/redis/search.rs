//! Search: newest first along one index in every shard, the other filters compared on the way. One
//! call looks at a bounded number of records, roughly.
//!
//! A position in all shards together is a position in one, then the shard's number.

use std::collections::BTreeMap;

use belfry_domain::notification::Record;
use belfry_domain::{Key, NotificationId};

use super::answers;
use super::codec::{self, Kind, Result, corrupt};
use super::link::Need;
use super::store::{Ask, RedisStore, decimal};
use crate::ports::search::{MOST_WALKED, Page, Query};

/// One shard's part of what is walked along.
struct Walk {
    shard: u16,
    /// Newest last.
    ahead: Vec<(u64, Key)>,
    /// Where to go on once these are gone; `None`: there is no more.
    next: Option<u64>,
}

impl RedisStore {
    pub(super) async fn find(&self, query: &Query) -> Result<Page> {
        if let Some((ids, next)) = query.named() {
            let ids: Vec<Key> = ids.iter().map(|id| id.0).collect();
            let found = self.read_chunk(&ids).await?.into_iter().flatten();
            return Ok(Page { records: found.filter(|record| query.fits(record)).collect(), next });
        }
        let limit = usize::from(query.limit.clamp(1, 100));
        let (kind, hash) = index_of(query);
        let mut walks: Vec<Walk> = (0..self.names.shards())
            .map(|shard| Walk { shard, ahead: Vec::new(), next: before(query.after, shard) })
            .collect();
        let mut page = Page::default();
        let (mut walked, mut long_past) = (0, 0);
        let mut last = None;
        while walked < MOST_WALKED {
            self.look_ahead(&mut walks, kind, hash, limit).await?;
            let chunk = newest(&mut walks, limit);
            if chunk.is_empty() {
                if walks.iter().all(|walk| walk.next.is_none()) {
                    return Ok(page);
                }
                // A long stretch without a match: bounded per call, gone on with in the next.
                walked += limit;
                last = walks.iter().filter_map(|walk| Some(position(walk.next?, walk.shard))).max();
                continue;
            }
            walked += chunk.len();
            let ids: Vec<Key> = chunk.iter().map(|(_, id)| *id).collect();
            for ((at, _), record) in chunk.iter().zip(self.read_chunk(&ids).await?) {
                last = Some(*at);
                let Some(record) = record else { continue };
                long_past += usize::from(query.is_long_past(record.notification.created_at));
                if !query.fits(&record) {
                    continue;
                }
                page.records.push(record);
                if page.records.len() == limit {
                    let more = chunk.last().is_some_and(|(end, _)| end != at)
                        || walks.iter().any(|walk| !walk.ahead.is_empty() || walk.next.is_some());
                    page.next = Some(*at).filter(|_| more);
                    return Ok(page);
                }
            }
        }
        page.next = last.filter(|_| long_past < walked);
        Ok(page)
    }

    /// Fills every walk that has run out.
    async fn look_ahead(&self, walks: &mut [Walk], kind: Kind, hash: u64, limit: usize) -> Result<()> {
        let calls = walks.iter_mut().filter(|walk| walk.ahead.is_empty()).map(|walk| async move {
            let Some(before) = walk.next else { return Ok(()) };
            let args = vec![codec::entry(kind, hash).to_vec(), decimal(before), decimal(limit as u64)];
            let script = &self.scripts.find;
            let ask = Ask { shard: walk.shard, script, keys: Vec::new(), args, need: Need::Done };
            let mut answer = self.run(ask).await?.into_iter();
            let found = answers::list(answer.next().ok_or_else(|| corrupt("an answer"))?)?;
            walk.next = match answer.next() {
                Some(redis::Value::Int(next)) => u64::try_from(next).ok(),
                _ => None,
            };
            for one in found.into_iter().rev() {
                let [id, at] = answers::parts(one)?;
                let at = u64::try_from(answers::number(&at)?).map_err(|_| corrupt("a position"))?;
                walk.ahead.push((at, codec::key_of(&answers::bytes(id)?)?));
            }
            Ok(())
        });
        futures::future::try_join_all(calls).await.map(drop)
    }

    /// In their order.
    async fn read_chunk(&self, chunk: &[Key]) -> Result<Vec<Option<Record>>> {
        let mut by_shard: BTreeMap<u16, (Vec<usize>, Vec<Vec<u8>>)> = BTreeMap::new();
        for (place, id) in chunk.iter().enumerate() {
            let (places, keys) = by_shard.entry(self.names.shard_of(id)).or_default();
            places.push(place);
            keys.push(self.names.notification(NotificationId(*id)));
        }
        let calls = by_shard.into_iter().map(|(shard, (places, keys))| async move {
            Result::Ok(places.into_iter().zip(self.records(shard, keys).await?))
        });
        let mut all = vec![None; chunk.len()];
        for records in futures::future::try_join_all(calls).await? {
            for (place, record) in records {
                // One that cannot be read is told of by whoever works on it.
                all[place] = record.unwrap_or_default();
            }
        }
        Ok(all)
    }
}

/// The narrowest index that one of the filters has.
fn index_of(query: &Query) -> (Kind, u64) {
    let owner = [query.owner.tenant.as_str(), query.owner.environment.as_str()];
    let of = |kind, value: &str| (kind, codec::index_hash(kind, &[owner[0], owner[1], value]));
    if let Some(hash) = &query.address_hash {
        return of(Kind::Address, hash);
    }
    if let Some(recipient) = &query.recipient {
        return of(Kind::Recipient, &recipient.hash);
    }
    if let Some(reference) = &query.reference {
        return of(Kind::Reference, reference);
    }
    if let Some(group) = &query.group {
        return of(Kind::Group, group);
    }
    let all = codec::index_hash(Kind::Owner, &owner);
    match query.rare_state() {
        Some(rare) => (Kind::State, codec::state_hash(all, rare)),
        None => (Kind::Owner, all),
    }
}

const fn position(at: u64, shard: u16) -> u64 {
    at << 8 | shard as u64
}

/// Where a shard goes on after a position in all of them.
fn before(after: Option<u64>, shard: u16) -> Option<u64> {
    const NEWEST: u64 = (1 << 53) - 1;
    let Some(after) = after else { return Some(NEWEST) };
    let (at, of) = (after >> 8, after & 0xff);
    // The cursor itself is told; of one moment, a shard with a lower number comes after it.
    Some((at + u64::from(u64::from(shard) < of)).min(NEWEST))
}

/// Takes the newest of all, at most so many, and no further than every shard is known.
fn newest(walks: &mut [Walk], most: usize) -> Vec<(u64, Key)> {
    let mut taken = Vec::new();
    while taken.len() < most {
        // A shard that has run out but goes on may have something newer than all others.
        if walks.iter().any(|walk| walk.ahead.is_empty() && walk.next.is_some()) {
            break;
        }
        let head = |walk: &Walk| walk.ahead.last().map(|(at, _)| position(*at, walk.shard));
        let Some(walk) = walks.iter_mut().filter(|walk| !walk.ahead.is_empty()).max_by_key(|walk| head(walk)) else {
            break;
        };
        if let Some((at, id)) = walk.ahead.pop() {
            taken.push((position(at, walk.shard), id));
        }
    }
    taken
}
