//! Links for the recipient's own pages: made once, at the accept, and frozen with everything else that a message is
//! made from, so that a repeat has the same.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::delivery::TO;
use belfry_domain::{ChannelKind, Class, UnixMs};

use super::accept::PolicyNow;
use super::address;
use super::caller::Caller;
use super::canonical::Secret;
use super::submission::Slot;
use crate::content::inputs::{Inputs, Links};
use crate::ports::links::{Link, LinkedAddress, SealingKey, open};
use crate::ports::policy::Policy;

/// How long preferences can be changed by the link in a mail. To unsubscribe there is no end: whoever finds the mail
/// years later still means it.
const CHANGES_FOR: Duration = Duration::from_secs(180 * 24 * 3600);

/// Seals and opens.
pub struct Linker {
    /// The installation's own.
    own: SealingKey,
    secret: Secret,
    policy: PolicyNow,
}

/// What links are made for.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    pub caller: &'a Caller,
    pub class: &'a Class,
    pub inputs: &'a Inputs,
    pub slots: &'a [Slot],
    /// Its template speaks of such a link.
    pub spoken_of: bool,
    pub now: UnixMs,
}

impl Linker {
    #[must_use]
    pub fn new(policy: PolicyNow, secret: &[u8; 32]) -> Self {
        let secret = Secret::new(secret);
        Self { own: SealingKey::new(&secret.hash(&[b"links"])), secret, policy }
    }

    /// For each copy of a mail whose class is one to unsubscribe from, or whose template speaks of it.
    pub(super) fn freeze(&self, policy: &Policy, linked: Linked<'_>) -> Option<Links> {
        let Linked { caller, class, inputs, slots, spoken_of, now } = linked;
        let page = policy.links.pages.get(&class.name);
        let unsubscribe = page.is_some_and(|page| page.unsubscribe);
        if !unsubscribe && !spoken_of {
            return None;
        }
        let token = |slot: &Slot| {
            let address = LinkedAddress {
                channel: slot.channel,
                hash: address::hash(&self.secret, slot.channel, &slot.address.0),
                mask: address::mask(slot.channel, &slot.address),
            };
            // A copy is somebody else's: it speaks for its own address alone.
            let recipient = inputs.to.recipient.clone().filter(|_| slot.name == TO);
            self.seal(
                policy,
                &Link {
                    tenant: caller.tenant.clone(),
                    environment: caller.environment.clone(),
                    recipient,
                    address: Some(address),
                    category: unsubscribe.then(|| class.name.clone()),
                    locale: inputs.locale.clone(),
                    until: now.plus(CHANGES_FOR),
                },
            )
        };
        let mails = slots.iter().filter(|slot| slot.channel == ChannelKind::Email);
        let tokens: BTreeMap<String, String> = mails.map(|slot| (slot.name.clone(), token(slot))).collect();
        (!tokens.is_empty()).then(|| Links { base: policy.links.base.clone(), unsubscribe, tokens })
    }

    fn seal(&self, policy: &Policy, link: &Link) -> String {
        policy.links.keys.first().map_or(&self.own, |key| key).seal(link)
    }

    /// The address of the page where whom `link` speaks for can change what they get.
    #[must_use]
    pub fn url(&self, link: &Link) -> String {
        let policy = (self.policy)();
        format!("{}/u/{}", policy.links.base, self.seal(&policy, link))
    }

    /// What a token says; `None` of one that none of our keys sealed.
    #[must_use]
    pub fn open(&self, token: &str) -> Option<Link> {
        let policy = (self.policy)();
        open(policy.links.keys.iter().map(AsRef::as_ref).chain([&self.own]), token)
    }
}
