//! What happened to a delivery, as the API shows it.

use belfry_domain::delivery::{DeferWhy, StateName};
use belfry_domain::outcome::{OutcomeKind, WhyCode};
use belfry_domain::timeline::{Entry, Happened, Hop, ReceiptKind, Resolution};
use serde::Serialize;
use utoipa::ToSchema;

use super::closed_sets;
use crate::intake::instant::rfc3339;

/// One thing that happened. Which of the optional members are there depends on `what`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub struct EntryView {
    #[schema(format = DateTime)]
    pub at: String,
    /// `received` (the request), `attempt`, `lapsed`, `stale_report`, `deferred`, `cap_full` (of a cap that suppresses; `until` then there is no room in it), `folded`,
    /// `looked_up`,
    /// `readdressed` (from here on to a newer token of the same device), `stop_asked`, `receipt`, `redriven`, `sent_again`, `resolved`, `ended`.
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
    /// By its configured name: the one that is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cap: Option<String>,
    /// Put off so many times in a row for the same reason: first at `at`, and at last until `until`. Absent: once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub times: Option<u32>,
    /// The digest that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub into: Option<String>,
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

impl EntryView {
    fn folded(into: String, base: Self) -> Self {
        Self { what: "folded", into: Some(into), ..base }
    }

    fn stop_asked(by: String, text: Option<String>, base: Self) -> Self {
        Self { what: "stop_asked", by: Some(by), text, ..base }
    }

    fn cap_full(cap: &str, until: &str, base: Self) -> Self {
        Self { what: "cap_full", until: Some(until.to_owned()), cap: Some(cap.to_owned()), ..base }
    }

    #[must_use]
    pub fn new(entry: &Entry) -> Self {
        let base = Self { at: rfc3339(entry.at), ..Self::default() };
        let said = |why: &String| (!why.is_empty()).then(|| why.clone());
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
            Happened::Deferred { until, why, cap, times } => Self {
                what: "deferred",
                until: Some(rfc3339(*until)),
                deferred_for: Some(DeferWhy::name(*why)),
                cap: cap.clone(),
                times: (*times > 1).then_some(*times),
                ..base
            },
            Happened::CapFull { cap, opens } => Self::cap_full(cap, &rfc3339(*opens), base),
            Happened::Folded { into } => Self::folded(into.to_string(), base),
            Happened::LookedUp { found } => Self { what: "looked_up", found: Some(*found), ..base },
            Happened::Readdressed => Self { what: "readdressed", ..base },
            Happened::StopAsked { by, why } => Self::stop_asked(by.clone(), said(why), base),
            Happened::Receipt { kind } => Self { what: "receipt", receipt: Some(ReceiptKind::name(*kind)), ..base },
            Happened::Redriven { by } => Self { what: "redriven", by: Some(by.clone()), ..base },
            Happened::SentAgain { by, send } => {
                Self { what: "sent_again", by: Some(by.clone()), send: Some(*send), ..base }
            }
            Happened::Resolved { by, to, why } => Self {
                what: "resolved",
                by: Some(by.clone()),
                resolution: Some(Resolution::name(*to)),
                text: said(why),
                ..base
            },
            Happened::Ended { state } => Self { what: "ended", state: Some(*state), ..base },
        }
    }
}
