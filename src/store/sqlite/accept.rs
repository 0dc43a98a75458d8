//! Accept: the record is the key table, so a repeat is found by its id alone.

use belfry_domain::Delivery;
use rusqlite::params;

use super::core::{Core, Result};
use super::rows::{self, Columns, Rollup, address_key, bounded_ms, delivery_key, notification_key, signed};
use super::{schema, sql};
use crate::ports::StoreError;
use crate::ports::deliveries::{Accepted, CollapseGroup, NewNotification, Owner};

/// Where a delivery's row goes.
struct Place {
    seq: i64,
    siblings: i64,
    group: Option<i64>,
}

/// A new notification with the texts of its rows, made before the writer's thread is asked: that
/// thread is what all writes wait for.
pub struct NewRows {
    item: NewNotification,
    notification: String,
    deliveries: Vec<String>,
}

impl NewRows {
    /// # Errors
    /// [`StoreError`] where one cannot be written as JSON.
    pub fn of(item: NewNotification) -> Result<Self> {
        let deliveries = item.deliveries.iter().map(rows::text).collect::<Result<_>>()?;
        Ok(Self { notification: rows::text(&item.notification)?, deliveries, item })
    }
}

impl Core {
    /// Items in order: of two with one id, the first is created and the second is its repeat.
    ///
    /// # Errors
    /// [`StoreError`]; none of the batch is kept then.
    pub fn accept(&mut self, batch: &[NewRows]) -> Result<Vec<Accepted>> {
        batch.iter().map(|item| self.accept_one(item)).collect()
    }

    fn accept_one(&mut self, new: &NewRows) -> Result<Accepted> {
        let item = &new.item;
        let id = item.notification.id;
        if let Some(seq) = self.reads().seq_of(id)? {
            let Some(mut record) = self.reads().record(seq)? else {
                return Err(StoreError::Corrupt("a record without its notification".into()));
            };
            // The same key with another request is a mistake of the caller's, not a repeat.
            if record.notification.fingerprint.whole == item.notification.fingerprint.whole {
                self.conn.prepare_cached(sql::COUNT_REPEAT)?.execute([seq])?;
                record.repeats += 1;
            }
            return Ok(Accepted::Repeat(Box::new(record)));
        }
        if let Some(tombstone) = self.reads().tombstone(id)? {
            return Ok(Accepted::Remembered(tombstone));
        }
        self.create(new)?;
        Ok(Accepted::Created)
    }

    fn create(&mut self, new: &NewRows) -> Result<()> {
        let item = &new.item;
        let notification = &item.notification;
        let siblings = i64::try_from(item.deliveries.len()).unwrap_or(i64::MAX);
        if siblings > schema::SLOTS {
            return Err(StoreError::Unavailable(format!("{siblings} deliveries in one notification are too many")));
        }
        let owner = self.owner(&Owner::of(notification))?;
        let states: Vec<_> =
            item.deliveries.iter().map(|one| (one.state.name(), one.ended_at.map(|at| at.0))).collect();
        let rollup = Rollup::of(&states);
        let keep = bounded_ms(notification.keep_content_ms);
        let remembered_until = notification.remembered_until.0;
        self.conn.prepare_cached(sql::ADD_NOTIFICATION)?.execute(params![
            notification_key(&notification.id),
            owner,
            notification.class,
            rollup.state.name(),
            notification.reference,
            notification.group,
            remembered_until,
            keep,
            rollup.ended_at,
            rollup.ended_at.filter(|_| rollup.held).map(|_| remembered_until),
            rollup.ended_at.filter(|_| !rollup.held).map(|at| at + keep),
            item.recipient_hash.as_deref().map(address_key),
            new.notification,
        ])?;
        let seq = self.conn.last_insert_rowid();
        for ((place, delivery), body) in (0..).zip(&item.deliveries).zip(&new.deliveries) {
            let group = item.collapse_groups.get(place as usize).and_then(Option::as_ref);
            let group = group.map(|group| self.raise(group, remembered_until)).transpose()?;
            let place = Place { seq: seq * schema::SLOTS + place, siblings, group };
            self.add_delivery(&place, delivery, body)?;
        }
        let template = notification.template.as_ref().map(|template| template.version.as_str());
        self.conn.prepare_cached(sql::ADD_INPUTS)?.execute(params![seq, template, item.inputs])?;
        self.attach(seq, &item.attached)
    }

    /// The group's row, at the newest version seen, kept while one of its intents is remembered.
    fn raise(&self, group: &CollapseGroup, kept_until: i64) -> Result<i64> {
        let mut raise = self.conn.prepare_cached(sql::RAISE_COLLAPSE)?;
        Ok(raise.query_row(params![group.group, group.version, kept_until], |row| row.get(0))?)
    }

    fn add_delivery(&mut self, place: &Place, delivery: &Delivery, body: &str) -> Result<()> {
        let lane = self.lane(&delivery.lane)?;
        let columns = Columns::of(delivery);
        self.conn.prepare_cached(sql::ADD_DELIVERY)?.execute(params![
            place.seq,
            delivery_key(&delivery.id),
            place.siblings,
            place.group,
            lane,
            delivery.tenant,
            address_key(&delivery.address_hash),
            rows::lease_ms(delivery),
            columns.state.name(),
            columns.alone,
            columns.due_at,
            signed(delivery.rev),
            delivery.spent,
            columns.ended_at,
            columns.receipt_until,
            body,
        ])?;
        self.count_state(lane, columns.state, 1);
        self.due |= columns.due_at.is_some();
        Ok(())
    }
}
