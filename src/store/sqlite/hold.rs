//! The hold after a restore: one moment, compared by every claim in its own transaction.

use belfry_domain::UnixMs;
use rusqlite::params;

use super::core::{Core, Result};
use super::read::Reads;
use super::rows::{self, Stored};
use super::sql;
use crate::ports::deliveries::MOST_ITEMS;
use crate::ports::holds::HeldPage;

const HOLD: &str = "hold";
/// The moment that was released last.
const FREED: &str = "hold_freed";

/// How far a reading of what is held has come: lane, part of it, and within that the last one read.
#[derive(Clone, Copy)]
struct Place {
    lane: i64,
    alone: bool,
    due: i64,
    seq: i64,
}

impl Place {
    const START: Self = Self { lane: 0, alone: false, due: i64::MIN, seq: i64::MIN };

    fn of(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::parse::<i64>);
        let mut part = || parts.next()?.ok();
        Some(Self { lane: part()?, alone: part()? != 0, due: part()?, seq: part()? })
    }

    fn text(self) -> String {
        format!("{}.{}.{}.{}", self.lane, u8::from(self.alone), self.due, self.seq)
    }
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn put_hold(&mut self, at: UnixMs) -> Result<UnixMs> {
        let first = self.number(FREED)?.map_or(at.0, |freed| at.0.max(freed + 1));
        self.conn.prepare_cached(sql::ADD_META)?.execute(params![HOLD, first])?;
        Ok(self.number(HOLD)?.map_or(at, rows::at))
    }

    /// # Errors
    /// As [`Core::put_hold`].
    pub fn release_hold(&mut self, at: UnixMs) -> Result<()> {
        if self.conn.prepare_cached(sql::DROP_META)?.execute(params![HOLD, at.0])? > 0 {
            self.put_number(FREED, at.0)?;
            // What was held may be claimed at once.
            self.due = true;
        }
        Ok(())
    }
}

impl Reads<'_> {
    pub(super) fn hold(&self) -> Result<Option<i64>> {
        self.number(HOLD)
    }

    /// # Errors
    /// As [`Core::put_hold`].
    pub fn standing(&self) -> Result<Option<UnixMs>> {
        Ok(self.hold()?.map(rows::at))
    }

    /// # Errors
    /// As [`Core::put_hold`].
    pub fn held_back(&self, after: Option<&str>, limit: u16) -> Result<HeldPage> {
        self.hold()?.map_or_else(|| Ok(HeldPage::default()), |hold| self.due_by(hold, after, limit))
    }

    /// What waits and is due at or before `by`.
    pub(super) fn due_by(&self, by: i64, after: Option<&str>, limit: u16) -> Result<HeldPage> {
        let mut page = HeldPage::default();
        let limit = usize::from(limit).clamp(1, MOST_ITEMS);
        let mut from = after.and_then(Place::of).unwrap_or(Place::START);
        let lanes: Vec<i64> = self
            .conn
            .prepare_cached(sql::LANE_IDS)?
            .query_map([from.lane], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for lane in lanes {
            for alone in [false, true] {
                if lane == from.lane && from.alone && !alone {
                    continue;
                }
                if (lane, alone) != (from.lane, from.alone) {
                    from = Place { lane, alone, ..Place::START };
                }
                from = self.held_in(by, from, limit, &mut page)?;
                if page.deliveries.len() == limit {
                    page.next = Some(from.text());
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// Reads on in one part of a lane; where that came to.
    fn held_in(&self, by: i64, from: Place, limit: usize, page: &mut HeldPage) -> Result<Place> {
        let Place { lane, alone, due, seq } = from;
        let room = i64::try_from(limit - page.deliveries.len()).unwrap_or(0);
        let mut statement = self.conn.prepare_cached(sql::HELD_BACK)?;
        let mut found = statement.query(params![lane, alone, by, due, seq, room])?;
        let mut last = from;
        while let Some(row) = found.next()? {
            last = Place { due: row.get(0)?, seq: row.get(1)?, ..from };
            page.deliveries.push(Stored::from(row, 2)?.read()?);
        }
        Ok(last)
    }
}
