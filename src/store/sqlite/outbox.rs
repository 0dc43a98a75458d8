//! What the outbox provider would have sent.

use rusqlite::{Row, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::rows::{self, signed, unsigned};
use super::sql;
use crate::ports::deliveries::Owner;
use crate::ports::outbox::{OutboxMessage, folded};

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn add_message(&mut self, message: &OutboxMessage, keep: u32) -> Result<u64> {
        let owner = Owner { tenant: message.tenant.clone(), environment: message.environment.clone() };
        let owner = self.owner(&owner)?;
        let body = rows::text(message)?;
        self.conn.prepare_cached(sql::ADD_OUTBOX)?.execute(params![owner, folded(&message.to), body])?;
        let seq = self.conn.last_insert_rowid();
        self.count("outbox", 1);
        let beyond = self.counted("outbox")? - i64::from(keep);
        if beyond > 0 {
            let gone = self.conn.prepare_cached(sql::TRIM_OUTBOX)?.execute([beyond])?;
            self.count("outbox", -i64::try_from(gone).unwrap_or(0));
        }
        Ok(unsigned(seq))
    }

    /// # Errors
    /// As [`Core::add_message`].
    pub fn clear_messages(&mut self, owner: &Owner, to: Option<&str>) -> Result<u64> {
        let Some(owner) = self.reads().owner(owner)? else { return Ok(0) };
        let gone = match to {
            None => self.conn.prepare_cached(sql::CLEAR_OUTBOX)?.execute([owner])?,
            Some(to) => self.conn.prepare_cached(sql::CLEAR_OUTBOX_TO)?.execute(params![owner, folded(to)])?,
        };
        self.count("outbox", -i64::try_from(gone).unwrap_or(0));
        Ok(gone as u64)
    }
}

impl Reads<'_> {
    /// # Errors
    /// As [`Core::add_message`].
    pub fn messages(
        &self,
        owner: &Owner,
        to: Option<&str>,
        after: Option<u64>,
        limit: u16,
    ) -> Result<Vec<OutboxMessage>> {
        let Some(owner) = self.owner(owner)? else { return Ok(Vec::new()) };
        let after = signed(after.unwrap_or(0).min(i64::MAX as u64));
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: Vec<(i64, String)> = match to {
            None => self
                .conn
                .prepare_cached(sql::OUTBOX_ALL)?
                .query_map(params![owner, after, limit], read)?
                .collect::<rusqlite::Result<_>>()?,
            Some(to) => self
                .conn
                .prepare_cached(sql::OUTBOX_TO)?
                .query_map(params![owner, after, limit, folded(to)], read)?
                .collect::<rusqlite::Result<_>>()?,
        };
        found
            .into_iter()
            .map(|(seq, body)| {
                let message: OutboxMessage = serde_json::from_str(&body).map_err(unreadable("a message"))?;
                Ok(OutboxMessage { seq: unsigned(seq), ..message })
            })
            .collect()
    }
}
