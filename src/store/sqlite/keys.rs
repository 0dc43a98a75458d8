//! API keys, the installation's secret, frozen templates.

use belfry_domain::UnixMs;
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::{rows, sql};
use crate::ports::StoreError;
use crate::ports::admin::{ApiKey, KeptTemplate};

const SECRET: &str = "secret";

fn api_key(body: &str) -> Result<ApiKey> {
    serde_json::from_str(body).map_err(unreadable("an API key"))
}

impl Core {
    /// # Errors
    /// [`StoreError`]; so for every verb here.
    pub fn create_key(&mut self, key: &ApiKey) -> Result<()> {
        let body = rows::text(key)?;
        self.conn.prepare_cached(sql::ADD_KEY)?.execute(params![key.id, key.hash, key.created_at.0, body])?;
        Ok(())
    }

    /// # Errors
    /// As [`Core::create_key`].
    pub fn revoke_key(&mut self, id: &str, now: UnixMs) -> Result<bool> {
        let body: Option<String> =
            self.conn.prepare_cached(sql::KEY_BY_ID)?.query_row([id], |row| row.get(0)).optional()?;
        let Some(body) = body else { return Ok(false) };
        let mut key = api_key(&body)?;
        if key.revoked_at.is_none() {
            key.revoked_at = Some(now);
            self.conn.prepare_cached(sql::PUT_KEY)?.execute([id, &rows::text(&key)?])?;
        }
        Ok(true)
    }

    /// # Errors
    /// As [`Core::create_key`].
    pub fn secret(&mut self, fresh: &[u8; 32]) -> Result<[u8; 32]> {
        self.conn.prepare_cached(sql::ADD_META)?.execute(params![SECRET, fresh])?;
        let stored: Vec<u8> = self.conn.prepare_cached(sql::GET_META)?.query_row([SECRET], |row| row.get(0))?;
        stored.try_into().map_err(|_| StoreError::Corrupt("the installation's secret".into()))
    }

    /// # Errors
    /// As [`Core::create_key`].
    pub fn keep_template(&mut self, now: UnixMs, version: &str, kept: &KeptTemplate) -> Result<()> {
        // An older Belfry kept all of it in its files.
        let row = params![version, kept.files, now.0, self.session];
        let id: i64 = self.conn.prepare_cached(sql::KEEP_TEMPLATE)?.query_row(row, |row| row.get(0))?;
        self.attach(-id, &kept.attached)
    }
}

impl Reads<'_> {
    /// # Errors
    /// As [`Core::create_key`].
    pub fn key_by_hash(&self, hash: &str) -> Result<Option<ApiKey>> {
        let body: Option<String> =
            self.conn.prepare_cached(sql::KEY_BY_HASH)?.query_row([hash], |row| row.get(0)).optional()?;
        body.as_deref().map(api_key).transpose()
    }

    /// # Errors
    /// As [`Core::create_key`].
    pub fn key_by_id(&self, id: &str) -> Result<Option<ApiKey>> {
        let body: Option<String> =
            self.conn.prepare_cached(sql::KEY_BY_ID)?.query_row([id], |row| row.get(0)).optional()?;
        body.as_deref().map(api_key).transpose()
    }

    /// # Errors
    /// As [`Core::create_key`].
    pub fn keys(&self) -> Result<Vec<ApiKey>> {
        let bodies: Vec<String> =
            self.conn.prepare_cached(sql::KEYS)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        bodies.iter().map(|body| api_key(body)).collect()
    }

    /// # Errors
    /// As [`Core::create_key`].
    pub fn template(&self, version: &str) -> Result<Option<KeptTemplate>> {
        let mut statement = self.conn.prepare_cached(sql::TEMPLATE)?;
        let found: Option<(i64, String)> =
            statement.query_row([version], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((id, files)) = found else { return Ok(None) };
        Ok(Some(KeptTemplate { files, attached: self.attached_to(-id)? }))
    }
}
