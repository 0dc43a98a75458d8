//! Broadcasts, and the chunks of their audiences.

use std::ops::Range;

use async_trait::async_trait;
use belfry_domain::BroadcastId;
use belfry_domain::broadcast::Broadcast;
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::store::{Shell, Store};
use super::writer::Answered::OnDisk;
use super::{rows, sql};
use crate::ports::StoreError;
use crate::ports::broadcasts::{
    ActivePage, Broadcasts, ChunkAt, MOST_ACTIVE, MOST_BROADCASTS, MOST_CLEARED, Made, owner_of,
};
use crate::ports::deliveries::Owner;

fn kept(body: &str) -> Result<Broadcast> {
    serde_json::from_str(body).map_err(unreadable("a broadcast"))
}

fn rev(rev: u64) -> Result<i64> {
    i64::try_from(rev).map_err(|_| StoreError::Corrupt("a broadcast's number".into()))
}

impl Core {
    fn create_broadcast(&mut self, new: &Broadcast, says: &str) -> Result<Made> {
        let whose = owner_of(new);
        let owner = self.owner(&whose)?;
        if let Some(before) = self.reads().broadcast(&whose, new.id)? {
            let said = self.reads().said_by(&whose, new.id)?.unwrap_or_default();
            let same = before == *new && said == says;
            return Ok(if same { Made::New } else { Made::Known(Box::new(before), said) });
        }
        let count: i64 = self.conn.prepare_cached(sql::COUNT_BROADCASTS)?.query_row([owner], |row| row.get(0))?;
        if usize::try_from(count).unwrap_or(usize::MAX) >= MOST_BROADCASTS {
            return Ok(Made::TooMany);
        }
        let row = params![owner, new.id.0.as_bytes(), rev(new.rev)?, new.is_active(), rows::text(new)?];
        self.conn.prepare_cached(sql::ADD_BROADCAST)?.execute(row)?;
        let seq = self.conn.last_insert_rowid();
        self.conn.prepare_cached(sql::ADD_SAID)?.execute(params![seq, says])?;
        Ok(Made::New)
    }

    fn write_broadcast(&mut self, next: &Broadcast) -> Result<bool> {
        let row = params![next.id.0.as_bytes(), rev(next.rev)?, next.is_active(), rows::text(next)?];
        if self.conn.prepare_cached(sql::WRITE_BROADCAST)?.execute(row)? > 0 {
            return Ok(true);
        }
        Ok(self.reads().broadcast(&owner_of(next), next.id)?.as_ref() == Some(next))
    }

    fn remove_broadcast(&mut self, it: &Broadcast) -> Result<bool> {
        let seq = params![it.id.0.as_bytes(), rev(it.rev)?];
        let gone: Option<i64> =
            self.conn.prepare_cached(sql::DROP_BROADCAST)?.query_row(seq, |row| row.get(0)).optional()?;
        if let Some(seq) = gone {
            self.conn.prepare_cached(sql::DROP_SAID)?.execute([seq])?;
            return Ok(true);
        }
        Ok(self.reads().broadcast(&owner_of(it), it.id)?.is_none())
    }

    fn put_rows(&mut self, at: ChunkAt, rows: &str) -> Result<()> {
        let ChunkAt { broadcast, upload, chunk } = at;
        let row = params![broadcast.0.as_bytes(), upload, chunk, rows];
        self.conn.prepare_cached(sql::PUT_ROWS)?.execute(row)?;
        Ok(())
    }

    fn clear_rows(&mut self, of: BroadcastId, upload: u32, chunks: Range<u32>) -> Result<()> {
        let row = params![of.0.as_bytes(), upload, chunks.start, chunks.end.min(chunks.start + MOST_CLEARED)];
        if self.conn.prepare_cached(sql::CLEAR_ROWS)?.execute(row)? > 0 {
            self.freed = true;
        }
        Ok(())
    }
}

impl Reads<'_> {
    fn broadcast(&self, owner: &Owner, id: BroadcastId) -> Result<Option<Broadcast>> {
        let Some(owner) = self.owner(owner)? else { return Ok(None) };
        let mut statement = self.conn.prepare_cached(sql::BROADCAST)?;
        let body: Option<String> = statement.query_row(params![id.0.as_bytes(), owner], |row| row.get(0)).optional()?;
        body.as_deref().map(kept).transpose()
    }

    fn said_by(&self, owner: &Owner, id: BroadcastId) -> Result<Option<String>> {
        let Some(owner) = self.owner(owner)? else { return Ok(None) };
        let mut statement = self.conn.prepare_cached(sql::SAID_BY)?;
        Ok(statement.query_row(params![id.0.as_bytes(), owner], |row| row.get(0)).optional()?)
    }

    fn broadcasts(&self, owner: &Owner) -> Result<Vec<Broadcast>> {
        let Some(owner) = self.owner(owner)? else { return Ok(Vec::new()) };
        let mut statement = self.conn.prepare_cached(sql::BROADCASTS)?;
        let bodies = statement.query_map([owner], |row| row.get::<_, String>(0))?;
        bodies.map(|body| kept(&body?)).collect()
    }

    fn active_broadcasts(&self, after: Option<&str>, limit: u16) -> Result<ActivePage> {
        let after: i64 = after.and_then(|text| text.parse().ok()).unwrap_or(0);
        let limit = limit.clamp(1, MOST_ACTIVE);
        let mut statement = self.conn.prepare_cached(sql::ACTIVE_BROADCASTS)?;
        // One more than is asked for says whether there are more.
        let mut found: Vec<(i64, String)> = statement
            .query_map(params![after, limit + 1], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let more = found.len() > usize::from(limit);
        found.truncate(limit.into());
        let next = found.last().filter(|_| more).map(|(seq, _)| seq.to_string());
        Ok(ActivePage { broadcasts: found.iter().filter_map(|(_, body)| kept(body).ok()).collect(), next })
    }

    fn rows_at(&self, at: ChunkAt) -> Result<Option<String>> {
        let ChunkAt { broadcast, upload, chunk } = at;
        let mut statement = self.conn.prepare_cached(sql::ROWS)?;
        Ok(statement.query_row(params![broadcast.0.as_bytes(), upload, chunk], |row| row.get(0)).optional()?)
    }
}

#[async_trait]
impl<S: Shell> Broadcasts for Store<S> {
    async fn create_broadcast(&self, new: &Broadcast, says: &str) -> Result<Made> {
        let (new, says) = (new.clone(), says.to_owned());
        self.shell.write(OnDisk, move |core, _| core.create_broadcast(&new, &says)).await
    }

    async fn write_broadcast(&self, next: &Broadcast) -> Result<bool> {
        let next = next.clone();
        self.shell.write(OnDisk, move |core, _| core.write_broadcast(&next)).await
    }

    async fn remove_broadcast(&self, it: &Broadcast) -> Result<bool> {
        let it = it.clone();
        self.shell.write(OnDisk, move |core, _| core.remove_broadcast(&it)).await
    }

    async fn broadcast(&self, owner: &Owner, id: BroadcastId) -> Result<Option<Broadcast>> {
        let owner = owner.clone();
        self.shell.read(move |reads, _| reads.broadcast(&owner, id)).await
    }

    async fn said_by(&self, owner: &Owner, id: BroadcastId) -> Result<Option<String>> {
        let owner = owner.clone();
        self.shell.read(move |reads, _| reads.said_by(&owner, id)).await
    }

    async fn broadcasts(&self, owner: &Owner) -> Result<Vec<Broadcast>> {
        let owner = owner.clone();
        self.shell.read(move |reads, _| reads.broadcasts(&owner)).await
    }

    async fn active_broadcasts(&self, after: Option<&str>, limit: u16) -> Result<ActivePage> {
        let after = after.map(str::to_owned);
        self.shell.read(move |reads, _| reads.active_broadcasts(after.as_deref(), limit)).await
    }

    async fn put_rows(&self, at: ChunkAt, rows: &str) -> Result<()> {
        let rows = rows.to_owned();
        self.shell.write(OnDisk, move |core, _| core.put_rows(at, &rows)).await
    }

    async fn rows(&self, at: ChunkAt) -> Result<Option<String>> {
        self.shell.read(move |reads, _| reads.rows_at(at)).await
    }

    async fn clear_rows(&self, of: BroadcastId, upload: u32, chunks: Range<u32>) -> Result<()> {
        self.shell.write(OnDisk, move |core, _| core.clear_rows(of, upload, chunks.clone())).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use belfry_domain::UnixMs;
    use belfry_domain::broadcast::{NewBroadcast, Plan};

    use super::super::SqliteStore;
    use super::super::layouts::back_to;
    use super::super::tests::{StoppedClock, files};
    use super::*;
    use crate::ports::admin::Installation as _;

    #[tokio::test]
    async fn a_store_of_the_layout_before_keeps_what_it_has_and_broadcasts_from_then_on() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("belfry.db");
        let open = || SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
        let store = open();
        store.keep_template("before", &files("files")).await.unwrap();
        store.close().await;
        drop(back_to(&path, LAYOUT - 1));
        let store = open();
        assert_eq!(store.template("before").await.unwrap(), Some(files("files")));
        let new = NewBroadcast {
            id: BroadcastId::http("t", "live", "main", "launch"),
            tenant: "t".into(),
            environment: "live".into(),
            name: "launch".into(),
            class: "marketing".into(),
            by: "key_1".into(),
            plan: Plan::default(),
        };
        let new = Broadcast::new(new, UnixMs(1));
        store.create_broadcast(&new, "{}").await.unwrap();
        let at = ChunkAt { broadcast: new.id, upload: 1, chunk: 0 };
        store.put_rows(at, "rows").await.unwrap();
        store.close().await;
        // As it stands in the file.
        let store = open();
        assert_eq!(store.broadcasts(&owner_of(&new)).await.unwrap(), [new]);
        assert_eq!(store.rows(at).await.unwrap().as_deref(), Some("rows"));
    }

    /// The one that brought broadcasts.
    const LAYOUT: i64 = 12;
}
