//! Conditional writes of deliveries: compare, then write the record, its index columns, its
//! notification's state and the counters in one go.

use belfry_domain::delivery::StateName;
use belfry_domain::{Delivery, DeliveryId, State, UnixMs};
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::rows::{self, Columns, Named, Rollup, delivery_key, signed, unsigned};
use super::{schema, sql};
use crate::ports::deliveries::{Reclaim, Settle, Spend, Token, Written};

/// A stored delivery with the columns that are the store's own.
struct Row {
    seq: i64,
    siblings: i64,
    lane: i64,
    state: StateName,
    rev: u64,
    fence: u64,
    done: Done,
    body: String,
}

/// The latest settle of a delivery.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Done {
    token: Token,
    rev: u64,
}

/// A claim's row, as far as a write compares it.
struct Claimed {
    token: Token,
    lease_until: i64,
}

impl Row {
    fn delivery(&self) -> Result<Delivery> {
        rows::delivery(&self.body)
    }

    fn moved(&self) -> Result<Written> {
        Ok(Written::Moved(Box::new(self.delivery()?)))
    }

    /// Whether `next` was decided on what is stored.
    fn precedes(&self, next: &Delivery) -> bool {
        next.rev.checked_sub(1) == Some(self.rev)
    }

    /// After a lost reply the same write finds itself stored already.
    fn same_or_moved(&self, next: &Delivery) -> Result<Written> {
        let stored = self.delivery()?;
        Ok(if stored == *next { Written::Done } else { Written::Moved(Box::new(stored)) })
    }
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; none of the batch is written then. So for every verb here.
    pub fn spend(&mut self, batch: &[Spend]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.spend_one(one)).collect()
    }

    fn spend_one(&mut self, spend: &Spend) -> Result<Written> {
        let Some(row) = self.row(spend.id)? else { return Ok(Written::Gone) };
        if self.claimed(spend.id)?.is_none_or(|claim| claim.token != spend.token) {
            return Ok(Written::Stale);
        }
        let mut next = row.delivery()?;
        if row.rev != spend.rev {
            // The reply to the same spend was lost.
            let again = next.spent && row.rev == spend.rev + 1;
            return Ok(if again { Written::Done } else { Written::Moved(Box::new(next)) });
        }
        next.spent = true;
        next.rev += 1;
        self.put(&row, &next, row.done)?;
        Ok(Written::Done)
    }

    /// # Errors
    /// As [`Core::spend`].
    pub fn settle(&mut self, batch: &[Settle]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.settle_one(one)).collect()
    }

    fn settle_one(&mut self, Settle { next, token }: &Settle) -> Result<Written> {
        let Some(row) = self.row(next.id)? else { return Ok(Written::Gone) };
        let done = Done { token: *token, rev: next.rev };
        if row.done == done {
            return Ok(Written::Done);
        }
        if self.claimed(next.id)?.is_none_or(|claim| claim.token != *token) {
            return Ok(Written::Stale);
        }
        if !row.precedes(next) || !keeps_fence(next, row.fence) {
            return row.moved();
        }
        self.put(&row, next, done)?;
        if !matches!(next.state, State::Sending { .. }) {
            self.end_claim(next.id)?;
        }
        Ok(Written::Done)
    }

    /// # Errors
    /// As [`Core::spend`].
    pub fn apply(&mut self, batch: &[Delivery]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.apply_one(one)).collect()
    }

    fn apply_one(&mut self, next: &Delivery) -> Result<Written> {
        let Some(row) = self.row(next.id)? else { return Ok(Written::Gone) };
        // Without a claim nobody may end one, nor make one up.
        let held = row.state == StateName::Sending;
        let sending = matches!(next.state, State::Sending { .. });
        if !row.precedes(next) || held != sending || !keeps_fence(next, row.fence) {
            return row.same_or_moved(next);
        }
        self.put(&row, next, row.done)?;
        Ok(Written::Done)
    }

    /// # Errors
    /// As [`Core::spend`].
    pub fn reclaim(&mut self, now: UnixMs, batch: &[Reclaim]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.reclaim_one(now, one)).collect()
    }

    fn reclaim_one(&mut self, now: UnixMs, Reclaim { next, seen }: &Reclaim) -> Result<Written> {
        let Some(row) = self.row(next.id)? else { return Ok(Written::Gone) };
        let Some(claim) = self.claimed(next.id)? else {
            // The reply to the same reclaim was lost, or it was settled.
            return Ok(if row.delivery()? == *next { Written::Done } else { Written::Stale });
        };
        if claim.token != seen.token || claim.lease_until != seen.lease_until.0 || claim.lease_until > now.0 {
            return Ok(Written::Stale);
        }
        if !row.precedes(next) || matches!(next.state, State::Sending { .. }) {
            return row.moved();
        }
        self.put(&row, next, row.done)?;
        self.end_claim(next.id)?;
        Ok(Written::Done)
    }

    fn row(&self, id: DeliveryId) -> Result<Option<Row>> {
        let mut statement = self.conn.prepare_cached(sql::DELIVERY_BY_ID)?;
        let found = statement.query_row([delivery_key(&id)], |row| {
            let token = Token { fence: unsigned(row.get(6)?), nonce: unsigned(row.get(7)?) };
            Ok(Row {
                seq: row.get(0)?,
                siblings: row.get(1)?,
                lane: row.get(2)?,
                state: row.get::<_, Named>(3)?.0,
                rev: unsigned(row.get(4)?),
                fence: unsigned(row.get(5)?),
                done: Done { token, rev: unsigned(row.get(8)?) },
                body: row.get(9)?,
            })
        });
        Ok(found.optional()?)
    }

    fn claimed(&self, id: DeliveryId) -> Result<Option<Claimed>> {
        let mut statement = self.conn.prepare_cached(sql::CLAIM_OF)?;
        let found = statement.query_row([delivery_key(&id)], |row| {
            let token = Token { fence: unsigned(row.get(0)?), nonce: unsigned(row.get(1)?) };
            Ok(Claimed { token, lease_until: row.get(2)? })
        });
        Ok(found.optional()?)
    }

    fn end_claim(&self, id: DeliveryId) -> Result<()> {
        self.conn.prepare_cached(sql::END_CLAIM)?.execute([delivery_key(&id)])?;
        Ok(())
    }

    /// Writes `next` over `row`, with everything that follows from it.
    fn put(&mut self, row: &Row, next: &Delivery, done: Done) -> Result<()> {
        let lane = self.lane(&next.lane)?;
        let columns = Columns::of(next);
        self.conn.prepare_cached(sql::PUT_DELIVERY)?.execute(params![
            row.seq,
            lane,
            columns.state.name(),
            columns.alone,
            columns.due_at,
            signed(next.rev),
            signed(done.token.fence),
            signed(done.token.nonce),
            signed(done.rev),
            columns.ended_at,
            columns.receipt_until,
            rows::text(next)?,
        ])?;
        self.count_state(row.lane, row.state, -1);
        self.count_state(lane, columns.state, 1);
        self.due |= columns.due_at.is_some();
        self.roll_up(row.seq, row.siblings, next)
    }

    /// Brings the notification's own columns to what its deliveries come to after `written`.
    pub(super) fn roll_up(&self, seq: i64, siblings: i64, written: &Delivery) -> Result<()> {
        let notification = seq / schema::SLOTS;
        let states: Vec<(StateName, Option<i64>)> = if siblings == 1 {
            vec![(written.state.name(), written.ended_at.map(|at| at.0))]
        } else {
            self.conn
                .prepare_cached(sql::STATES_OF)?
                .query_map([notification], |row| Ok((row.get::<_, Named>(0)?.0, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?
        };
        let rollup = Rollup::of(&states);
        self.conn.prepare_cached(sql::PUT_ROLLUP)?.execute(params![
            notification,
            rollup.state.name(),
            rollup.ended_at,
            rollup.held,
        ])?;
        Ok(())
    }
}

/// A settle may go on under its claim, never under another's number.
const fn keeps_fence(next: &Delivery, held: u64) -> bool {
    match next.state {
        State::Sending { fence } => fence == held,
        _ => true,
    }
}
