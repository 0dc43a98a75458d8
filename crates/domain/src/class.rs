//! Classes: what a message is for decides which way it fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lane::{ChannelKind, Priority, named_enum};
use crate::time::duration_ms;

named_enum!(
    /// The two orders of sending and recording. Exactly-once between two machines does not exist,
    /// so each class says what a crash in the gap costs.
    Order {
        /// At least once: the call first, its record after. A crash may send twice, never lose.
        SendThenRecord = "send_then_record",
        /// At most once: *spent* is durable before the call. A crash may lose, never send twice.
        RecordThenSend = "record_then_send",
    }
);

/// Waits between attempts after a definite non-acceptance or (at least once) an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The first wait's upper bound; doubles with every attempt.
    #[serde(with = "duration_ms")]
    pub base: Duration,
    /// No wait grows past this.
    #[serde(with = "duration_ms")]
    pub cap: Duration,
    /// Calls within one send, the first included.
    pub max_attempts: u32,
}

/// A message's policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub name: String,
    pub order: Order,
    pub priority: Priority,
    /// How long after accept (or `send_at`) it is still worth sending.
    #[serde(with = "duration_ms")]
    pub expiry: Duration,
    pub retry: RetryPolicy,
    /// At least once: how many unknown outcomes may each be followed by another call.
    pub resend_limit: u32,
    /// How long a claim lasts unless renewed.
    #[serde(with = "duration_ms")]
    pub lease: Duration,
    /// How long a repeat is recognised after accept.
    #[serde(with = "duration_ms")]
    pub window: Duration,
    /// How long after acceptance a receipt may still come.
    #[serde(with = "duration_ms")]
    pub receipt_window: Duration,
    /// How long content outlives the end.
    #[serde(with = "duration_ms")]
    pub keep_content: Duration,
    /// Tried in order when a request names no channels: the first with an address is taken.
    pub channels: Vec<ChannelKind>,
    /// Cannot be turned off by preference, unsubscribe or complaint.
    pub required: bool,
    /// Its retries do not draw on the lane's retry budget.
    pub budget_exempt: bool,
}

/// A class that cannot keep its own promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The key within the class.
    pub key: &'static str,
    pub problem: String,
}

impl Class {
    #[must_use]
    pub fn at_most_once(&self) -> bool {
        self.order == Order::RecordThenSend
    }

    /// Stands in for a class that is no longer configured. Under it a delivery is only put off or
    /// expired, never called, and what lapsed counts as maybe sent.
    #[must_use]
    pub fn unconfigured(name: &str, lease: Duration) -> Self {
        Self {
            name: name.to_owned(),
            order: Order::SendThenRecord,
            priority: Priority::Low,
            expiry: Duration::from_secs(24 * 60 * 60),
            retry: RetryPolicy { base: Duration::from_secs(60), cap: Duration::from_secs(60), max_attempts: 1 },
            resend_limit: 0,
            lease,
            window: Duration::from_secs(15 * 24 * 60 * 60),
            receipt_window: Duration::from_secs(72 * 60 * 60),
            keep_content: Duration::from_secs(3 * 24 * 60 * 60),
            channels: Vec::new(),
            required: false,
            budget_exempt: false,
        }
    }

    /// Everything about this class that contradicts itself; start is refused unless empty.
    #[must_use]
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        let mut refuse = |key, problem: String| found.push(Contradiction { key, problem });
        if self.at_most_once() && self.resend_limit > 0 {
            refuse("resend_limit", "must be 0: record_then_send never sends again after an unknown outcome".into());
        }
        if self.retry.max_attempts == 0 {
            refuse("retry.max_attempts", "must be at least 1: the first call counts".into());
        }
        if self.retry.base.is_zero() {
            refuse("retry.base", "must be longer than zero: retries without a wait are a storm".into());
        }
        if self.retry.base > self.retry.cap {
            refuse("retry.base", "must not be longer than retry.cap".into());
        }
        if self.lease < Duration::from_millis(500) {
            refuse("lease", "must be at least 500ms: a third of it must fit a round trip to the store".into());
        }
        if self.expiry.is_zero() {
            refuse("expiry", "must be longer than zero".into());
        }
        if self.window < self.expiry {
            refuse(
                "window",
                "must not be shorter than expiry: a repeat could arrive while the first copy still waits".into(),
            );
        }
        if self.channels.is_empty() {
            refuse("channels", "must name at least one channel".into());
        }
        found
    }
}
