//! Caps: a call takes its places right before it is made, in a trip of their own, and they end beside the record of
//! what came of it. Whatever is not said of them only keeps room from others for a while.

use std::sync::Arc;
use std::time::Duration;

use belfry_domain::admission::{Verdict, refused};
use belfry_domain::caps::{Fate, Full, left_behind, reservation, takes};
use belfry_domain::subject::Subject;
use belfry_domain::{ChannelKind, Delivery, Event, Key, Outcome, Why, WhyCode};

use super::attempt::Work;
use super::batcher::{Answer, Batcher, Batches};
use super::permits::Settling;
use super::settle::SharedRef;
use super::{Deps, Shared};
use crate::facts::Fact;
use crate::ports::caps::{Ended, Room, TakeAsk, TakeEnd, Taken};
use crate::ports::channel::Call;
use crate::ports::clock::Boot;
use crate::ports::message::{Address, Outgoing};

/// From the take to the end of the call: whatever goes on then is broken off. RFC 5321 alone lets a server think for
/// ten minutes after the final dot.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// A call that has not begun so long after its take is not made any more: it would not have its time.
const LATEST_START: Duration = Duration::from_secs(5 * 60);

impl Answer for Taken {
    fn is_away(&self) -> bool {
        matches!(self, Self::Away)
    }
}

impl Answer for Ended {
    fn is_away(&self) -> bool {
        matches!(self, Self::Away)
    }
}

/// An end on its way into the store; a node that drains waits for it.
#[derive(Clone)]
struct Ending {
    end: TakeEnd,
    _settling: Arc<Settling>,
}

pub(super) struct Books {
    takes: Batcher<TakeAsk, Taken>,
    ends: Batcher<Ending, Ended>,
}

/// What has to run for [`Books`] to be kept.
pub(super) struct Loops {
    takes: Arc<Batches<TakeAsk, Taken>>,
    ends: Arc<Batches<Ending, Ended>>,
}

impl Books {
    pub(super) fn new(deps: &Deps) -> (Self, Loops) {
        let failed = |verb| {
            let told = deps.facts.clone();
            move |why| told.record(&Fact::StoreUnavailable { verb, why })
        };
        let store = deps.caps.clone();
        let take = move |batch| {
            let store = store.clone();
            async move { store.take(batch).await }
        };
        let store = deps.caps.clone();
        let end = move |batch: Vec<Ending>| {
            let store = store.clone();
            async move { store.end(batch.into_iter().map(|one| one.end).collect()).await }
        };
        let (takes, run_takes) = Batcher::new(deps.clock.clone(), take, failed("take"));
        let (ends, run_ends) = Batcher::new(deps.clock.clone(), end, failed("end_takes"));
        (Self { takes, ends }, Loops { takes: run_takes, ends: run_ends })
    }
}

impl Loops {
    pub(super) fn start(self, shared: &SharedRef) {
        let Self { takes, ends } = self;
        shared.keep_running("take batches", move |_| {
            let takes = takes.clone();
            async move { takes.run().await }
        });
        shared.keep_running("end batches", move |_| {
            let ends = ends.clone();
            async move { ends.run().await }
        });
    }
}

/// A call's places, until dropped.
pub(super) struct Places<'a> {
    shared: &'a Shared,
    ledgers: Vec<Key>,
    reservation: Key,
    /// From before they were asked for, so that the call ends before the store takes it for ended.
    asked_at: Boot,
    /// Nothing where the call has begun and did not come to an end here: they stand.
    fate: Option<Fate>,
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        let Some(fate) = self.fate else { return };
        let end = TakeEnd { ledgers: std::mem::take(&mut self.ledgers), reservation: self.reservation, fate };
        let settling = Arc::new(self.shared.permits.settling());
        // Where it does not fit the places stand until they are over by themselves.
        self.shared.books.ends.post(Ending { end, _settling: settling });
    }
}

impl Places<'_> {
    /// Whether there is time for a call.
    pub(super) fn leave_time(places: &Option<Self>, now: Boot) -> bool {
        places.as_ref().is_none_or(|places| now < places.asked_at + LATEST_START)
    }

    pub(super) const fn call_begins(&mut self) {
        self.fate = None;
    }

    pub(super) fn call_ended(&mut self, event: &Event) {
        self.fate = Some(if let Event::Called { outcome, .. } = event { Fate::of(outcome) } else { Fate::GivenBack });
    }
}

impl<'a> Work<'a> {
    /// A place with every cap that the call comes under; nothing where it comes under none.
    ///
    /// # Errors
    /// What to settle instead; nothing once the node is being torn down.
    pub(super) async fn take_places(
        &self,
        delivery: &Delivery,
        address: &Address,
    ) -> Result<Option<Places<'a>>, Option<Event>> {
        let Some(caps) = self.caps else { return Ok(None) };
        let number = (delivery.channel == ChannelKind::Sms).then_some(address.0.as_str());
        let subject = Subject { number, ..Subject::of(delivery, &self.claim.notification, self.class) };
        let takes = takes(caps, &subject);
        if takes.is_empty() {
            return Ok(None);
        }
        let shared = self.shared;
        let ledgers: Vec<Key> = takes.iter().map(|take| take.key).collect();
        self.give_back_left_behind(delivery, &ledgers).await;
        let places = Places {
            shared,
            ledgers,
            reservation: reservation(delivery, self.claim.token.fence),
            asked_at: shared.deps.clock.boot(),
            fate: Some(Fate::GivenBack),
        };
        let rooms = takes.iter().map(Room::of).collect();
        let ask = TakeAsk { rooms, reservation: places.reservation, longest: LONGEST };
        // A provider waits for it.
        let (at, full, theirs) = match shared.books.takes.write(ask, true).await.ok_or(None)? {
            Taken::All => return Ok(Some(places)),
            Taken::Full { at, full, now } => (at, full, now),
            // Asked again until it answers.
            Taken::Away => return Err(None),
        };
        // In this node's time: by another clock it could be asked again at once, and again.
        let now = shared.deps.clock.now();
        let ours = |moment: belfry_domain::UnixMs| now.plus(moment.since(theirs));
        let full = Full { until: ours(full.until), open_until: full.open_until.map(ours) };
        let Some(take) = takes.get(at) else { return Err(None) };
        let verdict = refused(delivery, take.cap, full, now);
        let suppressed = matches!(verdict, Verdict::OverCap { .. });
        shared.deps.facts.record(&Fact::Capped { cap: take.cap.name.clone(), suppressed });
        Err(Some(Event::Admitted(verdict)))
    }

    /// First: they may be what makes it full.
    async fn give_back_left_behind(&self, delivery: &Delivery, ledgers: &[Key]) {
        for reservation in left_behind(delivery) {
            let end = TakeEnd { ledgers: ledgers.to_vec(), reservation, fate: Fate::GivenBack };
            let settling = Arc::new(self.shared.permits.settling());
            self.shared.books.ends.write(Ending { end, _settling: settling }, true).await;
        }
    }

    /// The call itself, as long as its places last.
    pub(super) async fn send(&self, out: &Outgoing, call: &Call, places: Option<&Places<'_>>) -> Outcome {
        let sending = self.provider.channel.send(out, call);
        let Some(places) = places else { return sending.await };
        tokio::select! {
            biased;
            outcome = sending => outcome,
            () = self.shared.deps.clock.sleep_until(places.asked_at + LONGEST) => {
                if call.committed() {
                    Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::TimedOutAfter) }
                } else {
                    Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::TimedOutBefore) }
                }
            }
        }
    }
}
