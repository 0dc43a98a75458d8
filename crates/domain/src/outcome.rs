//! What an attempt told us: a closed set. A time-out is never "not sent"; an unrecognised answer
//! is never success.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lane::named_enum;
use crate::time::{UnixMs, duration_ms};

named_enum!(
    /// Why an attempt ended as it did; a metric label, so nothing here is open-ended.
    WhyCode {
        /// The provider said yes.
        Ok = "ok",
        /// Refused for good: the content or the sender.
        ContentRefused = "content_refused",
        /// Refused for good: policy (spam, block list, relay denied).
        PolicyRefused = "policy_refused",
        /// The mailbox, token or number does not exist (any more).
        NoSuchRecipient = "no_such_recipient",
        /// Refused for good: the recipient, without the word that there is no such mailbox.
        RecipientRefused = "recipient_refused",
        /// The address needs something that the other side does not offer (SMTPUTF8).
        NotSupported = "not_supported",
        /// A content part could not be rendered.
        RenderFailed = "render_failed",
        /// Too large for the provider.
        TooLarge = "too_large",
        /// The provider asked us to come back (4yz, greylisting, 503 that says so).
        TryLater = "try_later",
        /// The provider's rate limit.
        RateLimited = "rate_limited",
        /// No connection, or lost before anything that counts was sent.
        Unreachable = "unreachable",
        /// The secure connection could not be made.
        TlsFailed = "tls_failed",
        /// Silence before anything that counts was sent.
        TimedOutBefore = "timed_out_before",
        /// Our own login or key was refused: nobody's message is at fault.
        CredentialRefused = "credential_refused",
        /// Silence after the message had left.
        TimedOutAfter = "timed_out_after",
        /// Cut after the message had left.
        CutAfter = "cut_after",
        /// The worker gave up at shutdown with the call open.
        ShutDown = "shut_down",
        /// The attempt's code panicked with the call open.
        Panicked = "panicked",
        /// The worker's lease ran out, or it died; whether it had called is not known.
        WorkerDied = "worker_died",
        /// The provider said that it failed; whether before or after it had taken the message is not known.
        ProviderFailed = "provider_failed",
        /// The answer is none that we know.
        Unrecognised = "unrecognised",
        /// The lease no longer covered the call, so it was not made.
        LeaseLost = "lease_lost",
        /// The provider knows nothing of it.
        LookedUpAbsent = "looked_up_absent",
        /// The provider does not know the token: damaged, or of the other of sandbox and production.
        BadToken = "bad_token",
        /// The token cannot be one of the provider's, by its form: the provider was not asked.
        TokenMalformed = "token_malformed",
        /// The device's endpoint leads into an internal network: nobody was asked.
        InternalEndpoint = "internal_endpoint",
        /// The token is another app's, project's or VAPID key's.
        WrongApp = "wrong_app",
        /// The provider said that the token is dead, of a time before it was registered again.
        TokenNewer = "token_newer",
        /// A setting of ours or at the provider is wrong (topic, project, a key that it needs): nobody's
        /// message is at fault.
        SetupRefused = "setup_refused",
        /// The provider's own login at another provider is refused: in FCM the project's key for APNs or web push.
        ThirdPartyRefused = "third_party_refused",
        /// Our login was refused though it was made a moment ago: our clock is wrong.
        ClockSkew = "clock_skew",
        /// The device was removed, or its recipient was.
        DeviceRemoved = "device_removed",
        /// The provider said earlier that the device's token is no longer in use.
        DeviceDead = "device_dead",
        /// The provider did not take the device's token earlier.
        DeviceQuarantined = "device_quarantined",
        /// The device belongs to another app or platform now.
        DeviceMoved = "device_moved",
        /// The address is suppressed: an earlier message bounced for good.
        BouncedBefore = "bounced_before",
        /// The recipient told this sender to stop.
        SenderStopped = "sender_stopped",
        /// An operator suppressed it.
        BlockedByHand = "blocked_by_hand",
        /// The recipient called an earlier message spam.
        Complained = "complained",
        /// The recipient unsubscribed.
        Unsubscribed = "unsubscribed",
        /// The recipient turned the category off on the channel.
        TurnedOff = "turned_off",
        /// The class is off on the channel for whoever has not turned it on.
        NotAskedFor = "not_asked_for",
        /// A cap is reached that suppresses.
        CapReached = "cap_reached",
    }
);

/// A reason and, where there are any, the provider's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    pub code: WhyCode,
    /// The provider's answer, addresses masked and cut to 200 characters by the channel.
    /// For the timeline only: never a log, a label or an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Why {
    #[must_use]
    pub const fn new(code: WhyCode) -> Self {
        Self { code, answer: None }
    }

    #[must_use]
    pub fn said(code: WhyCode, answer: impl Into<String>) -> Self {
        Self { code, answer: Some(answer.into()) }
    }
}

named_enum!(
    /// How far a throttle reaches.
    ThrottleScope {
        /// This recipient only.
        Recipient = "recipient",
        /// Everything through this provider.
        Provider = "provider",
        /// Our login or key at this provider is refused: the circuit opens until it is mended.
        Credential = "credential",
    }
);

/// The closed set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The provider has it. Never called delivered.
    Accepted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_ref: Option<String>,
        why: Why,
    },
    /// Refused for good.
    Refused { why: Why },
    /// Refused for good because the recipient is gone: suppresses the address.
    RecipientGone {
        /// Since when, where the provider says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<UnixMs>,
        why: Why,
    },
    /// Definitely not accepted, worth another call.
    NotAccepted {
        #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_ms")]
        retry_after: Option<Duration>,
        why: Why,
    },
    /// Definitely not accepted, and others would not be either until `after` has passed.
    Throttled {
        #[serde(with = "duration_ms")]
        after: Duration,
        scope: ThrottleScope,
        why: Why,
    },
    /// It may or may not have happened.
    Unknown {
        /// How long the provider asked to be left alone.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_ms")]
        retry_after: Option<Duration>,
        why: Why,
    },
}

named_enum!(
    /// An outcome's name without its details, for labels and timelines.
    OutcomeKind {
        Accepted = "accepted",
        Refused = "refused",
        RecipientGone = "recipient_gone",
        NotAccepted = "not_accepted",
        Throttled = "throttled",
        Unknown = "unknown",
    }
);

impl Outcome {
    #[must_use]
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Accepted { .. } => OutcomeKind::Accepted,
            Self::Refused { .. } => OutcomeKind::Refused,
            Self::RecipientGone { .. } => OutcomeKind::RecipientGone,
            Self::NotAccepted { .. } => OutcomeKind::NotAccepted,
            Self::Throttled { .. } => OutcomeKind::Throttled,
            Self::Unknown { .. } => OutcomeKind::Unknown,
        }
    }

    #[must_use]
    pub const fn why(&self) -> &Why {
        match self {
            Self::Accepted { why, .. }
            | Self::Refused { why }
            | Self::RecipientGone { why, .. }
            | Self::NotAccepted { why, .. }
            | Self::Throttled { why, .. }
            | Self::Unknown { why, .. } => why,
        }
    }
}

/// What a channel can do about a repeated call, declared by every adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatGuard {
    /// The provider recognises our key for this long.
    Key(Duration),
    /// The provider can be asked whether it has the message.
    Lookup,
    /// A second copy replaces the first on the device.
    Collapse,
    /// A second copy is a second copy (with the same Message-ID, where there is one).
    None,
}

/// What a look-up at the provider found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    Found {
        provider_ref: Option<String>,
    },
    /// Not there yet; lists lag, so this is not *absent*.
    NotYet,
    Absent,
}

mod optional_ms {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub fn serialize<S: Serializer>(value: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
        value.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(input)?.map(Duration::from_millis))
    }
}
