//! What SQLite says, as what a caller can do about it. Never carries a value from a row.

use rusqlite::{Error, ErrorCode};

use crate::ports::StoreError;

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Corrupt("the database file".into()),
                ErrorCode::DiskFull => Self::Unavailable("the disk is full".into()),
                code => Self::Unavailable(format!("SQLite: {code:?} ({})", failure.extended_code)),
            },
            Error::FromSqlConversionFailure(column, ..) => Self::Corrupt(format!("column {column} of a row")),
            Error::InvalidColumnType(_, column, _) => {
                Self::Corrupt(format!("column {column:?} of a row").replace('"', ""))
            }
            // Everything else is a statement that does not fit its use: a bug, and nothing was written.
            other => Self::Unavailable(format!("SQLite: {}", kind(&other))),
        }
    }
}

fn kind(error: &Error) -> String {
    let text = format!("{error:?}");
    text.chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// A body that does not read back.
pub fn unreadable(what: &str) -> impl Fn(serde_json::Error) -> StoreError + '_ {
    // Position and kind only: serde's own words may quote a value.
    move |error| StoreError::Corrupt(format!("{what}: {:?} error at column {}", error.classify(), error.column()))
}

/// A body that cannot be written as JSON.
pub fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::Unavailable(format!("a record cannot be written: {:?}", error.classify()))
}
