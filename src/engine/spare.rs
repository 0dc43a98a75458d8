//! Taking back what was done to devices and messages for their tokens, once it is clear that it is not the
//! tokens: the devices are live again, and what had failed is queued again.

use std::time::Duration;

use belfry_domain::delivery::State;
use belfry_domain::{Delivery, Event};

use super::attempt::Work;
use super::settle::Unapplied;
use crate::facts::{Fact, ProviderNews};
use crate::ports::StoreError;
use crate::ports::deliveries::Owner;
use crate::ports::policy::DeviceOf;
use crate::ports::recipients::{DeadToken, MOST_DEAD};

/// Pages of one owner's dead that are looked through for a wave: more than a circuit lets be put aside.
const PAGES: usize = 4;
/// How long after a look at the stored words of an owner there is another.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Work<'_> {
    /// Takes back what was put aside before it was clear that it is not the tokens: by this process, and, as the
    /// store has it, by other nodes and by those that ran before a restart.
    pub(super) async fn spare(&self, delivery: &Delivery) {
        let (shared, provider) = (self.shared, &delivery.lane.provider);
        let now = shared.deps.clock.boot();
        let mut words = shared.tokens.take_aside(provider, now);
        let owner = self.owner();
        if shared.tokens.looks_up(provider, &owner, now) {
            match self.stored_words(&owner, delivery).await {
                Ok(found) => {
                    let news = |word: &DeadToken| words.iter().all(|(_, known)| known.delivery != word.delivery);
                    let found: Vec<DeadToken> = found.into_iter().filter(news).collect();
                    words.extend(found.into_iter().map(|word| (owner.clone(), word)));
                }
                Err(why) => {
                    // The next refusal tries again.
                    shared.tokens.look_up_again(provider, &owner);
                    shared.deps.facts.record(&Fact::StoreUnavailable { verb: "dead", why });
                }
            }
        }
        let mut tokens = 0;
        for (owner, word) in words {
            tokens += usize::from(self.take_back(provider, owner, word).await);
        }
        if tokens > 0 {
            self.news(delivery, ProviderNews::TokensSpared { tokens });
        }
    }

    /// First the message, then the device and the word of it: whoever dies in between leaves the word to the next.
    /// Whether all of it was done; else it is later.
    async fn take_back(&self, provider: &str, owner: Owner, word: DeadToken) -> bool {
        let deps = &self.shared.deps;
        let done = match self.put_back(&word).await {
            Ok(true) => deps.recipients.exhume(&owner, &word).await.map(|()| true),
            other => other,
        };
        let done = done.unwrap_or_else(|why| {
            deps.facts.record(&Fact::StoreUnavailable { verb: "exhume", why });
            false
        });
        if !done {
            self.shared.tokens.take_back_later(provider, owner, word);
        }
        done
    }

    /// What providers of this kind said of the owner's tokens within a wave's time and may be ours, where this
    /// provider serves them.
    async fn stored_words(&self, owner: &Owner, delivery: &Delivery) -> Result<Vec<DeadToken>, StoreError> {
        let (deps, policy) = (&self.shared.deps, self.shared.policy());
        let window = i64::try_from(belfry_domain::wave::Wave::WINDOW.as_millis()).unwrap_or(i64::MAX);
        let since = belfry_domain::UnixMs(deps.clock.now().0.saturating_sub(window));
        let mut words = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..PAGES {
            let page = deps.recipients.dead(owner, since, after.as_deref(), MOST_DEAD).await?;
            words.extend(page.tokens.into_iter().filter(|word| {
                let device = DeviceOf { app: word.app.as_deref(), environment: word.environment.as_deref() };
                word.kind == delivery.channel
                    && word.fault.may_be_ours()
                    && policy.reroute(word.kind, device) == Some(delivery.lane.provider.as_str())
            }));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(words)
    }

    /// Queues the message again that the word came of. False where its refusal is not written down yet.
    async fn put_back(&self, word: &DeadToken) -> Result<bool, StoreError> {
        let loaded = self.shared.deps.deliveries.load(vec![word.delivery]).await?;
        if loaded.iter().any(|one| matches!(one.state, State::Sending { .. })) {
            return Ok(false);
        }
        if loaded.is_empty() {
            return Ok(true);
        }
        let class = |one: &Delivery| self.shared.class_of(one);
        match self.shared.apply_until_done(word.delivery, Event::Spared, class, None).await {
            Ok(()) => Ok(true),
            Err(Unapplied::Early) => Ok(false),
            Err(Unapplied::StoreAway(why)) => Err(why),
        }
    }

    /// What could not be taken back at once.
    pub(super) async fn take_back_the_rest(&self, provider: &str) {
        for (owner, word) in self.shared.tokens.to_take_back(provider) {
            self.take_back(provider, owner, word).await;
        }
    }
}
