//! How values stand in columns.

use belfry_domain::delivery::StateName;
use belfry_domain::notification::least_finished;
use belfry_domain::{Delivery, DeliveryId, Key, Notification, NotificationId, State, UnixMs};
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use super::core::Result;
use super::errors::{unreadable, unwritable};

/// SQLite's integers are signed: all 64 bits are kept as they are.
pub const fn signed(value: u64) -> i64 {
    value.cast_signed()
}

pub const fn unsigned(value: i64) -> u64 {
    value.cast_unsigned()
}

/// A derived id as its twelve bytes.
pub struct IdBytes(pub Key);

impl FromSql for IdBytes {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = value.as_blob()?.try_into().map_err(|_| FromSqlError::InvalidType)?;
        Ok(Self(Key::from_bytes(bytes)))
    }
}

pub const fn delivery_key(id: &DeliveryId) -> &[u8] {
    id.0.as_bytes()
}

pub const fn notification_key(id: &NotificationId) -> &[u8] {
    id.0.as_bytes()
}

/// A state by its name.
pub struct Named(pub StateName);

impl FromSql for Named {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(|_| FromSqlError::InvalidType)
    }
}

/// A fingerprint: 32 bytes where it is the usual hex, the text itself where it is not.
pub struct Print(pub String);

impl FromSql for Print {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Blob(bytes) => Ok(Self(belfry_domain::hex(bytes))),
            other => other.as_str().map(|text| Self(text.to_owned())),
        }
    }
}

impl rusqlite::ToSql for Print {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(match unhex(&self.0) {
            Some(bytes) => bytes.into(),
            None => self.0.as_str().into(),
        })
    }
}

/// Only what reads back the same: an even number of lowercase digits.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks_exact(2);
    if text.is_empty() || !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// The index key of an address's or a recipient's hash: its first eight bytes as they stand. Equal hashes have equal
/// keys; the hash itself is compared in the record.
pub fn address_key(hash: &str) -> i64 {
    let prefix = unhex(hash.get(..16).unwrap_or_default()).unwrap_or_else(|| hash.as_bytes().to_vec());
    let mut key = [0; 8];
    key.iter_mut().zip(prefix).for_each(|(to, from)| *to = from);
    i64::from_be_bytes(key)
}

/// A delivery as its row has it: the body, and the columns that overrule it, because a claim and a
/// spend write those alone.
pub struct Stored {
    pub state: StateName,
    pub rev: u64,
    pub fence: u64,
    pub spent: bool,
    body: String,
}

impl Stored {
    /// From a row that begins with `state, rev, fence, spent, body`.
    pub fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Self::from(row, 0)
    }

    /// The same where these columns begin at `first`.
    pub fn from(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            state: row.get::<_, Named>(first)?.0,
            rev: unsigned(row.get(first + 1)?),
            fence: unsigned(row.get(first + 2)?),
            spent: row.get(first + 3)?,
            body: row.get(first + 4)?,
        })
    }

    /// # Errors
    /// [`crate::ports::StoreError::Corrupt`] where the body is no delivery.
    pub fn read(&self) -> Result<Delivery> {
        let mut delivery: Delivery = serde_json::from_str(&self.body).map_err(unreadable("a delivery"))?;
        delivery.rev = self.rev;
        delivery.spent = self.spent;
        if self.state == StateName::Sending {
            delivery.state = State::Sending { fence: self.fence };
        }
        Ok(delivery)
    }
}

/// The delivery of a row that begins with `state, rev, fence, spent, body`.
pub fn delivery(row: &Row<'_>) -> Result<Delivery> {
    Stored::of(row)?.read()
}

pub fn notification(body: &str) -> Result<Notification> {
    serde_json::from_str(body).map_err(unreadable("a notification"))
}

pub fn text(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}

pub fn lease_ms(delivery: &Delivery) -> i64 {
    bounded_ms(u64::try_from(delivery.lease.as_millis()).unwrap_or(u64::MAX))
}

/// What a delivery's own columns say besides its body.
pub struct Columns {
    pub state: StateName,
    pub alone: bool,
    pub due_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub receipt_until: Option<i64>,
}

impl Columns {
    pub fn of(delivery: &Delivery) -> Self {
        let open_receipt = matches!(delivery.state, State::Accepted) && !delivery.ended();
        Self {
            state: delivery.state.name(),
            alone: delivery.claim_alone(),
            due_at: delivery.state.waiting().then_some(delivery.due_at.0),
            ended_at: delivery.ended_at.map(|at| at.0),
            receipt_until: delivery.receipt_until.filter(|_| open_receipt).map(|at| at.0),
        }
    }
}

/// What all deliveries of a notification come to.
pub struct Rollup {
    pub state: StateName,
    /// Once all have ended.
    pub ended_at: Option<i64>,
    /// One is failed or parked: its content is kept while a person may want to redrive it.
    pub held: bool,
}

impl Rollup {
    pub fn of(states: &[(StateName, Option<i64>)]) -> Self {
        let ended: Option<Vec<i64>> = states.iter().map(|(_, ended)| *ended).collect();
        Self {
            state: least_finished(states.iter().map(|(state, _)| *state)),
            ended_at: ended.and_then(|all| all.into_iter().max()),
            held: states.iter().any(|(state, _)| matches!(state, StateName::Failed | StateName::Parked)),
        }
    }
}

/// Milliseconds that stay an integer in any sum with an instant: SQLite turns an overflow into a
/// float.
pub fn bounded_ms(ms: u64) -> i64 {
    const FAR: i64 = 1 << 53;
    i64::try_from(ms).map_or(FAR, |ms| ms.min(FAR))
}

/// An instant from a column.
pub const fn at(ms: i64) -> UnixMs {
    UnixMs(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_print_reads_back_whatever_it_is() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        for text in ["00ff", &"ab".repeat(32), "", "f", "FF", "zz", "é"] {
            let back: Print = conn.query_row("SELECT ?1", [Print(text.into())], |row| row.get(0)).unwrap();
            assert_eq!(back.0, text);
        }
    }

    #[test]
    fn equal_hashes_have_equal_keys() {
        assert_eq!(address_key(&"0f".repeat(32)), 0x0f0f_0f0f_0f0f_0f0f);
        assert_eq!(address_key("0f0f0f0f0f0f0f0fxyz"), 0x0f0f_0f0f_0f0f_0f0f);
        assert_ne!(address_key("ann"), address_key("bob"));
        assert_eq!(address_key(""), 0);
        assert_eq!(address_key("ééééééééé"), address_key("ééééééééé"));
    }
}
