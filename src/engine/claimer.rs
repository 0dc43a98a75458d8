//! Claims what is due wherever a permit is free and the circuit closed, and starts an attempt for
//! each claim. One call asks for all lanes.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::Duration;

use belfry_domain::Lane;
use futures::FutureExt;

use super::batcher::LINGER;
use super::health::Gate;
use super::settle::SharedRef;
use super::{Alone, attempt, lanes_of, look, pauses};
use crate::facts::Fact;
use crate::ports::clock::Boot;
use crate::ports::deliveries::{ClaimAsk, Claims, MOST_ITEMS};

/// So many deliveries of a provider that is gone are looked at at once; none of them is a call.
const ORPHANS: u16 = 64;
const STORE_AWAY: Duration = Duration::from_millis(250);

pub(super) async fn run(shared: SharedRef) {
    let mut store_away = false;
    let mut full = false;
    loop {
        let asking = shared.permits.asking();
        if shared.draining() {
            return;
        }
        // Taken before anything is looked at: what changes in between is not missed.
        let freed = shared.permits.changed();
        let (lanes, look_again) = wanted(&shared);
        if lanes.is_empty() {
            drop(asking);
            wait(&shared, freed, look_again, false).await;
            continue;
        }
        let alone =
            !full && !shared.alone_runs.load(Ordering::SeqCst) && shared.alone_hint.swap(false, Ordering::Relaxed);
        let claimed = claim(&shared, &lanes, alone).await;
        drop(asking);
        match claimed {
            Ok((claimed, next_due)) => {
                if std::mem::take(&mut store_away) {
                    shared.deps.facts.record(&Fact::StoreRecovered);
                }
                full = claimed > 0 && !alone;
                if full {
                    // What is free now would be claimed one by one.
                    shared.pause(LINGER).await;
                }
                if claimed == 0 && !alone {
                    let due = next_due.map_or(look_again, |due| due.min(look_again));
                    wait(&shared, freed, due, true).await;
                }
            }
            Err(why) => {
                store_away = true;
                shared.deps.facts.record(&Fact::StoreUnavailable { verb: "claim", why });
                shared.pause(STORE_AWAY).await;
            }
        }
    }
}

/// Lanes with free permits behind closed circuits, and when to look again at the latest.
fn wanted(shared: &SharedRef) -> (Vec<(Lane, u16)>, Boot) {
    let policy = shared.policy();
    let now = shared.deps.clock.boot();
    let mut look_again = now + shared.settings.poll;
    let mut lanes = Vec::new();
    // A restart while the store hangs must not send what is paused.
    let Some(paused) = shared.deps.pauses.seen() else { return (lanes, look_again) };
    for (name, provider) in &policy.providers {
        let room = shared.pacer.room(name, provider.pace.as_ref(), now);
        look_again = room.next.map_or(look_again, |next| look_again.min(next));
        let concurrency = match shared.health.gate(name, now) {
            Gate::Open => shared.calls.in_hand(name, provider.concurrency),
            Gate::AtMost(most) => shared.calls.in_hand(name, provider.concurrency).min(most),
            Gate::Trial => {
                let busy = lanes_of(name).any(|lane| shared.permits.taken(&lane) > 0);
                // One call, in whichever lane has something, urgent first.
                if !busy {
                    for lane in lanes_of(name) {
                        let one = room.of(lane.priority).min(1);
                        lanes.push((lane, one));
                    }
                }
                continue;
            }
            Gate::Shut { until } => {
                look_again = look_again.min(until);
                continue;
            }
        };
        for lane in lanes_of(name) {
            let free = shared.permits.free(&lane, concurrency).min(room.of(lane.priority));
            lanes.push((lane, free.min(u16::try_from(MOST_ITEMS).unwrap_or(u16::MAX))));
        }
    }
    for lane in shared.orphans.borrow().iter() {
        lanes.push((lane.clone(), shared.permits.free(lane, ORPHANS)));
    }
    if shared.permits.backed_up() {
        lanes.clear();
    }
    let wall = shared.deps.clock.now();
    lanes.retain(|(lane, free)| *free > 0 && !pauses::nothing_goes(&policy, paused.rules(), lane, wall));
    look_again = pauses::next_end(paused.rules(), wall).map_or(look_again, |end| look_again.min(now + end));
    (lanes, look_again)
}

/// Claims and starts. Returns how many, and when the next comes due on the boot clock.
async fn claim(
    shared: &SharedRef,
    lanes: &[(Lane, u16)],
    alone: bool,
) -> Result<(usize, Option<Boot>), crate::ports::StoreError> {
    // Before the store is asked: this worker's lease must end no later than the store's.
    let asked_at = shared.deps.clock.boot();
    let ask = ClaimAsk {
        worker: shared.settings.worker.clone(),
        nonce: shared.deps.dice.roll(),
        lanes: lanes.to_vec(),
        alone,
    };
    let found = match shared.deps.deliveries.claim(ask.clone()).await {
        Ok(found) => found,
        // The answer may have been lost after the claims were made: the same nonce finds them.
        Err(_) => shared.deps.deliveries.claim(ask).await?,
    };
    let Claims { claims, next_due } = found;
    let started = claims.len();
    let look = look::look(shared, &claims);
    for claim in claims {
        let place = shared.ledger.hold(claim.delivery.id, claim.token, claim.delivery.lease, asked_at);
        let permit = shared.permits.take(&claim.delivery.lane);
        let paced = shared.pacer.set_aside(&claim.delivery.lane.provider);
        let only_one = alone.then(|| {
            shared.alone_runs.store(true, Ordering::SeqCst);
            Alone(shared.clone())
        });
        let attempt = attempt::run(shared.clone(), (claim, look.clone()), place, (permit, paced));
        let facts = shared.deps.facts.clone();
        let task = async move {
            // Outside the call itself nothing was sent that the record does not know of: the claim
            // lapses, and a message that does this every time is parked as poison.
            if AssertUnwindSafe(attempt).catch_unwind().await.is_err() {
                facts.record(&Fact::TaskPanicked { task: "attempt" });
            }
            drop(only_one);
        };
        shared.deps.tasks.start("attempt", Box::pin(task));
    }
    let now = shared.deps.clock.now();
    Ok((started, next_due.map(|due| shared.deps.clock.boot() + due.since(now))))
}

/// Until something may be due: a wake-up, a permit, a circuit, the next due time, or the poll.
async fn wait(shared: &SharedRef, freed: tokio::sync::futures::OwnedNotified, until: Boot, store: bool) {
    let due_changed = async {
        if store {
            shared.deps.deliveries.due_changed().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        () = shared.nudge.notified() => {}
        () = freed => {}
        () = due_changed => {}
        () = shared.deps.clock.sleep_until(until) => shared.alone_hint.store(true, Ordering::Relaxed),
    }
}
