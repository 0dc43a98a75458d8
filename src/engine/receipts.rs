//! Providers' later words, applied without ever moving a delivery backwards. One that overtakes
//! the record of its own call is held and brought again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::Event;
use tokio::sync::{Mutex, mpsc};

use super::settle::{SharedRef, Unapplied};
use crate::facts::Fact;
use crate::ports::channel::Receipt;

/// Receipts held at once; beyond it the oldest held one goes (its delivery then ends when its
/// receipt window closes).
const MOST_HELD: usize = 10_000;
const BRING_AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn run(shared: SharedRef, inbox: Arc<Mutex<mpsc::Receiver<Receipt>>>) {
    let mut inbox = inbox.lock().await;
    let mut held: VecDeque<Receipt> = VecDeque::new();
    loop {
        let arrived = tokio::select! {
            biased;
            arrived = inbox.recv() => arrived,
            () = shared.pause(BRING_AGAIN), if !held.is_empty() => {
                for _ in 0..held.len() {
                    if let Some(receipt) = held.pop_front() {
                        apply(&shared, receipt, &mut held).await;
                    }
                }
                continue;
            }
        };
        // Every sender is gone: no provider is left that could say anything.
        let Some(receipt) = arrived else { return };
        apply(&shared, receipt, &mut held).await;
    }
}

async fn apply(shared: &SharedRef, receipt: Receipt, held: &mut VecDeque<Receipt>) {
    let event = Event::Receipt(receipt.kind);
    match shared.apply_until_done(receipt.delivery, event, |delivery| shared.class_of(delivery), None).await {
        Ok(()) => {}
        Err(unapplied) => {
            if let Unapplied::StoreAway(why) = unapplied {
                shared.deps.facts.record(&Fact::StoreUnavailable { verb: "apply", why });
            }
            if held.len() == MOST_HELD {
                held.pop_front();
            }
            held.push_back(receipt);
        }
    }
}
