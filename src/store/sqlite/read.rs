//! What is only read. Runs on the writer's connection inside its transactions, and on readers' own
//! connections for everybody else, so that a dashboard never delays an accept.

use std::time::Duration;

use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, Lane, NotificationId, UnixMs};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::core::Result;
use super::rows::{self, IdBytes, Named, Print, delivery_key, notification_key, unsigned};
use super::{schema, sql};
use crate::ports::StoreError;
use crate::ports::deliveries::{Depths, Held, LaneDepth, Owner, Token};

/// Due deliveries of a lane are counted one by one up to here.
const MOST_COUNTED: u64 = 100_000;

/// Statements over one connection; several of them see one state within a transaction.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    pub(super) conn: &'a Connection,
}

impl<'a> Reads<'a> {
    pub(super) const fn new(conn: &'a Connection) -> Self {
        Self { conn }
    }

    pub(super) fn lane(&self, lane: &Lane) -> Result<Option<i64>> {
        let mut statement = self.conn.prepare_cached(sql::LANE_ID)?;
        Ok(statement.query_row([lane.to_string()], |row| row.get(0)).optional()?)
    }

    pub(super) fn owner(&self, owner: &Owner) -> Result<Option<i64>> {
        let mut statement = self.conn.prepare_cached(sql::OWNER_ID)?;
        Ok(statement.query_row([&owner.tenant, &owner.environment], |row| row.get(0)).optional()?)
    }

    pub(super) fn seq_of(&self, id: NotificationId) -> Result<Option<i64>> {
        let mut statement = self.conn.prepare_cached(sql::NOTIFICATION_BY_ID)?;
        Ok(statement.query_row([notification_key(&id)], |row| row.get(0)).optional()?)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<i64>> {
        Ok(self.conn.prepare_cached(sql::GET_META)?.query_row([key], |row| row.get(0)).optional()?)
    }

    /// The earliest due time in a part of a lane, passed or not, that is later than `after`.
    pub(super) fn next_due(&self, lane: i64, alone: bool, after: i64) -> Result<Option<i64>> {
        let mut statement = self.conn.prepare_cached(sql::NEXT_DUE)?;
        Ok(statement.query_row(params![lane, alone, after], |row| row.get(0)).optional()?)
    }

    pub(super) fn record(&self, seq: i64) -> Result<Option<Record>> {
        let mut statement = self.conn.prepare_cached(sql::NOTIFICATION)?;
        let found = statement
            .query_row([seq], |row| Ok((row.get::<_, u32>("repeats")?, row.get::<_, String>("body")?)))
            .optional()?;
        let Some((repeats, body)) = found else { return Ok(None) };
        Ok(Some(Record { notification: rows::notification(&body)?, deliveries: self.deliveries_of(seq)?, repeats }))
    }

    /// # Errors
    /// As [`Reads::read`].
    pub fn tombstone(&self, id: NotificationId) -> Result<Option<Tombstone>> {
        let found = self
            .conn
            .prepare_cached(sql::TOMBSTONE_BY_ID)?
            .query_row([notification_key(&id)], |row| {
                Ok(Tombstone {
                    id,
                    fingerprint: row.get::<_, Print>(0)?.0,
                    state: row.get::<_, Named>(1)?.0,
                    remembered_until: rows::at(row.get(2)?),
                })
            })
            .optional()?;
        Ok(found)
    }

    pub(super) fn deliveries_of(&self, notification: i64) -> Result<Vec<Delivery>> {
        bodies(self.conn, sql::DELIVERIES_OF, [notification])
    }

    /// # Errors
    /// [`StoreError`]; so for every read.
    pub fn read(&self, owner: &Owner, id: NotificationId) -> Result<Option<Record>> {
        let Some(seq) = self.seq_of(id)? else { return Ok(None) };
        Ok(self.record(seq)?.filter(|record| owner.owns(record)))
    }

    /// # Errors
    /// As [`Reads::read`].
    pub fn read_by_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<Record>> {
        let mut statement = self.conn.prepare_cached(sql::DELIVERY_SEQ)?;
        let found: Option<i64> = statement.query_row([delivery_key(&id)], |row| row.get(0)).optional()?;
        let Some(seq) = found else { return Ok(None) };
        Ok(self.record(seq / schema::SLOTS)?.filter(|record| owner.owns(record)))
    }

    /// # Errors
    /// As [`Reads::read`].
    pub fn inputs(&self, id: NotificationId) -> Result<Option<String>> {
        let mut statement = self.conn.prepare_cached(sql::INPUTS)?;
        Ok(statement.query_row([notification_key(&id)], |row| row.get(0)).optional()?)
    }

    /// # Errors
    /// As [`Reads::read`].
    pub fn load(&self, ids: &[DeliveryId]) -> Result<Vec<Delivery>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(bodies(self.conn, sql::DELIVERY, [delivery_key(id)])?);
        }
        Ok(found)
    }

    /// # Errors
    /// As [`Reads::read`].
    pub fn receipts_overdue(&self, now: UnixMs, limit: u16) -> Result<Vec<Delivery>> {
        bodies(self.conn, sql::RECEIPTS_OVERDUE, params![now.0, limit])
    }

    /// # Errors
    /// As [`Reads::read`].
    pub fn held(&self, now: UnixMs, limit: u32) -> Result<Vec<Held>> {
        let mut statement = self.conn.prepare_cached(sql::HELD)?;
        let found = statement.query_map([limit], |row| held(row, now))?.collect::<rusqlite::Result<_>>()?;
        Ok(found)
    }

    /// Counters for what waits and is being sent; what is due is counted in its index up to a
    /// bound, or as what waits less what is held and what is not due yet. Only where both pass the bound
    /// is it a lower bound.
    ///
    /// # Errors
    /// As [`Reads::read`].
    pub fn depths(&self, now: UnixMs) -> Result<Depths> {
        let lanes: Vec<(i64, String, i64, i64)> = self
            .conn
            .prepare_cached(sql::LANES)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let hold = self.hold()?;
        let mut depths = Depths { restored_at: hold.map(rows::at), ..Depths::default() };
        for lane in lanes {
            let held = hold.map_or(Ok(0), |hold| self.count_due(lane.0, (i64::MIN, hold)))?;
            depths.held_back += held;
            depths.lanes.push(self.lane_depth((hold.unwrap_or(i64::MIN), now.0), held, lane)?);
        }
        let oldest: Option<i64> =
            self.conn.prepare_cached(sql::OLDEST_UNKNOWN)?.query_row([], |row| row.get(0)).optional()?;
        depths.unknown = self.counter("unknown")?;
        depths.oldest_unknown = oldest.map(rows::at);
        depths.parked = self.counter("parked")?;
        Ok(depths)
    }

    /// `between`: what is due later than the one and by the other may be claimed.
    fn lane_depth(
        &self,
        between: (i64, i64),
        held: u64,
        (id, name, waiting, sending): (i64, String, i64, i64),
    ) -> Result<LaneDepth> {
        let lane = name.parse().map_err(|_| StoreError::Corrupt("a lane's name".into()))?;
        let waiting = u64::try_from(waiting).unwrap_or(0);
        let (held_by, now) = between;
        let due = self.count_due(id, between)?;
        let due = if due < MOST_COUNTED {
            due
        } else {
            let later = self.count_later(id, now.max(held_by))?;
            if later < MOST_COUNTED { waiting.saturating_sub(later + held) } else { due }
        };
        let oldest = [self.next_due(id, false, held_by)?, self.next_due(id, true, held_by)?];
        Ok(LaneDepth {
            lane,
            due,
            waiting,
            sending: u64::try_from(sending).unwrap_or(0),
            oldest_due: oldest.into_iter().flatten().min().filter(|due| *due <= now).map(rows::at),
        })
    }

    fn count_due(&self, lane: i64, (after, by): (i64, i64)) -> Result<u64> {
        let mut count = 0;
        for alone in [false, true] {
            let mut due = self.conn.prepare_cached(sql::DUE_UP_TO)?;
            count += counted(due.query_row(params![lane, alone, by, left(count), after], |row| row.get(0))?);
        }
        Ok(count)
    }

    fn count_later(&self, lane: i64, than: i64) -> Result<u64> {
        let mut count = 0;
        for alone in [false, true] {
            let mut later = self.conn.prepare_cached(sql::DUE_AFTER)?;
            count += counted(later.query_row(params![lane, alone, than, left(count)], |row| row.get(0))?);
        }
        Ok(count)
    }

    fn counter(&self, name: &str) -> Result<u64> {
        let count: i64 = self.conn.prepare_cached(sql::GET_COUNT)?.query_row([name], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

fn left(count: u64) -> i64 {
    i64::try_from(MOST_COUNTED.saturating_sub(count)).unwrap_or(0)
}

fn counted(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn bodies(conn: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Delivery>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut found = statement.query(params)?;
    let mut deliveries = Vec::new();
    while let Some(row) = found.next()? {
        deliveries.push(rows::delivery(row)?);
    }
    Ok(deliveries)
}

fn held(row: &Row<'_>, now: UnixMs) -> rusqlite::Result<Held> {
    let lease_until = rows::at(row.get(4)?);
    let lease: i64 = row.get(5)?;
    Ok(Held {
        id: DeliveryId(row.get::<_, IdBytes>(0)?.0),
        token: Token { fence: unsigned(row.get(1)?), nonce: unsigned(row.get(2)?) },
        worker: row.get(3)?,
        lease_until,
        lapsed: lease_until <= now,
        lease: Duration::from_millis(u64::try_from(lease).unwrap_or(0)),
        alone: row.get(6)?,
    })
}
