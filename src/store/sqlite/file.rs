//! The database file: who may open it, and how its connections are made.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::schema::{self, OpenError};
use crate::ports::StoreError;

/// A database file that no other process has open: its lock is held until this is dropped. The lock
/// is what proves, at the next start, that the claims of this process are dead.
pub struct DatabaseFile {
    path: PathBuf,
    /// What stands at the path while this is our file: device and number.
    file: (u64, u64),
    _lock: File,
}

impl DatabaseFile {
    /// Creates what is missing, for the owner's eyes only, and takes the lock.
    ///
    /// # Errors
    /// [`OpenError::InUse`] where another holds it.
    pub fn lock(path: &Path) -> Result<Self, OpenError> {
        let io = |error: std::io::Error| OpenError::Io { path: path.display().to_string(), why: error.to_string() };
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io)?;
            // Else a power cut right after the first accept could take the new folder with it.
            let above = parent.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(above).and_then(|folder| folder.sync_all()).map_err(io)?;
        }
        let private = |path: &Path| {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(io)
        };
        // SQLite's own locks are not held between transactions.
        let lock = private(&beside(path, ".lock"))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(OpenError::InUse(path.display().to_string())),
            Err(error) => return Err(io(error.into())),
        }
        if !path.try_exists().map_err(io)? {
            // Made aside and put there whole: an empty file at the path is never one of ours, and is
            // not taken for a store that remembers nothing yet.
            let aside = beside(path, ".new");
            // What an opening that was killed left: its log would be played into the new file.
            for ending in ["", "-wal", "-shm", "-journal"] {
                match fs::remove_file(beside(&aside, ending)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
                    Ok(()) | Err(_) => {}
                }
            }
            private(&aside)?;
            schema::create_file(&aside)?;
            File::open(&aside).and_then(|file| file.sync_all()).map_err(io)?;
            fs::rename(&aside, path).map_err(io)?;
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        }
        let file = identity(path).map_err(io)?;
        Ok(Self { path: path.to_owned(), file, _lock: lock })
    }

    /// Whether our file still stands at its path. What is written to one that was removed or replaced
    /// is lost when this process ends.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where it does not; it may be put back.
    pub fn in_place(&self) -> Result<(), StoreError> {
        match identity(&self.path) {
            Ok(found) if found == self.file => Ok(()),
            Ok(_) => Err(StoreError::Unavailable("its file was replaced".into())),
            Err(error) => Err(StoreError::Unavailable(format!("its file: {}", error.kind()))),
        }
    }

    /// The connection that writes.
    ///
    /// # Errors
    /// [`OpenError`] where the file is not one to write.
    pub fn writer(&self) -> Result<Connection, OpenError> {
        let name = self.path.display().to_string();
        let conn = self.connect().map_err(|error| OpenError::Io { path: name.clone(), why: error.to_string() })?;
        schema::prepare_file(&conn, &name)?;
        Ok(conn)
    }

    /// A writing connection after a failure of the one before. Creates nothing: a file that was
    /// emptied or replaced meanwhile is not this store.
    ///
    /// # Errors
    /// [`StoreError`] until the cause is gone.
    pub fn reopen(&self) -> Result<Connection, StoreError> {
        let conn = self.connect()?;
        schema::check(&conn)?;
        schema::tune(&conn)?;
        Ok(conn)
    }

    /// The log beside the database, to be synced. It is there while a connection is open.
    ///
    /// # Errors
    /// [`StoreError`] where it is not.
    pub fn log(&self) -> Result<File, StoreError> {
        File::open(beside(&self.path, "-wal"))
            .map_err(|error| StoreError::Unavailable(format!("its log: {}", error.kind())))
    }

    /// A connection that only reads.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub fn reader(&self) -> rusqlite::Result<Connection> {
        let conn = self.connect()?;
        schema::prepare_reader(&conn)?;
        Ok(conn)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        // Never creating: a file that went away is an error to recover from, not a fresh store.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.path, flags)
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
