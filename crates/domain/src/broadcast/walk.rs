//! The walk: who does it, how many rows may be next, and what became of them.

use super::{Broadcast, Counts, Cursor, Halt, MOST_TOLD, RowProblem, State, Walker};
use crate::time::UnixMs;

/// What became of the rows of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    pub counts: Counts,
    pub refused: Vec<RowProblem>,
    /// Where to go on.
    pub to: Cursor,
}

impl Broadcast {
    /// Whether rows may be walked now, but for how many.
    #[must_use]
    pub fn is_due(&self, now: UnixMs) -> bool {
        self.state == State::Running && self.plan.starts_at.is_none_or(|at| at <= now)
    }

    #[must_use]
    pub fn is_walked_by(&self, node: &str) -> bool {
        self.state == State::Running && self.walker.as_ref().is_some_and(|walker| walker.node == node)
    }

    /// `node` walks it from now on, whoever did before.
    #[must_use]
    pub fn taken(&self, node: &str) -> Self {
        let fence = self.fence + 1;
        Self { walker: Some(Walker { node: node.to_owned(), fence }), fence, ..self.next() }
    }

    /// Its walker is still there: others see that it was written.
    #[must_use]
    pub fn renewed(&self) -> Self {
        self.next()
    }

    /// How many rows may be walked before somebody has to look; none: all.
    #[must_use]
    pub fn until_canary(&self) -> Option<u64> {
        let canary = self.plan.canary.filter(|_| !self.canary_over)?;
        Some(canary.saturating_sub(self.counts.walked))
    }

    /// After a step. It may be through by that, or at the end of its canary.
    #[must_use]
    pub fn stepped(&self, step: Walked, now: UnixMs) -> Self {
        let mut walked = Self { cursor: step.to, counts: self.counts.plus(&step.counts), ..self.clone() };
        walked.refused.extend(step.refused);
        walked.refused.truncate(MOST_TOLD);
        if walked.audience.is_none_or(|audience| step.to.chunk >= audience.chunks) {
            return walked.ended(State::Done, now);
        }
        match walked.until_canary() {
            Some(0) => walked.halted(Halt::Canary),
            _ => walked.next(),
        }
    }

    /// Rows that should be there are not: somebody has to give the file again.
    #[must_use]
    pub fn lost_rows(&self) -> Self {
        self.halted(Halt::RowsLost)
    }
}

impl Counts {
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            walked: self.walked + other.walked,
            accepted: self.accepted + other.accepted,
            scheduled: self.scheduled + other.scheduled,
            suppressed: self.suppressed + other.suppressed,
            repeats: self.repeats + other.repeats,
            differing: self.differing + other.differing,
            refused: self.refused + other.refused,
        }
    }
}
