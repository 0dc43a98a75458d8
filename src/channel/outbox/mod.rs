//! The provider that keeps messages for the developer to look at, and misbehaves on request.
//!
//! It stands in for a real provider, faults and all: a second copy is kept as a second message,
//! an answer can be lost after the message is kept, and receipts come later or never. Addresses
//! choose outcomes ([`Simulated`]), switches choose faults ([`Misbehaviours`]).

mod seen;
mod simulated;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use belfry_domain::outcome::{OutcomeKind, RepeatGuard};
use belfry_domain::timeline::ReceiptKind;
use belfry_domain::{Outcome, Why, WhyCode};
use tokio::sync::mpsc;

use crate::ports::StoreError;
use crate::ports::channel::{Call, Channel, Receipt};
use crate::ports::clock::Clock;
use crate::ports::deliveries::Owner;
use crate::ports::message::Outgoing;
use crate::ports::outbox::{Misbehaviour, Misbehaviours, OutboxMessage, OutboxMessages};

use seen::Seen;
pub use simulated::{MAGIC_PHONES, Simulated};

/// How long a slow provider takes, unless told otherwise.
pub const SLOW: Duration = Duration::from_secs(5);
/// So often a temporary failure is answered before the message is taken.
pub const TEMPORARY_FAILURES: u32 = 2;
/// How many of an address's newest messages are looked through for an earlier copy.
const LOOKED_THROUGH: u16 = 100;

pub struct OutboxChannel {
    messages: Arc<dyn OutboxMessages>,
    clock: Arc<dyn Clock>,
    receipts: mpsc::Sender<Receipt>,
    /// Beyond so many messages the oldest goes.
    keep: u32,
    slow: Duration,
    misbehaviours: Arc<Misbehaviours>,
    /// Temporary failures answered so far, by send. In memory: a restarted outbox begins anew.
    refused: Mutex<Seen>,
}

impl OutboxChannel {
    #[must_use]
    pub fn new(
        messages: Arc<dyn OutboxMessages>,
        clock: Arc<dyn Clock>,
        receipts: mpsc::Sender<Receipt>,
        keep: u32,
    ) -> Arc<Self> {
        Self::slow_for(SLOW, messages, clock, receipts, keep)
    }

    /// The same, taking `slow` for a message to a `sim-slow` address.
    #[must_use]
    pub fn slow_for(
        slow: Duration,
        messages: Arc<dyn OutboxMessages>,
        clock: Arc<dyn Clock>,
        receipts: mpsc::Sender<Receipt>,
        keep: u32,
    ) -> Arc<Self> {
        let (misbehaviours, refused) = (Arc::default(), Mutex::default());
        Arc::new(Self { messages, clock, receipts, keep, slow, misbehaviours, refused })
    }

    /// The switches, to be shared with whoever sets them.
    #[must_use]
    pub const fn misbehave(&self) -> &Arc<Misbehaviours> {
        &self.misbehaviours
    }

    /// Whether a copy of this send is kept already, so that a lost answer is lost once and a
    /// repeat gets through: also after a restart, which a real provider would not notice either.
    async fn has_copy(&self, out: &Outgoing) -> Result<bool, StoreError> {
        let owner = Owner { tenant: out.tenant.clone(), environment: out.environment.clone() };
        let kept = self.messages.list(&owner, Some(&out.address.0), None, LOOKED_THROUGH).await?;
        let send_key = out.send_key.to_string();
        Ok(kept.iter().any(|message| message.send_key == send_key))
    }

    /// Keeps the message; the outcome where that did not work. The call is committed either way.
    async fn keep(&self, out: &Outgoing, call: &Call) -> Result<u64, Outcome> {
        call.commit().map_err(|_| not_accepted(WhyCode::LeaseLost, "the lease ran out before the call"))?;
        let message = OutboxMessage {
            seq: 0,
            at: self.clock.now(),
            tenant: out.tenant.clone(),
            environment: out.environment.clone(),
            channel: out.channel,
            notification: out.notification,
            delivery: out.delivery,
            send_key: out.send_key.to_string(),
            to: out.address.0.clone(),
            message: out.message.clone(),
            collapse: out.collapse.clone(),
        };
        // Committed and no answer from the store: it may have been kept.
        self.messages.add(message, self.keep).await.map_err(|_| unknown(WhyCode::CutAfter))
    }

    async fn simulate(&self, simulated: Simulated, out: &Outgoing, call: &Call) -> Outcome {
        match simulated {
            Simulated::Accepted => self.accept(out, call, None).await,
            Simulated::Delivered => self.accept(out, call, Some(ReceiptKind::Delivered)).await,
            Simulated::Bounced => self.accept(out, call, Some(ReceiptKind::Bounced)).await,
            Simulated::Permanent => {
                Outcome::Refused { why: Why::said(WhyCode::PolicyRefused, "the address asks for that (sim-permanent)") }
            }
            Simulated::Gone => Outcome::RecipientGone {
                since: None,
                why: Why::said(WhyCode::NoSuchRecipient, "the address asks to be one that does not exist (sim-gone)"),
            },
            Simulated::NoSuchOutcome => Outcome::Refused { why: Why::said(WhyCode::NotSupported, no_such_outcome()) },
            Simulated::Temporary => {
                let failures = self.refused.lock().unwrap_or_else(PoisonError::into_inner).count(out.send_key);
                if failures <= TEMPORARY_FAILURES {
                    return not_accepted(WhyCode::TryLater, "the address asks to be tried later (sim-temporary)");
                }
                self.accept(out, call, None).await
            }
            Simulated::Slow => {
                let accepted = self.accept(out, call, None).await;
                if accepted.kind() == OutcomeKind::Accepted {
                    // After it is kept: a worker that dies in this wait has sent it.
                    self.clock.sleep_until(self.clock.boot() + self.slow).await;
                }
                accepted
            }
            Simulated::Unknown => match self.has_copy(out).await {
                Ok(true) => self.accept(out, call, None).await,
                Ok(false) => {
                    self.keep(out, call).await.map_or_else(|failed| failed, |_| unknown(WhyCode::TimedOutAfter))
                }
                // Nothing was kept or committed yet.
                Err(_) => not_accepted(WhyCode::Unreachable, "the outbox is away"),
            },
        }
    }

    async fn accept(&self, out: &Outgoing, call: &Call, told: Option<ReceiptKind>) -> Outcome {
        // Room for the receipt first: with the message kept there must be no way to lose it but a
        // crash. A closed receiver is a shutdown, in which no receipt is heard.
        let permit = match told {
            Some(_) => self.receipts.reserve().await.ok(),
            None => None,
        };
        match self.keep(out, call).await {
            Ok(seq) => {
                if let (Some(permit), Some(kind)) = (permit, told) {
                    permit.send(Receipt { delivery: out.delivery, kind });
                }
                Outcome::Accepted { provider_ref: Some(format!("outbox-{seq}")), why: Why::new(WhyCode::Ok) }
            }
            Err(failed) => failed,
        }
    }
}

#[async_trait]
impl Channel for OutboxChannel {
    /// None: what a repeat does has to be seen here.
    fn repeat_guard(&self) -> RepeatGuard {
        RepeatGuard::None
    }

    /// None but those that an address asks for, and these come at once: nothing waits for them.
    fn receipts(&self) -> bool {
        false
    }

    async fn send(&self, out: &Outgoing, call: &Call) -> Outcome {
        match self.misbehaviours.take() {
            None => self.simulate(Simulated::of(&out.address.0), out, call).await,
            Some(Misbehaviour::FailNext) => not_accepted(WhyCode::TryLater, "the outbox was told to fail (fail_next)"),
            Some(Misbehaviour::TimeOutAfterAccept) => {
                self.keep(out, call).await.map_or_else(|failed| failed, |_| unknown(WhyCode::TimedOutAfter))
            }
            Some(Misbehaviour::CrashMidSend) => match self.keep(out, call).await {
                // As a killed worker dies: no destructor, no drain, no last word.
                Ok(_) => std::process::abort(),
                Err(failed) => failed,
            },
        }
    }
}

fn not_accepted(code: WhyCode, answer: &str) -> Outcome {
    Outcome::NotAccepted { retry_after: None, why: Why::said(code, answer) }
}

const fn unknown(code: WhyCode) -> Outcome {
    Outcome::Unknown { retry_after: None, why: Why::new(code) }
}

fn no_such_outcome() -> String {
    let names: Vec<_> = Simulated::NAMED.iter().map(|(name, _)| format!("sim-{name}")).collect();
    format!("the address asks for an outcome that there is not; there are {}", names.join(", "))
}
