//! Suppressions: words that nothing of a kind may go to somebody any more, and what each of them holds back.
//!
//! One entry is about one address, or about one recipient; a store finds both kinds for a call. So a report
//! that names one of a mail's three recipients makes one entry.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lane::{ChannelKind, named_enum};
use crate::outcome::WhyCode;
use crate::subject::Subject;
use crate::time::UnixMs;

named_enum!(
    /// Whose word it is. The earlier is the better reason, where several say the same.
    SuppressionKind {
        /// The provider's: there is no such mailbox or number.
        HardBounce = "hard_bounce",
        /// The recipient's, to one sender (STOP): its provider refuses whatever is sent from there.
        Stop = "stop",
        /// An operator's.
        Manual = "manual",
        /// The recipient's, to the mailbox provider: it is spam.
        Complaint = "complaint",
        /// The recipient's, by a link or a setting.
        Unsubscribe = "unsubscribe",
    }
);

impl SuppressionKind {
    /// Whether it holds back what cannot be turned off, such as a login code: nobody's dislike of other
    /// messages locks them out.
    #[must_use]
    pub const fn blocks_required(self) -> bool {
        match self {
            Self::HardBounce | Self::Stop | Self::Manual => true,
            Self::Complaint | Self::Unsubscribe => false,
        }
    }

    /// As the delivery's reason.
    #[must_use]
    pub const fn code(self) -> WhyCode {
        match self {
            Self::HardBounce => WhyCode::BouncedBefore,
            Self::Stop => WhyCode::SenderStopped,
            Self::Manual => WhyCode::BlockedByHand,
            Self::Complaint => WhyCode::Complained,
            Self::Unsubscribe => WhyCode::Unsubscribed,
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    pub kind: SuppressionKind,
    /// Only messages of this category, a class; absent: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Only on this channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelKind>,
    /// Only from this sender, as in [`Subject::sender`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    pub since: UnixMs,
    /// No longer from then on; absent: until it is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMs>,
}

impl Suppression {
    #[must_use]
    pub fn blocks(&self, subject: &Subject, now: UnixMs) -> bool {
        let covers = self.until.is_none_or(|until| now < until)
            && self.category.as_deref().is_none_or(|category| category == subject.class)
            && self.channel.is_none_or(|channel| channel == subject.channel)
            && self.sender.as_deref().is_none_or(|sender| subject.sender == Some(sender));
        covers && (self.kind.blocks_required() || !subject.required)
    }
}

impl Suppression {
    /// Of what, since when and for how long, in words: what tells it from others of its address.
    #[must_use]
    pub fn words(&self) -> String {
        let instant = |at: UnixMs| {
            Timestamp::from_second(at.0.div_euclid(1000)).map_or_else(|_| "ever".into(), |it| it.to_string())
        };
        let of = self.category.as_ref().map(|category| format!("messages of {category}, ")).unwrap_or_default();
        let until = self.until.map(|until| format!(" until {}", instant(until))).unwrap_or_default();
        format!("{of}since {}{until}", instant(self.since))
    }
}

/// The best reason among all entries for an address and its recipient, whatever their order; none: it may go.
#[must_use]
pub fn blocking<'a>(entries: &'a [Suppression], subject: &Subject, now: UnixMs) -> Option<&'a Suppression> {
    entries.iter().filter(|entry| entry.blocks(subject, now)).min_by_key(|entry| (entry.kind, entry.since))
}
