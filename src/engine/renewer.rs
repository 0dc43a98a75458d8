//! Renews the leases of this worker's claims in batches, at a third of each lease.

use std::collections::HashMap;

use belfry_domain::DeliveryId;

use super::settle::SharedRef;
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::{MOST_ITEMS, Token};

pub(super) async fn run(shared: SharedRef) {
    loop {
        shared.pause(shared.shortest_lease() / 6).await;
        for batch in shared.ledger.wanting_renewal().chunks(MOST_ITEMS) {
            let asked_at = shared.deps.clock.boot();
            let claims: Vec<(DeliveryId, Token)> = batch.iter().map(|live| (live.id, live.token)).collect();
            match shared.deps.deliveries.renew(claims).await {
                Ok(renewed) => {
                    if renewed.len() < batch.len() {
                        let why = StoreError::Unavailable("a part of it is away".into());
                        shared.deps.facts.record(&Fact::StoreUnavailable { verb: "renew", why });
                    }
                    let held: HashMap<DeliveryId, bool> = renewed.iter().map(|one| (one.id, one.held)).collect();
                    for live in batch {
                        match held.get(&live.id) {
                            Some(true) => live.renewed(asked_at),
                            Some(false) => live.lose(),
                            None => {}
                        }
                    }
                }
                // The gate closes by itself when the lease has run out on this worker's clock.
                Err(why) => shared.deps.facts.record(&Fact::StoreUnavailable { verb: "renew", why }),
            }
        }
    }
}
