//! Suppressions. An id says the address, and that says the owner, so that a look needs one index.

use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::{rows, sql};
use crate::ports::deliveries::Owner;
use crate::ports::suppressions::{Addressee, MOST_LISTED, MOST_OF_ONE, Put, Suppressed, SuppressedPage, SuppressionId};
use crate::store::suppressed;

/// Behind every place.
const BEGINNING: &str = "~";

fn entry(body: &str) -> Result<Suppressed> {
    serde_json::from_str(body).map_err(unreadable("a suppression"))
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn put_suppression(&mut self, owner: &Owner, new: &Suppressed) -> Result<Put> {
        let id = new.id(owner);
        let owner = self.owner(owner)?;
        let before = self.reads().suppression(id)?;
        if before.is_none() && self.reads().count_suppressions(id)? >= MOST_OF_ONE {
            return Ok(Put::TooMany);
        }
        let kept = suppressed::kept(before.as_ref(), new);
        let place = suppressed::place(kept.since, id);
        let row = params![owner, id.address.as_bytes(), id.word.as_bytes(), place, rows::text(&kept)?];
        self.conn.prepare_cached(sql::PUT_SUPPRESSION)?.execute(row)?;
        Ok(Put::Kept(Box::new(kept)))
    }

    /// # Errors
    /// As [`Core::put_suppression`].
    pub fn lift_suppression(&mut self, owner: &Owner, id: SuppressionId) -> Result<()> {
        let Some(owner) = self.reads().owner(owner)? else { return Ok(()) };
        let row = params![owner, id.address.as_bytes(), id.word.as_bytes()];
        self.conn.prepare_cached(sql::LIFT_SUPPRESSION)?.execute(row)?;
        Ok(())
    }
}

impl Reads<'_> {
    fn suppression(&self, id: SuppressionId) -> Result<Option<Suppressed>> {
        let mut statement = self.conn.prepare_cached(sql::SUPPRESSION)?;
        let row = params![id.address.as_bytes(), id.word.as_bytes()];
        let body: Option<String> = statement.query_row(row, |row| row.get(0)).optional()?;
        body.as_deref().map(entry).transpose()
    }

    fn count_suppressions(&self, id: SuppressionId) -> Result<usize> {
        let mut statement = self.conn.prepare_cached(sql::COUNT_SUPPRESSIONS)?;
        let count: i64 = statement.query_row([id.address.as_bytes()], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// # Errors
    /// As [`Core::put_suppression`].
    pub fn suppressions_of(&self, whom: &Addressee) -> Result<Vec<Suppressed>> {
        let mut statement = self.conn.prepare_cached(sql::SUPPRESSIONS_OF)?;
        let bodies = statement.query_map([whom.key().as_bytes()], |row| row.get::<_, String>(0))?;
        bodies.map(|body| entry(&body?)).collect()
    }

    /// # Errors
    /// As [`Core::put_suppression`].
    pub fn suppressions(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SuppressedPage> {
        let Some(owner) = self.owner(owner)? else { return Ok(SuppressedPage::default()) };
        let after = after.and_then(suppressed::read_place).unwrap_or(BEGINNING);
        let limit = limit.clamp(1, MOST_LISTED);
        let mut statement = self.conn.prepare_cached(sql::SUPPRESSIONS)?;
        // One more than is asked for says whether there are more.
        let rows = statement.query_map(params![owner, after, limit + 1], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let found = rows.map(|row| row.map_err(Into::into).and_then(|(place, body)| Ok((place, entry(&body)?))));
        Ok(suppressed::page(found.collect::<Result<_>>()?, limit.into()))
    }
}
