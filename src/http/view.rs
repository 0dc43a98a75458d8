//! Records as the API shows them.

use std::collections::BTreeMap;

use belfry_domain::delivery::{State, StateName};
use belfry_domain::device::{LeftOut, LeftOutWhy};
use belfry_domain::notification::Record;
use belfry_domain::warm_up::PaceNow;
use belfry_domain::{ChannelKind, Delivery, Notification, UnixMs};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::closed_sets;
use super::schema::DeviceKind;
use super::timeline::EntryView;
use crate::intake::answer::Receipt;
use crate::intake::instant::rfc3339;
use crate::intake::pauses::{Standing, in_words};
use crate::ports::circuits::OpenCircuit;
use crate::ports::pauses::KeptPause;
use crate::ports::span::Span;

/// A notification as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notification)]
pub struct NotificationView {
    #[schema(pattern = "^ntf_[0-9a-f]{24}$", examples("ntf_a442d9c1608d0723a015e185"))]
    pub id: String,
    pub class: String,
    /// The least finished of its deliveries.
    #[schema(value_type = closed_sets::State)]
    pub state: StateName,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Repeats are recognised until then.
    #[schema(format = DateTime)]
    pub remembered_until: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub send_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub template: Option<TemplateView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub collapse: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    pub metadata: Option<Box<RawValue>>,
    /// The recipient that the request named, by the caller's own name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recipient: Option<String>,
    /// What gathers together, by the caller's own key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub digest: Option<String>,
    /// Of a digest: the notifications that it is made of, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 100)]
    pub gathered: Vec<String>,
    /// Repeats recognised so far.
    pub repeats: u32,
    pub deliveries: Vec<DeliveryView>,
    /// The recipient's devices that it would have gone to as well, had not their tokens been dead or quarantined
    /// when it was accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 40)]
    pub left_out: Vec<LeftOutView>,
}

/// A stored device that nothing was sent to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeftOut)]
pub struct LeftOutView {
    /// Its id.
    pub device: String,
    #[schema(value_type = DeviceKind)]
    pub kind: ChannelKind,
    #[schema(value_type = closed_sets::LeftOutWhy)]
    pub why: LeftOutWhy,
    /// Since when, as it was known at the accept.
    #[schema(format = DateTime)]
    pub since: String,
}

/// The device that a delivery goes to, as it was when it was accepted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliveryDevice)]
pub struct DeliveryDeviceView {
    /// Of a stored one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub app: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub environment: Option<String>,
}

/// A template as frozen at accept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Template)]
pub struct TemplateView {
    pub name: String,
    pub version: String,
    pub locale: String,
}

/// A delivery as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    #[schema(pattern = "^dlv_[0-9a-f]{24}$", examples("dlv_a442935c72d410964c9d5c2b"))]
    pub id: String,
    pub notification: String,
    #[schema(value_type = closed_sets::Channel)]
    pub channel: ChannelKind,
    /// Names the address within the notification: `to`, `cc/0`, `device/2`.
    pub slot: String,
    /// The address, masked.
    pub address: String,
    /// In an answer to a search by address: whether this is what went to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub matches: Option<bool>,
    /// Where it goes to one of which more is known than its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub device: Option<DeliveryDeviceView>,
    #[schema(value_type = closed_sets::State)]
    pub state: StateName,
    /// Where it stands and why, in one sentence for people.
    pub reason: String,
    /// Whether nothing but a receipt or a person touches it any more.
    pub ended: bool,
    /// Whether a copy may have arrived: some call of any send was accepted, or its outcome is not
    /// known. A receipt or a person who says *delivered* counts too.
    pub may_have_arrived: bool,
    /// Number of the current send, for `after_send`.
    pub send: u32,
    /// Calls within the current send.
    pub attempts: u32,
    pub provider: String,
    /// Of an item that went out as part of a digest: that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub folded_into: Option<String>,
    /// When it is tried next, while it waits: as long as the configuration says the same, of a cap or quiet hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub due_at: Option<String>,
    #[schema(format = DateTime)]
    pub expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub ended_at: Option<String>,
    /// The provider's own name for the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub provider_ref: Option<String>,
    /// What happened, in order. Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub timeline: Option<Vec<EntryView>>,
    /// Entries left out of the middle of a long timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub timeline_left_out: Option<u32>,
}

/// One page, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct NotificationList {
    pub data: Vec<NotificationView>,
    pub has_more: bool,
    /// To be sent as `cursor` for the next page; there while `has_more`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

/// What became of one item of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchResult)]
pub struct BatchResultView {
    /// As sent; empty where there was none.
    pub key: String,
    /// What this item would have been answered alone.
    pub status: u16,
    pub replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub notification: Option<Taken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub problem: Option<super::problem::ProblemBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct BatchResults {
    /// In the order of the items.
    pub data: Vec<BatchResultView>,
}

/// An accepted notification: as it was at accept, or what is left of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Taken {
    Receipt(Receipt),
    Remembered(crate::intake::answer::Remembered),
}

/// What became of a cancellation.
#[derive(Debug, Serialize, ToSchema)]
pub struct Cancellation {
    pub notification: NotificationView,
    /// Deliveries that nothing will go out for.
    pub cancelled: Vec<String>,
    /// Deliveries that are being sent at this moment; no further attempt follows.
    pub in_flight: Vec<String>,
    /// Deliveries that had ended before.
    pub ended: Vec<String>,
}

/// Whether timelines are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    List,
    Whole,
}

/// What stands around the records at the moment: why some of them wait that do not say so themselves.
#[derive(Clone, Debug)]
pub struct Around {
    /// The hold that stands.
    pub restored: Option<UnixMs>,
    /// This node's.
    pub circuits: Vec<OpenCircuit>,
    /// As this node knows them.
    pub pauses: Standing,
    /// Of the providers that have one.
    pub paces: BTreeMap<String, PaceNow>,
    pub now: UnixMs,
}

impl Around {
    fn reason(&self, it: &Delivery, of: Option<&Notification>) -> String {
        if let Some(restored) = self.restored.filter(|_| it.held_back(self.restored)) {
            return it.reason_held_back(&rfc3339(restored));
        }
        if let Some(KeptPause { pause, why, .. }) = self.pauses.holding(it, of, self.now) {
            let until = pause.until.map(rfc3339);
            return it.reason_paused(
                &in_words(&pause.paused, true),
                &rfc3339(pause.since),
                (until.as_deref(), why.as_deref()),
            );
        }
        let own = |open: &&OpenCircuit| open.provider == it.lane.provider && open.service.is_none();
        let open = self.circuits.iter().find(own);
        open.and_then(|open| it.reason_behind_circuit(open.why, &rfc3339(open.since), self.now))
            .or_else(|| self.paced(it))
            .unwrap_or_else(|| it.reason())
    }

    fn paced(&self, it: &Delivery) -> Option<String> {
        let PaceNow { pace, warming } = self.paces.get(&it.lane.provider)?;
        let often = format!("{} times in {}", pace.rate(), Span(pace.per()));
        it.reason_paced(&often, *warming, self.now)
    }
}

impl NotificationView {
    /// `around`: what a reason sentence depends on besides the record.
    #[must_use]
    pub fn new(record: &Record, detail: Detail, around: &Around) -> Self {
        let it = &record.notification;
        Self {
            id: it.id.to_string(),
            class: it.class.clone(),
            state: record.state(),
            created_at: rfc3339(it.created_at),
            remembered_until: rfc3339(it.remembered_until),
            expires_at: rfc3339(it.expires_at),
            send_at: it.send_at.map(rfc3339),
            template: it.template.as_ref().map(|one| TemplateView {
                name: one.name.clone(),
                version: one.version.clone(),
                locale: one.locale.clone(),
            }),
            scope: it.scope.clone(),
            reference: it.reference.clone(),
            group: it.group.clone(),
            collapse: it.collapse.as_ref().map(|one| one.key.clone()),
            version: it.collapse.as_ref().and_then(|one| one.version),
            traceparent: it.traceparent.clone(),
            metadata: it.metadata.clone().and_then(|text| RawValue::from_string(text).ok()),
            recipient: it.recipient.clone(),
            digest: it.digest.clone(),
            gathered: it.gathered.iter().map(ToString::to_string).collect(),
            repeats: record.repeats,
            left_out: it.left_out.iter().map(LeftOutView::new).collect(),
            deliveries: record.deliveries.iter().map(|one| DeliveryView::of(one, Some(it), detail, around)).collect(),
        }
    }
}

impl LeftOutView {
    fn new(it: &LeftOut) -> Self {
        Self { device: it.device.clone(), kind: it.kind, why: it.why, since: rfc3339(it.since) }
    }
}

impl DeliveryDeviceView {
    fn of(it: &Delivery) -> Option<Self> {
        let id = it.stored_device().map(str::to_owned);
        let (app, environment) = it.device.clone().map(|device| (device.app, device.environment)).unwrap_or_default();
        (id.is_some() || it.device.is_some()).then_some(Self { id, app, environment })
    }
}

/// What waits for a cap or for the end of quiet hours is looked at more often than that.
fn due_at(it: &Delivery) -> Option<UnixMs> {
    match it.state {
        State::Deferred { until, .. } => Some(until),
        _ => it.state.waiting().then_some(it.due_at),
    }
}

impl DeliveryView {
    /// As [`NotificationView::new`].
    #[must_use]
    pub fn new(it: &Delivery, detail: Detail, around: &Around) -> Self {
        Self::of(it, None, detail, around)
    }

    fn of(it: &Delivery, notification: Option<&Notification>, detail: Detail, around: &Around) -> Self {
        let whole = detail == Detail::Whole;
        Self {
            id: it.id.to_string(),
            notification: it.notification.to_string(),
            channel: it.channel,
            slot: it.slot.clone(),
            address: it.address_mask.clone(),
            matches: None,
            device: DeliveryDeviceView::of(it),
            state: it.state.name(),
            reason: around.reason(it, notification),
            ended: it.ended(),
            may_have_arrived: it.may_have_arrived(),
            send: it.send,
            attempts: it.attempts,
            provider: it.lane.provider.clone(),
            folded_into: it.folded_into().map(|digest| digest.to_string()),
            due_at: due_at(it).map(rfc3339),
            expires_at: rfc3339(it.expires_at),
            ended_at: it.ended_at.map(rfc3339),
            provider_ref: it.provider_ref.clone(),
            timeline: whole.then(|| it.timeline.entries.iter().map(EntryView::new).collect()),
            timeline_left_out: (whole && it.timeline.left_out > 0).then_some(it.timeline.left_out),
        }
    }
}
