//! Makes the digests that are due. Any number of nodes do: whoever comes second finds what the first has made, and after
//! a crash another goes on where it broke off. Decides nothing itself: what becomes of an item is the domain's, how a
//! digest is made [`crate::intake::digests`]'s.

use std::sync::Arc;
use std::time::Duration;

use belfry_domain::UnixMs;
use futures::StreamExt as _;
use futures::stream;

use crate::facts::{Fact, FactSink};
use crate::intake::accept::Intake;
use crate::intake::digests::Folded;
use crate::ports::StoreError;
use crate::ports::clock::{Clock, Dice};
use crate::ports::gatherings::{DueSlot, Gatherings};
use crate::ports::holds::Holds;

/// The longest between two looks: what another node has put in is found then.
const EVERY: Duration = Duration::from_secs(1);

/// Slots that one look takes.
const AT_ONCE: u16 = 64;

/// Slots that are worked on at the same time.
const TOGETHER: usize = 8;

/// What cannot go out now is looked at again after this.
const AGAIN: Duration = Duration::from_secs(10);

pub struct Deps {
    pub intake: Arc<Intake>,
    pub gatherings: Arc<dyn Gatherings>,
    pub holds: Arc<dyn Holds>,
    pub clock: Arc<dyn Clock>,
    pub dice: Arc<dyn Dice>,
    pub facts: Arc<dyn FactSink>,
}

/// Looks until it is dropped, which may be at any point.
pub async fn run(deps: Deps) {
    loop {
        let now = deps.clock.now();
        let wait = match deps.round(now).await {
            Ok(next) => next.map_or(EVERY, |next| next.since(now).min(EVERY)),
            Err(why) => {
                deps.facts.record(&Fact::StoreUnavailable { verb: "gatherings", why });
                EVERY
            }
        };
        // Never twice in one moment: a clock that stands still must not make this spin.
        deps.clock.sleep_until(deps.clock.boot() + wait.max(Duration::from_millis(1))).await;
    }
}

impl Deps {
    /// One look. When to look again, where that is known.
    ///
    /// # Errors
    /// [`StoreError`]: the next look goes on.
    pub async fn round(&self, now: UnixMs) -> Result<Option<UnixMs>, StoreError> {
        let due = self.gatherings.due(now, AT_ONCE).await?;
        if due.slots.is_empty() {
            return Ok(due.next);
        }
        // What was due before the store was restored from a backup may have gone out between.
        let held = self.holds.standing().await?;
        let mut slots = due.slots;
        // Several nodes look at the same time: each begins elsewhere.
        let first = usize::try_from(self.dice.roll() % slots.len() as u64).unwrap_or(0);
        slots.rotate_left(first);
        let full = slots.len() == usize::from(AT_ONCE);
        let folds = slots.into_iter().map(|slot| self.fold(slot, held));
        let ends: Vec<_> = stream::iter(folds).buffer_unordered(TOGETHER).collect().await;
        ends.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(if full { Some(now) } else { due.next })
    }

    async fn fold(&self, due: DueSlot, held: Option<UnixMs>) -> Result<(), StoreError> {
        let folded = match held {
            Some(held) if due.slot.until <= held => Folded::Later,
            _ => match self.intake.fold(&due).await {
                // Nothing that cannot be read holds up what stands beside it.
                Err(why @ StoreError::Corrupt(_)) => {
                    self.facts.record(&Fact::StoreUnavailable { verb: "gatherings", why });
                    Folded::Later
                }
                folded => folded?,
            },
        };
        match folded {
            Folded::All => Ok(()),
            Folded::Later => self.gatherings.put_off(due.slot, self.clock.now().plus(AGAIN)).await,
        }
    }
}
