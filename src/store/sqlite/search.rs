//! Search: newest first along the index of the narrowest filter, the others compared on the way.
//! One call walks a bounded number of records.

use belfry_domain::delivery::StateName;
use belfry_domain::notification::Record;
use rusqlite::{OptionalExtension, params};

use super::core::Result;
use super::read::Reads;
use super::rows::{self, Named, address_key};
use super::sql;
use crate::ports::search::{MOST_WALKED, Page, Query};

/// What came of a look at one record.
struct Looked {
    /// Where all filters hold.
    found: Option<Record>,
    /// [`Query::is_long_past`].
    long_past: bool,
}

impl Reads<'_> {
    /// # Errors
    /// As [`Reads::read`].
    pub fn search(&self, query: &Query) -> Result<Page> {
        let Some(owner) = self.owner(&query.owner)? else { return Ok(Page::default()) };
        if let Some((ids, next)) = query.named() {
            let mut page = Page { records: Vec::new(), next };
            for id in ids {
                let Some(seq) = self.seq_of(*id)? else { continue };
                page.records.extend(self.look(query, owner, seq)?.found);
            }
            return Ok(page);
        }
        // A made-up position past all of them is the same as none.
        let end = i64::MAX / super::schema::SLOTS;
        let before = query.after.and_then(|after| i64::try_from(after).ok()).map_or(end, |after| after.min(end));
        let mut walked = self.candidates(query, owner, before)?;
        let full = walked.len() == MOST_WALKED;
        let last = walked.last().copied();
        // Several deliveries of one record may have been to one address.
        walked.dedup();
        let limit = usize::from(query.limit.clamp(1, 100));
        let mut page =
            Page { records: Vec::new(), next: last.filter(|_| full).and_then(|seq| u64::try_from(seq).ok()) };
        let count = walked.len();
        let mut all_long_past = true;
        for (place, seq) in walked.into_iter().enumerate() {
            let looked = self.look(query, owner, seq)?;
            all_long_past &= looked.long_past;
            let Some(record) = looked.found else { continue };
            page.records.push(record);
            if page.records.len() == limit {
                let more = place + 1 < count || full;
                page.next = u64::try_from(seq).ok().filter(|_| more);
                return Ok(page);
            }
        }
        page.next = page.next.filter(|_| !all_long_past);
        Ok(page)
    }

    fn candidates(&self, query: &Query, owner: i64, before: i64) -> Result<Vec<i64>> {
        let rare = query.rare_state();
        let most = i64::try_from(MOST_WALKED).unwrap_or(i64::MAX);
        let numbered = |sql, number| {
            let mut statement = self.conn.prepare_cached(sql)?;
            let found = statement.query_map([number, before, most], |row| row.get(0))?;
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
        let found = statement.query_map(params![owner, before, most, value], |row| row.get(0))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// Columns first: most candidates need no more.
    fn look(&self, query: &Query, owner: i64, seq: i64) -> Result<Looked> {
        let same = |asked: &Option<String>, stored: Option<String>| asked.is_none() || *asked == stored;
        let mut statement = self.conn.prepare_cached(sql::NOTIFICATION)?;
        let row = statement
            .query_row([seq], |row| {
                let fits = row.get::<_, i64>("owner")? == owner
                    && same(&query.class, row.get("class")?)
                    && same(&query.reference, row.get("reference")?)
                    && same(&query.group, row.get("grp")?)
                    && query.state.is_none_or(|state| row.get("state").is_ok_and(|is: Named| may_be(is.0, state)));
                let needed = fits || query.accepted_from.is_some();
                let body = if needed { Some(row.get::<_, String>("body")?) } else { None };
                Ok((fits, row.get::<_, u32>("repeats")?, body))
            })
            .optional()?;
        let Some((fits, repeats, Some(body))) = row else { return Ok(Looked { found: None, long_past: false }) };
        if !fits {
            // One that cannot be read is no matter of a search that it is not in.
            let long_past = rows::notification(&body).is_ok_and(|it| query.is_long_past(it.created_at));
            return Ok(Looked { found: None, long_past });
        }
        let notification = rows::notification(&body)?;
        let long_past = query.is_long_past(notification.created_at);
        if !query.fits_notification(&notification) {
            return Ok(Looked { found: None, long_past });
        }
        let record = Record { notification, deliveries: self.deliveries_of(seq)?, repeats };
        Ok(Looked { found: Some(record).filter(|record| query.fits(record)), long_past })
    }
}

/// Whether a record whose column says `stored` may be in `asked`: a claim leaves the column as it
/// was, so what reads as waiting is somewhere before its end.
fn may_be(stored: StateName, asked: StateName) -> bool {
    let waiting = |state| matches!(state, StateName::Scheduled | StateName::Queued | StateName::Deferred);
    stored == asked || (waiting(stored) && (waiting(asked) || asked == StateName::Sending))
}
