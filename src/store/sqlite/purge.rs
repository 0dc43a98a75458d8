//! The three ages: content, record, tombstone. Each by its own index in due order, bounded, so that
//! a call costs what it removes and nothing for what stays.

use belfry_domain::NotificationId;
use belfry_domain::delivery::StateName;
use rusqlite::params;

use super::core::{Core, Result};
use super::rows::{self, IdBytes, Named, Print, notification_key};
use super::sql;
use crate::ports::deliveries::{PurgeAsk, Purged};

/// A record that has come of age.
struct Over {
    seq: i64,
    id: NotificationId,
    state: StateName,
    remembered_until: i64,
    body: String,
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; nothing is purged then.
    pub fn purge(&mut self, ask: PurgeAsk) -> Result<Purged> {
        let purged = Purged {
            contents: self.purge_contents(ask)?,
            records: self.purge_records(ask)?,
            tombstones: self.drop_aged(sql::TOMBSTONE_OVER, sql::DROP_TOMBSTONE, ask)?,
        };
        self.drop_aged(sql::COLLAPSE_OVER, sql::DROP_COLLAPSE, ask)?;
        self.purge_templates(ask)?;
        self.drop_old_dead(ask.now, ask.limit)?;
        self.drop_gone_places(ask.now, ask.limit)?;
        self.freed |= purged != Purged::default();
        Ok(purged)
    }

    fn purge_contents(&self, ask: PurgeAsk) -> Result<u32> {
        let mut contents = 0;
        for seq in self.aged(sql::CONTENT_OVER, ask)? {
            contents += u32::from(self.drop_inputs(seq)?);
            self.conn.prepare_cached(sql::CONTENT_GONE)?.execute([seq])?;
        }
        Ok(contents)
    }

    /// Whether they were still there.
    fn drop_inputs(&self, seq: i64) -> Result<bool> {
        let were_there = self.conn.prepare_cached(sql::DROP_INPUTS)?.execute([seq])? > 0;
        if were_there {
            self.detach(seq)?;
        }
        Ok(were_there)
    }

    fn purge_records(&mut self, ask: PurgeAsk) -> Result<u32> {
        // Failed and parked ones whose window has closed are records like any other from now on.
        for seq in self.aged(sql::HOLD_OVER, ask)? {
            self.conn.prepare_cached(sql::RELEASE_HOLD)?.execute([seq])?;
        }
        let ended_by = ask.now.minus(ask.keep_record).0;
        let over: Vec<Over> = self
            .conn
            .prepare_cached(sql::RECORD_OVER)?
            .query_map(params![ended_by, ask.limit], |row| {
                Ok(Over {
                    seq: row.get(0)?,
                    id: NotificationId(row.get::<_, IdBytes>(1)?.0),
                    state: row.get::<_, Named>(2)?.0,
                    remembered_until: row.get(3)?,
                    body: row.get(4)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        let mut records = 0;
        for record in &over {
            self.bury(record, ask)?;
            records += 1;
        }
        Ok(records)
    }

    fn bury(&mut self, over: &Over, ask: PurgeAsk) -> Result<()> {
        if over.remembered_until > ask.now.0 {
            let fingerprint = Print(rows::notification(&over.body)?.fingerprint.short().to_owned());
            self.conn.prepare_cached(sql::ADD_TOMBSTONE)?.execute(params![
                notification_key(&over.id),
                fingerprint,
                over.state.name(),
                over.remembered_until,
            ])?;
        }
        let states: Vec<Named> = self
            .conn
            .prepare_cached(sql::STATES_OF)?
            .query_map([over.seq], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for state in states {
            // All have ended, so no lane counts any of them.
            self.count_state(0, state.0, -1);
        }
        self.drop_inputs(over.seq)?;
        for sql in [sql::DROP_DELIVERIES, sql::DROP_NOTIFICATION] {
            self.conn.prepare_cached(sql)?.execute([over.seq])?;
        }
        Ok(())
    }

    /// Versions that an earlier opening kept, that this one has not asked for again, and that no
    /// content is made from any more.
    fn purge_templates(&self, ask: PurgeAsk) -> Result<()> {
        let kept_by = ask.now.minus(ask.keep_record).0;
        let over: Vec<i64> = self
            .conn
            .prepare_cached(sql::TEMPLATE_OVER)?
            .query_map(params![kept_by, self.session, ask.limit], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for id in over {
            self.conn.prepare_cached(sql::DROP_TEMPLATE)?.execute([id])?;
            self.detach(-id)?;
        }
        Ok(())
    }

    fn aged(&self, sql: &str, ask: PurgeAsk) -> Result<Vec<i64>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let aged = statement.query_map(params![ask.now.0, ask.limit], |row| row.get(0))?;
        Ok(aged.collect::<rusqlite::Result<_>>()?)
    }

    fn drop_aged(&self, over: &str, drop: &str, ask: PurgeAsk) -> Result<u32> {
        let aged = self.aged(over, ask)?;
        for seq in &aged {
            self.conn.prepare_cached(drop)?.execute([seq])?;
        }
        Ok(u32::try_from(aged.len()).unwrap_or(u32::MAX))
    }
}
