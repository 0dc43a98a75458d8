//! `[classes.<name>]`: as configured, and as the domain wants it.

use belfry_domain::class::RetryPolicy;
use belfry_domain::{ChannelKind, Class, Order, Priority};
use serde::{Deserialize, Serialize};

use super::Config;
use crate::ports::span::Span;

/// Only `order` has to be given; the rest is what `transactional` has in the embedded defaults
/// (a test compares).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    pub order: Order,
    #[serde(default = "defaults::priority")]
    pub priority: Priority,
    #[serde(default = "defaults::expiry")]
    pub expiry: Span,
    #[serde(default)]
    pub retry: RetryConfig,
    /// Absent: 2, and 0 at most once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_limit: Option<u32>,
    #[serde(default = "defaults::lease")]
    pub lease: Span,
    #[serde(default = "defaults::window")]
    pub window: Span,
    #[serde(default = "defaults::receipt_window")]
    pub receipt_window: Span,
    #[serde(default = "defaults::keep_content")]
    pub keep_content: Span,
    #[serde(default = "defaults::channels")]
    pub channels: Vec<ChannelKind>,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub budget_exempt: bool,
    /// Those that its messages come under, by name.
    #[serde(default)]
    pub caps: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    pub base: Span,
    pub cap: Span,
    pub max_attempts: u32,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { base: Span::secs(2), cap: Span::secs(3_600), max_attempts: 50 }
    }
}

mod defaults {
    use belfry_domain::{ChannelKind, Priority};

    use crate::ports::span::Span;

    const DAY: u64 = 24 * 3_600;

    pub const fn priority() -> Priority {
        Priority::Normal
    }

    pub const fn expiry() -> Span {
        Span::secs(3 * DAY)
    }

    pub const fn lease() -> Span {
        Span::secs(30)
    }

    pub const fn window() -> Span {
        Span::secs(15 * DAY)
    }

    pub const fn receipt_window() -> Span {
        Span::secs(3 * DAY)
    }

    pub const fn keep_content() -> Span {
        Span::secs(3 * DAY)
    }

    pub fn channels() -> Vec<ChannelKind> {
        vec![ChannelKind::Email, ChannelKind::Apns, ChannelKind::Fcm, ChannelKind::WebPush, ChannelKind::Sms]
    }
}

/// What contradicts itself, by key.
pub(super) fn contradictions(config: &Config) -> Vec<(String, String)> {
    let of = |name: &String, class: &ClassConfig| {
        let found = class.class(name).contradictions().into_iter();
        found.map(|one| (format!("classes.{name}.{}", one.key), one.problem)).collect::<Vec<_>>()
    };
    config.classes.iter().flat_map(|(name, class)| of(name, class)).collect()
}

impl ClassConfig {
    #[must_use]
    pub fn class(&self, name: &str) -> Class {
        let resend_limit = self.resend_limit.unwrap_or(match self.order {
            Order::SendThenRecord => 2,
            Order::RecordThenSend => 0,
        });
        Class {
            name: name.to_owned(),
            order: self.order,
            priority: self.priority,
            expiry: self.expiry.0,
            retry: RetryPolicy {
                base: self.retry.base.0,
                cap: self.retry.cap.0,
                max_attempts: self.retry.max_attempts,
            },
            resend_limit,
            lease: self.lease.0,
            window: self.window.0,
            receipt_window: self.receipt_window.0,
            keep_content: self.keep_content.0,
            channels: self.channels.clone(),
            required: self.required,
            budget_exempt: self.budget_exempt,
        }
    }
}
