//! What is said of a delivery, in place of its own reason, because of what stands around it: a hold, a pause, an open
//! circuit, its provider's pace.

use crate::breaker::OpenWhy;
use crate::delivery::{DeferWhy, Delivery, State};
use crate::explain::without_stop;
use crate::time::UnixMs;
use crate::warm_up::WarmDay;

impl Delivery {
    /// Whether it is held because the store was restored from a backup at `restored`: it was due then.
    #[must_use]
    pub fn held_back(&self, restored: Option<UnixMs>) -> bool {
        self.state.waiting() && restored.is_some_and(|restored| self.due_at <= restored)
    }

    /// What is said of it then, instead of [`Self::reason`]. `restored`: that moment, as people read it.
    #[must_use]
    pub fn reason_held_back(&self, restored: &str) -> String {
        let copies = self.copies().map(|copies| format!(" {copies}")).unwrap_or_default();
        format!(
            "Held back: the store was restored from a backup at {restored} and this was due by then, so it may have \
             been sent before. Whoever runs the server releases or cancels it (belfry restored).{copies}"
        )
    }

    /// Whether a pause that covers it is what it waits for at `now`: it is due, or was put off because of one.
    #[must_use]
    pub fn waits_for_pause(&self, now: UnixMs) -> bool {
        let paused = matches!(self.state, State::Deferred { why: DeferWhy::Paused, .. });
        self.state.waiting() && (paused || self.due_at <= now)
    }

    /// What is said of it then, instead of [`Self::reason`]. `what` is paused, `since` when and `until` when, as people
    /// read them, and `why`, in an operator's own words.
    #[must_use]
    pub fn reason_paused(&self, what: &str, since: &str, (until, why): (Option<&str>, Option<&str>)) -> String {
        let copies = self.copies().map(|copies| format!(" {copies}")).unwrap_or_default();
        let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
        let why = why.map(|why| format!(": {}", without_stop(why))).unwrap_or_default();
        format!("Held: {what} is paused since {since}{until}{why}.{copies}")
    }

    /// What is said of it, instead of [`Self::reason`], while its provider's circuit is open: it is due and nothing
    /// claims it. `since`: when it opened, as people read it. Nothing of what waits for another reason.
    #[must_use]
    pub fn reason_behind_circuit(&self, why: OpenWhy, since: &str, now: UnixMs) -> Option<String> {
        let waits = match self.state {
            State::Queued | State::Deferred { why: DeferWhy::Breaker, .. } => true,
            State::Scheduled { .. } | State::Deferred { .. } => self.due_at <= now,
            _ => false,
        };
        let copies = self.copies().map(|copies| format!(" {copies}")).unwrap_or_default();
        waits.then(|| format!("Waiting: nothing goes through its provider since {since}: {}.{copies}", why.hint()))
    }

    /// What is said of it, instead of [`Self::reason`], where its provider has a pace: it is due, and its turn has not
    /// come. `often`: how often the provider may be called, as people read it (`50 times in 1d`).
    #[must_use]
    pub fn reason_paced(&self, often: &str, warming: Option<WarmDay>, now: UnixMs) -> Option<String> {
        let waits = self.state.waiting() && self.due_at <= now;
        let day = warming.map(|WarmDay { day, of }| format!(", on day {day} of {of} of its warm-up"));
        let day = day.unwrap_or_default();
        waits.then(|| format!("{} Its provider is called at most {often}{day}.", self.reason()))
    }
}
