//! How fast a broadcast goes: so many rows per so long, evenly, and never more for having waited.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::duration_ms;

/// `rows` rows per `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    rows: u32,
    #[serde(with = "duration_ms")]
    per: Duration,
}

/// Why numbers make no rate; of which of the two, and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRate {
    pub key: &'static str,
    pub problem: &'static str,
}

impl Rate {
    pub const MOST_ROWS: u32 = 1_000_000;
    pub const LEAST_PER: Duration = Duration::from_secs(1);
    pub const MOST_PER: Duration = Duration::from_secs(24 * 3600);

    /// # Errors
    /// [`NoRate`].
    pub fn new(rows: u32, per: Duration) -> Result<Self, NoRate> {
        if rows == 0 || rows > Self::MOST_ROWS {
            return Err(NoRate { key: "rows", problem: "must be from 1 to 1000000" });
        }
        if per < Self::LEAST_PER || per > Self::MOST_PER || !per.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(NoRate { key: "per", problem: "must be from 1s to 1d, in whole milliseconds" });
        }
        Ok(Self { rows, per })
    }

    #[must_use]
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    #[must_use]
    pub const fn per(&self) -> Duration {
        self.per
    }

    /// Between two rows.
    fn apart(&self) -> Duration {
        self.per / self.rows
    }
}

/// Longest rest that is made up for: a node that was held up goes on no faster than this much at once.
const SAVED: Duration = Duration::from_secs(1);

/// What a walker may do at a moment, by its own steady clock. Whoever takes over begins with one row.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    rate: Rate,
    /// When the next row may go.
    next: Duration,
}

impl Allowance {
    #[must_use]
    pub const fn new(rate: Rate, now: Duration) -> Self {
        Self { rate, next: now }
    }

    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// How many rows may go at `now`.
    #[must_use]
    pub fn rows(&self, now: Duration) -> u64 {
        let Some(rested) = now.checked_sub(self.next) else { return 0 };
        let rested = rested.min(SAVED).as_nanos();
        let rows = rested * u128::from(self.rate.rows) / self.rate.per.as_nanos();
        u64::try_from(rows).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// So many went at `now`.
    pub fn went(&mut self, rows: u64, now: Duration) {
        let from = self.next.max(now.saturating_sub(SAVED));
        let nanos = u128::from(rows) * self.rate.per.as_nanos() / u128::from(self.rate.rows);
        self.next = from + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    }

    /// When there is room for at least one more.
    #[must_use]
    pub const fn next(&self) -> Duration {
        self.next
    }

    /// When there is room for `rows` at once, or as many as a rest saves up.
    #[must_use]
    pub fn room_for(&self, rows: u32) -> Duration {
        self.next + (self.rate.apart() * rows.saturating_sub(1)).min(SAVED)
    }
}
