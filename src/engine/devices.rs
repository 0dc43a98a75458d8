//! Deliveries to devices: which token the next call goes to, and what the provider's word about a token
//! does to its device.

use belfry_domain::breaker::Change;
use belfry_domain::delivery::DeferWhy;
use belfry_domain::device::{Aim, TokenFault, Undeliverable, aim, heard};
use belfry_domain::outcome::ThrottleScope;
use belfry_domain::retry::LONGEST_RETRY_AFTER;
use belfry_domain::{ChannelKind, Delivery, Event, Lane, Outcome, UnixMs, WhyCode};

use super::Shared;
use super::attempt::Work;
use super::settle::{Held, Settled};
use crate::facts::{Fact, ProviderNews};
use crate::ports::channel::Service;
use crate::ports::deliveries::Owner;
use crate::ports::message::Address;
use crate::ports::policy::{DeviceOf, OUTBOX};
use crate::ports::recipients::{DeadToken, Device, StoredSlot, Token, token_sha256};

/// How long after a store fault a device is asked for again.
const DEVICE_AWAY: std::time::Duration = std::time::Duration::from_secs(1);

/// The token that a call goes to.
pub(super) struct Aimed {
    slot: StoredSlot,
    token: Token,
    registered_at: UnixMs,
    /// The device has no other since.
    is_current: bool,
}

impl<'a> Work<'a> {
    pub(super) fn owner(&self) -> Owner {
        Owner::of(&self.claim.notification)
    }

    /// The stored device's token for the next call; nothing for an address that came with the request.
    ///
    /// # Errors
    /// What to settle instead.
    pub(super) async fn aim(&self, delivery: &Delivery) -> Result<Option<Aimed>, Event> {
        let deps = &self.shared.deps;
        let slot = self.claim.inputs.as_deref().and_then(|inputs| deps.render.stored_slot(inputs, &delivery.slot));
        let Some(slot) = slot else { return Ok(None) };
        let device = match deps.recipients.device(&self.owner(), &slot.device).await {
            Ok(device) => device,
            Err(why) => {
                deps.facts.record(&Fact::StoreUnavailable { verb: "device", why });
                return Err(self.shared.hold_for(DEVICE_AWAY, DeferWhy::Retry));
            }
        };
        let Some(device) = device else { return Err(Event::Undeliverable(Undeliverable::Removed)) };
        let moved = |now: &Option<String>, then: &Option<String>| now.is_some() && then.is_some() && now != then;
        if device.kind != delivery.channel
            || moved(&device.app, &slot.app)
            || moved(&device.environment, &slot.environment)
        {
            return Err(Event::Undeliverable(Undeliverable::Moved));
        }
        let Device { token, earlier, standing, registered_at, .. } = device;
        let tokens: Vec<Token> = std::iter::once(token).chain(earlier).collect();
        let held = (delivery.address_hash.as_str(), delivery.this_send_may_have_arrived());
        match aim(Some(standing), &tokens, |token| &token.hash, held) {
            Aim::At(token) => {
                let is_current = token.hash == tokens[0].hash;
                self.still_goes_out(delivery, &slot, token)?;
                Ok(Some(Aimed { slot, token: token.clone(), registered_at, is_current }))
            }
            Aim::Nowhere(why) => Err(Event::Undeliverable(why)),
            Aim::Lost => Err(Event::Drifted),
        }
    }

    /// A token that was registered since the accept may be one that the environment does not let out.
    fn still_goes_out(&self, delivery: &Delivery, slot: &StoredSlot, token: &Token) -> Result<(), Event> {
        let policy = self.shared.policy();
        let device = DeviceOf { app: slot.app.as_deref(), environment: slot.environment.as_deref() };
        let environment = &self.claim.notification.environment;
        let routed = policy.route(delivery.channel, environment, &token.token.0, device);
        if token.hash == delivery.address_hash || delivery.lane.provider == OUTBOX || routed != Ok(OUTBOX) {
            return Ok(());
        }
        Err(Event::Rerouted(Lane::new(OUTBOX, delivery.lane.priority)))
    }

    /// Puts on record where the next call goes, where that is another token than at the last write: a worker
    /// that dies in the call must not leave a record of the token before.
    pub(super) async fn readdress(&self, held: Held<'a>, aimed: &Aimed) -> Option<Held<'a>> {
        if held.delivery.address_hash == aimed.token.hash {
            return Some(held);
        }
        let (token, class, provider) = (held.token, held.class, held.provider);
        let event = Event::Readdressed { hash: aimed.token.hash.clone(), mask: aimed.token.mask.clone() };
        match self.shared.settle(held, event).await {
            Settled::Done(delivery) => {
                let held = Held { delivery: *delivery, token, class, provider };
                if held.delivery.stop.is_none() {
                    return Some(held);
                }
                // Somebody asked to stop it meanwhile, and nothing was called.
                self.shared.settle(held, Event::Released).await;
                None
            }
            Settled::Not => None,
        }
    }

    /// What the outcome means once it is known whose token was called: a word older than the registration
    /// is not about it, and a refusal that all tokens get is not the token's.
    pub(super) async fn heard(
        &self,
        outcome: Outcome,
        delivery: &Delivery,
        (address, aimed): (&Address, Option<&Aimed>),
    ) -> Outcome {
        let shared = self.shared;
        let now = shared.deps.clock.now();
        let outcome = match aimed {
            // Of a token that the device had before, its latest registration says nothing.
            Some(aimed) if aimed.is_current => heard(outcome, aimed.registered_at, now),
            Some(_) | None => outcome,
        };
        self.note_waits(&outcome, delivery);
        if let Outcome::Refused { why } = &outcome
            && matches!(why.code, WhyCode::SetupRefused | WhyCode::ThirdPartyRefused | WhyCode::WrongApp)
        {
            self.news(delivery, ProviderNews::SetupWrong { why: why.code });
        }
        if !is_device(delivery.channel) {
            return outcome;
        }
        let fault = TokenFault::of(&outcome);
        // What has not the form of a token was told to nobody, and says nothing of the others.
        let asked = outcome.why().code != WhyCode::TokenMalformed;
        let refused = asked && fault.is_some_and(TokenFault::may_be_ours);
        if self.is_of_a_wave(&outcome, refused, (delivery, address)).await {
            return Self::ours(&outcome);
        }
        let Some(fault) = fault else { return outcome };
        if self.bury(&outcome, (fault, refused), delivery, (address, aimed)).await {
            return Self::ours(&outcome);
        }
        outcome
    }

    /// What a refusal is once it is clear that it is not the token's.
    fn ours(outcome: &Outcome) -> Outcome {
        let why = outcome.why().clone();
        Outcome::Throttled { after: std::time::Duration::ZERO, scope: ThrottleScope::Credential, why }
    }

    /// Whether a refusal is not the token's: most are refused, or it was called with settings that a reload has
    /// replaced since. Where each address names its own service, one of them says nothing of the others.
    async fn is_of_a_wave(&self, outcome: &Outcome, refused: bool, (delivery, address): (&Delivery, &Address)) -> bool {
        let shared = self.shared;
        let provider = &delivery.lane.provider;
        if self.provider.channel.service(address).is_some() || !(refused || matches!(outcome, Outcome::Accepted { .. }))
        {
            return false;
        }
        if !self.is_current(provider) {
            return refused;
        }
        self.take_back_the_rest(provider).await;
        let wave = shared.tokens.hear(provider, &delivery.address_hash, refused, shared.deps.clock.boot());
        if !refused || !(wave || shared.health.refuses_tokens(provider)) {
            return false;
        }
        self.spare(delivery).await;
        true
    }

    pub(super) fn news(&self, delivery: &Delivery, news: ProviderNews) {
        let provider = delivery.lane.provider.clone();
        self.shared.deps.facts.record(&Fact::Provider { provider, news });
    }

    fn note_waits(&self, outcome: &Outcome, delivery: &Delivery) {
        let asked = match outcome {
            Outcome::Throttled { after, .. } => Some(*after),
            Outcome::NotAccepted { retry_after, .. } | Outcome::Unknown { retry_after, .. } => *retry_after,
            Outcome::Accepted { .. } | Outcome::Refused { .. } | Outcome::RecipientGone { .. } => None,
        };
        if let Some(asked) = asked.filter(|asked| *asked > LONGEST_RETRY_AFTER) {
            self.news(delivery, ProviderNews::WaitCut { asked });
        }
        if let Outcome::Throttled { after, scope: ThrottleScope::Recipient, .. } = outcome {
            let now = self.shared.deps.clock.boot();
            let until = now + (*after).min(LONGEST_RETRY_AFTER);
            self.shared.tokens.leave_alone(&delivery.lane.provider, &delivery.address_hash, until, now);
        }
    }

    /// `refused`: by the provider, for what may be our own fault. Whether it became clear meanwhile that it is not the
    /// token: then nothing is left of it. One try: where the store is away, the next call to the token hears the same
    /// word.
    async fn bury(
        &self,
        outcome: &Outcome,
        (fault, refused): (TokenFault, bool),
        delivery: &Delivery,
        (address, aimed): (&Address, Option<&Aimed>),
    ) -> bool {
        let deps = &self.shared.deps;
        let since = match outcome {
            Outcome::RecipientGone { since, .. } => *since,
            _ => None,
        };
        let stored = aimed.map(|aimed| &aimed.slot.device);
        let named = deps.render.named_device(self.claim.inputs.as_deref().unwrap_or_default(), &delivery.slot);
        let (app, environment) = named.unwrap_or_default();
        let word = DeadToken {
            kind: delivery.channel,
            app,
            environment,
            recipient: stored.map(|of| of.recipient.clone()),
            device: stored.map(|of| of.device.clone()),
            hash: delivery.address_hash.clone(),
            token_sha256: token_sha256(delivery.channel, address),
            fault,
            since,
            heard_at: deps.clock.now(),
            notification: delivery.notification,
            delivery: delivery.id,
        };
        let provider = &delivery.lane.provider;
        if refused {
            // Before it is: a wave that is found meanwhile has to know of it.
            self.shared.tokens.put_aside(provider, self.owner(), word.clone(), deps.clock.boot());
        }
        match deps.recipients.bury(&self.owner(), &word).await {
            Ok(stored) => self.news(delivery, ProviderNews::TokenRefused { fault, stored }),
            Err(why) => deps.facts.record(&Fact::StoreUnavailable { verb: "bury", why }),
        }
        let ours = refused && self.shared.health.refuses_tokens(provider);
        if ours {
            // Found while this was written: it may have been spared before it was put aside.
            self.shared.tokens.put_aside(provider, self.owner(), word, deps.clock.boot());
            self.spare(delivery).await;
        }
        ours
    }
}

impl Shared {
    /// After a circuit heard of an outcome; `cause`: its word.
    pub(super) fn circuit_changed(
        &self,
        provider: &str,
        service: Option<&Service>,
        (change, cause): (Change, WhyCode),
    ) {
        match change {
            Change::None => return,
            Change::Opened(why) => {
                let (provider, service) = (provider.to_owned(), service.cloned());
                self.deps.facts.record(&Fact::CircuitOpened { provider, service, why, cause });
            }
            Change::Closed => {
                if service.is_none() {
                    self.tokens.begin_anew(provider);
                }
                self.circuit_closed(provider, service.cloned());
            }
        }
        self.nudge.notify_one();
    }

    pub(super) fn circuit_closed(&self, provider: &str, service: Option<Service>) {
        self.deps.facts.record(&Fact::CircuitClosed { provider: provider.to_owned(), service });
    }
}

impl Aimed {
    pub(super) fn address(&self) -> &Address {
        &self.token.token
    }
}

const fn is_device(channel: ChannelKind) -> bool {
    matches!(channel, ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush)
}
