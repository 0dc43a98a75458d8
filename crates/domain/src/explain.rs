//! The reason sentence: what a support agent reads aloud.

use crate::delivery::{DeferWhy, Delivery, ParkWhy, State, Stop};
use crate::outcome::{Why, WhyCode};

impl Delivery {
    /// One sentence that says where this delivery stands and why. Holds no address and no content.
    #[must_use]
    pub fn reason(&self) -> String {
        let sentence = match self.state {
            State::Scheduled { .. } => "Waiting for its time.".into(),
            State::Queued if self.attempts == 0 && self.lapses == 0 => "Waiting for a worker.".into(),
            State::Queued => "Waiting for a worker to try again.".into(),
            State::Deferred { why, .. } => self.waiting_for(why),
            State::Sending { .. } => "A worker is sending it now.".into(),
            State::Accepted if self.ended() => "The provider accepted it; whether it arrived is not known.".into(),
            State::Accepted => "The provider accepted it; a receipt may still come.".into(),
            State::Delivered => "Delivered.".into(),
            State::Bounced => format!("Bounced: {}.", self.last_words("the address does not take mail")),
            State::Failed => format!("Refused for good: {}.", self.last_words("the attempts were used up")),
            State::Expired => "Expired before it could be sent.".into(),
            State::Suppressed => "Suppressed.".into(),
            State::Cancelled => self.cancelled(),
            State::Superseded => self.superseded(),
            State::Unknown => format!(
                "May have arrived: {}. It is never sent a second time by itself, because its class sends at most once.",
                self.last_words("the outcome is not known")
            ),
            State::Parked { why } => self.parked(why),
        };
        let ends_unclear = matches!(self.state, State::Expired | State::Cancelled | State::Superseded | State::Failed);
        if ends_unclear && self.maybe_sent {
            format!("{sentence} An earlier attempt may have arrived.")
        } else {
            sentence
        }
    }

    fn waiting_for(&self, why: DeferWhy) -> String {
        match why {
            DeferWhy::Retry => {
                format!("Waiting to try again: {}.", self.last_words("the last attempt was not accepted"))
            }
            DeferWhy::Budget => {
                "Waiting to try again: this lane's retries are limited to a tenth of its traffic.".into()
            }
            DeferWhy::Pace => "Waiting because the provider asked us to slow down.".into(),
            DeferWhy::Breaker => "Waiting because the provider is out of order or refuses our login.".into(),
            DeferWhy::Unconfigured => "Waiting because its class or provider is no longer configured.".into(),
        }
    }

    fn cancelled(&self) -> String {
        match &self.stop {
            Some(Stop::Cancel { why, .. }) if !why.is_empty() => format!("Cancelled: {}.", why.trim_end_matches('.')),
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
        let last = self.last_words("no clear answer");
        match why {
            ParkWhy::MayHaveArrived => {
                format!("May have arrived: {last}. A person has to decide whether to send it again.")
            }
            ParkWhy::AttemptsExhausted => {
                format!("Every allowed attempt failed, the last because {last}. A person has to decide.")
            }
            ParkWhy::Poison => {
                "Workers died each time they held it alone. A person has to look before it is tried again.".into()
            }
            ParkWhy::Drift => {
                "A repeat would have carried another message than the first. A person has to decide.".into()
            }
            ParkWhy::UnrecognisedAnswer => {
                "The provider gave an answer that is not known here. A person has to look.".into()
            }
        }
    }

    fn last_words(&self, otherwise: &str) -> String {
        self.last.as_ref().map_or_else(|| otherwise.into(), Why::words)
    }
}

impl Why {
    /// A clause that fits after "because".
    #[must_use]
    pub fn words(&self) -> String {
        match self.code {
            WhyCode::Ok => "it was accepted",
            WhyCode::ContentRefused => "the provider refused the content or the sender",
            WhyCode::PolicyRefused => "the provider refused it by policy",
            WhyCode::NoSuchRecipient => "the recipient does not exist at the provider",
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
            WhyCode::Unrecognised => "the provider gave an answer that is not known here",
            WhyCode::LeaseLost => "the worker's claim ran out before the call",
            WhyCode::LookedUpAbsent => "the provider knows nothing of it",
        }
        .into()
    }
}
