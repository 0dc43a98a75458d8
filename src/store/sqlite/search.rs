//! Search: newest first along the index of the narrowest filter, the others compared on the way.
//! One call walks a bounded number of records; a page may then be short of its limit, or empty,
//! and still say where to go on.

use belfry_domain::delivery::StateName;
use belfry_domain::notification::Record;
use rusqlite::{OptionalExtension, params};

use super::core::Result;
use super::read::Reads;
use super::rows::{Named, address_key};
use super::sql;
use crate::ports::deliveries::{Page, Query};

/// Most records looked at for one page.
const MOST_WALKED: i64 = 2_000;

impl Reads<'_> {
    /// # Errors
    /// As [`Reads::read`].
    pub fn search(&self, query: &Query) -> Result<Page> {
        let Some(owner) = self.owner(&query.owner)? else { return Ok(Page::default()) };
        // A made-up position past all of them is the same as none.
        let end = i64::MAX / super::schema::SLOTS;
        let before = query.after.and_then(|after| i64::try_from(after).ok()).map_or(end, |after| after.min(end));
        let mut walked = self.candidates(query, owner, before)?;
        let full = i64::try_from(walked.len()).is_ok_and(|walked| walked == MOST_WALKED);
        let last = walked.last().copied();
        // Several deliveries of one record may have been to one address.
        walked.dedup();
        let limit = usize::from(query.limit.clamp(1, 100));
        let mut page =
            Page { records: Vec::new(), next: last.filter(|_| full).and_then(|seq| u64::try_from(seq).ok()) };
        let count = walked.len();
        for (place, seq) in walked.into_iter().enumerate() {
            let Some(record) = self.matching(query, owner, seq)? else { continue };
            page.records.push(record);
            if page.records.len() == limit {
                let more = place + 1 < count || full;
                page.next = u64::try_from(seq).ok().filter(|_| more);
                break;
            }
        }
        Ok(page)
    }

    fn candidates(&self, query: &Query, owner: i64, before: i64) -> Result<Vec<i64>> {
        let rare = query.rare_state();
        let numbered = |sql, number| {
            let mut statement = self.conn.prepare_cached(sql)?;
            let found = statement.query_map([number, before, MOST_WALKED], |row| row.get(0))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        };
        let (sql, value) = if let Some(hash) = &query.address_hash {
            return numbered(sql::BY_ADDRESS, address_key(hash));
        } else if let Some(recipient) = &query.recipient {
            return numbered(sql::BY_RECIPIENT, address_key(&recipient.hash));
        } else if let Some(reference) = &query.reference {
            (sql::BY_REFERENCE, reference.as_str())
        } else if let Some(group) = &query.group {
            (sql::BY_GROUP, group.as_str())
        } else if let Some(state) = rare {
            (sql::BY_RARE_STATE, state.name())
        } else {
            return numbered(sql::BY_OWNER, owner);
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        let found = statement.query_map(params![owner, before, MOST_WALKED, value], |row| row.get(0))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// The record if all filters hold. Columns first: most candidates need no more.
    fn matching(&self, query: &Query, owner: i64, seq: i64) -> Result<Option<Record>> {
        let same = |asked: &Option<String>, stored: Option<String>| asked.is_none() || *asked == stored;
        let mut statement = self.conn.prepare_cached(sql::NOTIFICATION)?;
        let fits = statement
            .query_row([seq], |row| {
                Ok(row.get::<_, i64>("owner")? == owner
                    && same(&query.class, row.get("class")?)
                    && same(&query.reference, row.get("reference")?)
                    && same(&query.group, row.get("grp")?)
                    && query.state.is_none_or(|state| row.get("state").is_ok_and(|is: Named| may_be(is.0, state))))
            })
            .optional()?;
        if fits != Some(true) {
            return Ok(None);
        }
        Ok(self.record(seq)?.filter(|record| query.fits(record)))
    }
}

/// Whether a record whose column says `stored` may be in `asked`: a claim leaves the column as it
/// was, so what reads as waiting is somewhere before its end.
fn may_be(stored: StateName, asked: StateName) -> bool {
    let waiting = |state| matches!(state, StateName::Scheduled | StateName::Queued | StateName::Deferred);
    stored == asked || (waiting(stored) && (waiting(asked) || asked == StateName::Sending))
}
