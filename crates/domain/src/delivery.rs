//! A delivery: one notification on one channel to one address slot, the only thing with a stored
//! state. Its whole life is decided by [`crate::step`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::device::{DeviceApp, STORED};
use crate::gather::Gathering;
use crate::key::{DeliveryId, NotificationId};
use crate::lane::{ChannelKind, Lane, named_enum};
use crate::notification::Notification;
use crate::outcome::{Why, WhyCode};
use crate::time::{UnixMs, duration_ms};
use crate::timeline::{Happened, Hop, Timeline};

/// The address slot of a mail's own recipient; those of its copies are `cc/0`, `bcc/0` and so on.
pub const TO: &str = "to";

named_enum!(
    /// What a deferred delivery waits for.
    DeferWhy {
        /// The wait after a failed attempt.
        Retry = "retry",
        /// The lane's retry budget is used up.
        Budget = "budget",
        /// The provider asked everybody, or this recipient, to wait.
        Pace = "pace",
        /// The provider's circuit is open.
        Breaker = "breaker",
        /// Its class or provider is no longer in the configuration.
        Unconfigured = "unconfigured",
        /// A cap is full.
        Cap = "cap",
        /// The recipient's quiet hours.
        QuietHours = "quiet_hours",
        /// An operator paused it.
        Paused = "paused",
        /// Others of its kind, to go out together with them.
        Gathering = "gathering",
    }
);

named_enum!(
    /// Why a person has to decide.
    ParkWhy {
        /// Sent as often as allowed without a clear answer: it may have arrived.
        MayHaveArrived = "may_have_arrived",
        /// Every allowed attempt was definitely not accepted.
        AttemptsExhausted = "attempts_exhausted",
        /// Workers died while it was the only thing they held.
        Poison = "poison",
        /// A repeat would have carried another message than the first.
        Drift = "drift",
        /// The provider's answer is one that nobody has described.
        UnrecognisedAnswer = "unrecognised_answer",
    }
);

/// The states, and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    Scheduled {
        until: UnixMs,
    },
    Queued,
    Deferred {
        until: UnixMs,
        why: DeferWhy,
    },
    Sending {
        fence: u64,
    },
    /// The provider has it. Final once `ended_at` is set.
    Accepted,
    Delivered,
    Bounced,
    Failed,
    Expired,
    Suppressed,
    Cancelled,
    Superseded,
    /// At most once: it may have arrived, and is never sent again by itself.
    Unknown,
    Parked {
        why: ParkWhy,
    },
}

named_enum!(
    /// A state's name, for the API, labels and indexes.
    StateName {
        Scheduled = "scheduled",
        Queued = "queued",
        Deferred = "deferred",
        Sending = "sending",
        Accepted = "accepted",
        Delivered = "delivered",
        Bounced = "bounced",
        Failed = "failed",
        Expired = "expired",
        Suppressed = "suppressed",
        Cancelled = "cancelled",
        Superseded = "superseded",
        Unknown = "unknown",
        Parked = "parked",
    }
);

impl State {
    #[must_use]
    pub const fn name(&self) -> StateName {
        match self {
            Self::Scheduled { .. } => StateName::Scheduled,
            Self::Queued => StateName::Queued,
            Self::Deferred { .. } => StateName::Deferred,
            Self::Sending { .. } => StateName::Sending,
            Self::Accepted => StateName::Accepted,
            Self::Delivered => StateName::Delivered,
            Self::Bounced => StateName::Bounced,
            Self::Failed => StateName::Failed,
            Self::Expired => StateName::Expired,
            Self::Suppressed => StateName::Suppressed,
            Self::Cancelled => StateName::Cancelled,
            Self::Superseded => StateName::Superseded,
            Self::Unknown => StateName::Unknown,
            Self::Parked { .. } => StateName::Parked,
        }
    }

    /// Waits in the due index for a claim.
    #[must_use]
    pub const fn waiting(&self) -> bool {
        matches!(self, Self::Scheduled { .. } | Self::Queued | Self::Deferred { .. })
    }
}

/// Somebody's wish that no further attempt be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
pub enum Stop {
    Cancel {
        by: String,
        why: String,
    },
    Supersede {
        by_version: i64,
    },
    /// It went out, or will, as part of this digest.
    Fold {
        into: NotificationId,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(it: &bool) -> bool {
    !*it
}

/// A person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByHand {
    /// Public name of the key that was used.
    pub by: String,
    /// Empty where nothing was said.
    pub why: String,
}

/// The stored record of a delivery. A store keeps it whole and compares `rev` on every write;
/// the claim (fence, nonce, lease) is the store's own and stands beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub id: DeliveryId,
    pub notification: NotificationId,
    pub channel: ChannelKind,
    /// Names the address within the notification (`to`, `cc/0`), never the address.
    pub slot: String,
    pub class: String,
    pub lane: Lane,
    pub tenant: String,
    #[serde(flatten)]
    pub state: State,
    /// Grows with every write; a write that was decided on an older one is refused.
    pub rev: u64,
    /// Number of the current send, from 1.
    pub send: u32,
    /// Calls within the current send whose outcome is recorded.
    pub attempts: u32,
    /// Unknown outcomes within the current send.
    pub unknowns: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unknown_at: Option<UnixMs>,
    /// An earlier call of the current send may have had its effect.
    pub maybe_sent: bool,
    /// A call of any send had its effect, or one of an earlier send may have had it: whatever
    /// becomes of the current send, the recipient may have a copy.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reached: bool,
    /// Within the current send a call that may have had its effect followed another such call, and
    /// nothing made the two one: there may be two copies.
    #[serde(default, skip_serializing_if = "is_false")]
    pub twice: bool,
    /// Claims within the current send that lapsed, and those of them alone in their batch.
    pub lapses: u32,
    pub lapses_alone: u32,
    /// At most once: the current attempt is recorded as made.
    pub spent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Its first send is to be part of a digest: it gathers, or has gathered, with others of this slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gathering: Option<Gathering>,
    pub created_at: UnixMs,
    /// When it may next be claimed (waiting states).
    pub due_at: UnixMs,
    pub expires_at: UnixMs,
    /// How long a claim of it lasts unless renewed.
    #[serde(rename = "lease_ms", with = "duration_ms")]
    pub lease: Duration,
    /// When it came to its end. A later receipt does not move it; a person who resolves it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMs>,
    /// Accepted, and a receipt may come until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_until: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<String>,
    /// Hex SHA-256 of the rendered message before signing; a repeat must match it.
    pub content_hash: String,
    /// The address for people to recognise: `a…@example.com`.
    pub address_mask: String,
    /// Keyed hash of the normalised address, hex; for searching.
    pub address_hash: String,
    /// The hash that it was accepted with, where its device has had another token since: search goes on finding it by
    /// that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_hash: Option<String>,
    /// Of the device that it goes to, where that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceApp>,
    /// Why the last attempt ended as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Why>,
    /// Why it was suppressed before it ever waited, where it was: so a repeat is told what the first was told,
    /// whatever a person made of it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed_at_accept: Option<WhyCode>,
    /// By whom and why a person said how it ended, where its end is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ByHand>,
    /// The latest operators' actions, so that a repeated click is recognised, and another wish under
    /// its key is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    pub timeline: Timeline,
}

/// What a plan decides about a new delivery; the rest of the record starts empty.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    pub notification: NotificationId,
    pub channel: ChannelKind,
    pub slot: String,
    pub class: String,
    pub lane: Lane,
    pub tenant: String,
    pub created_at: UnixMs,
    pub send_at: Option<UnixMs>,
    pub expires_at: UnixMs,
    pub lease: Duration,
    pub content_hash: String,
    pub address_mask: String,
    pub address_hash: String,
    pub device: Option<DeviceApp>,
    pub via: Hop,
}

impl Delivery {
    /// A delivery nobody has tried yet: scheduled where `send_at` lies ahead, queued otherwise.
    #[must_use]
    pub fn new(plan: NewDelivery) -> Self {
        let due_at = plan.send_at.map_or(plan.created_at, |at| at.max(plan.created_at));
        let state = if due_at > plan.created_at { State::Scheduled { until: due_at } } else { State::Queued };
        let mut timeline = Timeline::default();
        timeline.push(plan.created_at, Happened::Received { via: plan.via });
        Self {
            id: DeliveryId::of(plan.notification, plan.channel.name(), &plan.slot),
            notification: plan.notification,
            channel: plan.channel,
            slot: plan.slot,
            class: plan.class,
            lane: plan.lane,
            tenant: plan.tenant,
            state,
            rev: 0,
            send: 1,
            attempts: 0,
            unknowns: 0,
            first_unknown_at: None,
            maybe_sent: false,
            reached: false,
            twice: false,
            lapses: 0,
            lapses_alone: 0,
            spent: false,
            stop: None,
            gathering: None,
            created_at: plan.created_at,
            due_at,
            expires_at: plan.expires_at,
            lease: plan.lease,
            ended_at: None,
            receipt_until: None,
            provider_ref: None,
            content_hash: plan.content_hash,
            address_mask: plan.address_mask,
            address_hash: plan.address_hash,
            first_hash: None,
            device: plan.device,
            last: None,
            suppressed_at_accept: None,
            resolved: None,
            actions: Vec::new(),
            timeline,
        }
    }

    /// The id of the stored device that it goes to.
    #[must_use]
    pub fn stored_device(&self) -> Option<&str> {
        self.slot.strip_prefix(STORED)
    }

    /// A mail's Cc or Bcc.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.channel == ChannelKind::Email && self.slot != TO
    }

    /// The recipient that the notification names, where this goes to it. A copy is somebody else's: what the recipient
    /// wants says nothing about it, and what it gets takes no place of theirs.
    #[must_use]
    pub fn recipient_of<'n>(&self, notification: &'n Notification) -> Option<&'n str> {
        notification.recipient.as_deref().filter(|_| !self.is_copy())
    }

    /// With what it waits for others of its kind: no call is made for it meanwhile. Who sends it again sends it by itself.
    #[must_use]
    pub const fn gathers(&self) -> Option<Gathering> {
        if self.ended() || self.send > 1 { None } else { self.gathering }
    }

    /// The digest that it is about to be part of, perhaps is already: only who makes that may end it.
    #[must_use]
    pub fn folding(&self) -> Option<NotificationId> {
        self.gathers()?.into
    }

    /// The digest that it is part of.
    #[must_use]
    pub const fn folded_into(&self) -> Option<NotificationId> {
        match &self.stop {
            Some(Stop::Fold { into }) => Some(*into),
            _ => None,
        }
    }

    /// Nothing but a receipt, a person or a purge touches it any more.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether a call of the current send may have had its effect: the next one would be a repeat.
    #[must_use]
    pub const fn this_send_may_have_arrived(&self) -> bool {
        self.maybe_sent || self.spent
    }

    /// Whether any call of any send may have had its effect: it was accepted, or its outcome is not
    /// known (a call that is open right now included). What a look-up found absent does not count; a
    /// receipt or a person who says *delivered* does.
    #[must_use]
    pub const fn may_have_arrived(&self) -> bool {
        self.reached || self.this_send_may_have_arrived()
    }

    /// The third and every later claim of one delivery runs alone, so that a poison message can
    /// take nobody else down with it and proves itself by what it does alone.
    #[must_use]
    pub const fn claim_alone(&self) -> bool {
        self.lapses >= 2
    }
}
