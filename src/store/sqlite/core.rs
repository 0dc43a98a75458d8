//! The store itself: synchronous, over one connection, told the time. A shell (a thread in
//! production, a mutex in memory) opens a transaction, lets one or more operations run in it, and
//! answers them once it is committed.

use std::collections::{BTreeMap, HashMap};

use belfry_domain::delivery::StateName;
use belfry_domain::{Lane, UnixMs};
use rusqlite::{Connection, params};

use super::read::Reads;
use super::{schema, sql};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Prepared statements kept per connection: all of them.
const STATEMENTS: usize = 128;

/// 16 MiB stay in the file for what comes next.
const FREE_PAGES_KEPT: i64 = 4096;
const PAGES_GIVEN_BACK: i64 = 256;

pub struct Core {
    pub(super) conn: Connection,
    lanes: HashMap<Lane, i64>,
    owners: HashMap<(String, String), i64>,
    /// Whose turn was last, by lane. Fairness only: forgetting it at a restart costs nobody more
    /// than one turn.
    pub(super) turns: HashMap<i64, String>,
    tally: Tally,
    /// Something that waits was written.
    pub(super) due: bool,
    /// Something was purged.
    pub(super) freed: bool,
    /// Number of this opening of the database.
    pub(super) session: i64,
}

/// Changes to the counters, written once per transaction.
#[derive(Clone, Default)]
struct Tally {
    lanes: BTreeMap<i64, (i64, i64)>,
    counts: BTreeMap<&'static str, i64>,
}

impl Core {
    /// Takes over a connection whose tables exist. Claims of an earlier opening lapse at `now`.
    ///
    /// # Errors
    /// [`StoreError`] where the first transaction fails.
    pub fn new(conn: Connection, now: UnixMs) -> Result<Self> {
        schema::steady(&conn, STATEMENTS)?;
        let mut core = Self {
            conn,
            lanes: HashMap::new(),
            owners: HashMap::new(),
            turns: HashMap::new(),
            tally: Tally::default(),
            due: false,
            freed: false,
            session: 0,
        };
        core.begin()?;
        core.session = core.number("session")?.unwrap_or(0) + 1;
        core.put_number("session", core.session)?;
        core.conn.execute(sql::LAPSE_ALL, [now.0])?;
        core.commit()?;
        Ok(core)
    }

    /// A fresh database in memory.
    ///
    /// # Errors
    /// Whatever SQLite says; in practice only that memory ran out.
    pub fn in_memory(now: UnixMs) -> Result<Self> {
        let conn = Connection::open_in_memory()?;
        schema::create(&conn)?;
        Self::new(conn, now)
    }

    /// Takes up a connection again after an I/O error: same opening, so claims stand.
    pub(super) fn replace_connection(&mut self, conn: Connection) -> Result<()> {
        schema::steady(&conn, STATEMENTS)?;
        self.conn = conn;
        self.forget();
        Ok(())
    }

    /// Opens the transaction that operations run in.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is open then.
    pub fn begin(&mut self) -> Result<()> {
        if !self.conn.is_autocommit() {
            // A panic left one open.
            self.rollback();
        }
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    /// One operation: all of it or nothing, whatever becomes of its neighbours. Costs a copy of every
    /// page it changes, so it is only for a transaction in which something has failed before.
    ///
    /// # Errors
    /// The operation's own.
    pub fn operation<T>(&mut self, verb: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // A savepoint would open another transaction unseen.
        self.in_transaction()?;
        self.conn.prepare_cached("SAVEPOINT operation")?.execute([])?;
        let before = (self.tally.clone(), self.due);
        let done = verb(self);
        if done.is_err() {
            (self.tally, self.due) = before;
            // Numbers given to new names went with the rows.
            self.lanes.clear();
            self.owners.clear();
            if self.given_up() {
                return done;
            }
            self.conn.prepare_cached("ROLLBACK TO operation")?.execute([])?;
        }
        self.conn.prepare_cached("RELEASE operation")?.execute([])?;
        done
    }

    /// Makes the transaction durable. Says whether something that waits was written.
    ///
    /// # Errors
    /// [`StoreError`]; none of the transaction's operations happened then.
    pub fn commit(&mut self) -> Result<bool> {
        let due = self.due;
        match self.write_out() {
            Ok(()) => {
                self.due = false;
                Ok(due)
            }
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    fn write_out(&mut self) -> Result<()> {
        self.in_transaction()?;
        self.write_tally()?;
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// SQLite has ended the whole transaction by itself: a full disk does that.
    pub fn given_up(&self) -> bool {
        self.conn.is_autocommit()
    }

    fn in_transaction(&self) -> Result<()> {
        if self.given_up() {
            return Err(StoreError::Unavailable("the transaction was given up".into()));
        }
        Ok(())
    }

    /// Gives free pages back to the file system once there are many, some at a time; a few are kept
    /// for what comes next. Only tidies: where it fails, it fails again at the next write.
    pub fn give_back_pages(&mut self) {
        if std::mem::take(&mut self.freed) {
            drop(self.vacuum());
        }
    }

    fn vacuum(&self) -> rusqlite::Result<()> {
        let free: i64 = self.conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        if free > FREE_PAGES_KEPT {
            self.conn.pragma(None, "incremental_vacuum", PAGES_GIVEN_BACK, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Moves the log into the database. Only tidies: the next opening finds the log otherwise.
    pub fn checkpoint(&self) {
        drop(self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }

    /// Moves all of the log into the database and that to the disk, or says that it could not.
    ///
    /// # Errors
    /// [`StoreError`] where some of it stayed in the log.
    pub fn checkpoint_whole(&self) -> Result<()> {
        let busy: i64 = self.conn.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0))?;
        if busy == 0 { Ok(()) } else { Err(StoreError::Unavailable("its log is being read".into())) }
    }

    /// Gives the transaction up.
    pub fn rollback(&mut self) {
        self.forget();
        // A full disk makes SQLite end it by itself, and where the file is away the next transaction
        // finds out: there is nobody to tell here.
        drop(self.conn.execute_batch("ROLLBACK"));
    }

    fn forget(&mut self) {
        self.tally = Tally::default();
        self.due = false;
        self.lanes.clear();
        self.owners.clear();
    }

    fn write_tally(&mut self) -> Result<()> {
        let tally = std::mem::take(&mut self.tally);
        for (lane, (waiting, sending)) in tally.lanes {
            if (waiting, sending) != (0, 0) {
                self.conn.prepare_cached(sql::COUNT_LANE)?.execute([lane, waiting, sending])?;
            }
        }
        for (name, change) in tally.counts {
            if change != 0 {
                self.conn.prepare_cached(sql::COUNT)?.execute(params![name, change])?;
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn reads(&self) -> Reads<'_> {
        Reads::new(&self.conn)
    }

    /// Counts a delivery in (`by` 1) or out (-1) under its lane and state.
    pub(super) fn count_state(&mut self, lane: i64, state: StateName, by: i64) {
        match state {
            StateName::Scheduled | StateName::Queued | StateName::Deferred => {
                self.tally.lanes.entry(lane).or_default().0 += by;
            }
            StateName::Sending => self.tally.lanes.entry(lane).or_default().1 += by,
            StateName::Unknown => self.count("unknown", by),
            StateName::Parked => self.count("parked", by),
            StateName::Accepted
            | StateName::Delivered
            | StateName::Bounced
            | StateName::Failed
            | StateName::Expired
            | StateName::Suppressed
            | StateName::Cancelled
            | StateName::Superseded => {}
        }
    }

    pub(super) fn count(&mut self, name: &'static str, by: i64) {
        *self.tally.counts.entry(name).or_default() += by;
    }

    /// A counter as it stands, changes of this transaction included.
    pub(super) fn counted(&self, name: &'static str) -> Result<i64> {
        let stored: i64 = self.conn.prepare_cached(sql::GET_COUNT)?.query_row([name], |row| row.get(0))?;
        Ok(stored + self.tally.counts.get(name).copied().unwrap_or_default())
    }

    pub(super) fn lane(&mut self, lane: &Lane) -> Result<i64> {
        if let Some(id) = self.lanes.get(lane) {
            return Ok(*id);
        }
        let id = match self.reads().lane(lane)? {
            Some(id) => id,
            None => {
                self.conn.prepare_cached(sql::ADD_LANE)?.execute([lane.to_string()])?;
                self.conn.last_insert_rowid()
            }
        };
        self.lanes.insert(lane.clone(), id);
        Ok(id)
    }

    pub(super) fn owner(&mut self, owner: &Owner) -> Result<i64> {
        let name = (owner.tenant.clone(), owner.environment.clone());
        if let Some(id) = self.owners.get(&name) {
            return Ok(*id);
        }
        let id = match self.reads().owner(owner)? {
            Some(id) => id,
            None => {
                self.conn.prepare_cached(sql::ADD_OWNER)?.execute([&owner.tenant, &owner.environment])?;
                self.conn.last_insert_rowid()
            }
        };
        self.owners.insert(name, id);
        Ok(id)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<i64>> {
        self.reads().number(key)
    }

    pub(super) fn put_number(&self, key: &str, value: i64) -> Result<()> {
        self.conn.prepare_cached(sql::PUT_META)?.execute(params![key, value])?;
        Ok(())
    }

    /// Writes a probe and reads it back.
    ///
    /// # Errors
    /// [`StoreError`] where either fails.
    pub fn probe(&mut self, now: UnixMs) -> Result<()> {
        self.put_number("probe", now.0)?;
        match self.number("probe")? {
            Some(read) if read == now.0 => Ok(()),
            _ => Err(StoreError::Corrupt("a probe did not read back".into())),
        }
    }
}
