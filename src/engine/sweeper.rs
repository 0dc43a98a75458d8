//! Takes over what others left: claims that lapsed, receipt windows that closed, lanes whose
//! provider is gone, ages that have passed. Measures the depths on the way.
//!
//! A claim is reclaimed only when it has lapsed by the store's clock *and* this sweeper has watched
//! it, unrenewed, for one lease of its own monotonic time with the store reachable: a store that
//! paused or a clock that stepped must not lapse every claim at once.

use std::collections::HashMap;
use std::time::Duration;

use belfry_domain::timeline::ClaimMark;
use belfry_domain::{Class, Delivery, DeliveryId, Event, Lane, UnixMs, step};

use super::Shared;
use super::settle::SharedRef;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::clock::Boot;
use crate::ports::deliveries::{Held, LaneDepth, MOST_ITEMS, PurgeAsk, Reclaim, Token, Written};

/// Claims watched at once: more than all nodes' permits together.
const MOST_WATCHED: u32 = 50_000;
const PURGE_BATCH: u16 = 512;

type Watch = HashMap<(DeliveryId, Token), (UnixMs, Boot)>;

pub(super) async fn run(shared: SharedRef) {
    let mut watch = Watch::new();
    let mut next_purge = shared.deps.clock.boot() + shared.settings.purge_every;
    loop {
        let sweep = async {
            reclaim(&shared, &mut watch).await?;
            close_receipt_windows(&shared).await?;
            measure(&shared).await
        };
        if let Err(why) = sweep.await {
            // What was watched while the store was away proves nothing.
            watch.clear();
            shared.deps.facts.record(&Fact::StoreUnavailable { verb: "sweep", why });
        }
        if shared.deps.clock.boot() >= next_purge {
            purge(&shared).await;
            next_purge = shared.deps.clock.boot() + shared.settings.purge_every;
        }
        shared.pause(pace(&shared)).await;
    }
}

/// On a node that sweeps nothing: which lanes nobody's provider serves any more.
pub(super) async fn look_for_orphans(shared: SharedRef) {
    loop {
        if let Err(why) = measure(&shared).await {
            shared.deps.facts.record(&Fact::StoreUnavailable { verb: "depths", why });
        }
        shared.pause(pace(&shared)).await;
    }
}

fn pace(shared: &Shared) -> Duration {
    (shared.shortest_lease() / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))
}

async fn reclaim(shared: &Shared, watch: &mut Watch) -> Result<(), StoreError> {
    let held = shared.deps.deliveries.held(MOST_WATCHED).await?;
    let ripe = observe(watch, held, shared.deps.clock.boot());
    for batch in ripe.chunks(MOST_ITEMS) {
        let loaded = shared.deps.deliveries.load(batch.iter().map(|one| one.id).collect()).await?;
        let by_id: HashMap<DeliveryId, Delivery> = loaded.into_iter().map(|one| (one.id, one)).collect();
        let mut told = Vec::new();
        let mut writes = Vec::new();
        for seen in batch {
            let Some(delivery) = by_id.get(&seen.id) else { continue };
            let claim = ClaimMark { worker: seen.worker.clone(), fence: seen.token.fence };
            let event = Event::Lapsed { claim, alone: seen.alone };
            let class = shared.class_of(delivery);
            // An error here means that it was settled since it was seen.
            let Ok(transition) = step(delivery, &class, event, shared.env(None)) else { continue };
            writes.push(Reclaim { next: transition.next.clone(), seen: seen.clone() });
            told.push((transition.next, transition.facts));
        }
        let written = shared.deps.deliveries.reclaim(writes).await?;
        for ((next, facts), written) in told.into_iter().zip(written) {
            if written == Written::Done {
                shared.tell(&next, facts);
            }
        }
        shared.look_for_alone();
    }
    Ok(())
}

/// Notes what is held, and returns what may be reclaimed.
fn observe(watch: &mut Watch, held: Vec<Held>, now: Boot) -> Vec<Held> {
    let mut seen = Watch::with_capacity(held.len());
    let mut ripe = Vec::new();
    for one in held {
        let since = match watch.get(&(one.id, one.token)) {
            Some((lease_until, since)) if *lease_until == one.lease_until => *since,
            _ => now,
        };
        seen.insert((one.id, one.token), (one.lease_until, since));
        if one.lapsed && now.saturating_sub(since) >= one.lease {
            ripe.push(one);
        }
    }
    *watch = seen;
    ripe
}

async fn close_receipt_windows(shared: &Shared) -> Result<(), StoreError> {
    let overdue = shared.deps.deliveries.receipts_overdue(shared.deps.clock.now(), batch_size()).await?;
    let mut told = Vec::new();
    for delivery in overdue {
        let class = shared.class_of(&delivery);
        if let Ok(transition) = step(&delivery, &class, Event::ReceiptWindowClosed, shared.env(None)) {
            told.push((transition.next, transition.facts));
        }
    }
    if told.is_empty() {
        return Ok(());
    }
    let written = shared.deps.deliveries.apply(told.iter().map(|(next, _)| next.clone()).collect()).await?;
    for ((next, facts), written) in told.into_iter().zip(written) {
        if written == Written::Done {
            shared.tell(&next, facts);
        }
    }
    Ok(())
}

/// Measures the lanes, and notes those whose provider is gone from the configuration: the claimer
/// looks at what waits there too, so that it moves to its channel's present provider, or expires
/// visibly.
async fn measure(shared: &Shared) -> Result<(), StoreError> {
    let policy = shared.policy();
    let depths = shared.deps.deliveries.depths().await?;
    let gone = |depth: &&LaneDepth| depth.waiting > 0 && !policy.providers.contains_key(&depth.lane.provider);
    let orphans: Vec<Lane> = depths.lanes.iter().filter(gone).map(|depth| depth.lane.clone()).collect();
    shared.orphans.send_if_modified(|known| {
        let news = *known != orphans;
        *known = orphans;
        news
    });
    shared.deps.facts.record(&Fact::Measured { depths, at: shared.deps.clock.now() });
    Ok(())
}

async fn purge(shared: &Shared) {
    let ask = PurgeAsk { now: shared.deps.clock.now(), keep_record: shared.policy().keep_record, limit: PURGE_BATCH };
    loop {
        match shared.deps.deliveries.purge(ask).await {
            Ok(purged) => {
                let total = purged.contents + purged.records + purged.tombstones;
                if total > 0 {
                    let crate::ports::deliveries::Purged { contents, records, tombstones } = purged;
                    shared.deps.facts.record(&Fact::Purged { contents, records, tombstones });
                }
                if total < u32::from(PURGE_BATCH) {
                    return;
                }
            }
            Err(why) => return shared.deps.facts.record(&Fact::StoreUnavailable { verb: "purge", why }),
        }
    }
}

fn batch_size() -> u16 {
    u16::try_from(MOST_ITEMS).unwrap_or(u16::MAX)
}

impl Shared {
    /// The configured class, or one that only puts off.
    pub(super) fn class_of(&self, delivery: &Delivery) -> Class {
        let policy = self.policy();
        policy
            .classes
            .get(&delivery.class)
            .cloned()
            .unwrap_or_else(|| Class::unconfigured(&delivery.class, delivery.lease))
    }
}
