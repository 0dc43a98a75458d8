//! Stored recipients, their devices, and what was heard of tokens. Each verb is one transaction, so that a token
//! has one device at any moment.

use belfry_domain::UnixMs;
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::{rows, sql};
use crate::ports::deliveries::Owner;
use crate::ports::recipients::{
    DEAD_KEPT_MS, DeadPage, DeadToken, Device, DeviceRef, MOST_DEAD, MOST_DEVICES, NewDevice, Profile, Recipient,
    Registered,
};
use crate::store::registry::{self, Buried};

/// Of the dead that are too old, so many go with each that comes.
const DROPPED: u16 = 16;

fn device(body: &str) -> Result<Device> {
    serde_json::from_str(body).map_err(unreadable("a device"))
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn put_profile(&mut self, owner: &Owner, recipient: &str, profile: &Profile) -> Result<()> {
        let owner = self.owner(owner)?;
        self.conn.prepare_cached(sql::PUT_PROFILE)?.execute(params![owner, recipient, rows::text(profile)?])?;
        Ok(())
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn remove_recipient(&mut self, owner: &Owner, recipient: &str) -> Result<bool> {
        let Some(owner) = self.reads().owner(owner)? else { return Ok(false) };
        let profiles = self.conn.prepare_cached(sql::DROP_PROFILE)?.execute(params![owner, recipient])?;
        let devices = self.conn.prepare_cached(sql::DROP_DEVICES)?.execute(params![owner, recipient])?;
        Ok(profiles + devices > 0)
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn register(&mut self, owner: &Owner, recipient: &str, new: &NewDevice, now: UnixMs) -> Result<Registered> {
        let owner = self.owner(owner)?;
        let before = self.reads().device_of(owner, recipient, &new.id)?;
        if before.is_none() && self.reads().count_devices(owner, recipient)? >= MOST_DEVICES {
            return Ok(Registered::TooMany);
        }
        let device = registry::registered(before.as_ref(), new, now);
        self.put_device(owner, recipient, &device)?;
        let token = params![owner, device.token.hash, device.kind.name(), device.app, recipient, device.id];
        self.conn.prepare_cached(sql::TAKE_TOKEN)?.execute(token)?;
        Ok(Registered::Kept(Box::new(device)))
    }

    fn put_device(&self, owner: i64, recipient: &str, device: &Device) -> Result<()> {
        let Device { id, kind, app, token, .. } = device;
        let row = params![owner, recipient, id, kind.name(), app, token.hash, rows::text(device)?];
        self.conn.prepare_cached(sql::PUT_DEVICE)?.execute(row)?;
        Ok(())
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn remove_device(&mut self, owner: &Owner, of: &DeviceRef) -> Result<bool> {
        let Some(owner) = self.reads().owner(owner)? else { return Ok(false) };
        Ok(self.conn.prepare_cached(sql::DROP_DEVICE)?.execute(params![owner, of.recipient, of.device])? > 0)
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn bury_token(&mut self, owner: &Owner, word: &DeadToken, now: UnixMs) -> Result<bool> {
        self.drop_old_dead(now, DROPPED)?;
        let owner = self.owner(owner)?;
        let id = registry::dead_id(word);
        let place = registry::dead_time(word.heard_at) + &id;
        let row = params![owner, id, place, word.heard_at.0, rows::text(word)?];
        self.conn.prepare_cached(sql::PUT_DEAD)?.execute(row)?;
        let Some((recipient, device)) = self.named_by(owner, word)? else { return Ok(false) };
        match registry::buried(device, word) {
            Buried::Changed(device) => self.put_device(owner, &recipient, &device).map(|()| true),
            Buried::Before => Ok(true),
            Buried::Unchanged => Ok(false),
        }
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn exhume_token(&mut self, owner: &Owner, word: &DeadToken) -> Result<()> {
        let Some(owner) = self.reads().owner(owner)? else { return Ok(()) };
        let place = registry::dead_time(word.heard_at) + &registry::dead_id(word);
        self.conn.prepare_cached(sql::DROP_DEAD)?.execute(params![owner, place])?;
        let Some((recipient, device)) = self.named_by(owner, word)? else { return Ok(()) };
        match registry::exhumed(device, word) {
            Some(device) => self.put_device(owner, &recipient, &device),
            None => Ok(()),
        }
    }

    fn named_by(&self, owner: i64, word: &DeadToken) -> Result<Option<(String, Device)>> {
        let (Some(recipient), Some(device)) = (&word.recipient, &word.device) else { return Ok(None) };
        let found = self.reads().device_of(owner, recipient, device)?;
        Ok(found.map(|device| (recipient.clone(), device)))
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn drop_old_dead(&self, now: UnixMs, most: u16) -> Result<()> {
        self.conn.prepare_cached(sql::DROP_OLD_DEAD)?.execute([now.0 - DEAD_KEPT_MS, most.into()])?;
        Ok(())
    }
}

impl Reads<'_> {
    /// # Errors
    /// As [`Core::put_profile`].
    pub fn recipient(&self, owner: &Owner, recipient: &str) -> Result<Option<Recipient>> {
        let Some(owner) = self.owner(owner)? else { return Ok(None) };
        let profile: Option<String> = self
            .conn
            .prepare_cached(sql::PROFILE)?
            .query_row(params![owner, recipient], |row| row.get(0))
            .optional()?;
        let bodies: Vec<String> = self
            .conn
            .prepare_cached(sql::DEVICES)?
            .query_map(params![owner, recipient], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        if profile.is_none() && bodies.is_empty() {
            return Ok(None);
        }
        let read = |body: String| serde_json::from_str(&body).map_err(unreadable("a recipient"));
        Ok(Some(Recipient {
            profile: profile.map(read).transpose()?.unwrap_or_default(),
            devices: bodies.iter().map(|body| device(body)).collect::<Result<_>>()?,
        }))
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn device(&self, owner: &Owner, of: &DeviceRef) -> Result<Option<Device>> {
        let Some(owner) = self.owner(owner)? else { return Ok(None) };
        self.device_of(owner, &of.recipient, &of.device)
    }

    fn device_of(&self, owner: i64, recipient: &str, id: &str) -> Result<Option<Device>> {
        let mut statement = self.conn.prepare_cached(sql::DEVICE)?;
        let body: Option<String> = statement.query_row(params![owner, recipient, id], |row| row.get(0)).optional()?;
        body.as_deref().map(device).transpose()
    }

    fn count_devices(&self, owner: i64, recipient: &str) -> Result<usize> {
        let mut statement = self.conn.prepare_cached(sql::COUNT_DEVICES)?;
        let count: i64 = statement.query_row(params![owner, recipient], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// # Errors
    /// As [`Core::put_profile`].
    pub fn dead(&self, owner: &Owner, since: UnixMs, after: Option<&str>, limit: u16) -> Result<DeadPage> {
        let Some(owner) = self.owner(owner)? else { return Ok(DeadPage::default()) };
        let (after, limit) = (registry::dead_after(since, after), limit.clamp(1, MOST_DEAD));
        // One more than is asked for says whether there are more.
        let found: Vec<(String, String)> = self
            .conn
            .prepare_cached(sql::DEAD)?
            .query_map(params![owner, after, limit + 1], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        registry::dead_page(found, usize::from(limit), |body| {
            serde_json::from_str(&body).map_err(unreadable("a dead token"))
        })
    }
}
