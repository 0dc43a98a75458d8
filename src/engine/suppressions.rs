//! What a bounce adds to what is suppressed. Where a server says of most mailboxes that they do not exist, it adds
//! nothing, and what it added of late is lifted: what is suppressed for a bounce gets no login code any more either.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use belfry_domain::suppression::SuppressionKind;
use belfry_domain::wave::Wave;
use belfry_domain::{ChannelKind, Delivery, Event, Outcome, Why};

use super::Shared;
use crate::facts::{Fact, NotKept, ProviderNews};
use crate::ports::clock::Boot;
use crate::ports::deliveries::Owner;
use crate::ports::policy::OUTBOX;
use crate::ports::suppressions::{Put, Suppressed};

/// So many of a provider's bounces are remembered, to be lifted in a wave.
const REMEMBERED: usize = 256;

/// What this node has heard of mailboxes, by provider.
#[derive(Default)]
pub(super) struct Bounces(Mutex<BTreeMap<String, Heard>>);

#[derive(Default)]
struct Heard {
    wave: Wave,
    /// As of the last bounce.
    doubted: bool,
    kept: VecDeque<(Boot, Owner, Suppressed)>,
}

impl Bounces {
    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, provider: &str, address_hash: &str, gone: bool, now: Boot) -> bool {
        let mut heard = self.heard();
        let of = heard.entry(provider.to_owned()).or_default();
        let doubted = of.wave.hear(address_hash, gone, now);
        of.doubted = doubted;
        doubted
    }

    fn doubted(&self, provider: &str) -> bool {
        self.heard().get(provider).is_some_and(|of| of.doubted)
    }

    fn remember(&self, provider: &str, owner: Owner, entry: Suppressed, now: Boot) {
        let mut heard = self.heard();
        let kept = &mut heard.entry(provider.to_owned()).or_default().kept;
        if kept.len() == REMEMBERED {
            kept.pop_front();
        }
        kept.push_back((now, owner, entry));
    }

    /// Those as late as a wave goes back; here they are forgotten.
    fn take_remembered(&self, provider: &str, now: Boot) -> Vec<(Owner, Suppressed)> {
        let mut heard = self.heard();
        let Some(of) = heard.get_mut(provider) else { return Vec::new() };
        let within = |at: Boot| now.saturating_sub(at) < Wave::WINDOW;
        of.kept.drain(..).filter(|(at, ..)| within(*at)).map(|(_, owner, entry)| (owner, entry)).collect()
    }

    /// After a reload: providers were reconfigured.
    pub(super) fn begin_all_anew(&self) {
        self.heard().values_mut().for_each(|of| (of.wave, of.doubted) = (Wave::default(), false));
    }
}

/// The entry that follows from a call.
pub(super) struct Bounced {
    provider: String,
    entry: Suppressed,
    /// Most mailboxes are said not to exist.
    doubted: bool,
}

/// Notes whether there is such a mailbox. Where there is not, what follows for this one address. What the outbox plays
/// is nobody's word.
pub(super) fn bounced(shared: &Shared, delivery: &Delivery, event: &Event) -> Option<Bounced> {
    let Event::Called { outcome, .. } = event else { return None };
    let provider = &delivery.lane.provider;
    if delivery.channel != ChannelKind::Email || provider == OUTBOX {
        return None;
    }
    let hear = |gone| shared.bounces.hear(provider, &delivery.address_hash, gone, shared.deps.clock.boot());
    let why = match outcome {
        Outcome::RecipientGone { why, .. } => why,
        Outcome::Accepted { .. } => {
            hear(false);
            return None;
        }
        Outcome::Refused { .. } | Outcome::NotAccepted { .. } | Outcome::Throttled { .. } | Outcome::Unknown { .. } => {
            return None;
        }
    };
    let entry = Suppressed {
        channel: delivery.channel,
        address_hash: delivery.address_hash.clone(),
        address_mask: delivery.address_mask.clone(),
        kind: SuppressionKind::HardBounce,
        category: None,
        sender: None,
        since: shared.deps.clock.now(),
        until: None,
        origin: delivery.id.to_string(),
        note: code(why),
    };
    Some(Bounced { provider: provider.clone(), entry, doubted: hear(true) })
}

/// The codes alone: a server's words may hold an address.
fn code(why: &Why) -> Option<String> {
    let is_code = |word: &&str| word.starts_with('5') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let codes: Vec<&str> = why.answer.as_deref()?.split(' ').take(2).take_while(is_code).collect();
    (!codes.is_empty()).then(|| codes.join(" "))
}

impl Shared {
    /// One try: where the store is away, the next message bounces as well.
    pub(super) async fn suppress(&self, owner: &Owner, bounced: Bounced) {
        let Bounced { provider, entry, doubted } = bounced;
        let news = |news| self.deps.facts.record(&Fact::Provider { provider: provider.clone(), news });
        if doubted {
            news(ProviderNews::BounceNotKept { why: NotKept::Wave });
            return self.lift_remembered(&provider).await;
        }
        match self.deps.suppressions.put(owner, &entry).await {
            Ok(Put::Kept(_)) => {
                self.bounces.remember(&provider, owner.clone(), entry, self.deps.clock.boot());
                if self.bounces.doubted(&provider) {
                    // Found while this was written.
                    self.lift_remembered(&provider).await;
                }
            }
            Ok(Put::TooMany) => news(ProviderNews::BounceNotKept { why: NotKept::Full }),
            Err(why) => self.deps.facts.record(&Fact::StoreUnavailable { verb: "suppress", why }),
        }
    }

    /// Whoever bounced before it was clear that it may be the server. Not what somebody has said of the address since.
    async fn lift_remembered(&self, provider: &str) {
        let remembered = self.bounces.take_remembered(provider, self.deps.clock.boot());
        let whom = remembered.iter().map(|(owner, entry)| entry.addressee(owner)).collect();
        let found = if remembered.is_empty() { Vec::new() } else { self.deps.suppressions.find(whom).await };
        let mut suppressions = 0;
        for ((owner, entry), found) in remembered.into_iter().zip(found) {
            let id = entry.id(&owner);
            let lifted = match found {
                Ok(all) if all.iter().any(|one| one.id(&owner) == id && one.origin == entry.origin) => {
                    self.deps.suppressions.lift(&owner, id).await.map(|()| 1)
                }
                Ok(_) => Ok(0),
                Err(why) => Err(why),
            };
            match lifted {
                Ok(count) => suppressions += count,
                Err(why) => {
                    self.deps.facts.record(&Fact::StoreUnavailable { verb: "lift", why });
                    // The next bounce of the wave tries again.
                    self.bounces.remember(provider, owner, entry, self.deps.clock.boot());
                }
            }
        }
        if suppressions > 0 {
            let news = ProviderNews::BouncesLifted { suppressions };
            self.deps.facts.record(&Fact::Provider { provider: provider.to_owned(), news });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use belfry_domain::WhyCode;

    use super::*;

    #[test]
    fn of_a_servers_words_only_the_codes_are_kept() {
        let code = |said: &str| code(&Why::said(WhyCode::NoSuchRecipient, said));
        for (said, kept) in [
            ("550 5.1.1 <…@example.com> unknown", Some("550 5.1.1")),
            ("551 5.1.6 0700123456 moved", Some("551 5.1.6")),
            ("550 5.1.1", Some("550 5.1.1")),
            ("no such user", None),
        ] {
            assert_eq!(code(said).as_deref(), kept, "{said}");
        }
    }

    #[test]
    fn memory_is_bounded_and_what_is_old_is_not_lifted() {
        let bounces = Bounces::default();
        let owner = Owner { tenant: "acme".into(), environment: "live".into() };
        let entry = Suppressed {
            channel: ChannelKind::Email,
            address_hash: "ab".repeat(16),
            address_mask: "a…@example.com".into(),
            kind: SuppressionKind::HardBounce,
            category: None,
            sender: None,
            since: belfry_domain::UnixMs(1),
            until: None,
            origin: "del_1".into(),
            note: None,
        };
        bounces.remember("main", owner.clone(), entry.clone(), Duration::ZERO);
        assert_eq!(bounces.take_remembered("main", Wave::WINDOW), []);
        for _ in 0..=REMEMBERED {
            bounces.remember("main", owner.clone(), entry.clone(), Wave::WINDOW);
        }
        assert_eq!(bounces.take_remembered("main", Wave::WINDOW).len(), REMEMBERED);
        assert_eq!(bounces.take_remembered("main", Wave::WINDOW), []);
    }
}
