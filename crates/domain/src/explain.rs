//! The reason sentence: what a support agent reads aloud.

use jiff::Timestamp;

use crate::delivery::{ByHand, DeferWhy, Delivery, ParkWhy, State, Stop};
use crate::lane::{OUTBOX, UNSERVED};
use crate::outcome::{Why, WhyCode};
use crate::timeline::Happened;

impl Delivery {
    /// Where this delivery stands and why, in a sentence or two. Holds no address and no content.
    #[must_use]
    pub fn reason(&self) -> String {
        let sentence = match self.state {
            State::Scheduled { .. } => "Waiting for its time.".into(),
            State::Queued if self.attempts == 0 && self.lapses == 0 => "Waiting for a worker.".into(),
            State::Queued => "Waiting for a worker to try again.".into(),
            State::Deferred { why, .. } => self.waiting_for(why),
            State::Sending { .. } => "A worker is sending it now.".into(),
            State::Accepted => self.accepted().into(),
            State::Delivered => self.delivered(),
            State::Bounced => self.bounced(),
            State::Failed => self.failed(),
            State::Expired if self.capped().is_some() => {
                format!("Expired before there was room for it: {}.", self.last_words(""))
            }
            State::Expired if self.waited_at_last().is_some() => {
                format!("Expired before it could be sent: it waited for {}.", self.waited_at_last().unwrap_or_default())
            }
            State::Expired if self.maybe_sent || self.attempts > 0 => "Expired before it could be tried again.".into(),
            State::Expired => "Expired before it could be sent.".into(),
            State::Suppressed => {
                format!("Suppressed: {}{}.", self.last_words("nothing may go there"), self.opens().unwrap_or_default())
            }
            State::Cancelled => self.cancelled(),
            State::Superseded => self.superseded(),
            State::Unknown => format!(
                "May have arrived: {}. It is never sent a second time by itself, because its class sends at most once.",
                self.last_words("the outcome is not known")
            ),
            State::Parked { why } => self.parked(why),
        };
        match self.copies() {
            Some(copies) => format!("{sentence} {copies}"),
            None => sentence,
        }
    }

    /// What the state alone does not say about other copies.
    pub(crate) fn copies(&self) -> Option<&'static str> {
        let earlier = match (self.maybe_sent, self.reached) {
            (true, _) => Some("An earlier attempt may have arrived."),
            (false, true) if self.send > 1 => Some("An earlier send may have arrived."),
            (false, true) => Some("An earlier attempt may have arrived."),
            (false, false) => None,
        };
        match self.state {
            State::Accepted | State::Delivered if self.twice && self.in_outbox() => {
                Some("An earlier call may have been kept as well: there may be two copies.")
            }
            State::Accepted | State::Delivered if self.twice => {
                Some("An earlier call may have arrived as well: there may be two copies.")
            }
            State::Accepted | State::Delivered | State::Unknown => None,
            // Said by the sentence itself.
            State::Parked { why: ParkWhy::MayHaveArrived } => None,
            // A person's or the provider's own word about what came of it.
            State::Failed if self.resolved.is_some() => None,
            State::Bounced if !self.gone() => None,
            State::Scheduled { .. } | State::Queued | State::Deferred { .. } | State::Sending { .. }
                if self.maybe_sent =>
            {
                Some("It may have arrived already.")
            }
            State::Scheduled { .. }
            | State::Queued
            | State::Deferred { .. }
            | State::Sending { .. }
            | State::Bounced
            | State::Failed
            | State::Expired
            | State::Suppressed
            | State::Cancelled
            | State::Superseded
            | State::Parked { .. } => earlier,
        }
    }

    fn in_outbox(&self) -> bool {
        self.lane.provider == OUTBOX
    }

    fn waiting_for(&self, why: DeferWhy) -> String {
        match why {
            DeferWhy::Retry => match &self.last {
                Some(why) if why.code != WhyCode::CapReached => format!("Waiting to try again: {}.", self.last_words("")),
                _ => "Waiting to try again.".into(),
            },
            DeferWhy::Budget => {
                "Waiting to try again: this lane's retries are limited to a tenth of its traffic.".into()
            }
            DeferWhy::Pace => "Waiting because the provider is busy, asked us to slow down, or has had as many calls as its pace allows.".into(),
            DeferWhy::Breaker if self.last_is(&[WhyCode::CredentialRefused]) => {
                "Waiting because the provider refuses our login.".into()
            }
            DeferWhy::Breaker if self.last_is(&[WhyCode::SetupRefused, WhyCode::ClockSkew, WhyCode::BadToken, WhyCode::WrongApp]) => {
                format!("Waiting until the provider's settings are mended: {}.", self.last_words(""))
            }
            DeferWhy::Breaker => "Waiting because the provider is out of order or refuses our login.".into(),
            DeferWhy::Cap => match &self.last {
                Some(why) if self.capped().is_some() => {
                    format!("Waiting because as many as {} allows are counted.", why.cap())
                }
                _ => "Waiting because as many as a cap allows are counted.".into(),
            },
            DeferWhy::QuietHours => "Waiting for the end of the recipient's quiet hours.".into(),
            DeferWhy::Paused => "Waiting because messages like this are paused here.".into(),
            DeferWhy::Gathering if self.folding().is_some() => "Being put into a digest now.".into(),
            DeferWhy::Gathering => "Waiting for others of its kind, to go out with them as one digest.".into(),
            DeferWhy::Unconfigured if self.lane.provider == UNSERVED => {
                "Waiting because no provider is configured for the app or environment of the device.".into()
            }
            DeferWhy::Unconfigured => "Waiting because its class or provider is no longer configured.".into(),
        }
    }

    fn accepted(&self) -> &'static str {
        match (self.in_outbox(), self.ended()) {
            (true, _) => "Kept in the outbox; nothing was sent to anybody.",
            (false, true) => "The provider accepted it; whether it arrived is not known.",
            (false, false) => "The provider accepted it; a receipt may still come.",
        }
    }

    fn delivered(&self) -> String {
        match &self.resolved {
            Some(by_hand) => by_hand.sentence("Delivered"),
            None if self.in_outbox() => "Delivered, as the outbox simulates it; nothing was sent to anybody.".into(),
            None => "Delivered, as the provider reported.".into(),
        }
    }

    fn bounced(&self) -> String {
        if self.gone() {
            return format!("Bounced: {}.", self.last_words(""));
        }
        if self.in_outbox() {
            return "Bounced, as the outbox simulates it; nothing was sent to anybody.".into();
        }
        "Bounced: the provider reported afterwards that it could not deliver it.".into()
    }

    fn failed(&self) -> String {
        match &self.resolved {
            Some(by_hand) => by_hand.sentence("Failed"),
            None if self.refused_for_good() => format!("Refused for good: {}.", self.last_words("")),
            None if self.last_is(&[WhyCode::RenderFailed]) || self.attempts == 0 => {
                format!("Failed: {}.", self.last_words("it could not be sent"))
            }
            None => {
                let times = if self.attempts == 1 { "1 attempt".into() } else { format!("{} attempts", self.attempts) };
                format!("Given up after {times}, the last because {}.", self.last_words("it was not accepted"))
            }
        }
    }

    fn cancelled(&self) -> String {
        match &self.stop {
            Some(Stop::Fold { into }) => format!("It goes out as part of the digest {into}, not by itself."),
            Some(Stop::Cancel { why, .. }) if !why.is_empty() => format!("Cancelled: {}.", without_stop(why)),
            _ => "Cancelled.".into(),
        }
    }

    fn superseded(&self) -> String {
        match &self.stop {
            Some(Stop::Supersede { by_version }) => format!("Superseded by version {by_version}."),
            _ => "Superseded by a newer version.".into(),
        }
    }

    fn parked(&self, why: ParkWhy) -> String {
        match why {
            ParkWhy::MayHaveArrived => self.parked_unclear(),
            ParkWhy::AttemptsExhausted => {
                let last = self.last_words("it was not accepted");
                format!("Every allowed attempt failed, the last because {last}. A person has to decide.")
            }
            ParkWhy::Poison => {
                "Workers died each time they held it alone. A person has to look before it is tried again.".into()
            }
            ParkWhy::Drift => {
                "A repeat would have carried another message than the first, or gone to another device. A person has to \
                 decide.".into()
            }
            ParkWhy::UnrecognisedAnswer => {
                "The provider gave an answer that is not known here. A person has to look.".into()
            }
        }
    }

    fn parked_unclear(&self) -> String {
        const DECIDE: &str = "A person has to decide whether to send it again.";
        let often = if self.twice { "May have arrived, perhaps more than once" } else { "May have arrived" };
        if self.last.is_none() || self.last_is(UNCLEAR) {
            return format!("{often}: {}. {DECIDE}", self.last_words("no clear answer"));
        }
        // The last call was answered; what is not clear is one before it.
        format!("{often}: an earlier call had no clear answer, and the last failed because {}. {DECIDE}", {
            self.last_words("it was not accepted")
        })
    }

    /// What it waited for when it ended, where that was no attempt of its own.
    fn waited_at_last(&self) -> Option<&'static str> {
        let mut entries = self.timeline.entries.iter().rev();
        let last = entries.find(|entry| !matches!(entry.happened, Happened::Ended { .. }))?;
        let Happened::Deferred { why, .. } = last.happened else { return None };
        match why {
            DeferWhy::QuietHours => Some("the end of the recipient's quiet hours"),
            DeferWhy::Paused => Some("the end of a pause"),
            DeferWhy::Breaker => Some("its provider, through which nothing went"),
            DeferWhy::Pace => Some("its provider, which had asked to slow down"),
            DeferWhy::Unconfigured => Some("a provider, of which none was configured for it"),
            DeferWhy::Gathering => Some("others of its kind"),
            DeferWhy::Retry | DeferWhy::Budget | DeferWhy::Cap => None,
        }
    }

    /// The cap that it was last held back by, where nothing came after.
    pub(crate) fn capped(&self) -> Option<&str> {
        self.last.as_ref().filter(|why| why.code == WhyCode::CapReached)?.answer.as_deref()
    }

    /// When there is room again in the cap that it was suppressed for; to the next full second.
    fn opens(&self) -> Option<String> {
        self.capped()?;
        let opens = self.timeline.entries.iter().rev().find_map(|entry| match entry.happened {
            Happened::CapFull { opens, .. } => Some(opens),
            _ => None,
        })?;
        let instant =
            Timestamp::from_second(opens.0.div_euclid(1000) + i64::from(opens.0.rem_euclid(1000) > 0)).ok()?;
        Some(format!(", and there is no room before {instant}"))
    }

    fn last_is(&self, codes: &[WhyCode]) -> bool {
        self.last.as_ref().is_some_and(|why| codes.contains(&why.code))
    }

    /// Refused because there is no such recipient, where otherwise a receipt told of it.
    fn gone(&self) -> bool {
        self.last_is(&[WhyCode::NoSuchRecipient])
    }

    fn refused_for_good(&self) -> bool {
        self.last_is(&[
            WhyCode::ContentRefused,
            WhyCode::PolicyRefused,
            WhyCode::NoSuchRecipient,
            WhyCode::RecipientRefused,
            WhyCode::NotSupported,
            WhyCode::TooLarge,
            WhyCode::BadToken,
            WhyCode::TokenMalformed,
            WhyCode::InternalEndpoint,
            WhyCode::WrongApp,
            WhyCode::SetupRefused,
            WhyCode::ThirdPartyRefused,
        ])
    }

    /// A clause that fits after "because": our own words for a provider's answer, the outbox's own
    /// for what it simulates.
    fn last_words(&self, otherwise: &str) -> String {
        match &self.last {
            // What is named is ours.
            Some(why) if WISHES.contains(&why.code) || why.code == WhyCode::CapReached => why.words(),
            Some(Why { answer: Some(simulated), .. }) if self.in_outbox() => without_stop(simulated).to_owned(),
            Some(why) => why.words(),
            None => otherwise.into(),
        }
    }
}

/// What holds back what goes to an address: with words about which of them it was.
const WISHES: &[WhyCode] = &[
    WhyCode::BouncedBefore,
    WhyCode::SenderStopped,
    WhyCode::BlockedByHand,
    WhyCode::Complained,
    WhyCode::Unsubscribed,
];

/// After these nobody knows whether the call had its effect.
const UNCLEAR: &[WhyCode] = &[
    WhyCode::TimedOutAfter,
    WhyCode::CutAfter,
    WhyCode::ShutDown,
    WhyCode::Panicked,
    WhyCode::WorkerDied,
    WhyCode::ProviderFailed,
    WhyCode::Unrecognised,
];

impl ByHand {
    fn sentence(&self, end: &str) -> String {
        match without_stop(&self.why) {
            "" => format!("{end}, as resolved by hand by {}.", self.by),
            why => format!("{end}, as resolved by hand by {}: {why}.", self.by),
        }
    }
}

/// A person's own full stop, where a sentence of ours goes on.
pub(crate) fn without_stop(text: &str) -> &str {
    text.trim_end_matches('.')
}

impl Why {
    /// By its name.
    fn cap(&self) -> String {
        self.answer.as_ref().map_or_else(|| "the cap".into(), |cap| format!("the cap \"{cap}\""))
    }

    /// A clause that fits after "because".
    #[must_use]
    pub fn words(&self) -> String {
        let words = match self.code {
            WhyCode::Ok => "it was accepted",
            WhyCode::ContentRefused => "the provider refused the content or the sender",
            WhyCode::PolicyRefused => "the provider refused it by policy",
            WhyCode::NoSuchRecipient => "the recipient does not exist at the provider",
            WhyCode::RecipientRefused => {
                "the mail server refused the recipient without saying that there is no such mailbox"
            }
            WhyCode::NotSupported => "the provider lacks something that the address needs",
            WhyCode::RenderFailed => "the message could not be made from its template and data",
            WhyCode::TooLarge => "the message is too large for the provider",
            WhyCode::TryLater => "the provider asked to try later",
            WhyCode::RateLimited => "the provider limits the rate",
            WhyCode::Unreachable => "the provider could not be reached",
            WhyCode::TlsFailed => "no secure connection to the provider could be made",
            WhyCode::TimedOutBefore => "the provider went silent before it had the message",
            WhyCode::CredentialRefused => "the provider refused our login",
            WhyCode::TimedOutAfter => "the provider went silent after it had the message",
            WhyCode::CutAfter => "the connection was cut after the provider had the message",
            WhyCode::ShutDown => "the server stopped while the call was open",
            WhyCode::Panicked => "the sender failed while the call was open",
            WhyCode::WorkerDied => "the worker died while it held the message",
            WhyCode::ProviderFailed => "the provider failed, perhaps after it had the message",
            WhyCode::Unrecognised => "the provider gave an answer that is not known here",
            WhyCode::LeaseLost => "the worker's claim ran out before the call",
            WhyCode::LookedUpAbsent => "the provider knows nothing of it",
            WhyCode::BadToken => "the provider does not know the device's token",
            WhyCode::TokenMalformed => "the device's token has not the form of one, so that the provider was not asked",
            WhyCode::InternalEndpoint => "the device's endpoint leads into an internal network, where nothing is sent",
            WhyCode::WrongApp => "the device's token belongs to another app or key",
            WhyCode::TokenNewer => "the provider spoke of the device as it was before it registered again",
            WhyCode::SetupRefused => "a setting of this server or at the provider is wrong",
            WhyCode::ThirdPartyRefused => "the project's own key for APNs or web push is refused, at the provider",
            WhyCode::ClockSkew => "the provider refuses logins made by this server's clock",
            WhyCode::DeviceRemoved => "the device is no longer registered",
            WhyCode::DeviceDead => "the provider said earlier that the app is no longer on the device",
            WhyCode::DeviceQuarantined => {
                "the provider did not take the device's token earlier, and it has not registered since"
            }
            WhyCode::DeviceMoved => "the device is registered for another app or platform now",
            WhyCode::BouncedBefore => "an earlier message to the address bounced for good",
            WhyCode::SenderStopped => "the recipient told this sender to stop",
            WhyCode::BlockedByHand => "the address was blocked by hand",
            WhyCode::Complained => "the recipient complained of an earlier message",
            WhyCode::Unsubscribed => "the recipient unsubscribed from messages like this",
            WhyCode::TurnedOff => "the recipient turned off messages like this on this channel",
            WhyCode::NotAskedFor => {
                "messages like this are off on this channel for everybody who has not asked for them"
            }
            WhyCode::CapReached => return format!("as many as {} allows were counted", self.cap()),
        };
        match &self.answer {
            Some(which) if WISHES.contains(&self.code) => format!("{words} ({which})"),
            _ => words.into(),
        }
    }
}
