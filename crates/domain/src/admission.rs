//! What is decided at accept, and before every call on what was read after the claim. In this order, so that
//! the reason told is the same wherever several hold: expiry, cancellation, a newer version, suppression,
//! preferences, a pause, quiet hours; then the provider's pace; then caps, whose takes are the last thing
//! before the call (at most once: before *spent*).

use std::time::Duration;

use crate::caps::{Cap, Full, Then};
use crate::delivery::{DeferWhy, Delivery, Stop};
use crate::gather::Gather;
use crate::outcome::{Why, WhyCode};
use crate::pause::{self, Pause};
use crate::preferences::{Preferences, Switches};
use crate::quiet::QuietHours;
use crate::subject::Subject;
use crate::suppression::{self, Suppression};
use crate::time::UnixMs;

/// Whether the call may be made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Call,
    Expire,
    Stop(Stop),
    /// It ends here.
    Suppress(Why),
    /// To be asked again at `until`.
    Hold {
        until: UnixMs,
        why: DeferWhy,
    },
    /// It ends here because this cap is full, which has no room before `opens`.
    OverCap {
        cap: String,
        opens: UnixMs,
    },
    /// This cap is full. To be asked again at `until`.
    Capped {
        until: UnixMs,
        cap: String,
    },
}

/// A class's own rules of admission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// None for what wakes people on purpose: login codes, security alerts.
    pub quiet_hours: Option<QuietHours>,
    /// What a recipient gets who said nothing.
    pub defaults: Switches,
    /// Only a forced pause holds it.
    pub pause_exempt: bool,
    /// Its messages gather, and go out as digests.
    pub gather: Option<Gather>,
}

/// What was read for a call. Of a class that is no longer configured nothing of this is decided: its rules
/// are not known, and it waits.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub subject: Subject<'a>,
    pub rules: &'a Rules,
    /// Those of the address and those of the recipient.
    pub suppressions: &'a [Suppression],
    pub preferences: &'a Preferences,
    /// The recipient's, by its IANA name.
    pub time_zone: Option<&'a str>,
    pub pauses: &'a [Pause],
}

impl Known<'_> {
    /// Why nothing of the kind may go there; all that is decided at accept as well.
    #[must_use]
    pub fn blocked(&self, now: UnixMs) -> Option<Why> {
        if let Some(entry) = suppression::blocking(self.suppressions, &self.subject, now) {
            return Some(Why::said(entry.kind.code(), entry.words()));
        }
        if self.preferences.allow(&self.subject, &self.rules.defaults) {
            return None;
        }
        // Whoever said nothing has it off for a reason of the class's own.
        let own = self.preferences.allow(&self.subject, &Switches::default());
        Some(Why::new(if own { WhyCode::NotAskedFor } else { WhyCode::TurnedOff }))
    }

    fn held(&self, now: UnixMs) -> Option<Verdict> {
        let hold = |until, why| Some(Verdict::Hold { until, why });
        if let Some(until) = pause::held_until(self.pauses, &self.subject, self.rules.pause_exempt, now) {
            return hold(until, DeferWhy::Paused);
        }
        let open_at = self.rules.quiet_hours.as_ref().map_or(now, |quiet| quiet.open_at(now, self.time_zone));
        if open_at > now { hold(open_at, DeferWhy::QuietHours) } else { None }
    }
}

/// All but pace and caps. `versions` as in [`admit`]: the delivery's own and the newest.
#[must_use]
pub fn decide(
    delivery: &Delivery,
    (own_version, newest_version): (Option<i64>, Option<i64>),
    known: &Known,
    now: UnixMs,
) -> Verdict {
    match admit(delivery, own_version, newest_version, now) {
        Verdict::Call => {}
        ended => return ended,
    }
    if let Some(why) = known.blocked(now) {
        return Verdict::Suppress(why);
    }
    known.held(now).unwrap_or(Verdict::Call)
}

/// Expiry first, then cancellation, then a newer version.
///
/// `newest_version` is the highest version accepted for the same collapse key and address, and
/// `own_version` the delivery's own. A delivery whose earlier call may have arrived is not
/// superseded: its outcome has to be cleared up under its own key. Nor is anything decided of an item that may be
/// part of a digest already; no call is made for it.
#[must_use]
pub fn admit(delivery: &Delivery, own_version: Option<i64>, newest_version: Option<i64>, now: UnixMs) -> Verdict {
    if delivery.folding().is_some() {
        return Verdict::Call;
    }
    if now >= delivery.expires_at {
        return Verdict::Expire;
    }
    if let Some(stop) = &delivery.stop {
        return Verdict::Stop(stop.clone());
    }
    match (own_version, newest_version) {
        (Some(own), Some(newest)) if newest > own && !delivery.this_send_may_have_arrived() => {
            Verdict::Stop(Stop::Supersede { by_version: newest })
        }
        _ => Verdict::Call,
    }
}

/// Whatever waits for a cap or for the end of quiet hours is looked at again after this at the latest: a reload may have
/// raised the limit, or taken the quiet hours away.
pub const LONGEST_UNSEEN: Duration = Duration::from_secs(5 * 60);

/// What calls under way may still make room for is looked at again after this at the latest.
pub const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// What a full cap means for a delivery. All moments by one clock.
///
/// Nothing is suppressed because of calls that may still come to nothing. Nor is a delivery whose earlier
/// call may have arrived, and counts for that: it waits for room, so that it is cleared up or visibly expires.
/// And nothing waits past the end of calls that may give back the room it waits for: who comes later would
/// be first to find it.
#[must_use]
pub fn refused(delivery: &Delivery, cap: &Cap, full: Full, now: UnixMs) -> Verdict {
    let hold = |until| Verdict::Capped { until, cap: cap.name.clone() };
    let again = now.plus(LOOK_AGAIN.min(cap.window));
    match (cap.then, full.open_until) {
        (Then::Defer | Then::Suppress, Some(open_until)) => hold(full.until.min(open_until).min(again)),
        (Then::Suppress, None) if !delivery.this_send_may_have_arrived() => {
            Verdict::OverCap { cap: cap.name.clone(), opens: full.until }
        }
        (Then::Defer | Then::Suppress, None) => hold(full.until),
    }
}
