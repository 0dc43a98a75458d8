//! Cancelling: one notification, or page by page all that a query finds. What waits ends; what is being sent gets no
//! further attempt; what has ended stays as it is. So a repeat finds everything as the first call left it.

use belfry_domain::delivery::{StateName, Stop};
use belfry_domain::notification::Record;
use belfry_domain::{Delivery, DeliveryId, Event, NotificationId, Transition};

use super::accept::Intake;
use super::actions::{MOST_TRIES, stepped};
use super::caller::Caller;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::{MOST_ITEMS, Written};
use crate::ports::search::Query;

/// What became of a cancellation, by delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancelled {
    /// Nothing will go out.
    pub cancelled: Vec<DeliveryId>,
    /// A call may be under way; no further one starts.
    pub in_flight: Vec<DeliveryId>,
    /// It had ended before.
    pub ended: Vec<DeliveryId>,
}

/// What became of a page of a cancellation by filter, in deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that were looked at: no more than one page of the query.
    pub notifications: Vec<NotificationId>,
    pub cancelled: u32,
    /// Of those, how many had been before.
    pub cancelled_before: u32,
    pub in_flight: u32,
    pub ended: u32,
    /// Of all but those in flight, how many may have reached somebody.
    pub out: u32,
    /// Where to go on.
    pub next: Option<u64>,
}

/// What a cancellation does to a delivery, or would do.
enum Fate {
    Cancelled,
    InFlight,
    Ended,
}

fn fate(of: &Delivery) -> Fate {
    match of.state.name() {
        // It goes out, or has gone out, with others.
        StateName::Cancelled if of.folded_into().is_some() => Fate::Ended,
        StateName::Deferred | StateName::Queued if of.folding().is_some() => Fate::InFlight,
        StateName::Scheduled | StateName::Queued | StateName::Deferred | StateName::Cancelled => Fate::Cancelled,
        StateName::Sending => Fate::InFlight,
        StateName::Accepted
        | StateName::Delivered
        | StateName::Bounced
        | StateName::Failed
        | StateName::Expired
        | StateName::Suppressed
        | StateName::Superseded
        | StateName::Unknown
        | StateName::Parked => Fate::Ended,
    }
}

impl Tally {
    fn count(&mut self, was_cancelled: bool, now: &Delivery) {
        let sort = match fate(now) {
            Fate::Cancelled => &mut self.cancelled,
            Fate::InFlight => &mut self.in_flight,
            Fate::Ended => &mut self.ended,
        };
        *sort += 1;
        self.cancelled_before += u32::from(was_cancelled);
        self.out += u32::from(now.may_have_arrived() && now.state.name() != StateName::Sending);
    }
}

impl Intake {
    /// Cancels what can be cancelled of a notification; safe to repeat. `None` where there is no
    /// such notification of this owner's.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it.
    pub async fn cancel(
        &self,
        caller: &Caller,
        id: NotificationId,
        why: &str,
    ) -> Result<Option<(Cancelled, Record)>, StoreError> {
        let owner = caller.owner();
        let Some(record) = self.ports.deliveries.read(&owner, id).await? else { return Ok(None) };
        let mut told = Cancelled::default();
        for one in self.stop_all(caller, record.deliveries, why).await? {
            match fate(&one) {
                Fate::Cancelled => told.cancelled.push(one.id),
                Fate::InFlight => told.in_flight.push(one.id),
                Fate::Ended => told.ended.push(one.id),
            }
        }
        let record = self.ports.deliveries.read(&owner, id).await?;
        Ok(record.map(|record| (told, record)))
    }

    /// Cancels one page of what `query` finds, or only counts what that would do.
    ///
    /// # Errors
    /// [`StoreError`]: the same call again finishes it.
    pub async fn cancel_page(
        &self,
        caller: &Caller,
        query: Query,
        why: &str,
        dry_run: bool,
    ) -> Result<Tally, StoreError> {
        let page = self.ports.deliveries.search(query).await?;
        let mut tally = Tally { next: page.next, ..Tally::default() };
        let mut found = Vec::new();
        for record in page.records {
            tally.notifications.push(record.notification.id);
            found.extend(record.deliveries);
        }
        let was_cancelled = |one: &Delivery| one.ended() && matches!(fate(one), Fate::Cancelled);
        let before: Vec<bool> = found.iter().map(was_cancelled).collect();
        let now = if dry_run { found } else { self.stop_all(caller, found, why).await? };
        before.into_iter().zip(&now).for_each(|(before, now)| tally.count(before, now));
        let cancelled = tally.cancelled - tally.cancelled_before;
        if !dry_run && cancelled + tally.in_flight > 0 {
            let (by, in_flight) = (caller.key.clone(), tally.in_flight);
            self.ports.facts.record(&Fact::ManyCancelled { by, cancelled, in_flight });
        }
        Ok(tally)
    }

    /// As they stand afterwards, in their order.
    async fn stop_all(&self, caller: &Caller, mut all: Vec<Delivery>, why: &str) -> Result<Vec<Delivery>, StoreError> {
        let event = Event::StopAsked(Stop::Cancel { by: caller.key.clone(), why: why.to_owned() });
        let mut open: Vec<usize> = (0..all.len()).collect();
        let mut repeats = false;
        for _ in 0..MOST_TRIES {
            let mut decided = Vec::with_capacity(open.len());
            for place in open {
                match self.decide(&all[place], event.clone()) {
                    Ok(transition) => decided.push((place, transition)),
                    Err(_) => repeats = true,
                }
            }
            if decided.is_empty() {
                if repeats {
                    // A repeat is answered like the first: not before what it repeats is safe.
                    self.ports.deliveries.durable().await?;
                }
                return Ok(all);
            }
            open = Vec::new();
            for batch in decided.chunks(MOST_ITEMS) {
                open.extend(self.write_stops(batch, &mut all).await?);
            }
        }
        Err(StoreError::Unavailable("some deliveries kept moving".into()))
    }

    /// Writes what was decided of the deliveries at those places; answers the places at which one has moved meanwhile
    /// and is to be decided on anew.
    async fn write_stops(&self, batch: &[(usize, Transition)], all: &mut [Delivery]) -> Result<Vec<usize>, StoreError> {
        let (mut open, mut stale, mut away) = (Vec::new(), Vec::new(), false);
        let writes = batch.iter().map(|(_, transition)| transition.next.clone()).collect();
        let written = self.ports.deliveries.apply(writes).await?;
        for ((place, Transition { next, facts }), written) in batch.iter().zip(written) {
            match written {
                Written::Done => {
                    facts.iter().for_each(|fact| self.ports.facts.record(&stepped(next, fact.clone())));
                    all[*place] = next.clone();
                }
                Written::Moved(current) => {
                    all[*place] = *current;
                    open.push(*place);
                }
                // A claim is out and the write would have ended it: see what it has become.
                Written::Stale => stale.push(*place),
                Written::Away => away = true,
                // Purged meanwhile: it had come to its end.
                Written::Gone => {}
            }
        }
        if away {
            return Err(StoreError::Unavailable("a part of it is away".into()));
        }
        if !stale.is_empty() {
            let ids = stale.iter().map(|place| all[*place].id).collect();
            for current in self.ports.deliveries.load(ids).await? {
                if let Some(place) = stale.iter().copied().find(|place| all[*place].id == current.id) {
                    all[place] = current;
                    open.push(place);
                }
            }
        }
        Ok(open)
    }
}
