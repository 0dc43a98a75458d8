//! What a provider's word about one token means for the device that it belongs to.

use serde::{Deserialize, Serialize};

use crate::lane::{ChannelKind, named_enum};
use crate::outcome::{Outcome, Why, WhyCode};
use crate::time::UnixMs;

named_enum!(
    /// What is wrong with a token.
    TokenFault {
        /// The provider knows that it is no longer in use.
        Unregistered = "unregistered",
        /// The provider does not know it: damaged, or of the other of sandbox and production.
        BadToken = "bad_token",
        /// It is another app's, project's or VAPID key's.
        WrongApp = "wrong_app",
    }
);

impl TokenFault {
    /// Whether it may as well be our own setting (environment, topic, project) that is wrong. Such a
    /// token is quarantined, never dropped, and many of them at once open the circuit.
    #[must_use]
    pub const fn may_be_ours(self) -> bool {
        match self {
            Self::Unregistered => false,
            Self::BadToken | Self::WrongApp => true,
        }
    }

    /// What an outcome says of the token that was called.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Option<Self> {
        match (outcome, outcome.why().code) {
            (Outcome::RecipientGone { .. }, _) => Some(Self::Unregistered),
            (Outcome::Refused { .. }, WhyCode::BadToken | WhyCode::TokenMalformed) => Some(Self::BadToken),
            (Outcome::Refused { .. }, WhyCode::WrongApp) => Some(Self::WrongApp),
            _ => None,
        }
    }
}

/// Whether messages go to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    Live,
    /// The provider said that the token is no longer in use.
    Dead {
        at: UnixMs,
    },
    /// The provider does not take the token, for a reason that may be ours.
    Quarantined {
        fault: TokenFault,
        at: UnixMs,
    },
}

impl Standing {
    /// After a word about the device's current token.
    #[must_use]
    pub const fn after(fault: TokenFault, at: UnixMs) -> Self {
        if fault.may_be_ours() { Self::Quarantined { fault, at } } else { Self::Dead { at } }
    }
}

/// Begins the address slot of a stored device; its id follows.
pub const STORED: &str = "device:";

/// Of which app and environment a device was when a delivery to it was planned; at least one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceApp {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

impl DeviceApp {
    /// `None` where nothing is said.
    #[must_use]
    pub fn said(app: Option<&str>, environment: Option<&str>) -> Option<Self> {
        let said = app.is_some() || environment.is_some();
        said.then(|| Self { app: app.map(str::to_owned), environment: environment.map(str::to_owned) })
    }
}

named_enum!(
    /// Why a stored device was left out of a notification.
    LeftOutWhy {
        /// Its token was dead.
        Dead = "dead",
        /// Its token was quarantined.
        Quarantined = "quarantined",
    }
);

/// A stored device that a notification would have gone to, had anything been allowed to go there when it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub device: String,
    pub kind: ChannelKind,
    pub why: LeftOutWhy,
    pub since: UnixMs,
}

impl LeftOut {
    /// Nothing where the device is live.
    #[must_use]
    pub fn of(device: &str, kind: ChannelKind, standing: Standing) -> Option<Self> {
        let (why, since) = match standing {
            Standing::Live => return None,
            Standing::Dead { at } => (LeftOutWhy::Dead, at),
            Standing::Quarantined { at, .. } => (LeftOutWhy::Quarantined, at),
        };
        Some(Self { device: device.to_owned(), kind, why, since })
    }
}

/// Whether a word about a token, true since `since` (heard at `heard_at` where the provider does not
/// say since when), is about a registration of `registered_at`. APNs answers 410 with the time at
/// which it last found the token dead: a device that registered after that is not meant.
#[must_use]
pub fn is_about(registered_at: UnixMs, since: Option<UnixMs>, heard_at: UnixMs) -> bool {
    since.unwrap_or(heard_at) >= registered_at
}

/// What was heard of a call to a device that registered at `registered_at`: a word that is older than the
/// registration says nothing of it, and the message is tried again.
#[must_use]
pub fn heard(outcome: Outcome, registered_at: UnixMs, now: UnixMs) -> Outcome {
    match outcome {
        Outcome::RecipientGone { since, why } if !is_about(registered_at, since, now) => {
            Outcome::NotAccepted { retry_after: None, why: Why { code: WhyCode::TokenNewer, answer: why.answer } }
        }
        other => other,
    }
}

/// What to do about a device right before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aim<'a, T> {
    /// To this token.
    At(&'a T),
    /// Nothing may go to it (any more).
    Nowhere(Undeliverable),
    /// An earlier call may have arrived, and the token that it went to is no longer known.
    Lost,
}

named_enum!(
    /// Why nothing goes to a device.
    Undeliverable {
        /// It was removed, or its recipient was.
        Removed = "removed",
        /// Its token died.
        Dead = "dead",
        /// Its token is quarantined.
        Quarantined = "quarantined",
        /// It belongs to another app or platform now than when the message was accepted.
        Moved = "moved",
    }
);

impl Undeliverable {
    /// As the delivery's reason.
    #[must_use]
    pub const fn code(self) -> WhyCode {
        match self {
            Self::Removed => WhyCode::DeviceRemoved,
            Self::Dead => WhyCode::DeviceDead,
            Self::Quarantined => WhyCode::DeviceQuarantined,
            Self::Moved => WhyCode::DeviceMoved,
        }
    }
}

/// The token for the next call. `held` is the hash of the token that the delivery has on record,
/// `tokens` are the device's, the current one first; `hash` reads a token's hash.
///
/// A token that was rotated before the first call is used. After a call that may have arrived only the
/// token of that call is: the new one would make a second notification on the same screen.
#[must_use]
pub fn aim<'a, T>(
    standing: Option<Standing>,
    tokens: &'a [T],
    hash: impl Fn(&T) -> &str,
    (held, may_have_arrived): (&str, bool),
) -> Aim<'a, T> {
    let Some(current) = tokens.first() else { return Aim::Nowhere(Undeliverable::Removed) };
    match standing {
        None => Aim::Nowhere(Undeliverable::Removed),
        // An earlier call's own token may be another one than that which died.
        Some(Standing::Dead { .. }) if !may_have_arrived || hash(current) == held => Aim::Nowhere(Undeliverable::Dead),
        Some(Standing::Quarantined { .. }) if !may_have_arrived || hash(current) == held => {
            Aim::Nowhere(Undeliverable::Quarantined)
        }
        Some(_) if may_have_arrived => tokens.iter().find(|token| hash(token) == held).map_or(Aim::Lost, Aim::At),
        Some(_) => Aim::At(current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(since: Option<i64>) -> Outcome {
        Outcome::RecipientGone { since: since.map(UnixMs), why: Why::new(WhyCode::NoSuchRecipient) }
    }

    #[test]
    fn case_49_a_word_older_than_the_registration_is_not_about_it() {
        let registered = UnixMs(1_000);
        for (since, is) in [(Some(999), false), (Some(1_000), true), (Some(1_001), true), (None, true)] {
            assert_eq!(is_about(registered, since.map(UnixMs), UnixMs(2_000)), is, "{since:?}");
            let kept = heard(gone(since), registered, UnixMs(2_000));
            if is {
                assert_eq!(kept, gone(since));
            } else {
                assert_eq!(kept, Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::TokenNewer) });
            }
        }
        // Heard of before it registered.
        assert!(!is_about(registered, None, UnixMs(999)));
    }

    #[test]
    fn a_fault_that_may_be_ours_quarantines() {
        let refused = |code| Outcome::Refused { why: Why::new(code) };
        assert_eq!(TokenFault::of(&gone(None)), Some(TokenFault::Unregistered));
        assert_eq!(TokenFault::of(&refused(WhyCode::BadToken)), Some(TokenFault::BadToken));
        assert_eq!(TokenFault::of(&refused(WhyCode::TokenMalformed)), Some(TokenFault::BadToken));
        assert_eq!(TokenFault::of(&refused(WhyCode::WrongApp)), Some(TokenFault::WrongApp));
        assert_eq!(TokenFault::of(&refused(WhyCode::TooLarge)), None);
        let at = UnixMs(5);
        assert_eq!(Standing::after(TokenFault::Unregistered, at), Standing::Dead { at });
        let fault = TokenFault::WrongApp;
        assert_eq!(Standing::after(fault, at), Standing::Quarantined { fault, at });
    }

    /// A token and its hash are the same here.
    fn aimed<'a>(standing: Standing, tokens: &'a [&'a str], held: &str, may: bool) -> Aim<'a, &'a str> {
        aim(Some(standing), tokens, |token| token, (held, may))
    }

    #[test]
    fn a_rotated_token_is_used_before_the_first_call_and_never_after_an_unknown() {
        let live = Standing::Live;
        assert_eq!(aimed(live, &["new", "old"], "old", false), Aim::At(&"new"));
        assert_eq!(aimed(live, &["new", "old"], "old", true), Aim::At(&"old"));
        assert_eq!(aimed(live, &["new"], "old", true), Aim::Lost);
    }

    #[test]
    fn nothing_goes_to_what_is_dead_or_gone() {
        let at = UnixMs(1);
        let dead = Standing::Dead { at };
        let quarantined = Standing::Quarantined { fault: TokenFault::BadToken, at };
        assert_eq!(aimed(dead, &["new"], "new", false), Aim::Nowhere(Undeliverable::Dead));
        assert_eq!(aimed(dead, &["new"], "new", true), Aim::Nowhere(Undeliverable::Dead));
        assert_eq!(aimed(dead, &["new"], "old", false), Aim::Nowhere(Undeliverable::Dead));
        assert_eq!(aimed(quarantined, &["new"], "new", false), Aim::Nowhere(Undeliverable::Quarantined));
        // It is the new token that died; the unknown call went to the old one.
        assert_eq!(aimed(dead, &["new", "old"], "old", true), Aim::At(&"old"));
        assert_eq!(aim::<&str>(None, &[], |token| token, ("x", false)), Aim::Nowhere(Undeliverable::Removed));
    }
}
