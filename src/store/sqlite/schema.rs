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

use super::tables::{ALL, UPGRADES};
use crate::ports::StoreError;

/// Version of the layout of [`super::tables`]. An older Belfry refuses a newer file.
pub const VERSION: i64 = 12;

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
    let tables = ALL.concat();
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
    for step in UPGRADES.iter().filter(|step| found < step.to) {
        let (changes, to) = (step.changes.concat(), step.to);
        let upgrade = format!("BEGIN IMMEDIATE; {changes} PRAGMA user_version = {to}; COMMIT;");
        conn.execute_batch(&upgrade).map_err(io)?;
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
        assert!(ALL.concat().contains(&format!("* {SLOTS} +")));
    }
}
