//! The way in, on one node.

use std::sync::Arc;
use std::time::Duration;

use belfry::ports::clock::Clock;
use belfry::ports::deliveries::{Accepted, Deliveries, NewNotification};
use belfry_domain::delivery::NewDelivery;
use belfry_domain::notification::Fingerprint;
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, Delivery, Lane, Notification, NotificationId};

use super::bugs::Bug;
use super::executor::NodeId;
use super::scenario::classes;
use super::world::NodeShell;

/// What a caller wants, in the caller's own terms.
#[derive(Clone, Debug)]
pub struct Intent {
    pub key: String,
    pub class: &'static str,
    pub channel: ChannelKind,
    /// When it is first asked for.
    pub at: Duration,
    /// How often it is asked for again after the yes.
    pub repeats: u64,
    pub cancel: bool,
}

pub struct Door {
    pub node: NodeId,
    pub shell: Arc<NodeShell>,
    pub store: Arc<dyn Deliveries>,
    pub bug: Option<Bug>,
}

impl Door {
    /// The id, or `None` where the store did not answer.
    pub async fn submit(&self, intent: &Intent) -> Option<NotificationId> {
        let namespace = match self.bug {
            Some(Bug::KeyPerNode) => format!("node-{}", self.node),
            _ => "main".into(),
        };
        let id = NotificationId::http("acme", "live", &namespace, &intent.key);
        let class = &classes()[intent.class];
        let now = self.shell.now();
        let provider = if intent.channel == ChannelKind::Email { "mail" } else { "texts" };
        let delivery = Delivery::new(NewDelivery {
            notification: id,
            channel: intent.channel,
            slot: "to".into(),
            class: class.name.clone(),
            lane: Lane::new(provider, class.priority),
            tenant: "acme".into(),
            created_at: now,
            send_at: None,
            expires_at: now.plus(class.expiry),
            lease: class.lease,
            content_hash: "frozen".into(),
            address_mask: "a…@example.com".into(),
            address_hash: "00".into(),
            via: Hop::Http,
        });
        let notification = Notification {
            id,
            tenant: "acme".into(),
            environment: "live".into(),
            class: class.name.clone(),
            created_at: now,
            remembered_until: now.plus(class.window),
            via: Hop::Http,
            template: None,
            scope: None,
            reference: None,
            group: None,
            collapse: None,
            send_at: None,
            expires_at: now.plus(class.expiry),
            traceparent: None,
            metadata: None,
            fingerprint: Fingerprint { whole: "00".into(), parts: Default::default() },
            keep_content_ms: 3_600_000,
        };
        let inputs = format!("\"{}\"", intent.key);
        let new = NewNotification { notification, deliveries: vec![delivery], inputs, collapse_groups: vec![None] };
        match self.store.accept(vec![new]).await.ok()?.pop()? {
            Accepted::Created | Accepted::Repeat(_) | Accepted::Remembered(_) => Some(id),
        }
    }
}
