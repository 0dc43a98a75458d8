//! What gathers: a row for each item of a slot, and one for the slot.

use async_trait::async_trait;
use belfry_domain::gather::Slot;
use belfry_domain::{DeliveryId, Key, UnixMs};
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::read::Reads;
use super::store::{Shell, Store};
use super::writer::Answered::{Committed, OnDisk};
use super::{rows, sql};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::gatherings::{DueSlot, DueSlots, Gatherings, Join, MOST_LOOKED_AT};

/// A slot that takes items still.
struct Open {
    until: i64,
    items: u16,
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn join_slots(&mut self, batch: &[Join]) -> Result<Vec<Slot>> {
        batch.iter().map(|one| self.join_slot(one)).collect()
    }

    fn join_slot(&mut self, one: &Join) -> Result<Slot> {
        let group = one.group.as_bytes();
        let open: Option<Open> = self
            .conn
            .prepare_cached(sql::OPEN_SLOT)?
            .query_row([group], |row| Ok(Open { until: row.get(0)?, items: row.get(1)? }))
            .optional()?;
        let slot = |until| Slot { group: one.group, until: UnixMs(until) };
        if let Some(open) = &open
            && open.until > one.at.0
        {
            if self.put_item(slot(open.until), one.item)? {
                self.fill(slot(open.until), open.items + 1, one)?;
            }
            return Ok(slot(open.until));
        }
        // A slot that was full may end later than this one would.
        let last: Option<i64> =
            self.conn.prepare_cached(sql::LAST_SLOT)?.query_row([group], |row| row.get(0)).optional()?.flatten();
        let until = one.at.plus(one.gather.span).0.max(last.map_or(i64::MIN, |last| last.saturating_add(1)));
        self.conn.prepare_cached(sql::CLOSE_SLOTS)?.execute([group])?;
        self.put_slot(&DueSlot { slot: slot(until), owner: one.owner.clone() }, true)?;
        self.put_item(slot(until), one.item)?;
        self.fill(slot(until), 1, one)?;
        Ok(slot(until))
    }

    /// Notes how many are in it; with the last that it has room for it is due.
    fn fill(&self, slot: Slot, items: u16, one: &Join) -> Result<()> {
        let full = items >= one.gather.most;
        let row = params![slot.group.as_bytes(), slot.until.0, items, full, one.at.0];
        self.conn.prepare_cached(sql::FILL_SLOT)?.execute(row)?;
        Ok(())
    }

    fn put_slot(&self, of: &DueSlot, open: bool) -> Result<()> {
        let Owner { tenant, environment } = &of.owner;
        let row = params![of.slot.group.as_bytes(), of.slot.until.0, open, tenant, environment];
        self.conn.prepare_cached(sql::PUT_SLOT)?.execute(row)?;
        Ok(())
    }

    /// Whether it was not in it.
    fn put_item(&self, slot: Slot, item: DeliveryId) -> Result<bool> {
        let row = params![slot.group.as_bytes(), slot.until.0, item.0.as_bytes()];
        Ok(self.conn.prepare_cached(sql::PUT_ITEM)?.execute(row)? > 0)
    }

    /// # Errors
    /// As [`Core::join_slots`].
    pub fn rejoin_slot(&mut self, of: &DueSlot, item: DeliveryId) -> Result<()> {
        self.put_slot(of, false)?;
        self.put_item(of.slot, item)?;
        Ok(())
    }

    /// # Errors
    /// As [`Core::join_slots`].
    pub fn leave_slot(&mut self, slot: Slot, items: &[DeliveryId]) -> Result<()> {
        let (group, until) = (slot.group.as_bytes(), slot.until.0);
        for item in items {
            self.conn.prepare_cached(sql::DROP_ITEM)?.execute(params![group, until, item.0.as_bytes()])?;
        }
        self.conn.prepare_cached(sql::DROP_EMPTY_SLOT)?.execute(params![group, until])?;
        Ok(())
    }

    /// # Errors
    /// As [`Core::join_slots`].
    pub fn put_off_slot(&mut self, slot: Slot, until: UnixMs) -> Result<()> {
        let row = params![slot.group.as_bytes(), slot.until.0, until.0];
        self.conn.prepare_cached(sql::PUT_OFF_SLOT)?.execute(row)?;
        Ok(())
    }
}

fn key(bytes: Vec<u8>) -> Result<Key> {
    let bytes = bytes.try_into().map_err(|_| StoreError::Corrupt("an item that gathers".into()))?;
    Ok(Key::from_bytes(bytes))
}

impl Reads<'_> {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn due_slots(&self, now: UnixMs, limit: u16) -> Result<DueSlots> {
        let mut statement = self.conn.prepare_cached(sql::DUE_SLOTS)?;
        let rows = statement.query_map(params![now.0, limit], |row| {
            Ok((row.get(0)?, row.get(1)?, Owner { tenant: row.get(2)?, environment: row.get(3)? }))
        })?;
        let due = |row: rusqlite::Result<(Vec<u8>, i64, Owner)>| -> Result<DueSlot> {
            let (group, until, owner) = row?;
            Ok(DueSlot { slot: Slot { group: key(group)?, until: UnixMs(until) }, owner })
        };
        let slots = rows.map(due).collect::<Result<Vec<_>>>()?;
        let next: Option<i64> =
            self.conn.prepare_cached(sql::NEXT_SLOT)?.query_row([now.0], |row| row.get(0)).optional()?;
        Ok(DueSlots { next: next.map(rows::at).filter(|_| slots.len() < usize::from(limit)), slots })
    }

    /// # Errors
    /// As [`Reads::due_slots`].
    pub fn slot_items(&self, slot: Slot) -> Result<Vec<DeliveryId>> {
        let mut statement = self.conn.prepare_cached(sql::SLOT_ITEMS)?;
        let asked = params![slot.group.as_bytes(), slot.until.0, MOST_LOOKED_AT];
        let found = statement.query_map(asked, |row| row.get::<_, Vec<u8>>(0))?;
        found.map(|item| key(item?).map(DeliveryId)).collect()
    }
}

#[async_trait]
impl<S: Shell> Gatherings for Store<S> {
    async fn join(&self, batch: Vec<Join>) -> Result<Vec<Slot>> {
        self.shell.write(OnDisk, move |core, _| core.join_slots(&batch)).await
    }

    async fn rejoin(&self, of: DueSlot, item: DeliveryId) -> Result<()> {
        self.shell.write(OnDisk, move |core, _| core.rejoin_slot(&of, item)).await
    }

    async fn due(&self, now: UnixMs, limit: u16) -> Result<DueSlots> {
        self.shell.read(move |reads, _| reads.due_slots(now, limit)).await
    }

    async fn items(&self, slot: Slot) -> Result<Vec<DeliveryId>> {
        self.shell.read(move |reads, _| reads.slot_items(slot)).await
    }

    async fn leave(&self, slot: Slot, items: Vec<DeliveryId>) -> Result<()> {
        self.shell.write(OnDisk, move |core, _| core.leave_slot(slot, &items)).await
    }

    async fn put_off(&self, slot: Slot, until: UnixMs) -> Result<()> {
        self.shell.write(Committed, move |core, _| core.put_off_slot(slot, until)).await
    }
}
