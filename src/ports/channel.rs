//! A provider that messages go out through. It knows no store, no metrics, no HTTP status of ours:
//! it makes one call and says, out of a closed set, what came of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use belfry_domain::outcome::{Looked, RepeatGuard};
use belfry_domain::timeline::ReceiptKind;
use belfry_domain::{DeliveryId, Outcome, Why};

use super::certificate::CertificateEnd;
use super::message::{Address, Outgoing};

/// Whether a call may still be made: its claim covers it, it has not expired, and no quiet hours have begun. Asked on
/// the worker's own clock, never over the network.
pub trait LeaseGate: Send + Sync {
    fn covers(&self) -> bool;
}

/// The call may not be made any more; nothing irrevocable may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLost;

/// One call under a claim.
#[derive(Clone)]
pub struct Call {
    gate: Arc<dyn LeaseGate>,
    committed: Arc<AtomicBool>,
}

impl Call {
    #[must_use]
    pub fn new(gate: Arc<dyn LeaseGate>) -> Self {
        Self { gate, committed: Arc::new(AtomicBool::new(false)) }
    }

    /// To be called right before the first byte that could have an effect (the request, the final
    /// dot). On `Err` the channel stops and answers `NotAccepted` with [`WhyCode::LeaseLost`]
    /// (`belfry_domain::WhyCode`): a worker that slept through its lease sends nothing, nor does one whose message
    /// expired while it waited for a connection.
    ///
    /// # Errors
    /// [`LeaseLost`] once the call may not be made any more.
    pub fn commit(&self) -> Result<(), LeaseLost> {
        if !self.gate.covers() {
            return Err(LeaseLost);
        }
        self.committed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Whether a call that is broken off now may have had its effect.
    #[must_use]
    pub fn committed(&self) -> bool {
        self.committed.load(Ordering::SeqCst)
    }
}

/// One of the services that a provider's addresses name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Tells it from the others. Chosen by whoever registered the address, and perhaps one person's own: shown to
    /// nobody.
    pub key: String,
    /// Out of a closed set; several may have the same.
    pub name: &'static str,
    /// Many people's: nobody has made it up.
    pub known: bool,
}

#[async_trait]
pub trait Channel: Send + Sync + 'static {
    /// What this provider can do about a repeated call.
    fn repeat_guard(&self) -> RepeatGuard;

    /// Whether receipts ever come.
    fn receipts(&self) -> bool;

    /// The service behind an address, where each address names its own: what one of them does says nothing about
    /// the others. `None`: every message goes to one service.
    fn service(&self, _address: &Address) -> Option<Service> {
        None
    }

    /// What its own settings put into messages that say nothing of the kind, as a mail's From: with another a repeat is
    /// another message.
    fn stamp(&self) -> Option<String> {
        None
    }

    /// Makes one call and classifies what came of it. Has its own deadline for every wait. May be
    /// dropped at any await point and must leave nothing half-done for the next call.
    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome;

    /// Asks the provider about an earlier call; only where the guard is `Lookup`.
    async fn look_up(&self, _out: &Outgoing) -> Looked {
        Looked::NotYet
    }

    /// Until when the certificate is good that it logs in with, where it does so by one.
    fn certificate_end(&self) -> Option<CertificateEnd> {
        None
    }
}

/// Why a look at a provider went wrong. Holds no part of a login.
#[derive(Clone, Debug, thiserror::Error)]
pub struct CheckProblem {
    pub why: Why,
    /// The machine's own words: of the network, of name look-up, of TLS.
    pub detail: Option<String>,
}

impl fmt::Display for CheckProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why.words())?;
        for said in [&self.why.answer, &self.detail].into_iter().flatten() {
            write!(out, ": {said}")?;
        }
        Ok(())
    }
}

/// A provider's later word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub delivery: DeliveryId,
    pub kind: ReceiptKind,
}
