//! Schedules, one row each.

use async_trait::async_trait;
use belfry_domain::UnixMs;
use rusqlite::{OptionalExtension, params};

use super::core::{Core, Result};
use super::errors::unreadable;
use super::read::Reads;
use super::store::{Shell, Store};
use super::writer::Answered::{Committed, OnDisk};
use super::{rows, sql};
use crate::ports::deliveries::Owner;
use crate::ports::schedules::{
    Kept, MOST_DUE, MOST_LISTED, MOST_SCHEDULES, Schedule, SchedulePage, Schedules, Taken, Wrote,
};
use crate::store::scheduled;

#[async_trait]
impl<S: Shell> Schedules for Store<S> {
    async fn write_schedule(
        &self,
        owner: &Owner,
        name: &str,
        before: Option<&str>,
        next: Option<&Schedule>,
    ) -> Result<Wrote> {
        let (owner, name, before) = (owner.clone(), name.to_owned(), before.map(str::to_owned));
        let next =
            next.map(|next| Ok::<_, crate::ports::StoreError>((next.look_at(), rows::text(next)?))).transpose()?;
        let verb = move |core: &mut Core, _| core.write_schedule((&owner, &name), before.as_deref(), next.as_ref());
        self.shell.write(OnDisk, verb).await
    }

    async fn schedule(&self, owner: &Owner, name: &str) -> Result<Option<Kept>> {
        let (owner, name) = (owner.clone(), name.to_owned());
        let found = self.shell.read(move |reads, _| reads.schedule(&owner, &name)).await?;
        found.map(|body| scheduled::kept(body).map_err(unreadable("a schedule"))).transpose()
    }

    async fn schedules(&self, owner: &Owner, after: Option<&str>, limit: u16) -> Result<SchedulePage> {
        let (owner, after) = (owner.clone(), after.unwrap_or_default().to_owned());
        self.shell.read(move |reads, _| reads.schedules(&owner, &after, limit.clamp(1, MOST_LISTED))).await
    }

    async fn take_due(&self, now: UnixMs, again: UnixMs, limit: u16) -> Result<Taken> {
        // Nearly always there is none, and nothing to write.
        let first = self.shell.read(|reads, _| reads.next_look(i64::MIN)).await?;
        if first.is_none_or(|first| first > now) {
            return Ok(Taken { then: first, ..Taken::default() });
        }
        self.shell.write(Committed, move |core, _| core.take_due(now, again, limit.clamp(1, MOST_DUE))).await
    }
}

impl Core {
    /// # Errors
    /// [`crate::ports::StoreError`]; so for every verb here.
    fn write_schedule(
        &mut self,
        (owner, name): (&Owner, &str),
        before: Option<&str>,
        next: Option<&(Option<UnixMs>, String)>,
    ) -> Result<Wrote> {
        let now = self.reads().schedule(owner, name)?;
        let same = now.as_deref() == next.map(|(_, body)| body.as_str());
        if !same && now.as_deref() != before {
            return Ok(Wrote::Other);
        }
        let owner = self.owner(owner)?;
        let Some((look_at, body)) = next else {
            self.conn.prepare_cached(sql::DROP_SCHEDULE)?.execute(params![owner, name])?;
            return Ok(Wrote::Done);
        };
        if now.is_none() {
            let count: i64 = self.conn.prepare_cached(sql::COUNT_SCHEDULES)?.query_row([owner], |row| row.get(0))?;
            if usize::try_from(count).is_ok_and(|count| count >= MOST_SCHEDULES) {
                return Ok(Wrote::TooMany);
            }
        }
        let row = params![owner, name, look_at.map(|at| at.0), body];
        self.conn.prepare_cached(sql::PUT_SCHEDULE)?.execute(row)?;
        Ok(Wrote::Done)
    }

    fn take_due(&mut self, now: UnixMs, again: UnixMs, limit: u16) -> Result<Taken> {
        let mut taken = Taken::default();
        let mut statement = self.conn.prepare_cached(sql::DUE_SCHEDULES)?;
        let rows = statement.query_map(params![now.0, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let due: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
        for (seq, body) in due {
            self.conn.prepare_cached(sql::LOOK_AGAIN)?.execute([seq, again.0])?;
            match scheduled::kept(body) {
                Ok(kept) => taken.due.push(kept),
                Err(_) => taken.unreadable += 1,
            }
        }
        taken.then = self.reads().next_look(i64::MIN)?;
        Ok(taken)
    }
}

impl Reads<'_> {
    /// As it is written.
    fn schedule(&self, owner: &Owner, name: &str) -> Result<Option<String>> {
        let Some(owner) = self.owner(owner)? else { return Ok(None) };
        let mut statement = self.conn.prepare_cached(sql::SCHEDULE)?;
        Ok(statement.query_row(params![owner, name], |row| row.get(0)).optional()?)
    }

    fn schedules(&self, owner: &Owner, after: &str, limit: u16) -> Result<SchedulePage> {
        let Some(owner) = self.owner(owner)? else { return Ok(SchedulePage::default()) };
        let mut statement = self.conn.prepare_cached(sql::SCHEDULES)?;
        // One more than is asked for says whether there are more.
        let rows = statement.query_map(params![owner, after, limit + 1], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(scheduled::page(rows.collect::<rusqlite::Result<_>>()?, limit.into()))
    }

    /// The first that has to be looked at after `at`.
    fn next_look(&self, at: i64) -> Result<Option<UnixMs>> {
        let mut statement = self.conn.prepare_cached(sql::NEXT_LOOK)?;
        Ok(statement.query_row([at], |row| row.get(0)).optional()?.map(UnixMs))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use belfry_domain::schedule::Missed;

    use super::super::SqliteStore;
    use super::super::layouts::back_to;
    use super::super::tests::{StoppedClock, files};
    use super::*;
    use crate::ports::admin::Installation as _;

    #[tokio::test]
    async fn a_store_of_layout_9_keeps_what_it_has_and_schedules_from_then_on() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("belfry.db");
        let open = || SqliteStore::open(&path, Arc::new(StoppedClock)).unwrap();
        let store = open();
        store.keep_template("before", &files("files")).await.unwrap();
        store.close().await;
        drop(back_to(&path, 9));
        let store = open();
        assert_eq!(store.template("before").await.unwrap(), Some(files("files")));
        let daily = Schedule {
            tenant: "t".into(),
            environment: "live".into(),
            name: "daily".into(),
            cron: "0 9 * * *".into(),
            time_zone: "UTC".into(),
            missed: Missed::Skip,
            until: None,
            notification: "{}".into(),
            paused: None,
            created_at: UnixMs(1),
            changed_at: UnixMs(1),
            by: "key_1".into(),
            next: Some(UnixMs(2)),
            last: None,
            missed_count: 0,
        };
        let owner = daily.owner();
        assert_eq!(store.write_schedule(&owner, "daily", None, Some(&daily)).await.unwrap(), Wrote::Done);
        store.close().await;
        // As it stands in the file.
        let kept = open().schedule(&owner, "daily").await.unwrap().unwrap();
        assert_eq!(kept.schedule, daily);
    }
}
