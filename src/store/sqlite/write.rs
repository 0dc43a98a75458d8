//! Conditional writes of deliveries: compare, then write the record, its index columns, its
//! notification's state and the counters in one go.

use belfry_domain::delivery::StateName;
use belfry_domain::{Delivery, DeliveryId, State, UnixMs};
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::rows::{self, Columns, Named, Rollup, Stored, delivery_key, signed, unsigned};
use super::{schema, sql};
use crate::ports::deliveries::{Held, Reclaim, Settle, Spend, Token, Written};

/// A delivery as it is to be, with the text of its row: made before the writer's thread is asked.
pub struct NextRow {
    next: Delivery,
    body: String,
}

impl NextRow {
    /// # Errors
    /// [`StoreError`] where it cannot be written as JSON.
    pub fn of(next: Delivery) -> Result<Self> {
        Ok(Self { body: rows::text(&next)?, next })
    }
}

/// A [`Settle`] with its row.
pub struct SettleRow {
    row: NextRow,
    token: Token,
}

impl SettleRow {
    /// # Errors
    /// As [`NextRow::of`].
    pub fn of(settle: Settle) -> Result<Self> {
        Ok(Self { row: NextRow::of(settle.next)?, token: settle.token })
    }
}

/// A [`Reclaim`] with its row.
pub struct ReclaimRow {
    row: NextRow,
    seen: Held,
}

impl ReclaimRow {
    /// # Errors
    /// As [`NextRow::of`].
    pub fn of(reclaim: Reclaim) -> Result<Self> {
        Ok(Self { row: NextRow::of(reclaim.next)?, seen: reclaim.seen })
    }
}

/// A stored delivery but for its body, and its claim if it has one.
struct Row {
    seq: i64,
    siblings: i64,
    lane: i64,
    state: StateName,
    rev: u64,
    fence: u64,
    spent: bool,
    done: Done,
    claim: Option<Claimed>,
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
    /// Whether `next` was decided on what is stored.
    fn precedes(&self, next: &Delivery) -> bool {
        next.rev.checked_sub(1) == Some(self.rev)
    }

    fn held_by(&self, token: Token) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.token == token)
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
        if !row.held_by(spend.token) {
            return Ok(Written::Stale);
        }
        if row.rev != spend.rev {
            // The reply to the same spend was lost.
            let again = row.spent && row.rev == spend.rev + 1;
            return if again { Ok(Written::Done) } else { self.moved(&row) };
        }
        self.conn.prepare_cached(sql::SPEND)?.execute([row.seq])?;
        Ok(Written::Done)
    }

    /// # Errors
    /// As [`Core::spend`].
    pub fn settle(&mut self, batch: &[SettleRow]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.settle_one(one)).collect()
    }

    fn settle_one(&mut self, SettleRow { row: new, token }: &SettleRow) -> Result<Written> {
        let next = &new.next;
        let Some(row) = self.row(next.id)? else { return Ok(Written::Gone) };
        let done = Done { token: *token, rev: next.rev };
        if row.done == done {
            return Ok(Written::Done);
        }
        if !row.held_by(*token) {
            return Ok(Written::Stale);
        }
        if !row.precedes(next) || !keeps_fence(next, row.fence) {
            return self.moved(&row);
        }
        self.put(&row, new, done)?;
        if !matches!(next.state, State::Sending { .. }) {
            self.end_claim(next.id)?;
        }
        Ok(Written::Done)
    }

    /// # Errors
    /// As [`Core::spend`].
    pub fn apply(&mut self, batch: &[NextRow]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.apply_one(one)).collect()
    }

    fn apply_one(&mut self, new: &NextRow) -> Result<Written> {
        let next = &new.next;
        let Some(row) = self.row(next.id)? else { return Ok(Written::Gone) };
        // Without a claim nobody may end one, nor make one up.
        let held = row.state == StateName::Sending;
        let sending = matches!(next.state, State::Sending { .. });
        if !row.precedes(next) || held != sending || !keeps_fence(next, row.fence) {
            // After a lost reply the same write finds itself stored already.
            let stored = self.stored(&row)?;
            return Ok(if stored == *next { Written::Done } else { Written::Moved(Box::new(stored)) });
        }
        self.put(&row, new, row.done)?;
        Ok(Written::Done)
    }

    /// # Errors
    /// As [`Core::spend`].
    pub fn reclaim(&mut self, now: UnixMs, batch: &[ReclaimRow]) -> Result<Vec<Written>> {
        batch.iter().map(|one| self.reclaim_one(now, one)).collect()
    }

    fn reclaim_one(&mut self, now: UnixMs, ReclaimRow { row: new, seen }: &ReclaimRow) -> Result<Written> {
        let next = &new.next;
        let Some(row) = self.row(next.id)? else { return Ok(Written::Gone) };
        let Some(claim) = &row.claim else {
            // The reply to the same reclaim was lost, or it was settled.
            return Ok(if self.stored(&row)? == *next { Written::Done } else { Written::Stale });
        };
        if claim.token != seen.token || claim.lease_until != seen.lease_until.0 || claim.lease_until > now.0 {
            return Ok(Written::Stale);
        }
        if !row.precedes(next) || matches!(next.state, State::Sending { .. }) {
            return self.moved(&row);
        }
        self.put(&row, new, row.done)?;
        self.end_claim(next.id)?;
        Ok(Written::Done)
    }

    fn row(&self, id: DeliveryId) -> Result<Option<Row>> {
        let mut statement = self.conn.prepare_cached(sql::DELIVERY_BY_ID)?;
        let found = statement.query_row([delivery_key(&id)], |row| {
            let done = Token { fence: unsigned(row.get(7)?), nonce: unsigned(row.get(8)?) };
            let claim = match row.get::<_, Option<i64>>(10)? {
                None => None,
                Some(fence) => Some(Claimed {
                    token: Token { fence: unsigned(fence), nonce: unsigned(row.get(11)?) },
                    lease_until: row.get(12)?,
                }),
            };
            Ok(Row {
                seq: row.get(0)?,
                siblings: row.get(1)?,
                lane: row.get(2)?,
                state: row.get::<_, Named>(3)?.0,
                rev: unsigned(row.get(4)?),
                fence: unsigned(row.get(5)?),
                spent: row.get(6)?,
                done: Done { token: done, rev: unsigned(row.get(9)?) },
                claim,
            })
        });
        Ok(found.optional()?)
    }

    fn stored(&self, row: &Row) -> Result<Delivery> {
        let mut statement = self.conn.prepare_cached(sql::DELIVERY_BY_SEQ)?;
        statement.query_row([row.seq], Stored::of)?.read()
    }

    fn moved(&self, row: &Row) -> Result<Written> {
        Ok(Written::Moved(Box::new(self.stored(row)?)))
    }

    fn end_claim(&self, id: DeliveryId) -> Result<()> {
        self.conn.prepare_cached(sql::END_CLAIM)?.execute([delivery_key(&id)])?;
        Ok(())
    }

    /// Writes `next` over `row`, with everything that follows from it.
    fn put(&mut self, row: &Row, new: &NextRow, done: Done) -> Result<()> {
        let next = &new.next;
        let lane = self.lane(&next.lane)?;
        let columns = Columns::of(next);
        self.conn.prepare_cached(sql::PUT_DELIVERY)?.execute(params![
            row.seq,
            lane,
            columns.state.name(),
            columns.alone,
            columns.due_at,
            signed(next.rev),
            next.spent,
            signed(done.token.fence),
            signed(done.token.nonce),
            signed(done.rev),
            columns.ended_at,
            columns.receipt_until,
            new.body,
        ])?;
        self.count_state(row.lane, row.state, -1);
        self.count_state(lane, columns.state, 1);
        self.due |= columns.due_at.is_some();
        self.roll_up(row.seq, row.siblings, next)
    }

    /// Brings the notification's own columns to what its deliveries come to after `written`.
    fn roll_up(&self, seq: i64, siblings: i64, written: &Delivery) -> Result<()> {
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
