//! Pauses: an operator's word that something waits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lane::ChannelKind;
use crate::subject::Subject;
use crate::time::UnixMs;

/// What can be, by the names of [`Paused`].
pub const KINDS: &[&str] = &["all", "channel", "provider", "class", "template", "group"];

/// What is paused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "what", content = "name", rename_all = "snake_case")]
pub enum Paused {
    All,
    Channel(ChannelKind),
    Provider(String),
    Class(String),
    Template(String),
    Group(String),
}

impl Paused {
    /// As `what` in its written form.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Channel(_) => "channel",
            Self::Provider(_) => "provider",
            Self::Class(_) => "class",
            Self::Template(_) => "template",
            Self::Group(_) => "group",
        }
    }

    /// As `name` there.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Channel(channel) => Some(channel.name()),
            Self::Provider(name) | Self::Class(name) | Self::Template(name) | Self::Group(name) => Some(name),
        }
    }
}

/// One pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    #[serde(flatten)]
    pub paused: Paused,
    /// Of this tenant only: with [`Paused::All`] everything of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub since: UnixMs,
    /// Over from then on; absent: until it is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMs>,
    /// Holds what other pauses let through: login codes, security alerts.
    #[serde(default)]
    pub forced: bool,
}

impl Pause {
    /// Waits behind a pause grow up to this.
    pub const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);
    const SHORTEST_WAIT: Duration = Duration::from_secs(5);

    /// `exempt`: its class is one that only a forced pause holds.
    #[must_use]
    pub fn holds(&self, subject: &Subject, exempt: bool, now: UnixMs) -> bool {
        let covers = match &self.paused {
            Paused::All => true,
            Paused::Channel(channel) => *channel == subject.channel,
            Paused::Provider(provider) => provider == subject.provider,
            Paused::Class(class) => class == subject.class,
            Paused::Template(template) => subject.template == Some(template),
            Paused::Group(group) => subject.group == Some(group),
        };
        covers
            && (self.forced || !exempt)
            && self.tenant.as_deref().is_none_or(|tenant| tenant == subject.tenant)
            && !self.is_over(now)
    }

    #[must_use]
    pub fn is_over(&self, now: UnixMs) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// When what it holds asks again: once it has lasted twice as long, or at its end where that comes before. Then what
    /// was held for a moment goes on at once, what is held for days costs few looks, and no end that lies far ahead keeps
    /// waiting what somebody lets go before.
    fn ask_at(&self, now: UnixMs) -> UnixMs {
        let lasted = now.since(self.since).clamp(Self::SHORTEST_WAIT, Self::LONGEST_WAIT);
        let again = now.plus(lasted);
        self.until.map_or(again, |until| until.min(again))
    }
}

/// Until when `pauses` hold it; none: they do not.
#[must_use]
pub fn held_until(pauses: &[Pause], subject: &Subject, exempt: bool, now: UnixMs) -> Option<UnixMs> {
    pauses.iter().filter(|pause| pause.holds(subject, exempt, now)).map(|pause| pause.ask_at(now)).max()
}
