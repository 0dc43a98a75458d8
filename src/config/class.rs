//! `[classes.<name>]`: as configured, and as the domain wants it.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::admission::Rules;
use belfry_domain::class::RetryPolicy;
use belfry_domain::gather::{Gather, LATE};
use belfry_domain::preferences::Switches;
use belfry_domain::quiet::{NoQuietHours, QuietHours};
use belfry_domain::{ChannelKind, Class, Order, Priority};
use serde::{Deserialize, Serialize};

use super::Config;
use crate::ports::links::ClassPage;
use crate::ports::locale::is_locale;
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
    /// Only a forced pause holds it.
    #[serde(default)]
    pub pause_exempt: bool,
    /// Those that its messages come under, by name.
    #[serde(default)]
    pub caps: Vec<String>,
    /// Absent: it goes out at any hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHoursConfig>,
    /// Its messages wait so long for others of their kind, and go out with them as digests. Absent: each by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather: Option<Span>,
    /// Most of them in one digest. Absent: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather_most: Option<u16>,
    /// What recipients get who did not say what they want.
    #[serde(default, skip_serializing_if = "DefaultsConfig::is_silent")]
    pub defaults: DefaultsConfig,
    /// Its mail says how to unsubscribe from it.
    #[serde(default)]
    pub unsubscribe: bool,
    /// What recipients see it called, by language.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub titles: BTreeMap<String, String>,
}

/// Most items of a digest.
const MOST_GATHERED: u16 = 100;

const SHORTEST_GATHERED: Duration = Duration::from_secs(1);

/// By so much quiet hours last longer where clocks are put back within them.
const CLOCK_CHANGE: Duration = Duration::from_secs(3_600);

/// On or off by channel; `all` is for those that are not named. Its own keys, so that a mistyped one is refused by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultsConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apns: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fcm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_push: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sms: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbox: Option<bool>,
}

impl DefaultsConfig {
    fn is_silent(&self) -> bool {
        *self == Self::default()
    }

    const fn of(&self, channel: ChannelKind) -> Option<bool> {
        match channel {
            ChannelKind::Email => self.email,
            ChannelKind::Apns => self.apns,
            ChannelKind::Fcm => self.fcm,
            ChannelKind::WebPush => self.web_push,
            ChannelKind::Sms => self.sms,
            ChannelKind::Webhook => self.webhook,
            ChannelKind::Chat => self.chat,
            ChannelKind::Inbox => self.inbox,
        }
    }

    fn switches(&self) -> Switches {
        let said = ChannelKind::ALL.iter().filter_map(|channel| Some((*channel, self.of(*channel)?)));
        Switches { all: self.all, channels: said.collect() }
    }
}

/// Between two times of the recipient's own day nothing of the class goes out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct QuietHoursConfig {
    /// `22:00`.
    pub from: String,
    /// `07:00`, which is no longer quiet.
    pub to: String,
    /// Of recipients whose own zone is not known.
    pub zone: String,
}

impl QuietHoursConfig {
    fn read(&self) -> Result<QuietHours, Vec<NoQuietHours>> {
        QuietHours::read(&self.from, &self.to, &self.zone)
    }
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
        let found = class.class(name).contradictions().into_iter().map(|one| (one.key.to_owned(), one.problem));
        let others = [class.wrong_defaults(), class.wrong_unsubscribe(), class.wrong_titles(), class.wrong_gather()];
        let found = class.wrong_hours().into_iter().chain(others.into_iter().flatten()).chain(found);
        found.map(|(key, problem)| (format!("classes.{name}.{key}"), problem)).collect::<Vec<_>>()
    };
    config.classes.iter().flat_map(|(name, class)| of(name, class)).collect()
}

impl ClassConfig {
    /// What its messages are admitted by. What makes none was refused when the configuration was read.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules {
            quiet_hours: self.quiet_hours.as_ref().and_then(|hours| hours.read().ok()),
            defaults: self.defaults.switches(),
            pause_exempt: self.pause_exempt,
            gather: self.gather.map(|span| Gather { span: span.0, most: self.gather_most.unwrap_or(MOST_GATHERED) }),
        }
    }

    /// What is wrong with how it gathers.
    fn wrong_gather(&self) -> Option<(String, String)> {
        let wrong = |key: &str, problem: String| Some((key.to_owned(), problem));
        match (self.gather, self.gather_most) {
            (None, Some(_)) => wrong("gather_most", "stands only beside gather: the class does not gather".to_owned()),
            (Some(span), _) if span.0 < SHORTEST_GATHERED || span.0.saturating_add(2 * LATE) > self.expiry.0 => {
                let problem = format!(
                    "must be at least 1s, and two minutes shorter than the class's expiry ({}): what gathers must not \
                     expire before it goes out",
                    self.expiry
                );
                wrong("gather", problem)
            }
            (Some(_), Some(most)) if !(2..=MOST_GATHERED).contains(&most) => {
                wrong("gather_most", format!("must be 2 to {MOST_GATHERED}"))
            }
            _ => None,
        }
    }

    /// What is wrong with its quiet hours: the key below the class, and what would be right.
    pub(super) fn wrong_hours(&self) -> Vec<(String, String)> {
        let key = |key: &str| format!("quiet_hours.{key}");
        match self.quiet_hours.as_ref().map(QuietHoursConfig::read) {
            None => Vec::new(),
            Some(Err(wrong)) => wrong.into_iter().map(|one| (key(one.key), one.problem.to_owned())).collect(),
            Some(Ok(hours)) if hours.length() + CLOCK_CHANGE >= self.expiry.0 => vec![(
                key("to"),
                format!(
                    "must lie less than the class's expiry ({}) after from, by more than an hour, which they last longer \
                     where clocks are put back: what comes at the beginning of the quiet hours could never go out",
                    self.expiry
                ),
            )],
            Some(Ok(_)) => Vec::new(),
        }
    }

    /// Nobody can have turned off what cannot be turned off.
    fn wrong_defaults(&self) -> Option<(String, String)> {
        let wrong = self.required && self.defaults.switches().turns_off();
        let problem = "must not turn off what is required: leave defaults out, or set required = false";
        wrong.then(|| ("defaults".to_owned(), problem.to_owned()))
    }

    fn wrong_unsubscribe(&self) -> Option<(String, String)> {
        let problem = "must be false for a class that is required: to unsubscribe from it would change nothing";
        (self.required && self.unsubscribe).then(|| ("unsubscribe".to_owned(), problem.to_owned()))
    }

    fn wrong_titles(&self) -> Option<(String, String)> {
        let fits = |title: &str| (1..=100).contains(&title.chars().count()) && !title.contains(char::is_control);
        let wrong = self.titles.iter().find(|(locale, title)| !is_locale(locale) || !fits(title));
        let problem = "must be a language tag such as en or pt-BR with a title of 1 to 100 characters";
        wrong.map(|(locale, _)| (format!("titles.{locale}"), problem.to_owned()))
    }

    /// What recipients see of it on their pages.
    #[must_use]
    pub fn page(&self) -> ClassPage {
        let titles = self.titles.iter().map(|(locale, title)| (locale.to_ascii_lowercase(), title.clone()));
        ClassPage { unsubscribe: self.unsubscribe, titles: titles.collect() }
    }

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
