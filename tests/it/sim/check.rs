//! The promises, checked after a run against what people saw.

use std::collections::BTreeMap;

use belfry_domain::delivery::{ParkWhy, State};
use belfry_domain::{Delivery, DeliveryId, Order};

use super::door::Intent;
use super::scenario::{Run, classes};
use super::world::Effect;

/// Every broken promise, in words.
pub fn broken(run: &Run, intents: &[Intent], at_rest: bool) -> Vec<String> {
    let mut found = run.world.told().broken.clone();
    if !at_rest {
        found.push("P3: something never came to an end".into());
    }
    let told = run.world.told();
    let (acknowledged, effects) = (told.acknowledged.clone(), told.effects.clone());
    drop(told);
    let mut by_send: BTreeMap<(DeliveryId, u32), Vec<&Effect>> = BTreeMap::new();
    for effect in &effects {
        by_send.entry((effect.delivery, effect.send)).or_default().push(effect);
    }
    let mut known = Vec::new();
    for intent in intents {
        let Some(id) = acknowledged.get(&intent.key) else { continue };
        let Some(record) = run.record(*id) else {
            found.push(format!("P1: {} was acknowledged and is gone", intent.key));
            continue;
        };
        let digests = run.digests_of(*id).into_iter().filter_map(|digest| run.record(digest));
        for delivery in digests.chain([record]).flat_map(|record| record.deliveries) {
            let seen = by_send.get(&(delivery.id, 1)).map_or(&[][..], Vec::as_slice);
            if !known.contains(&delivery.id) {
                check_delivery(&delivery, seen, &mut found);
            }
            known.push(delivery.id);
        }
    }
    for effect in &effects {
        if !known.contains(&effect.delivery) {
            found.push(format!("P2: an effect of {} that no intent stands for", effect.delivery));
        }
    }
    found
}

fn check_delivery(delivery: &Delivery, seen: &[&Effect], found: &mut Vec<String>) {
    let mut broke = |promise: &str| found.push(format!("{promise}: {} {:?}", delivery.id, delivery.state));
    let at_most_once = classes()[&delivery.class].order == Order::RecordThenSend;
    if at_most_once && seen.len() > 1 {
        broke("P3: at most once, and seen more than once");
    }
    for (before, effect) in seen.iter().enumerate() {
        if effect.unknowns_recorded < before {
            broke("P4: seen again without a recorded unknown outcome");
        }
        if effect.key != seen[0].key {
            broke("P4: seen again under another key");
        }
        if effect.hash != seen[0].hash {
            broke("P4: seen again with another message");
        }
    }
    let claims_arrival = matches!(delivery.state, State::Accepted | State::Delivered);
    if claims_arrival && seen.is_empty() {
        broke("P3: recorded as accepted, and never seen");
    }
    let sure_it_did_not = match delivery.state {
        State::Failed | State::Expired | State::Cancelled | State::Superseded => !delivery.maybe_sent,
        State::Parked { why } => why == ParkWhy::AttemptsExhausted,
        _ => false,
    };
    if sure_it_did_not && !seen.is_empty() {
        broke("P5: recorded as never sent, and seen");
    }
    if !delivery.ended() || delivery.reason().is_empty() {
        broke("P5: no end, or an end without a reason");
    }
}
