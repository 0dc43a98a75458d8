//! Claims: who may send what until when. A claim is a row beside the record; the record's fence
//! outlives it, so that every later claim is higher.

use std::collections::HashMap;

use belfry_domain::delivery::StateName;
use belfry_domain::{DeliveryId, UnixMs};
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::rows::{self, IdBytes, Stored, delivery_key, signed, unsigned};
use super::sql;
use crate::ports::StoreError;
use crate::ports::deliveries::{Claim, ClaimAsk, Claims, MOST_ITEMS, Renewed, Token};

/// A claim takes no further delivery once its content has so many bytes.
const MOST_BYTES: usize = 16 << 20;

/// So many tenants are looked at for one claim of one lane. Beyond, the longest due goes first, and
/// the next claim goes on from where this one stopped.
const MOST_TENANTS: usize = 256;

/// A claim as its rows have it. Made readable by whoever asked, not by the writer's thread.
struct Taken {
    delivery: Stored,
    notification: String,
    inputs: Option<String>,
    token: Token,
    newest_version: Option<i64>,
}

/// What a claim call answers.
pub struct TakenClaims {
    taken: Vec<Taken>,
    next_due: Option<i64>,
}

impl TakenClaims {
    /// # Errors
    /// [`StoreError::Corrupt`] where a record cannot be read; its claim lapses then.
    pub fn read(self) -> Result<Claims> {
        let claims = self.taken.into_iter().map(Taken::read).collect::<Result<_>>()?;
        Ok(Claims { claims, next_due: self.next_due.map(rows::at) })
    }
}

impl Taken {
    fn read(self) -> Result<Claim> {
        Ok(Claim {
            delivery: self.delivery.read()?,
            notification: rows::notification(&self.notification)?,
            inputs: self.inputs,
            token: self.token,
            newest_version: self.newest_version,
            newest_away: false,
            unconfirmed: false,
        })
    }
}

/// What one claim call has taken so far.
struct Basket {
    taken: Vec<Taken>,
    bytes: usize,
    most: usize,
}

impl Basket {
    const fn room(&self) -> usize {
        if self.bytes >= MOST_BYTES { 0 } else { self.most.saturating_sub(self.taken.len()) }
    }
}

/// One tenant's part of a lane, read in due order.
struct Turn {
    tenant: String,
    /// The last one read.
    after: (i64, i64),
    more: bool,
}

/// Which part of the due index: a lane, and in it those that run alone or the others.
#[derive(Clone, Copy)]
struct Part {
    lane: i64,
    alone: bool,
    now: i64,
    /// What is due at or before it is held.
    after: i64,
}

/// A delivery with what its claim needs.
struct Claimable {
    taken: Taken,
    id: IdBytes,
    lane: i64,
    lease_ms: i64,
}

impl Core {
    /// Claims what is due in the asked lanes. `next_due` is of the lanes in which nothing is left
    /// that is due already; where a lane has more, the caller knows by having got all it asked for.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is claimed then.
    pub fn claim(&mut self, now: UnixMs, ask: &ClaimAsk) -> Result<TakenClaims> {
        let mut basket = Basket { taken: Vec::new(), bytes: 0, most: if ask.alone { 1 } else { MOST_ITEMS } };
        let again = self.claim_again(now, ask, &mut basket)?;
        let after = self.reads().hold()?.unwrap_or(i64::MIN);
        let mut next_due: Option<i64> = None;
        let mut of_provider: HashMap<&str, usize> = HashMap::new();
        for (lane, most) in &ask.lanes {
            let Some(id) = self.reads().lane(lane)? else { continue };
            let part = Part { lane: id, alone: ask.alone, now: now.0, after };
            if !again {
                let (before, provider) = (basket.taken.len(), lane.provider.as_str());
                let taken = of_provider.entry(provider).or_default();
                let left = most_of(ask, provider).saturating_sub(*taken).min(usize::from(*most));
                self.claim_part(part, left, ask, &mut basket)?;
                *taken += basket.taken.len() - before;
            }
            let lane = id;
            if let Some(due) = self.reads().next_due(lane, ask.alone, after)?.filter(|due| *due > now.0) {
                next_due = Some(next_due.map_or(due, |least| least.min(due)));
            }
        }
        Ok(TakenClaims { taken: basket.taken, next_due })
    }

    /// The answer to the same nonce again, where anything of it still holds. The lease starts anew:
    /// the worker counts it from before it asked this time.
    fn claim_again(&mut self, now: UnixMs, ask: &ClaimAsk, basket: &mut Basket) -> Result<bool> {
        let held: Vec<(i64, i64, IdBytes)> = self
            .conn
            .prepare_cached(sql::CLAIMS_OF_NONCE)?
            .query_map(params![signed(ask.nonce), ask.worker], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (seq, fence, id) in &held {
            let token = Token { fence: unsigned(*fence), nonce: ask.nonce };
            self.renew_one(now, DeliveryId(id.0), token)?;
            basket.taken.push(self.claimable(*seq, token)?.taken);
        }
        Ok(!held.is_empty())
    }

    fn claim_part(&mut self, part: Part, most: usize, ask: &ClaimAsk, basket: &mut Basket) -> Result<()> {
        let most = most.min(basket.room());
        let next_due = || self.reads().next_due(part.lane, part.alone, part.after);
        if most == 0 || next_due()?.is_none_or(|due| due > part.now) {
            return Ok(());
        }
        let mut turns = self.tenants_due(part, most)?;
        let mut taken = 0;
        while taken < most && turns.iter().any(|turn| turn.more) {
            turns.retain(|turn| turn.more);
            let share = (most - taken).div_ceil(turns.len());
            let ready: Vec<Vec<i64>> =
                turns.iter_mut().map(|turn| self.due_of(part, turn, share)).collect::<Result<_>>()?;
            for place in 0..share {
                for (turn, ready) in turns.iter().zip(&ready) {
                    let Some(seq) = ready.get(place).filter(|_| taken < most) else { continue };
                    if basket.room() == 0 {
                        return Ok(());
                    }
                    self.take(*seq, part, ask, basket)?;
                    taken += 1;
                    self.turns.insert(part.lane, turn.tenant.clone());
                }
            }
        }
        Ok(())
    }

    /// Tenants with something due, from the one after whose turn was last; at most `most`.
    fn tenants_due(&mut self, part: Part, most: usize) -> Result<Vec<Turn>> {
        let mut found = Vec::new();
        let start = self.turns.get(&part.lane).cloned();
        let mut last = start.clone();
        let mut wrapped = start.is_none();
        for _ in 0..MOST_TENANTS {
            let next = self.next_tenant(part, last.as_deref())?;
            match next {
                None if wrapped => return Ok(found),
                None => {
                    wrapped = true;
                    last = None;
                }
                Some((tenant, due)) => {
                    let round = wrapped && start.as_ref().is_some_and(|start| tenant > *start);
                    if round || found.len() == most {
                        return Ok(found);
                    }
                    if self.has_due(part, &tenant, due)? {
                        found.push(Turn::new(part, tenant.clone()));
                    }
                    last = Some(tenant);
                }
            }
        }
        // Many tenants wait, few are due: whoever is due longest is among these at the latest.
        if let Some(last) = last {
            self.turns.insert(part.lane, last);
        }
        if found.is_empty() { self.tenants_longest_due(part, most) } else { Ok(found) }
    }

    fn next_tenant(&self, part: Part, after: Option<&str>) -> Result<Option<(String, i64)>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let next = match after {
            None => self.conn.prepare_cached(sql::FIRST_TENANT)?.query_row(params![part.lane, part.alone], read),
            Some(after) => {
                self.conn.prepare_cached(sql::NEXT_TENANT)?.query_row(params![part.lane, part.alone, after], read)
            }
        };
        Ok(next.optional()?)
    }

    /// Whether something of a tenant may be claimed, whose longest due is due at `longest`.
    fn has_due(&self, part: Part, tenant: &str, longest: i64) -> Result<bool> {
        if longest > part.after || longest > part.now {
            return Ok(longest <= part.now);
        }
        // That one is held.
        let mut statement = self.conn.prepare_cached(sql::NEXT_DUE_OF_TENANT)?;
        let args = params![part.lane, part.alone, tenant, part.after];
        let next: Option<i64> = statement.query_row(args, |row| row.get(0)).optional()?;
        Ok(next.is_some_and(|due| due <= part.now))
    }

    fn tenants_longest_due(&self, part: Part, most: usize) -> Result<Vec<Turn>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = self.conn.prepare_cached(sql::LONGEST_DUE)?;
        let mut found: Vec<Turn> = Vec::new();
        let args = params![part.lane, part.alone, part.now, most, part.after];
        for tenant in statement.query_map(args, |row| row.get(0))? {
            let tenant: String = tenant?;
            if found.iter().all(|turn| turn.tenant != tenant) {
                found.push(Turn::new(part, tenant));
            }
        }
        Ok(found)
    }

    /// The next `share` of a tenant's due deliveries.
    fn due_of(&self, part: Part, turn: &mut Turn, share: usize) -> Result<Vec<i64>> {
        let limit = i64::try_from(share).unwrap_or(i64::MAX);
        let due: Vec<(i64, i64)> = self
            .conn
            .prepare_cached(sql::DUE_OF_TENANT)?
            .query_map(
                params![part.lane, part.alone, turn.tenant, part.now, turn.after.0, turn.after.1, limit],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?
            .collect::<rusqlite::Result<_>>()?;
        turn.more = due.len() == share;
        if let Some((seq, due)) = due.last() {
            turn.after = (*due, *seq);
        }
        Ok(due.into_iter().map(|(seq, _)| seq).collect())
    }

    /// Only columns change, and of the notification nothing: what a claim adds is found in its row.
    fn take(&mut self, seq: i64, part: Part, ask: &ClaimAsk, basket: &mut Basket) -> Result<()> {
        let Claimable { mut taken, id, lane, lease_ms } = self.claimable(seq, Token { fence: 0, nonce: ask.nonce })?;
        self.conn.prepare_cached(sql::CLAIM_DELIVERY)?.execute([seq])?;
        self.count_state(lane, taken.delivery.state, -1);
        self.count_state(lane, StateName::Sending, 1);
        taken.delivery.state = StateName::Sending;
        taken.delivery.rev += 1;
        taken.delivery.fence += 1;
        taken.token.fence = taken.delivery.fence;
        self.conn.prepare_cached(sql::ADD_CLAIM)?.execute(params![
            id.0.as_bytes(),
            seq,
            signed(taken.token.fence),
            signed(ask.nonce),
            ask.worker,
            part.now.saturating_add(lease_ms),
            lease_ms,
            part.alone,
        ])?;
        basket.bytes += taken.inputs.as_ref().map_or(0, String::len);
        basket.taken.push(taken);
        Ok(())
    }

    /// The delivery with all that a call needs.
    fn claimable(&self, seq: i64, token: Token) -> Result<Claimable> {
        let mut statement = self.conn.prepare_cached(sql::CLAIMABLE)?;
        let found = statement.query_row([seq], |row| {
            let taken = Taken {
                delivery: Stored::of(row)?,
                notification: row.get(8)?,
                inputs: row.get(9)?,
                token,
                newest_version: row.get(10)?,
            };
            Ok(Claimable { taken, id: row.get(5)?, lane: row.get(6)?, lease_ms: row.get(7)? })
        });
        found.optional()?.ok_or_else(|| StoreError::Corrupt("a delivery without its notification".into()))
    }

    /// Extends what still holds, lapsed or not.
    ///
    /// # Errors
    /// [`StoreError`]; no lease is extended then.
    pub fn renew(&mut self, now: UnixMs, claims: &[(DeliveryId, Token)]) -> Result<Vec<Renewed>> {
        claims.iter().map(|(id, token)| Ok(Renewed { id: *id, held: self.renew_one(now, *id, *token)? })).collect()
    }

    fn renew_one(&self, now: UnixMs, id: DeliveryId, token: Token) -> Result<bool> {
        let renewed = self.conn.prepare_cached(sql::RENEW)?.execute(params![
            delivery_key(&id),
            signed(token.fence),
            signed(token.nonce),
            now.0,
        ])?;
        Ok(renewed > 0)
    }
}

impl Turn {
    const fn new(part: Part, tenant: String) -> Self {
        Self { tenant, after: (part.after, i64::MAX), more: true }
    }
}

/// What all lanes of one provider may get together.
fn most_of(ask: &ClaimAsk, provider: &str) -> usize {
    let own = ask.lanes.iter().filter(|(lane, _)| lane.provider == provider);
    own.map(|(_, most)| usize::from(*most)).max().unwrap_or(0)
}
