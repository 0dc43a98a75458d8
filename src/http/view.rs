//! Records as the API shows them.

use belfry_domain::delivery::{DeferWhy, StateName};
use belfry_domain::notification::Record;
use belfry_domain::outcome::{OutcomeKind, WhyCode};
use belfry_domain::timeline::{Entry, Happened, Hop, ReceiptKind, Resolution};
use belfry_domain::{ChannelKind, Delivery, UnixMs};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::closed_sets;
use crate::intake::answer::Receipt;
use crate::intake::instant::rfc3339;

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
    /// Repeats recognised so far.
    pub repeats: u32,
    pub deliveries: Vec<DeliveryView>,
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
    /// When it is tried next, while it waits.
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

/// One thing that happened. Which of the optional members are there depends on `what`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub struct EntryView {
    #[schema(format = DateTime)]
    pub at: String,
    /// `received` (the request), `attempt`, `lapsed`, `stale_report`, `deferred`, `looked_up`, `stop_asked`,
    /// `receipt`, `redriven`, `sent_again`, `resolved`, `ended`.
    pub what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub send: Option<u32>,
    /// From 1 within its send. A throttled call does not count: the next has the same number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = closed_sets::Outcome, required = false)]
    pub outcome: Option<OutcomeKind>,
    /// A stable word for the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = closed_sets::Why, required = false)]
    pub why: Option<WhyCode>,
    /// The reason in words: the provider's answer (addresses masked), or what a person wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub may_have_sent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub deferred_for: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub found: Option<bool>,
    /// Public name of the key that a person used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub via: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub receipt: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resolution: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = closed_sets::State, required = false)]
    pub state: Option<StateName>,
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

impl NotificationView {
    /// `restored`: the hold that stands.
    #[must_use]
    pub fn new(record: &Record, detail: Detail, restored: Option<UnixMs>) -> Self {
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
            repeats: record.repeats,
            deliveries: record.deliveries.iter().map(|one| DeliveryView::new(one, detail, restored)).collect(),
        }
    }
}

impl DeliveryView {
    /// As [`NotificationView::new`].
    #[must_use]
    pub fn new(it: &Delivery, detail: Detail, restored: Option<UnixMs>) -> Self {
        let whole = detail == Detail::Whole;
        Self {
            id: it.id.to_string(),
            notification: it.notification.to_string(),
            channel: it.channel,
            slot: it.slot.clone(),
            address: it.address_mask.clone(),
            state: it.state.name(),
            reason: match restored.filter(|_| it.held_back(restored)) {
                Some(restored) => it.reason_held_back(&rfc3339(restored)),
                None => it.reason(),
            },
            ended: it.ended(),
            may_have_arrived: it.may_have_arrived(),
            send: it.send,
            attempts: it.attempts,
            provider: it.lane.provider.clone(),
            due_at: it.state.waiting().then(|| rfc3339(it.due_at)),
            expires_at: rfc3339(it.expires_at),
            ended_at: it.ended_at.map(rfc3339),
            provider_ref: it.provider_ref.clone(),
            timeline: whole.then(|| it.timeline.entries.iter().map(EntryView::new).collect()),
            timeline_left_out: (whole && it.timeline.left_out > 0).then_some(it.timeline.left_out),
        }
    }
}

impl EntryView {
    fn new(entry: &Entry) -> Self {
        let base = Self { at: rfc3339(entry.at), ..Self::default() };
        match &entry.happened {
            Happened::Received { via } => Self { what: "received", via: Some(Hop::name(*via)), ..base },
            Happened::Attempt { send, attempt, claim, outcome, why, took } => Self {
                what: "attempt",
                send: Some(*send),
                attempt: Some(*attempt),
                worker: Some(claim.worker.clone()),
                fence: Some(claim.fence),
                outcome: Some(*outcome),
                why: Some(why.code),
                text: Some(why.answer.clone().unwrap_or_else(|| why.words())),
                took_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
                ..base
            },
            Happened::Lapsed { claim, may_have_sent } => Self {
                what: "lapsed",
                worker: Some(claim.worker.clone()),
                fence: Some(claim.fence),
                may_have_sent: Some(*may_have_sent),
                ..base
            },
            Happened::StaleReport { claim, outcome, why } => Self {
                what: "stale_report",
                worker: Some(claim.worker.clone()),
                fence: Some(claim.fence),
                outcome: Some(*outcome),
                why: Some(why.code),
                text: Some(why.answer.clone().unwrap_or_else(|| why.words())),
                ..base
            },
            Happened::Deferred { until, why } => Self {
                what: "deferred",
                until: Some(rfc3339(*until)),
                deferred_for: Some(DeferWhy::name(*why)),
                ..base
            },
            Happened::LookedUp { found } => Self { what: "looked_up", found: Some(*found), ..base },
            Happened::StopAsked { by, why } => {
                Self { what: "stop_asked", by: Some(by.clone()), text: (!why.is_empty()).then(|| why.clone()), ..base }
            }
            Happened::Receipt { kind } => Self { what: "receipt", receipt: Some(ReceiptKind::name(*kind)), ..base },
            Happened::Redriven { by } => Self { what: "redriven", by: Some(by.clone()), ..base },
            Happened::SentAgain { by, send } => {
                Self { what: "sent_again", by: Some(by.clone()), send: Some(*send), ..base }
            }
            Happened::Resolved { by, to, why } => Self {
                what: "resolved",
                by: Some(by.clone()),
                resolution: Some(Resolution::name(*to)),
                text: (!why.is_empty()).then(|| why.clone()),
                ..base
            },
            Happened::Ended { state } => Self { what: "ended", state: Some(*state), ..base },
        }
    }
}
