//! The promises, checked after a play against what the person got.

use std::collections::BTreeMap;

use belfry_domain::delivery::{ParkWhy, State};
use belfry_domain::notification::Record;
use belfry_domain::{Delivery, DeliveryId};

use super::provider::Copy;

/// Every broken promise, in words. `answered`: the records behind the ids that the caller was told;
/// `None` where there is none.
pub fn broken(answered: &[Option<Record>], copies: &[Copy], at_most_once: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut broke = |promise: &str| found.push(promise.to_owned());
    if answered.is_empty() {
        broke("P1: no try was ever answered");
    }
    if answered.iter().any(Option::is_none) {
        broke("P1: it was acknowledged and is gone");
    }
    if answered.len() > 1 {
        broke("P2: one intent has become several");
    }
    let records: Vec<&Record> = answered.iter().flatten().collect();
    let deliveries: Vec<&Delivery> = records.iter().flat_map(|record| &record.deliveries).collect();
    if copies.iter().any(|copy| !deliveries.iter().any(|delivery| delivery.id == copy.delivery)) {
        broke("P2: a copy that no record stands for");
    }
    let mut by_send: BTreeMap<(DeliveryId, u32), Vec<&Copy>> = BTreeMap::new();
    for copy in copies {
        by_send.entry((copy.delivery, copy.send)).or_default().push(copy);
    }
    for delivery in deliveries {
        let seen = by_send.get(&(delivery.id, delivery.send)).map_or(&[][..], Vec::as_slice);
        of_delivery(delivery, seen, at_most_once, &mut broke);
    }
    found
}

fn of_delivery(delivery: &Delivery, seen: &[&Copy], at_most_once: bool, broke: &mut impl FnMut(&str)) {
    if at_most_once && seen.len() > 1 {
        broke("P3: at most once, and received more than once");
    }
    for (before, copy) in seen.iter().enumerate() {
        if copy.unknowns_recorded < before {
            broke("P4: again without a recorded unknown outcome");
        }
        if copy.key != seen[0].key {
            broke("P4: again under another key");
        }
        if copy.hash != seen[0].hash {
            broke("P4: again with another message");
        }
    }
    if matches!(delivery.state, State::Accepted | State::Delivered) && seen.is_empty() {
        broke("P3: recorded as accepted, and never received");
    }
    let surely_not = match delivery.state {
        State::Failed | State::Expired | State::Cancelled | State::Superseded => !delivery.maybe_sent,
        State::Parked { why } => why == ParkWhy::AttemptsExhausted,
        _ => false,
    };
    if surely_not && !seen.is_empty() {
        broke("P5: recorded as never sent, and received");
    }
    if !delivery.ended() {
        broke("P3: it never comes to an end");
    } else if delivery.reason().is_empty() {
        broke("P5: an end without a reason");
    }
}
