//! Pauses, and what waits.

use belfry_domain::{Delivery, Notification, UnixMs};
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::{rows, sql};
use crate::ports::pauses::{KeptPause, MOST_PAUSES, PauseId, PausePut, WaitingPage};

fn kept(body: &str) -> Result<KeptPause> {
    serde_json::from_str(body).map_err(unreadable("a pause"))
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    pub fn put_pause(&mut self, new: &KeptPause) -> Result<PausePut> {
        let id = new.id();
        let before = self.reads().pause(id)?;
        if before.is_none() && self.reads().pauses()?.len() >= MOST_PAUSES {
            return Ok(PausePut::TooMany);
        }
        let stood = before.filter(|before| !before.pause.is_over(new.pause.since));
        let mut pause = Box::new(new.clone());
        if let Some(stood) = &stood {
            pause.pause.since = stood.pause.since;
        }
        let row = params![id.0.as_bytes(), rows::text(&*pause)?];
        self.conn.prepare_cached(sql::PUT_PAUSE)?.execute(row)?;
        Ok(PausePut::Kept { pause, is_new: stood.is_none() })
    }

    /// # Errors
    /// As [`Core::put_pause`].
    pub fn drop_pause(&mut self, id: PauseId) -> Result<Option<KeptPause>> {
        let found = self.reads().pause(id)?;
        self.conn.prepare_cached(sql::DROP_PAUSE)?.execute([id.0.as_bytes()])?;
        Ok(found)
    }

    /// # Errors
    /// As [`Core::put_pause`].
    pub fn drop_over(&mut self, now: UnixMs) -> Result<Vec<KeptPause>> {
        let mut over = self.reads().pauses()?;
        over.retain(|one| one.pause.is_over(now));
        for one in &over {
            self.conn.prepare_cached(sql::DROP_PAUSE)?.execute([one.id().0.as_bytes()])?;
        }
        Ok(over)
    }
}

impl Reads<'_> {
    fn pause(&self, id: PauseId) -> Result<Option<KeptPause>> {
        let mut statement = self.conn.prepare_cached(sql::PAUSE)?;
        let body: Option<String> = statement.query_row([id.0.as_bytes()], |row| row.get(0)).optional()?;
        body.as_deref().map(kept).transpose()
    }

    /// # Errors
    /// As [`Core::put_pause`].
    pub fn pauses(&self) -> Result<Vec<KeptPause>> {
        let mut statement = self.conn.prepare_cached(sql::PAUSES)?;
        let bodies = statement.query_map([], |row| row.get::<_, String>(0))?;
        bodies.map(|body| kept(&body?)).collect()
    }

    /// # Errors
    /// As [`Core::put_pause`].
    pub fn waiting(&self, after: Option<&str>, limit: u16, notifications: bool) -> Result<WaitingPage> {
        let page = self.due_by(i64::MAX, after, limit)?;
        let whole = |one: Delivery| -> Result<(Delivery, Option<Notification>)> {
            let notification = if notifications { self.notification_of(&one)? } else { None };
            Ok((one, notification))
        };
        let waiting = page.deliveries.into_iter().map(whole).collect::<Result<_>>()?;
        Ok(WaitingPage { waiting, next: page.next })
    }

    fn notification_of(&self, delivery: &Delivery) -> Result<Option<Notification>> {
        let Some(seq) = self.seq_of(delivery.notification)? else { return Ok(None) };
        let mut statement = self.conn.prepare_cached(sql::NOTIFICATION)?;
        let body: Option<String> = statement.query_row([seq], |row| row.get("body")).optional()?;
        body.as_deref().map(rows::notification).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use belfry_domain::pause::{Pause, Paused};

    use super::super::SqliteStore;
    use super::super::layouts::back_to;
    use super::super::tests::{StoppedClock, files};
    use super::*;
    use crate::ports::admin::Installation as _;
    use crate::ports::pauses::Pauses as _;

    #[tokio::test]
    async fn a_store_of_layout_7_keeps_what_it_has_and_pauses_from_then_on() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("belfry.db");
        let open = || SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
        let store = open();
        store.keep_template("before", &files("files")).await.unwrap();
        store.close().await;
        drop(back_to(&path, 7));
        let store = open();
        assert_eq!(store.template("before").await.unwrap(), Some(files("files")));
        let pause = Pause { paused: Paused::All, tenant: None, since: UnixMs(1), until: None, forced: false };
        let kept = KeptPause { pause, by: "key_1".into(), why: None };
        store.pause(&kept).await.unwrap();
        store.close().await;
        // As it stands in the file.
        assert_eq!(open().pauses().await.unwrap(), [kept]);
    }
}
