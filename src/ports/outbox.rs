//! Where the outbox provider keeps what it would have sent. It stands in for a real provider, so a
//! second copy is kept as a second message: that is what there is to see.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, UnixMs};
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::deliveries::Owner;
use super::message::Rendered;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxMessage {
    /// Grows with every message.
    pub seq: u64,
    pub at: UnixMs,
    pub tenant: String,
    pub environment: String,
    pub channel: ChannelKind,
    pub notification: NotificationId,
    pub delivery: DeliveryId,
    /// Hex: the same on every copy of one send.
    pub send_key: String,
    pub to: String,
    pub message: Rendered,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse: Option<String>,
}

/// An address as it is compared: without case.
#[must_use]
pub fn folded(address: &str) -> String {
    address.to_lowercase()
}

#[async_trait]
pub trait OutboxMessages: Send + Sync + 'static {
    /// Keeps it under the next `seq`, which is returned; beyond `keep` messages the oldest goes.
    async fn add(&self, message: OutboxMessage, keep: u32) -> Result<u64, StoreError>;
    /// Newest first; `to` compares without case; only those after `after` where given.
    async fn list(
        &self,
        owner: &Owner,
        to: Option<&str>,
        after: Option<u64>,
        limit: u16,
    ) -> Result<Vec<OutboxMessage>, StoreError>;
    /// How many went.
    async fn clear(&self, owner: &Owner, to: Option<&str>) -> Result<u64, StoreError>;
}

/// What the outbox provider can be told to do wrong, so that a developer sees what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// The next calls are refused for now, before anything is kept.
    FailNext,
    /// The message is kept, then the answer is lost.
    TimeOutAfterAccept,
    /// The message is kept, then the worker dies before it can record that.
    CrashMidSend,
}

impl Misbehaviour {
    pub const ALL: [Self; 3] = [Self::FailNext, Self::TimeOutAfterAccept, Self::CrashMidSend];
}

/// How many more calls each misbehaviour takes. Shared by the provider and whoever sets the switches.
#[derive(Debug, Default)]
pub struct Misbehaviours([AtomicU32; 3]);

impl Misbehaviours {
    /// The next `times` calls misbehave so; 0 ends it.
    pub fn arm(&self, what: Misbehaviour, times: u32) {
        self.0[what as usize].store(times, Ordering::SeqCst);
    }

    #[must_use]
    pub fn left(&self, what: Misbehaviour) -> u32 {
        self.0[what as usize].load(Ordering::SeqCst)
    }

    /// What this call has to do wrong, counted down; the first armed one of [`Misbehaviour::ALL`].
    #[must_use]
    pub fn take(&self) -> Option<Misbehaviour> {
        let one_less = |left: u32| left.checked_sub(1);
        Misbehaviour::ALL
            .into_iter()
            .find(|what| self.0[*what as usize].fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::{Misbehaviour, Misbehaviours};

    #[test]
    fn switches_count_down() {
        let switches = Misbehaviours::default();
        assert_eq!(switches.take(), None);
        switches.arm(Misbehaviour::CrashMidSend, 1);
        switches.arm(Misbehaviour::FailNext, 2);
        let taken: Vec<_> = (0..4).map(|_| switches.take()).collect();
        let expected =
            [Some(Misbehaviour::FailNext), Some(Misbehaviour::FailNext), Some(Misbehaviour::CrashMidSend), None];
        assert_eq!(taken, expected);
        assert_eq!(switches.left(Misbehaviour::FailNext), 0);
    }
}
