//! Suppressions. An id says the address, and that says the owner, so that a look needs one index.

use belfry_domain::UnixMs;
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::{rows, sql};
use crate::ports::deliveries::Owner;
use crate::ports::suppressions::{Addressee, MOST_LISTED, Put, Suppressed, SuppressedPage, SuppressionId, room};
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
        if before.is_none() && !self.has_room(id, new)? {
            return Ok(Put::TooMany);
        }
        let kept = suppressed::kept(before.as_ref(), new);
        let place = suppressed::place(kept.since, id);
        let row = params![owner, id.address.as_bytes(), id.word.as_bytes(), place, rows::text(&kept)?];
        self.conn.prepare_cached(sql::PUT_SUPPRESSION)?.execute(row)?;
        Ok(Put::Kept(Box::new(kept)))
    }

    /// Where there is none, what is over goes.
    fn has_room(&self, id: SuppressionId, new: &Suppressed) -> Result<bool> {
        let (count, room) = (self.reads().count_suppressions(id)?, room(new.category.as_ref()));
        if count < room {
            return Ok(true);
        }
        let over: Vec<Vec<u8>> = self.reads().suppressions_over(id, new.since)?;
        for word in &over {
            self.conn.prepare_cached(sql::DROP_SUPPRESSION)?.execute(params![id.address.as_bytes(), word])?;
        }
        Ok(count - over.len() < room)
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

    /// The words of those about the address that are over.
    fn suppressions_over(&self, id: SuppressionId, now: UnixMs) -> Result<Vec<Vec<u8>>> {
        let mut statement = self.conn.prepare_cached(sql::WORDS_OF)?;
        let rows = statement.query_map([id.address.as_bytes()], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let mut over = Vec::new();
        for row in rows {
            let (word, body) = row?;
            if entry(&body)?.is_over(now) {
                over.push(word);
            }
        }
        Ok(over)
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
