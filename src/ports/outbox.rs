//! Where the outbox provider keeps what it would have sent. It stands in for a real provider, so a
//! second copy is kept as a second message: that is what there is to see.

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
