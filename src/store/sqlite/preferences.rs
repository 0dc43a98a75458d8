//! What recipients want, one row each.

use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::{rows, sql};
use crate::ports::preferences::{Person, Wishes};

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn write_preferences(&mut self, whom: &Person, before: Option<&Wishes>, next: Option<&Wishes>) -> Result<bool> {
        let now = self.reads().preferences_of(whom)?;
        if now.as_ref() == next {
            return Ok(true);
        }
        if now.as_ref() != before {
            return Ok(false);
        }
        let person = whom.key();
        match next {
            Some(next) => {
                let row = params![person.as_bytes(), rows::text(next)?];
                self.conn.prepare_cached(sql::PUT_PREFERENCES)?.execute(row)?
            }
            None => self.conn.prepare_cached(sql::DROP_PREFERENCES)?.execute([person.as_bytes()])?,
        };
        Ok(true)
    }
}

impl Reads<'_> {
    /// # Errors
    /// As [`Core::write_preferences`].
    pub fn preferences_of(&self, whom: &Person) -> Result<Option<Wishes>> {
        let mut statement = self.conn.prepare_cached(sql::PREFERENCES_OF)?;
        let body: Option<String> = statement.query_row([whom.key().as_bytes()], |row| row.get(0)).optional()?;
        body.map(|body| serde_json::from_str(&body).map_err(unreadable("preferences"))).transpose()
    }
}
