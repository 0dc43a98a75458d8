//! The tables, and how a connection is set up. The rules behind the layout:
//!
//! - Big tables are in time order: their key is an integer that grows. A delivery's key is its
//!   notification's key and its place within it, so that a record is one range and needs no index.
//! - Derived ids are random, so each stands in one narrow unique index and nowhere else.
//! - What is asked for often has a partial index that holds only the rows that can be the answer;
//!   no statement walks what is merely remembered.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use thiserror::Error;

use crate::ports::StoreError;

/// Version of the layout below. An older Belfry refuses a newer file.
pub const VERSION: i64 = 7;

/// `BELF`: tells our files from other programs' SQLite files.
pub const APPLICATION: i64 = 0x4245_4c46;

/// Room for a notification's deliveries within its key space (2¹²; the API allows 50).
pub const SLOTS: i64 = 4096;

/// Why a database file is not used.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("another Belfry has {0} open: stop it, or give this one a [store.sqlite] path of its own")]
    InUse(String),
    #[error("{path} was written by a newer Belfry (layout {found}; this one knows layout {known})")]
    Newer { path: String, found: i64, known: i64 },
    #[error("{0} is a database of another program")]
    Foreign(String),
    #[error("{0} is empty: put the database back, or move this file away to begin with an empty one")]
    Empty(String),
    #[error("cannot open {path}: {why}")]
    Io { path: String, why: String },
}

/// Set before the first table: later it would take a full rewrite of the file.
const FRESH: &str = "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;";

const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
-- Kept in the same transaction as the rows they count.
CREATE TABLE lanes (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  waiting INTEGER NOT NULL DEFAULT 0,
  sending INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE counts (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counts VALUES ('unknown', 0), ('parked', 0), ('outbox', 0);
CREATE TABLE owners (
  id INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  environment TEXT NOT NULL,
  UNIQUE (tenant, environment)
);

CREATE TABLE notifications (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  owner INTEGER NOT NULL,
  class TEXT NOT NULL,
  -- As of the latest write that was not a claim: what reads as waiting may be sending.
  state TEXT NOT NULL,
  reference TEXT,
  grp TEXT,
  remembered_until INTEGER NOT NULL,
  keep_content_ms INTEGER NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 0,
  -- Set once all deliveries ended.
  ended_at INTEGER,
  -- Failed and parked records stay while their window is open.
  hold_until INTEGER,
  content_due INTEGER,
  -- Keyed hash of the one that it names, where it names one: the first eight bytes.
  recipient INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX notification_ids ON notifications (id);
CREATE INDEX by_owner ON notifications (owner);
CREATE INDEX by_reference ON notifications (owner, reference) WHERE reference IS NOT NULL;
CREATE INDEX by_group ON notifications (owner, grp) WHERE grp IS NOT NULL;
CREATE INDEX by_rare_state ON notifications (owner, state)
  WHERE state IN ('parked', 'unknown', 'failed', 'bounced');
CREATE INDEX content_ages ON notifications (content_due) WHERE content_due IS NOT NULL;
CREATE INDEX record_ages ON notifications (ended_at) WHERE ended_at IS NOT NULL AND hold_until IS NULL;
CREATE INDEX hold_ages ON notifications (hold_until) WHERE hold_until IS NOT NULL;

-- seq = the notification's seq * 4096 + place within it.
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  siblings INTEGER NOT NULL,
  collapse INTEGER,
  lane INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  address INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  -- Four columns that a claim and a spend write alone; they overrule what the body says.
  state TEXT NOT NULL,
  alone INTEGER NOT NULL,
  -- Only while it waits.
  due_at INTEGER,
  rev INTEGER NOT NULL,
  -- Of the latest claim; survives its end, so that it only grows.
  fence INTEGER NOT NULL DEFAULT 0,
  spent INTEGER NOT NULL,
  -- The latest settle: a repeat of it after a lost reply is told Done, not Stale.
  done_fence INTEGER NOT NULL DEFAULT 0,
  done_nonce INTEGER NOT NULL DEFAULT 0,
  done_rev INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  receipt_until INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX delivery_ids ON deliveries (id);
CREATE INDEX due_turns ON deliveries (lane, alone, tenant, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX due_order ON deliveries (lane, alone, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX receipt_ages ON deliveries (receipt_until) WHERE receipt_until IS NOT NULL;
CREATE INDEX unknown_ages ON deliveries (ended_at) WHERE state = 'unknown';
CREATE INDEX by_address ON deliveries (address);

-- Small and hot: a renewal rewrites a row of 60 bytes and no record.
CREATE TABLE claims (
  id BLOB PRIMARY KEY,
  delivery INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  nonce INTEGER NOT NULL,
  worker TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  alone INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX claim_lapses ON claims (lease_until);
CREATE INDEX claim_nonces ON claims (nonce, delivery);

-- Frozen content, under the notification's seq; purged before it.
CREATE TABLE inputs (seq INTEGER PRIMARY KEY, template INTEGER, body TEXT NOT NULL);
CREATE INDEX inputs_by_template ON inputs (template) WHERE template IS NOT NULL;

CREATE TABLE tombstones (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  fingerprint NOT NULL,
  state TEXT NOT NULL,
  remembered_until INTEGER NOT NULL
);
CREATE UNIQUE INDEX tombstone_ids ON tombstones (id);
CREATE INDEX tombstone_ages ON tombstones (remembered_until);

CREATE TABLE collapse_groups (
  id INTEGER PRIMARY KEY,
  grp TEXT NOT NULL UNIQUE,
  newest INTEGER NOT NULL,
  kept_until INTEGER NOT NULL
);
CREATE INDEX collapse_ages ON collapse_groups (kept_until);

CREATE TABLE templates (
  id INTEGER PRIMARY KEY,
  version TEXT NOT NULL UNIQUE,
  files TEXT NOT NULL,
  kept_at INTEGER NOT NULL,
  -- Number of the opening that last asked to keep it.
  session INTEGER NOT NULL
);
CREATE INDEX template_ages ON templates (kept_at);

CREATE TABLE api_keys (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX api_key_hashes ON api_keys (hash);
CREATE INDEX api_key_ages ON api_keys (created_at);

-- AUTOINCREMENT: a number never comes back, not even after the newest message was cleared.
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  owner INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX outbox_by_owner ON outbox (owner);
CREATE INDEX outbox_by_recipient ON outbox (owner, recipient);
";

/// Stored recipients; layout 2 had none.
const RECIPIENTS: &str = "
CREATE TABLE profiles (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX profile_names ON profiles (owner, recipient);

CREATE TABLE devices (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  app TEXT,
  -- Keyed hash of the current one.
  token TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX device_names ON devices (owner, recipient, id);
CREATE INDEX device_tokens ON devices (owner, token);

CREATE TABLE dead_tokens (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  id TEXT NOT NULL,
  -- The moment in 15 digits, then the id: the order of the list.
  place TEXT NOT NULL,
  heard_at INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX dead_names ON dead_tokens (owner, id);
CREATE INDEX dead_places ON dead_tokens (owner, place);
CREATE INDEX dead_ages ON dead_tokens (heard_at);
";

/// Places in the ledgers of caps; layout 5 had none.
const CAPS: &str = "
CREATE TABLE cap_places (
  seq INTEGER PRIMARY KEY,
  ledger BLOB NOT NULL,
  reservation BLOB NOT NULL,
  -- The latest moment at which its call may have reached somebody.
  latest INTEGER NOT NULL,
  -- When it counts no more, by the window at its take.
  gone_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX cap_reservations ON cap_places (ledger, reservation);
CREATE INDEX cap_moments ON cap_places (ledger, latest);
CREATE INDEX cap_ages ON cap_places (gone_at);
";

/// Layout 6 had none. Few: they are read whole.
const PAUSES: &str = "CREATE TABLE pauses (id BLOB PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;";

const BY_RECIPIENT: &str = "CREATE INDEX by_recipient ON notifications (recipient) WHERE recipient IS NOT NULL;";

/// Layout 4 had none.
const SUPPRESSIONS: &str = "
CREATE TABLE suppressions (
  seq INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,
  -- The two halves of its id, of which the first says the owner as well.
  address BLOB NOT NULL,
  word BLOB NOT NULL,
  -- Since when in 15 digits, then the id: the order of the list.
  place TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX suppression_ids ON suppressions (address, word);
CREATE INDEX suppression_places ON suppressions (owner, place);
";

/// Layout 1 kept in the body what a claim needs and a spend changes, and of actions their keys alone.
const TO_2: &str = "BEGIN IMMEDIATE;
ALTER TABLE deliveries ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
UPDATE deliveries SET lease_ms = json_extract(body, '$.lease_ms'), spent = json_extract(body, '$.spent'),
  body = json_remove(body, '$.actions');
PRAGMA user_version = 2;
COMMIT;";

/// To be called on every connection before its first statement. Without it SQLite plans a statement
/// anew whenever a parameter gets another value; with it a statement has the one plan that is tested.
///
/// # Errors
/// Whatever SQLite says.
pub fn steady(conn: &Connection, statements: usize) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(statements);
    Ok(())
}

/// Creates the tables in a fresh database.
///
/// # Errors
/// Whatever SQLite says.
pub fn create(conn: &Connection) -> rusqlite::Result<()> {
    let marks = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};");
    let tables = format!("{TABLES} {RECIPIENTS} {BY_RECIPIENT} {SUPPRESSIONS} {CAPS} {PAUSES}");
    conn.execute_batch(&format!("BEGIN IMMEDIATE; {tables} {marks} COMMIT;"))
}

/// Makes a database in an empty file. It may be moved afterwards: nothing of it stands elsewhere.
///
/// # Errors
/// [`OpenError::Io`] with what SQLite says.
pub fn create_file(path: &Path) -> Result<(), OpenError> {
    let io = |error: rusqlite::Error| OpenError::Io { path: path.display().to_string(), why: error.to_string() };
    let conn = Connection::open(path).map_err(io)?;
    conn.execute_batch(FRESH).map_err(io)?;
    create(&conn).map_err(io)?;
    conn.close().map_err(|(_, error)| io(error))
}

/// Sets up the writer's connection to a file. `path` names it in errors.
///
/// # Errors
/// [`OpenError`] where the file is not one that this version may write.
pub fn prepare_file(conn: &Connection, path: &str) -> Result<(), OpenError> {
    let io = |error: rusqlite::Error| OpenError::Io { path: path.into(), why: error.to_string() };
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(io)?;
    let application: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(io)?;
    let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(io)?;
    if objects == 0 && found == 0 && application == 0 {
        return Err(OpenError::Empty(path.into()));
    }
    if application != APPLICATION {
        return Err(OpenError::Foreign(path.into()));
    }
    if found > VERSION {
        return Err(OpenError::Newer { path: path.into(), found, known: VERSION });
    }
    if found < 2 {
        conn.execute_batch(TO_2).map_err(io)?;
    }
    if found < 3 {
        let to_3 = format!("BEGIN IMMEDIATE; {RECIPIENTS} PRAGMA user_version = 3; COMMIT;");
        conn.execute_batch(&to_3).map_err(io)?;
    }
    if found < 4 {
        // What was accepted before named its recipient in its content only, and is not found by it.
        let column = "ALTER TABLE notifications ADD COLUMN recipient INTEGER;";
        let to_4 = format!("BEGIN IMMEDIATE; {column} {BY_RECIPIENT} PRAGMA user_version = 4; COMMIT;");
        conn.execute_batch(&to_4).map_err(io)?;
    }
    for (version, tables) in [(5, SUPPRESSIONS), (6, CAPS), (7, PAUSES)] {
        if found < version {
            let up = format!("BEGIN IMMEDIATE; {tables} PRAGMA user_version = {version}; COMMIT;");
            conn.execute_batch(&up).map_err(io)?;
        }
    }
    tune(conn).map_err(io)
}

/// Sets up a connection that writes.
///
/// # Errors
/// Whatever SQLite says.
pub fn tune(conn: &Connection) -> rusqlite::Result<()> {
    // NORMAL: a commit goes into the log, and the log to the disk by the syncer, for which answers
    // wait; the thread that writes does not. A larger checkpoint lets hot pages be rewritten in the log many times and in the file once.
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;
         PRAGMA busy_timeout = 2000;",
    )
}

/// Whether these are our tables, of this version.
///
/// # Errors
/// [`StoreError::Unavailable`] where they are not.
pub fn check(conn: &Connection) -> Result<(), StoreError> {
    let application: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if (application, version) != (APPLICATION, VERSION) {
        return Err(StoreError::Unavailable("the database file was replaced".into()));
    }
    Ok(())
}

/// Sets up a connection that only reads.
///
/// # Errors
/// Whatever SQLite says.
pub fn prepare_reader(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "PRAGMA query_only = ON; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY; PRAGMA busy_timeout = 2000;",
    )?;
    steady(conn, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_what_the_statements_say() {
        assert!(super::super::sql::DELIVERIES_OF.contains(&SLOTS.to_string()));
        assert!(TABLES.contains(&format!("* {SLOTS} +")));
    }
}
