//! Ledgers of caps: a row for each place that a call has. All places of a call are taken in one transaction.
//!
//! Whether there is room is told by the place that is the limit's number from the latest: a look walks no more
//! entries of an index than the limit, however many are kept.

use std::time::Duration;

use belfry_domain::caps::{Fate, Full};
use belfry_domain::{Key, UnixMs};
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::{rows, sql};
use crate::ports::caps::{Room, TakeAsk, TakeEnd, Taken};

/// Of the places that count no more, so many go for each that is taken.
const DROPPED: usize = 2;

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; nothing is taken then.
    pub fn take_places(&mut self, now: UnixMs, batch: &[TakeAsk]) -> Result<Vec<Taken>> {
        let taken: usize = batch.iter().map(|ask| ask.rooms.len()).sum();
        self.drop_gone_places(now, u16::try_from(DROPPED * taken).unwrap_or(u16::MAX))?;
        batch.iter().map(|ask| self.take_all_places(now, ask)).collect()
    }

    fn take_all_places(&self, now: UnixMs, ask: &TakeAsk) -> Result<Taken> {
        for (at, room) in ask.rooms.iter().enumerate() {
            if let Err(full) = self.take_place(now, room, ask)? {
                for before in &ask.rooms[..at] {
                    self.give_back_place(&before.ledger, &ask.reservation)?;
                }
                return Ok(Taken::Full { at, full, now });
            }
        }
        Ok(Taken::All)
    }

    fn take_place(&self, now: UnixMs, room: &Room, ask: &TakeAsk) -> Result<Result<(), Full>> {
        let (ledger, reservation) = (room.ledger.as_bytes().as_slice(), ask.reservation.as_bytes().as_slice());
        let (window, since) = (ms(room.window), now.minus(room.window).0);
        let mine: Option<i64> = self
            .conn
            .prepare_cached(sql::PLACE)?
            .query_row(params![ledger, reservation], |row| row.get(0))
            .optional()?;
        let counts = mine.filter(|latest| *latest > since);
        if counts.is_none()
            && let Some(full) = self.full(now, room)?
        {
            return Ok(Err(full));
        }
        let latest = now.plus(ask.longest).0.max(counts.unwrap_or(i64::MIN));
        let row = params![ledger, reservation, latest, latest.saturating_add(window)];
        self.conn.prepare_cached(sql::PUT_PLACE)?.execute(row)?;
        Ok(Ok(()))
    }

    fn full(&self, now: UnixMs, room: &Room) -> Result<Option<Full>> {
        let (ledger, since) = (room.ledger.as_bytes().as_slice(), now.minus(room.window).0);
        let below = i64::from(room.limit) - 1;
        let nth = |until: i64| -> Result<Option<i64>> {
            let mut statement = self.conn.prepare_cached(sql::NTH_PLACE)?;
            Ok(statement.query_row(params![ledger, since, until, below], |row| row.get(0)).optional()?)
        };
        let Some(latest) = nth(i64::MAX)? else { return Ok(None) };
        let until = rows::at(latest).plus(room.window);
        if nth(now.0)?.is_some() {
            return Ok(Some(Full { until, open_until: None }));
        }
        let open: Option<i64> = self
            .conn
            .prepare_cached(sql::FIRST_OPEN)?
            .query_row(params![ledger, now.0], |row| row.get(0))
            .optional()?;
        Ok(Some(Full { until, open_until: open.map(rows::at) }))
    }

    /// # Errors
    /// As [`Core::take_places`].
    pub fn end_places(&mut self, now: UnixMs, batch: &[TakeEnd]) -> Result<()> {
        for end in batch {
            for ledger in &end.ledgers {
                match end.fate {
                    Fate::Counts => {
                        let row = params![ledger.as_bytes().as_slice(), end.reservation.as_bytes().as_slice(), now.0];
                        self.conn.prepare_cached(sql::COUNT_PLACE)?.execute(row)?;
                    }
                    Fate::GivenBack => self.give_back_place(ledger, &end.reservation)?,
                }
            }
        }
        Ok(())
    }

    fn give_back_place(&self, ledger: &Key, reservation: &Key) -> Result<()> {
        let place = params![ledger.as_bytes().as_slice(), reservation.as_bytes().as_slice()];
        self.conn.prepare_cached(sql::DROP_PLACE)?.execute(place)?;
        Ok(())
    }

    pub(super) fn drop_gone_places(&self, now: UnixMs, limit: u16) -> Result<()> {
        self.conn.prepare_cached(sql::DROP_GONE_PLACES)?.execute(params![now.0, limit])?;
        Ok(())
    }
}
