//! Contents of attachments: each once, for as long as something holds it.

use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::read::Reads;
use super::sql;
use crate::ports::attachments::{Attached, AttachedId};

impl Core {
    /// `holder` keeps these from now on.
    pub(super) fn attach(&self, holder: i64, attached: &[Attached]) -> Result<()> {
        for Attached { id, content } in attached {
            let digest = id.as_bytes().as_slice();
            let known = self.conn.prepare_cached(sql::ATTACHMENT)?.query_row([digest], |row| row.get(0)).optional()?;
            let attachment: i64 = if let Some(known) = known {
                known
            } else {
                self.conn.prepare_cached(sql::ADD_ATTACHMENT)?.execute(params![digest, &**content])?;
                self.conn.last_insert_rowid()
            };
            self.conn.prepare_cached(sql::ATTACH)?.execute([holder, attachment])?;
        }
        Ok(())
    }

    /// `holder` keeps nothing any more; what nobody else holds goes.
    pub(super) fn detach(&self, holder: i64) -> Result<()> {
        let left: Vec<i64> = self
            .conn
            .prepare_cached(sql::DETACH)?
            .query_map([holder], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for attachment in left {
            self.conn.prepare_cached(sql::DROP_ATTACHMENT)?.execute([attachment])?;
        }
        Ok(())
    }
}

impl Reads<'_> {
    /// # Errors
    /// As [`Reads::read`].
    pub fn attached(&self, ids: &[AttachedId]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut content = self.conn.prepare_cached(sql::ATTACHED_CONTENT)?;
        let found = ids.iter().map(|id| content.query_row([id.as_bytes().as_slice()], |row| row.get(0)).optional());
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// What `holder` keeps.
    pub(super) fn attached_to(&self, holder: i64) -> Result<Vec<Attached>> {
        let mut statement = self.conn.prepare_cached(sql::ATTACHED_TO)?;
        let read = |row: &rusqlite::Row<'_>| {
            let content: Vec<u8> = row.get(1)?;
            Ok(Attached { id: AttachedId::from_bytes(row.get(0)?), content: content.into() })
        };
        let found = statement.query_map([holder], read)?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::SqliteStore;
    use super::super::layouts::{back_to, intent};
    use super::super::tests::StoppedClock;
    use super::*;
    use crate::ports::deliveries::{Deliveries as _, NewNotification, Owner};

    #[tokio::test]
    async fn a_store_of_layout_8_keeps_its_contents_and_those_of_attachments_apart_from_then_on() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("belfry.db");
        let open = || SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
        let store = open();
        let whole = NewNotification { inputs: "{\"base64\":\"YQ==\"}".into(), ..intent("before", None) };
        store.accept(vec![whole.clone()]).await.unwrap();
        store.close().await;
        drop(back_to(&path, 8));
        let store = open();
        assert_eq!(store.inputs(whole.notification.id).await.unwrap(), Some(whole.inputs));
        let owner = Owner { tenant: "t".into(), environment: "live".into() };
        let attached = Attached::of(&owner, b"content".to_vec());
        let new = NewNotification { attached: vec![attached.clone()], ..intent("after", None) };
        store.accept(vec![new.clone()]).await.unwrap();
        store.close().await;
        // As it stands in the file.
        let found = open().attached(new.notification.id, vec![attached.id]).await.unwrap();
        assert_eq!(found, [Some(b"content".to_vec())]);
    }
}
