//! Intents and what becomes of them, as short as a test can say it.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry::ports::deliveries::{
    Accepted, Claim, ClaimAsk, Claims, CollapseGroup, NewNotification, Owner, Reclaim, Settle, Spend, Written,
};
use belfry::ports::search::{NamedRecipient, Query};
use belfry_domain::delivery::{NewDelivery, ParkWhy};
use belfry_domain::notification::{Fingerprint, Record, TemplateRef};
use belfry_domain::timeline::Hop;
use belfry_domain::{ChannelKind, Delivery, Lane, Notification, NotificationId, Priority, State, UnixMs, hex};

use super::harness::Harness;

pub const LEASE: Duration = Duration::from_secs(30);
pub const LEASE_MS: i64 = 30_000;
pub const WINDOW_MS: i64 = 15 * 86_400_000;
pub const KEEP_CONTENT_MS: u64 = 3 * 86_400_000;

pub fn main_lane() -> Lane {
    Lane::new("main", Priority::Normal)
}

pub fn id_of(key: &str) -> NotificationId {
    NotificationId::http("acme", "live", "keys", key)
}

pub fn acme() -> Owner {
    Owner { tenant: "acme".into(), environment: "live".into() }
}

/// A planned intent with one mail, changed by the test where it matters.
pub fn intent(harness: &Harness, key: &str) -> NewNotification {
    intent_of(harness, key, "acme", 1)
}

/// With `slots` deliveries, of a tenant of its own.
pub fn intent_of(harness: &Harness, key: &str, tenant: &str, slots: usize) -> NewNotification {
    let now = harness.now();
    let id = NotificationId::http(tenant, "live", "keys", key);
    let notification = Notification {
        id,
        tenant: tenant.into(),
        environment: "live".into(),
        class: "receipt".into(),
        created_at: now,
        remembered_until: UnixMs(now.0 + WINDOW_MS),
        via: Hop::Http,
        template: None,
        scope: None,
        reference: None,
        group: None,
        collapse: None,
        send_at: None,
        expires_at: UnixMs(now.0 + 86_400_000),
        traceparent: None,
        metadata: None,
        fingerprint: Fingerprint { whole: "0f".repeat(32), parts: BTreeMap::new() },
        keep_content_ms: KEEP_CONTENT_MS,
        recipient: None,
        left_out: Vec::new(),
        digest: None,
        gathered: Vec::new(),
    };
    let deliveries: Vec<Delivery> = (0..slots).map(|slot| Delivery::new(plan(&notification, slot))).collect();
    NewNotification {
        attached: Vec::new(),
        inputs: format!("{{\"for\":\"{key}\"}}"),
        collapse_groups: vec![None; deliveries.len()],
        recipient_hash: None,
        notification,
        deliveries,
    }
}

fn plan(notification: &Notification, slot: usize) -> NewDelivery {
    NewDelivery {
        notification: notification.id,
        channel: ChannelKind::Email,
        slot: if slot == 0 { "to".into() } else { format!("cc/{}", slot - 1) },
        class: notification.class.clone(),
        lane: main_lane(),
        tenant: notification.tenant.clone(),
        created_at: notification.created_at,
        send_at: None,
        expires_at: notification.expires_at,
        lease: LEASE,
        content_hash: "c0".repeat(32),
        address_mask: "a…@example.com".into(),
        address_hash: format!("{:064x}", slot + 1),
        device: None,
        via: notification.via,
    }
}

pub fn in_lane(mut intent: NewNotification, lane: &Lane) -> NewNotification {
    intent.deliveries.iter_mut().for_each(|one| one.lane = lane.clone());
    intent
}

/// Due only `ms` from now.
pub fn due_in(mut intent: NewNotification, ms: i64) -> NewNotification {
    for one in &mut intent.deliveries {
        one.due_at = UnixMs(one.created_at.0 + ms);
        one.state = State::Scheduled { until: one.due_at };
    }
    intent
}

pub fn in_group(mut intent: NewNotification, group: &str, version: i64) -> NewNotification {
    let group = Some(CollapseGroup { group: group.into(), version });
    intent.collapse_groups = vec![group; intent.deliveries.len()];
    intent
}

/// Naming a recipient.
pub fn to_recipient(mut intent: NewNotification, name: &str) -> NewNotification {
    intent.recipient_hash = Some(hash_of(name));
    intent.notification.recipient = Some(name.into());
    intent
}

pub fn of_recipient(name: &str) -> Query {
    let recipient = NamedRecipient { name: name.into(), hash: hash_of(name) };
    Query { recipient: Some(recipient), ..everything(acme()) }
}

/// Of names that begin alike they are the same.
fn hash_of(name: &str) -> String {
    format!("{:0<32}", hex(name.as_bytes().get(..4).unwrap_or_default()))
}

pub fn with_template(mut intent: NewNotification, version: &str) -> NewNotification {
    let template = TemplateRef { name: "hello".into(), version: version.into(), locale: "en".into() };
    intent.notification.template = Some(template);
    intent
}

/// `delivery` as the next write would have it, in another state.
pub fn next(delivery: &Delivery, state: State) -> Delivery {
    let mut next = delivery.clone();
    next.state = state;
    next.rev += 1;
    next
}

/// Ended for good.
pub fn ended(harness: &Harness, delivery: &Delivery, state: State) -> Delivery {
    Delivery { ended_at: Some(harness.now()), receipt_until: None, ..next(delivery, state) }
}

/// Back in the queue, due now.
pub fn queued(harness: &Harness, delivery: &Delivery) -> Delivery {
    Delivery { due_at: harness.now(), ended_at: None, ..next(delivery, State::Queued) }
}

pub const PARKED: State = State::Parked { why: ParkWhy::MayHaveArrived };

pub fn ask(nonce: u64, most: u16) -> ClaimAsk {
    ClaimAsk { worker: "w1".into(), nonce, lanes: vec![(main_lane(), most)], alone: false }
}

pub fn everything(owner: Owner) -> Query {
    Query::of(owner)
}

/// One-item forms of the verbs, for tests whose point is not the batch.
impl Harness {
    pub async fn accept(&self, intent: NewNotification) -> Accepted {
        let mut answers = self.store.accept(vec![intent]).await.unwrap();
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub async fn create(&self, intent: NewNotification) {
        assert!(matches!(self.accept(intent).await, Accepted::Created));
    }

    pub async fn claims(&self, ask: ClaimAsk) -> Claims {
        self.store.claim(ask).await.unwrap()
    }

    /// Claims the one delivery that is due.
    pub async fn claim(&self, nonce: u64) -> Claim {
        let mut claims = self.claims(ask(nonce, 100)).await.claims;
        assert_eq!(claims.len(), 1);
        claims.remove(0)
    }

    pub async fn settle(&self, claim: &Claim, next: &Delivery) -> Written {
        one(self.store.settle(vec![Settle { next: next.clone(), token: claim.token }]).await.unwrap())
    }

    pub async fn spend(&self, claim: &Claim, rev: u64) -> Written {
        one(self.store.spend(vec![Spend { id: claim.delivery.id, token: claim.token, rev }]).await.unwrap())
    }

    pub async fn apply(&self, next: &Delivery) -> Written {
        one(self.store.apply(vec![next.clone()]).await.unwrap())
    }

    pub async fn reclaim(&self, reclaim: Reclaim) -> Written {
        one(self.store.reclaim(vec![reclaim]).await.unwrap())
    }

    pub async fn renew(&self, claim: &Claim) -> bool {
        let renewed = self.store.renew(vec![(claim.delivery.id, claim.token)]).await.unwrap();
        assert_eq!(renewed.iter().map(|one| one.id).collect::<Vec<_>>(), [claim.delivery.id]);
        renewed[0].held
    }

    pub async fn stored(&self, delivery: &Delivery) -> Delivery {
        let mut found = self.store.load(vec![delivery.id]).await.unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    pub async fn record(&self, key: &str) -> Option<Record> {
        self.store.read(&acme(), id_of(key)).await.unwrap()
    }

    /// Claims the one due delivery and ends it.
    pub async fn finish(&self, nonce: u64, state: State) -> Delivery {
        let claim = self.claim(nonce).await;
        let next = ended(self, &claim.delivery, state);
        assert_eq!(self.settle(&claim, &next).await, Written::Done);
        next
    }
}

fn one(mut answers: Vec<Written>) -> Written {
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}
