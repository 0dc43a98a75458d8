//! What a recipient wants to hear, and how: a category (a class) and a channel at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::lane::ChannelKind;
use crate::subject::Subject;

/// On or off by channel, as `{"all": false, "email": true}`. What is not said is left to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// On every channel that is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    #[serde(flatten)]
    pub channels: BTreeMap<ChannelKind, bool>,
}

/// One recipient's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preferences {
    /// For every category.
    #[serde(default, skip_serializing_if = "is_silent")]
    pub every: Switches,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, Switches>,
}

fn is_silent(switches: &Switches) -> bool {
    *switches == Switches::default()
}

impl Switches {
    #[must_use]
    pub fn on(&self, channel: ChannelKind) -> bool {
        self.channels.get(&channel).copied().or(self.all).unwrap_or(true)
    }

    /// Whether it says of anything that it is off.
    #[must_use]
    pub fn turns_off(&self) -> bool {
        self.all == Some(false) || self.channels.values().any(|on| !on)
    }
}

impl Preferences {
    /// Whether a call may be made as far as the recipient is concerned; what is required always may.
    #[must_use]
    pub fn allow(&self, subject: &Subject, defaults: &Switches) -> bool {
        subject.required || self.wants(subject.class, subject.channel, defaults)
    }

    /// Whether the recipient wants it. The more exact word counts: about this category on this channel, then
    /// about one of the two, then about everything, then the class's `defaults`. Where the word about the
    /// category and the one about the channel differ, it is off.
    #[must_use]
    pub fn wants(&self, category: &str, channel: ChannelKind, defaults: &Switches) -> bool {
        let category = self.categories.get(category);
        let exact = category.and_then(|said| said.channels.get(&channel).copied());
        let of_category = category.and_then(|said| said.all);
        let of_channel = self.every.channels.get(&channel).copied();
        let either = match (of_category, of_channel) {
            (Some(one), Some(other)) => Some(one && other),
            (one, other) => one.or(other),
        };
        exact.or(either).or(self.every.all).unwrap_or_else(|| defaults.on(channel))
    }

    /// Categories that they would turn off and that cannot be: to be refused when somebody sets them, so that
    /// nobody believes to have turned one off. Words about everything are none of them.
    #[must_use]
    pub fn refused<'a>(&self, classes: impl IntoIterator<Item = &'a Class>) -> Vec<&'a str> {
        let off = |class: &&Class| class.required && self.categories.get(&class.name).is_some_and(Switches::turns_off);
        classes.into_iter().filter(off).map(|class| class.name.as_str()).collect()
    }
}
