//! What this node has heard of device tokens: refusals that come in waves, devices put aside for one, and
//! recipients whom a provider asked to be left alone for a while.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belfry_domain::wave::Wave;

use super::spare::LOOK_AGAIN;
use crate::ports::clock::Boot;
use crate::ports::deliveries::Owner;
use crate::ports::recipients::DeadToken;

/// So many of a provider's tokens that were put aside are remembered, to be spared in a wave.
const PUT_ASIDE: usize = 256;
/// So many recipients are left alone at once; of more the one whose time is up first is forgotten.
const QUIET: usize = 10_000;

#[derive(Default)]
pub(super) struct Tokens {
    by_provider: Mutex<BTreeMap<String, Heard>>,
    quiet: Mutex<BTreeMap<(String, String), Boot>>,
}

#[derive(Default)]
struct Heard {
    wave: Wave,
    put_aside: VecDeque<(Boot, Owner, DeadToken)>,
    /// What could not be taken back at once: the refusal was not written down yet, or the store was away.
    to_take_back: VecDeque<(Owner, DeadToken)>,
    /// Whose stored words were looked up, and when.
    looked_up: VecDeque<(Boot, Owner)>,
}

impl Tokens {
    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Heard>> {
        self.by_provider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A word about a token, by its hash. Whether the tokens are refused in a wave now.
    pub(super) fn hear(&self, provider: &str, token: &str, refused: bool, now: Boot) -> bool {
        self.heard().entry(provider.to_owned()).or_default().wave.hear(token, refused, now)
    }

    /// Those that were put aside as late as a wave goes back; here they are forgotten.
    pub(super) fn take_aside(&self, provider: &str, now: Boot) -> Vec<(Owner, DeadToken)> {
        let mut heard = self.heard();
        let Some(of) = heard.get_mut(provider) else { return Vec::new() };
        let within = |at: Boot| now.saturating_sub(at) < Wave::WINDOW;
        of.put_aside.drain(..).filter(|(at, ..)| within(*at)).map(|(_, owner, word)| (owner, word)).collect()
    }

    /// A token that was put aside for a fault that may be ours.
    pub(super) fn put_aside(&self, provider: &str, owner: Owner, word: DeadToken, now: Boot) {
        let mut heard = self.heard();
        let list = &mut heard.entry(provider.to_owned()).or_default().put_aside;
        if list.len() == PUT_ASIDE {
            list.pop_front();
        }
        list.push_back((now, owner, word));
    }

    /// Whether the stored words of the owner are to be looked up (again); then they count as looked up.
    pub(super) fn looks_up(&self, provider: &str, owner: &Owner, now: Boot) -> bool {
        let mut heard = self.heard();
        let looked_up = &mut heard.entry(provider.to_owned()).or_default().looked_up;
        looked_up.retain(|(at, _)| now.saturating_sub(*at) < LOOK_AGAIN);
        let looks = looked_up.len() < PUT_ASIDE && looked_up.iter().all(|(_, known)| known != owner);
        if looks {
            looked_up.push_back((now, owner.clone()));
        }
        looks
    }

    /// It did not come to it.
    pub(super) fn look_up_again(&self, provider: &str, owner: &Owner) {
        if let Some(of) = self.heard().get_mut(provider) {
            of.looked_up.retain(|(_, known)| known != owner);
        }
    }

    pub(super) fn take_back_later(&self, provider: &str, owner: Owner, word: DeadToken) {
        let mut heard = self.heard();
        let list = &mut heard.entry(provider.to_owned()).or_default().to_take_back;
        if list.len() == PUT_ASIDE {
            list.pop_front();
        }
        list.push_back((owner, word));
    }

    /// Here they are forgotten.
    pub(super) fn to_take_back(&self, provider: &str) -> Vec<(Owner, DeadToken)> {
        let mut heard = self.heard();
        heard.get_mut(provider).map(|of| of.to_take_back.drain(..).collect()).unwrap_or_default()
    }

    /// The provider works again: what it said before makes no wave any more. What was put aside stays to be
    /// spared, where it turns out later that it was not the tokens.
    pub(super) fn begin_anew(&self, provider: &str) {
        if let Some(of) = self.heard().get_mut(provider) {
            of.wave.begin_anew();
        }
    }

    /// The same of all, after a reload.
    pub(super) fn begin_all_anew(&self) {
        self.heard().values_mut().for_each(|of| of.wave = Wave::default());
    }

    /// The provider asked that nothing go to this recipient until then.
    pub(super) fn leave_alone(&self, provider: &str, address_hash: &str, until: Boot, now: Boot) {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        if quiet.len() >= QUIET {
            quiet.retain(|_, until| *until > now);
        }
        if quiet.len() >= QUIET {
            let first = quiet.iter().min_by_key(|(_, until)| **until).map(|(key, _)| key.clone());
            first.and_then(|first| quiet.remove(&first));
        }
        let kept = quiet.entry((provider.to_owned(), address_hash.to_owned())).or_insert(until);
        *kept = until.max(*kept);
    }

    /// Until when nothing may go to this recipient.
    pub(super) fn left_alone(&self, provider: &str, address_hash: &str, now: Boot) -> Option<Duration> {
        let quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        if quiet.is_empty() {
            return None;
        }
        let until = quiet.get(&(provider.to_owned(), address_hash.to_owned()))?;
        (*until > now).then(|| until.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Boot {
        Duration::from_secs(seconds)
    }

    #[test]
    fn case_43_whoever_is_to_be_left_alone_is() {
        let tokens = Tokens::default();
        assert_eq!(tokens.left_alone("fcm", "a", at(0)), None);
        tokens.leave_alone("fcm", "a", at(120), at(0));
        tokens.leave_alone("fcm", "a", at(60), at(0));
        assert_eq!(tokens.left_alone("fcm", "a", at(20)), Some(at(100)));
        assert_eq!(tokens.left_alone("fcm", "a", at(120)), None);
        assert_eq!(tokens.left_alone("fcm", "b", at(20)), None);
        assert_eq!(tokens.left_alone("other", "a", at(20)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let tokens = Tokens::default();
        for one in 0..=QUIET as u64 {
            tokens.leave_alone("fcm", &one.to_string(), at(1000 + one), at(0));
        }
        assert_eq!(tokens.left_alone("fcm", "0", at(0)), None);
        assert_eq!(tokens.left_alone("fcm", "1", at(0)), Some(at(1001)));
        assert_eq!(tokens.quiet.lock().unwrap().len(), QUIET);
    }
}
