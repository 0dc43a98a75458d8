//! What a caller is told about an intent. The first answer is a pure function of the record, so
//! that every repeat can be given the same bytes while the record lives.

use belfry_domain::delivery::{DeferWhy, NewDelivery};
use belfry_domain::notification::{Record, Tombstone, least_finished};
use belfry_domain::timeline::Hop;
use belfry_domain::{Delivery, Notification, NotificationId, State, Why};
use serde::Serialize;
use utoipa::ToSchema;

use super::instant::rfc3339;
use super::submission::Refusal;

/// What became of one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// New, and durable.
    Created(Receipt),
    /// A repeat: what was said the first time.
    Replayed(Receipt),
    /// A repeat whose record is gone.
    Remembered(Remembered),
    /// The key (or `unique`, as `hop` says) is known with another request. `pointers` is empty where
    /// what differs is no longer known.
    Mismatch {
        id: NotificationId,
        hop: Hop,
        pointers: Vec<String>,
    },
    Refused(Refusal),
}

/// The notification as it was when it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Receipt {
    #[schema(pattern = "^ntf_[0-9a-f]{24}$", examples("ntf_a442d9c1608d0723a015e185"))]
    pub id: String,
    pub class: String,
    /// `scheduled`, `queued`, `deferred` while it gathers with others, or `suppressed` where nothing of it may be sent.
    pub state: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Repeats are recognised until then.
    #[schema(format = DateTime)]
    pub remembered_until: String,
    pub deliveries: Vec<ReceiptDelivery>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceiptDelivery {
    #[schema(pattern = "^dlv_[0-9a-f]{24}$", examples("dlv_a442935c72d410964c9d5c2b"))]
    pub id: String,
    pub channel: String,
    pub state: String,
    /// One sentence for people.
    pub reason: String,
}

/// What is left of a notification whose record is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Remembered {
    #[schema(pattern = "^ntf_[0-9a-f]{24}$")]
    pub id: String,
    /// The state it ended in.
    pub state: String,
    #[schema(format = DateTime)]
    pub remembered_until: String,
}

impl Receipt {
    /// As every repeat is told it, whatever became of the deliveries.
    #[must_use]
    pub fn new(notification: &Notification, deliveries: &[Delivery]) -> Self {
        let deliveries: Vec<_> = deliveries.iter().map(|one| as_accepted(notification, one)).collect();
        Self {
            id: notification.id.to_string(),
            class: notification.class.clone(),
            state: least_finished(deliveries.iter().map(|one| one.state.name())).to_string(),
            created_at: rfc3339(notification.created_at),
            remembered_until: rfc3339(notification.remembered_until),
            deliveries: deliveries
                .iter()
                .map(|one| ReceiptDelivery {
                    id: one.id.to_string(),
                    channel: one.channel.to_string(),
                    state: one.state.name().to_string(),
                    reason: one.reason(),
                })
                .collect(),
        }
    }

    /// The same, from the record as it stands now.
    #[must_use]
    pub fn again(record: &Record) -> Self {
        Self::new(&record.notification, &record.deliveries)
    }
}

fn as_accepted(notification: &Notification, delivery: &Delivery) -> Delivery {
    let planned = Delivery::new(NewDelivery {
        notification: notification.id,
        channel: delivery.channel,
        slot: delivery.slot.clone(),
        class: delivery.class.clone(),
        lane: delivery.lane.clone(),
        tenant: delivery.tenant.clone(),
        via: notification.via,
        created_at: notification.created_at,
        send_at: notification.send_at,
        expires_at: notification.expires_at,
        lease: delivery.lease,
        content_hash: delivery.content_hash.clone(),
        address_mask: delivery.address_mask.clone(),
        address_hash: delivery.address_hash.clone(),
        device: delivery.device.clone(),
    });
    match (delivery.suppressed_at_accept, delivery.gathering) {
        (Some(code), _) => Delivery { state: State::Suppressed, last: Some(Why::new(code)), ..planned },
        (None, Some(gathering)) => {
            let state = State::Deferred { until: gathering.slot.until, why: DeferWhy::Gathering };
            Delivery { state, ..planned }
        }
        (None, None) => planned,
    }
}

impl From<&Tombstone> for Remembered {
    fn from(tombstone: &Tombstone) -> Self {
        Self {
            id: tombstone.id.to_string(),
            state: tombstone.state.to_string(),
            remembered_until: rfc3339(tombstone.remembered_until),
        }
    }
}
