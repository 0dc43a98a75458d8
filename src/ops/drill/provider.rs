//! The provider of a drill, and the person behind it: what was called, what was recognised, what
//! arrived.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::{DeliveryId, Outcome, Why, WhyCode};
use sha2::{Digest, Sha256};

use super::Guard;
use super::life::{Life, Point};
use super::scene::Way;
use crate::ports::StoreError;
use crate::ports::channel::{Call, Channel};
use crate::ports::deliveries::Deliveries;
use crate::ports::message::Outgoing;

/// How long a provider that remembers keys does so.
const REMEMBERS: Duration = Duration::from_secs(24 * 3600);

/// One copy, as the person has it.
#[derive(Clone, Debug)]
pub struct Copy {
    pub delivery: DeliveryId,
    pub send: u32,
    /// What the provider knows it by: Message-ID, webhook-id, collapse id.
    pub key: String,
    /// Hex SHA-256 of the message.
    pub hash: String,
    /// Unknown outcomes on record for this send when it arrived.
    pub unknowns_recorded: usize,
}

/// The one recipient, and the provider that serves her: shared by all nodes.
pub struct Mailbox {
    /// The store as it is, whatever a node sees of it.
    pub truth: Arc<dyn Deliveries>,
    pub way: Way,
    /// Answers the first call with silence, after it has taken the message.
    times_out: AtomicBool,
    calls: AtomicUsize,
    recognised: AtomicUsize,
    known: Mutex<BTreeSet<String>>,
    copies: Mutex<Vec<Copy>>,
}

impl Mailbox {
    pub fn new(truth: Arc<dyn Deliveries>, way: Way, times_out: bool) -> Self {
        Self {
            truth,
            way,
            times_out: AtomicBool::new(times_out),
            calls: AtomicUsize::new(0),
            recognised: AtomicUsize::new(0),
            known: Mutex::default(),
            copies: Mutex::default(),
        }
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn recognised(&self) -> usize {
        self.recognised.load(Ordering::SeqCst)
    }

    pub fn copies(&self) -> Vec<Copy> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn take(&self, out: &Outgoing, key: String) -> Result<(), StoreError> {
        if self.way != Way::Mail && !self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
            self.recognised.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        let stored = self.truth.load(vec![out.delivery]).await?.into_iter().next();
        let unknowns_recorded = stored.map_or(0, |delivery| delivery.timeline.unknowns(out.send));
        let message = serde_json::to_vec(&out.message).unwrap_or_default();
        let hash = belfry_domain::hex(&Sha256::digest(message));
        let copy = Copy { delivery: out.delivery, send: out.send, key, hash, unknowns_recorded };
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
        Ok(())
    }
}

/// The way of one node to it.
pub struct DrillChannel {
    pub mailbox: Arc<Mailbox>,
    pub life: Arc<Life>,
    pub off: Option<Guard>,
}

#[async_trait]
impl Channel for DrillChannel {
    fn repeat_guard(&self) -> RepeatGuard {
        match self.mailbox.way {
            Way::Mail => RepeatGuard::None,
            Way::Keyed => RepeatGuard::Key(REMEMBERS),
            Way::Phone => RepeatGuard::Collapse,
        }
    }

    fn receipts(&self) -> bool {
        false
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        self.life.reach(Point::BeforeCall).await;
        if call.commit().is_err() && self.off != Some(Guard::LeaseGate) {
            return Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::LeaseLost) };
        }
        let number = self.mailbox.calls.fetch_add(1, Ordering::SeqCst);
        let key = match self.off {
            Some(Guard::StableKey | Guard::CollapseId) => format!("{}-{number}", out.send_key),
            _ if self.mailbox.way == Way::Phone => out.collapse_id().to_string(),
            _ => out.send_key.to_string(),
        };
        if self.mailbox.take(out, key).await.is_err() {
            // The drill's own look into the store failed; whether it counts is not known.
            return Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) };
        }
        self.life.reach(Point::Taken).await;
        let why = |code| Why::new(code);
        match (self.mailbox.times_out.swap(false, Ordering::SeqCst), self.off) {
            (true, Some(Guard::TimeOutIsUnknown)) => {
                Outcome::NotAccepted { retry_after: None, why: why(WhyCode::TimedOutBefore) }
            }
            (true, _) => Outcome::Unknown { retry_after: None, why: why(WhyCode::TimedOutAfter) },
            (false, _) => Outcome::Accepted { provider_ref: None, why: why(WhyCode::Ok) },
        }
    }
}
