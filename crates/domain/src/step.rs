//! The whole policy: one pure function from a delivery and what happened to it, to the delivery as
//! it is next and the facts to tell. What it returns is written by one conditional write; nothing
//! else anywhere decides about a state.

use std::time::Duration;

use crate::action::{Action, Asked};
use crate::admission::{LONGEST_UNSEEN, Verdict};
use crate::class::Class;
use crate::delivery::{ByHand, DeferWhy, Delivery, ParkWhy, State, StateName, Stop};
use crate::device::Undeliverable;
use crate::gather::{Gathering, LATE, Slot};
use crate::key::NotificationId;
use crate::lane::Lane;
use crate::outcome::{Looked, Outcome, OutcomeKind, RepeatGuard, ThrottleScope, Why, WhyCode};
use crate::retry;
use crate::time::UnixMs;
use crate::timeline::{ClaimMark, Happened, ReceiptKind, Resolution};

/// A worker died this often while holding nothing but this delivery: it is parked as poison.
pub const POISON_LAPSES: u32 = 3;
/// An answer nobody has described is tried once more, then a person looks.
const UNRECOGNISED_ATTEMPTS: u32 = 2;
/// Providers' lists lag: this long after an empty look comes the next one.
const NEXT_LOOK: Duration = Duration::from_secs(60);
/// So many operators' actions are remembered per delivery.
const ACTIONS_KEPT: usize = 8;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Decided before the call. `Verdict::Call` changes nothing.
    Admitted(Verdict),
    /// Not now, for a reason outside the delivery.
    Held {
        until: UnixMs,
        why: DeferWhy,
    },
    /// The claim is given back; no call was started.
    Released,
    /// Its provider is gone from the configuration; another serves its channel now.
    Rerouted(Lane),
    /// The message cannot be made.
    Uncallable(Why),
    /// Nothing may go to its device (any more).
    Undeliverable(Undeliverable),
    /// The refusal of its token was not about the token: most tokens were refused.
    Spared,
    /// Its device has another token than at the last write: what is called next is on record before.
    Readdressed {
        hash: String,
        mask: String,
    },
    /// It is to go out together with others of this slot.
    Gathered(Slot),
    /// It is about to be part of this digest.
    Folding {
        into: NotificationId,
    },
    /// That digest was kept without it.
    Unfolded {
        from: NotificationId,
    },
    /// The digest is kept, and it is part of it.
    Folded {
        into: NotificationId,
    },
    /// The message would not be the one that may have arrived already.
    Drifted,
    /// The provider was called.
    Called {
        claim: ClaimMark,
        outcome: Outcome,
        took: Duration,
    },
    /// The provider was asked about an earlier call.
    LookedUp(Looked),
    /// The claim ran out. `alone`: it was the only one in its batch.
    Lapsed {
        claim: ClaimMark,
        alone: bool,
    },
    /// A worker whose claim was taken over tells how its call ended.
    Stale {
        /// The send that its call belonged to.
        send: u32,
        claim: ClaimMark,
        outcome: Outcome,
    },
    StopAsked(Stop),
    Receipt(ReceiptKind),
    ReceiptWindowClosed,
    /// A person acts.
    Act {
        by: String,
        action: Action,
    },
}

/// What the decision needs from outside.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    pub now: UnixMs,
    /// Uniform over all of `u64`.
    pub jitter: u64,
    /// Whether this provider ever sends receipts.
    pub receipts: bool,
    pub guard: RepeatGuard,
}

/// What follows. `next` is written where the stored `rev` is still the one it was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub next: Delivery,
    pub facts: Vec<StepFact>,
}

/// What there is to tell, once the write is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFact {
    Attempted {
        outcome: OutcomeKind,
        why: WhyCode,
        took: Duration,
    },
    /// The call followed an outcome that was unknown.
    Resent,
    UnknownOutcome {
        why: WhyCode,
    },
    /// `for_`: how long after accept.
    Ended {
        state: StateName,
        for_: Duration,
    },
    Lapsed {
        may_have_sent: bool,
    },
    StaleReport {
        outcome: OutcomeKind,
    },
    ReceiptApplied {
        kind: ReceiptKind,
    },
}

/// Who puts back what was refused for no fault of its token.
const BY_ITSELF: &str = "belfry";

/// Why nothing follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It has happened before: the answer is success.
    Repeat,
    /// The action's key was used before, to ask for something else: `verb` says for what, `differing`
    /// names the parts of the request that are other ones.
    Reused { verb: &'static str, differing: &'static [&'static str] },
    /// Not possible in this state.
    NotNow(StateName),
    /// The caller saw an older send.
    SendMoved { current: u32 },
    /// A receipt before the record of its call: to be held and brought again.
    Early,
}

/// Decides what follows from `event`.
///
/// # Errors
/// [`Rejected`] where the delivery stays as it is.
pub fn step(delivery: &Delivery, class: &Class, event: Event, env: Env) -> Result<Transition, Rejected> {
    let mut draft = Draft { next: delivery.clone(), facts: Vec::new(), class, env };
    match event {
        Event::Admitted(verdict) => draft.admitted(verdict)?,
        Event::Held { until, why } => draft.sending().map(|_| draft.put_off(until, why))?,
        Event::Released => draft.released()?,
        Event::Rerouted(lane) => draft.rerouted(lane)?,
        Event::Uncallable(why) => draft.uncallable(why)?,
        Event::Undeliverable(why) => draft.undeliverable(why)?,
        Event::Spared => draft.spared()?,
        Event::Readdressed { hash, mask } => draft.readdressed(hash, mask)?,
        Event::Gathered(slot) => draft.gathered(slot)?,
        Event::Folding { into } => draft.folding(into)?,
        Event::Unfolded { from } => draft.unfolded(from)?,
        Event::Folded { into } => draft.folded(into)?,
        Event::Drifted => draft.sending().map(|_| draft.end(State::Parked { why: ParkWhy::Drift }))?,
        Event::Called { claim, outcome, took } => draft.called(claim, outcome, took)?,
        Event::LookedUp(looked) => draft.looked_up(looked)?,
        Event::Lapsed { claim, alone } => draft.lapsed(claim, alone)?,
        Event::Stale { send, claim, outcome } => draft.stale(send, claim, &outcome),
        Event::StopAsked(stop) => draft.stop_asked(stop)?,
        Event::Receipt(kind) => draft.receipt(kind)?,
        Event::ReceiptWindowClosed => draft.receipt_window_closed()?,
        Event::Act { by, action } => draft.act(by, action)?,
    }
    draft.next.rev += 1;
    Ok(Transition { next: draft.next, facts: draft.facts })
}

struct Draft<'a> {
    next: Delivery,
    facts: Vec<StepFact>,
    class: &'a Class,
    env: Env,
}

impl Draft<'_> {
    fn rejected(&self) -> Rejected {
        Rejected::NotNow(self.next.state.name())
    }

    /// The fence, where a claim holds it.
    fn sending(&self) -> Result<u64, Rejected> {
        match self.next.state {
            State::Sending { fence } => Ok(fence),
            _ => Err(self.rejected()),
        }
    }

    fn end(&mut self, state: State) {
        self.next.state = state;
        self.next.ended_at.get_or_insert(self.env.now);
        self.next.receipt_until = None;
        self.next.resolved = None;
        self.next.timeline.push(self.env.now, Happened::Ended { state: state.name() });
        let for_ = self.env.now.since(self.next.created_at);
        self.facts.push(StepFact::Ended { state: state.name(), for_ });
    }

    /// Never past the expiry: at that moment it comes up once more, to expire visibly.
    fn defer(&mut self, until: UnixMs, why: DeferWhy) {
        let wanted = until.max(self.env.now);
        let until = until.min(self.next.expires_at).max(self.env.now);
        self.next.spent = false;
        self.next.state = State::Deferred { until, why };
        self.next.due_at = match why {
            DeferWhy::Cap | DeferWhy::QuietHours => until.min(self.env.now.plus(LONGEST_UNSEEN)),
            DeferWhy::Retry
            | DeferWhy::Budget
            | DeferWhy::Pace
            | DeferWhy::Breaker
            | DeferWhy::Unconfigured
            | DeferWhy::Paused => until,
            // Whoever makes the digest comes first; at its expiry it comes up in any case.
            DeferWhy::Gathering => wanted.plus(LATE).min(self.next.expires_at).max(self.env.now),
        };
        let mut cap = self.next.capped().map(str::to_owned);
        if why != DeferWhy::Cap && cap.take().is_some() {
            // It is not what it waits for any more.
            self.next.last = None;
        }
        // Where it expires before, that is what somebody will want to know.
        let told = if matches!(why, DeferWhy::QuietHours | DeferWhy::Cap) { wanted } else { until };
        self.next.timeline.put_off(self.env.now, told, why, cap);
    }

    /// Deferred, unless somebody asked meanwhile that it end: that must not wait for another claim.
    fn put_off(&mut self, until: UnixMs, why: DeferWhy) {
        if !self.stopped_meanwhile() {
            self.defer(until, why);
        }
    }

    fn queue(&mut self) {
        self.next.state = State::Queued;
        self.next.due_at = self.env.now;
    }

    /// Back to the place in the queue that it was claimed from. What was due before the store was
    /// restored from a backup stays that, whoever held it then: else it would go out with the new.
    fn queue_again(&mut self) {
        self.next.state = State::Queued;
    }

    fn stop(&mut self, stop: &Stop) {
        self.end(match stop {
            Stop::Cancel { .. } | Stop::Fold { .. } => State::Cancelled,
            Stop::Supersede { .. } => State::Superseded,
        });
    }

    /// Ends it if somebody asked for that meanwhile.
    fn stopped_meanwhile(&mut self) -> bool {
        let Some(stop) = self.next.stop.clone().filter(|_| self.next.folding().is_none()) else { return false };
        self.stop(&stop);
        true
    }

    fn admitted(&mut self, verdict: Verdict) -> Result<(), Rejected> {
        // What nothing may be sent of ends at accept, before any claim of it.
        match &verdict {
            Verdict::Suppress(why) if self.next.state.waiting() => self.next.suppressed_at_accept = Some(why.code),
            _ => self.sending().map(drop)?,
        }
        match verdict {
            Verdict::Call => return Err(Rejected::Repeat),
            Verdict::Expire => self.end(State::Expired),
            Verdict::Stop(stop) => {
                self.next.stop = Some(stop.clone());
                self.stop(&stop);
            }
            Verdict::Suppress(why) => self.suppress(why),
            Verdict::OverCap { cap, opens } => {
                if !self.stopped_meanwhile() {
                    self.next.last = Some(Why::said(WhyCode::CapReached, &cap));
                    self.next.timeline.push(self.env.now, Happened::CapFull { cap, opens });
                    self.end(State::Suppressed);
                }
            }
            Verdict::Hold { until, why } => self.put_off(until, why),
            Verdict::Capped { until, cap } => {
                if !self.stopped_meanwhile() {
                    self.next.last = Some(Why::said(WhyCode::CapReached, cap));
                    self.defer(until, DeferWhy::Cap);
                }
            }
        }
        Ok(())
    }

    /// Suppressed, unless somebody asked meanwhile that it end: that is the earlier reason.
    fn suppress(&mut self, why: Why) {
        if !self.stopped_meanwhile() {
            self.next.last = Some(why);
            self.end(State::Suppressed);
        }
    }

    fn released(&mut self) -> Result<(), Rejected> {
        self.sending()?;
        if !self.stopped_meanwhile() {
            self.next.spent = false;
            self.queue_again();
        }
        Ok(())
    }

    /// Only what cannot have arrived goes another way: elsewhere nobody would recognise the repeat.
    fn rerouted(&mut self, lane: Lane) -> Result<(), Rejected> {
        self.released()?;
        if self.next.state == State::Queued && !self.next.maybe_sent {
            self.next.lane = lane;
        } else if self.next.state == State::Queued {
            self.end(State::Parked { why: ParkWhy::MayHaveArrived });
        }
        Ok(())
    }

    fn uncallable(&mut self, why: Why) -> Result<(), Rejected> {
        self.sending()?;
        self.next.last = Some(why);
        self.end(State::Failed);
        Ok(())
    }

    fn undeliverable(&mut self, why: Undeliverable) -> Result<(), Rejected> {
        self.sending()?;
        self.next.last = Some(Why::new(why.code()));
        self.end(State::Suppressed);
        Ok(())
    }

    /// The claim goes on under the new rev. Never after a call that may have arrived.
    fn readdressed(&mut self, hash: String, mask: String) -> Result<(), Rejected> {
        self.sending()?;
        if self.next.this_send_may_have_arrived() {
            return Err(self.rejected());
        }
        let before = std::mem::replace(&mut self.next.address_hash, hash);
        self.next.first_hash.get_or_insert(before);
        self.next.address_mask = mask;
        self.next.timeline.push(self.env.now, Happened::Readdressed);
        Ok(())
    }

    /// Before its first claim, or put back by a worker that found it gathering still.
    fn gathered(&mut self, slot: Slot) -> Result<(), Rejected> {
        let untouched = self.next.state.waiting() && self.next.gathering.is_none() && self.next.rev == 0;
        let sending = matches!(self.next.state, State::Sending { .. });
        let gathers_still = sending && self.next.gathers().is_some();
        if !(untouched || gathers_still) {
            return Err(self.rejected());
        }
        let into = self.next.folding();
        self.next.gathering = Some(Gathering { slot, into });
        self.put_off(slot.until, DeferWhy::Gathering);
        Ok(())
    }

    /// From here on whoever asks that it end is told that it is under way; nothing ends it until it is known whether that
    /// digest was kept with it. About to be part of two it would go out twice.
    fn folding(&mut self, into: NotificationId) -> Result<(), Rejected> {
        match self.next.gathers().filter(|_| self.next.state.waiting()) {
            Some(Gathering { into: Some(before), .. }) if before == into => return Err(Rejected::Repeat),
            Some(Gathering { into: None, slot }) => self.next.gathering = Some(Gathering { slot, into: Some(into) }),
            _ => return Err(self.rejected()),
        }
        Ok(())
    }

    /// Who asked meanwhile that it end was not too late.
    fn unfolded(&mut self, from: NotificationId) -> Result<(), Rejected> {
        match self.next.gathers().filter(|_| self.next.state.waiting()) {
            Some(Gathering { into: Some(before), slot }) if before == from => {
                self.next.gathering = Some(Gathering::new(slot));
            }
            _ => return Err(self.rejected()),
        }
        self.stopped_meanwhile();
        Ok(())
    }

    /// Who asked meanwhile that it end came too late: it is in the digest.
    fn folded(&mut self, into: NotificationId) -> Result<(), Rejected> {
        if !self.next.state.waiting() || self.next.gathers().is_none() {
            return Err(self.rejected());
        }
        let stop = Stop::Fold { into };
        self.next.stop = Some(stop.clone());
        self.next.timeline.push(self.env.now, Happened::Folded { into });
        self.stop(&stop);
        Ok(())
    }

    fn called(&mut self, claim: ClaimMark, outcome: Outcome, took: Duration) -> Result<(), Rejected> {
        if self.sending()? != claim.fence {
            return Err(self.rejected());
        }
        // A throttle is about the provider or our rate, never about this message: it does not count,
        // so the next call has the same number.
        let attempt = self.next.attempts + 1;
        if !matches!(outcome, Outcome::Throttled { .. }) {
            self.next.attempts = attempt;
        }
        if self.next.maybe_sent {
            self.facts.push(StepFact::Resent);
            let effect = matches!(outcome, Outcome::Accepted { .. } | Outcome::Unknown { .. });
            self.next.twice |= effect && !self.provider_remembers() && self.env.guard != RepeatGuard::Collapse;
        }
        // What was spent on is known now: what is not known is remembered as maybe sent.
        self.next.spent = false;
        let why = outcome.why().clone();
        self.facts.push(StepFact::Attempted { outcome: outcome.kind(), why: why.code, took });
        self.next.timeline.push(
            self.env.now,
            Happened::Attempt { send: self.next.send, attempt, claim, outcome: outcome.kind(), why: why.clone(), took },
        );
        self.next.last = Some(why.clone());
        match outcome {
            Outcome::Accepted { provider_ref, .. } => self.accepted(provider_ref),
            Outcome::Refused { .. } => self.end(State::Failed),
            Outcome::RecipientGone { .. } => self.end(State::Bounced),
            Outcome::NotAccepted { retry_after, .. } => self.not_accepted(retry_after, why.code),
            Outcome::Throttled { after, scope, .. } => self.throttled(after, scope),
            Outcome::Unknown { retry_after, .. } => self.unknown(retry_after, why.code),
        }
        Ok(())
    }

    fn accepted(&mut self, provider_ref: Option<String>) {
        self.next.reached = true;
        self.next.provider_ref = provider_ref.or(self.next.provider_ref.take());
        if self.env.receipts {
            self.next.state = State::Accepted;
            self.next.ended_at = None;
            self.next.resolved = None;
            self.next.receipt_until = Some(self.env.now.plus(self.class.receipt_window));
        } else {
            self.end(State::Accepted);
        }
    }

    fn not_accepted(&mut self, asked: Option<Duration>, why: WhyCode) {
        if self.stopped_meanwhile() {
            return;
        }
        if why == WhyCode::Unrecognised && self.next.attempts >= UNRECOGNISED_ATTEMPTS {
            self.end(State::Parked { why: ParkWhy::UnrecognisedAnswer });
        } else if self.next.attempts >= self.class.retry.max_attempts {
            // At least once is never lost: a person decides. At most once may end here.
            let exhausted = if self.next.maybe_sent { ParkWhy::MayHaveArrived } else { ParkWhy::AttemptsExhausted };
            self.end(if self.class.at_most_once() { State::Failed } else { State::Parked { why: exhausted } });
        } else {
            self.retry(asked);
        }
    }

    fn retry(&mut self, asked: Option<Duration>) {
        let wait = retry::wait(&self.class.retry, self.next.attempts, asked, self.env.jitter);
        self.defer(self.env.now.plus(wait), DeferWhy::Retry);
    }

    fn throttled(&mut self, after: Duration, scope: ThrottleScope) {
        // Behind a refused login the circuit keeps the time, and a reload with the right one ends it.
        let (asked, why) = match scope {
            ThrottleScope::Recipient | ThrottleScope::Provider => (Some(after), DeferWhy::Pace),
            ThrottleScope::Credential => (None, DeferWhy::Breaker),
        };
        let wait = retry::wait(&self.class.retry, 1, asked, self.env.jitter);
        self.put_off(self.env.now.plus(wait), why);
    }

    fn unknown(&mut self, asked: Option<Duration>, why: WhyCode) {
        self.next.unknowns += 1;
        self.maybe_sent();
        self.facts.push(StepFact::UnknownOutcome { why });
        if self.class.at_most_once() {
            self.end(State::Unknown);
        } else if self.stopped_meanwhile() {
        } else if self.next.attempts >= self.class.retry.max_attempts
            || (self.next.unknowns > self.class.resend_limit && !self.provider_remembers())
        {
            self.end(State::Parked { why: ParkWhy::MayHaveArrived });
        } else {
            self.retry(asked);
        }
    }

    fn maybe_sent(&mut self) {
        self.next.maybe_sent = true;
        self.next.first_unknown_at.get_or_insert(self.env.now);
    }

    /// Within the provider's own window a repeat under the same key is no second copy.
    fn provider_remembers(&self) -> bool {
        match self.env.guard {
            RepeatGuard::Key(window) => {
                self.next.first_unknown_at.is_some_and(|first| self.env.now.since(first) < window)
            }
            RepeatGuard::Lookup | RepeatGuard::Collapse | RepeatGuard::None => false,
        }
    }

    fn looked_up(&mut self, looked: Looked) -> Result<(), Rejected> {
        self.sending()?;
        let found = matches!(looked, Looked::Found { .. });
        self.next.timeline.push(self.env.now, Happened::LookedUp { found });
        match looked {
            Looked::Found { provider_ref } => self.accepted(provider_ref),
            Looked::NotYet => self.put_off(self.env.now.plus(NEXT_LOOK), DeferWhy::Retry),
            // It never arrived, so the next call is no repeat. The claim goes on under the new rev.
            Looked::Absent => {
                self.next.maybe_sent = false;
                self.next.last = Some(Why::new(WhyCode::LookedUpAbsent));
            }
        }
        Ok(())
    }

    fn lapsed(&mut self, claim: ClaimMark, alone: bool) -> Result<(), Rejected> {
        self.sending()?;
        let spent = std::mem::take(&mut self.next.spent);
        // While it gathers no call is made for it.
        let may_have_sent = spent || !self.class.at_most_once() && self.next.gathers().is_none();
        self.next.lapses += 1;
        self.next.lapses_alone += u32::from(alone);
        self.next.timeline.push(self.env.now, Happened::Lapsed { claim, may_have_sent });
        self.facts.push(StepFact::Lapsed { may_have_sent });
        if may_have_sent {
            self.maybe_sent();
            self.next.last = Some(Why::new(WhyCode::WorkerDied));
            self.facts.push(StepFact::UnknownOutcome { why: WhyCode::WorkerDied });
        }
        if spent {
            self.end(State::Unknown);
        } else if self.stopped_meanwhile() {
        } else if self.next.lapses_alone >= POISON_LAPSES {
            self.end(State::Parked { why: ParkWhy::Poison });
        } else {
            self.queue_again();
        }
        Ok(())
    }

    /// A stale worker settles nothing. But what it saw is true of its own call, and where nobody
    /// holds the delivery an acceptance is one.
    fn stale(&mut self, send: u32, claim: ClaimMark, outcome: &Outcome) {
        let kind = outcome.kind();
        let why = outcome.why().clone();
        self.next.timeline.push(self.env.now, Happened::StaleReport { claim, outcome: kind, why });
        self.facts.push(StepFact::StaleReport { outcome: kind });
        self.next.reached |= matches!(kind, OutcomeKind::Accepted | OutcomeKind::Unknown);
        let open = self.next.state.waiting() || matches!(self.next.state, State::Unknown | State::Parked { .. });
        match outcome {
            // An earlier send's acceptance says nothing about the current one.
            Outcome::Accepted { provider_ref, .. } if open && send == self.next.send => {
                self.accepted(provider_ref.clone())
            }
            _ => {}
        }
    }

    fn stop_asked(&mut self, stop: Stop) -> Result<(), Rejected> {
        if self.next.stop.is_some() {
            return Err(Rejected::Repeat);
        }
        if let Stop::Cancel { by, why } = &stop {
            let asked = Happened::StopAsked { by: by.clone(), why: why.clone() };
            self.next.timeline.push(self.env.now, asked);
        }
        self.next.stop = Some(stop.clone());
        match self.next.state {
            // The call may be under way. No further one starts: the settle sees the wish.
            State::Sending { .. } => Ok(()),
            // The digest may be kept already.
            state if state.waiting() && self.next.folding().is_some() => Ok(()),
            state if state.waiting() => {
                self.stop(&stop);
                Ok(())
            }
            // It has ended; but it would be put back if it turned out that its token was not at fault.
            State::Failed if self.may_be_spared() => Ok(()),
            _ => Err(self.rejected()),
        }
    }

    fn receipt(&mut self, kind: ReceiptKind) -> Result<(), Rejected> {
        let told = Happened::Receipt { kind };
        if self.next.timeline.of_send(self.next.send).iter().any(|entry| entry.happened == told) {
            return Err(Rejected::Repeat);
        }
        // Where a call may have had its effect, the provider's word proves that it had.
        let proves = self.next.maybe_sent && !matches!(self.next.state, State::Sending { .. });
        let takes = match self.next.state {
            State::Accepted | State::Delivered | State::Bounced | State::Unknown | State::Parked { .. } => true,
            _ => proves,
        };
        if !takes {
            // Before the record of its own call, which is still under way or was lost.
            let early = self.next.state.waiting() || matches!(self.next.state, State::Sending { .. });
            return Err(if early { Rejected::Early } else { self.rejected() });
        }
        self.next.timeline.push(self.env.now, told);
        self.next.reached = true;
        self.facts.push(StepFact::ReceiptApplied { kind });
        match (kind, self.next.state) {
            // Never backwards: accepted < delivered < bounced.
            (ReceiptKind::Delivered, State::Delivered | State::Bounced) | (ReceiptKind::Bounced, State::Bounced) => {}
            (ReceiptKind::Delivered, _) => self.end(State::Delivered),
            (ReceiptKind::Bounced, _) => self.end(State::Bounced),
            (ReceiptKind::Seen | ReceiptKind::Complained, _) => {}
        }
        Ok(())
    }

    fn receipt_window_closed(&mut self) -> Result<(), Rejected> {
        match (self.next.state, self.next.receipt_until) {
            (State::Accepted, Some(until)) if self.env.now >= until => {
                self.end(State::Accepted);
                Ok(())
            }
            _ => Err(self.rejected()),
        }
    }

    /// Recognises a repeated action, refuses another one under its key, and remembers a new one.
    fn act(&mut self, by: String, action: Action) -> Result<(), Rejected> {
        if let Some(before) = self.next.actions.iter().find(|one| one.key == action.key) {
            let differing = before.asked.differing(&action.asked);
            let reused = Rejected::Reused { verb: before.asked.verb(), differing };
            return Err(if differing.is_empty() { Rejected::Repeat } else { reused });
        }
        if self.next.actions.len() == ACTIONS_KEPT {
            self.next.actions.remove(0);
        }
        self.next.actions.push(action.clone());
        match action.asked {
            Asked::Redrive { after_send } => self.redrive(by, after_send),
            Asked::SendAgain { after_send } => self.send_again(by, after_send),
            Asked::Resolve { to, why } => self.resolve(by, to, why),
        }
    }

    fn reopen(&mut self) {
        self.next.attempts = 0;
        self.next.unknowns = 0;
        self.next.lapses = 0;
        self.next.lapses_alone = 0;
        self.next.spent = false;
        self.next.stop = None;
        self.next.ended_at = None;
        self.next.receipt_until = None;
        self.next.resolved = None;
        // What the last attempt of before was told explains nothing that happens from here on.
        self.next.last = None;
        let fresh = self.env.now.plus(self.class.expiry);
        self.next.expires_at = self.next.expires_at.max(fresh);
        self.queue();
    }

    fn redrive(&mut self, by: String, after_send: u32) -> Result<(), Rejected> {
        if self.next.send != after_send {
            return Err(Rejected::SendMoved { current: self.next.send });
        }
        if !matches!(self.next.state, State::Failed | State::Parked { .. }) {
            return Err(self.rejected());
        }
        self.next.timeline.push(self.env.now, Happened::Redriven { by });
        self.reopen();
        Ok(())
    }

    /// Back to where it was before the refusal, as long as it may still go out at all.
    fn spared(&mut self) -> Result<(), Rejected> {
        // Somebody who asked to stop it meant this call too.
        if !self.may_be_spared() || self.next.stop.is_some() {
            return Err(self.rejected());
        }
        let expires_at = self.next.expires_at;
        self.next.timeline.push(self.env.now, Happened::Redriven { by: BY_ITSELF.into() });
        self.reopen();
        self.next.expires_at = expires_at;
        Ok(())
    }

    /// Failed for its token, and not spared before in this send: a token that is refused again after others were
    /// taken is a bad one.
    fn may_be_spared(&self) -> bool {
        let refused = |why: &Why| matches!(why.code, WhyCode::BadToken | WhyCode::WrongApp);
        let by_itself = |it: &Happened| matches!(it, Happened::Redriven { by } if by == BY_ITSELF);
        self.next.state == State::Failed
            && self.next.resolved.is_none()
            && self.next.last.as_ref().is_some_and(refused)
            && !self.next.timeline.of_send(self.next.send).iter().any(|entry| by_itself(&entry.happened))
    }

    fn send_again(&mut self, by: String, after_send: u32) -> Result<(), Rejected> {
        if self.next.send != after_send {
            return Err(Rejected::SendMoved { current: self.next.send });
        }
        // In flight already: opening another send now would race the current one.
        if self.next.state.waiting() || matches!(self.next.state, State::Sending { .. }) {
            return Err(self.rejected());
        }
        self.next.send += 1;
        self.next.reached |= self.next.maybe_sent;
        self.next.maybe_sent = false;
        self.next.twice = false;
        self.next.first_unknown_at = None;
        self.next.provider_ref = None;
        self.next.timeline.push(self.env.now, Happened::SentAgain { by, send: self.next.send });
        self.reopen();
        Ok(())
    }

    fn resolve(&mut self, by: String, to: Resolution, why: String) -> Result<(), Rejected> {
        if !matches!(self.next.state, State::Unknown | State::Parked { .. }) {
            return Err(self.rejected());
        }
        self.next.reached |= to == Resolution::Delivered;
        let resolved = ByHand { by: by.clone(), why: why.clone() };
        self.next.timeline.push(self.env.now, Happened::Resolved { by, to, why });
        self.next.ended_at = None;
        self.end(match to {
            Resolution::Delivered => State::Delivered,
            Resolution::Failed => State::Failed,
        });
        self.next.resolved = Some(resolved);
        Ok(())
    }
}
