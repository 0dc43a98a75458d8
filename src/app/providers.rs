//! Which channels, out of the configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::channel::apns::{ApnsChannel, Mints};
use crate::channel::fcm::FcmChannel;
use crate::channel::outbox::OutboxChannel;
use crate::channel::setting::WrongSetting;
use crate::channel::smtp::SmtpChannel;
use crate::channel::web_push::WebPushChannel;
use crate::config::{Config, ConfigErrors, Problem, ProviderConfig, ProviderKind};
use crate::facts::{Fact, FactSink, ProviderNews};
use crate::ports::channel::{Channel, Receipt};
use crate::ports::clock::Clock;
use crate::ports::outbox::{Misbehaviours, OutboxMessages};
use crate::ports::policy::{OUTBOX, Policy, Provider};

/// Calls at once over so many connections of so many streams.
const fn at_once(connections: u16, streams: u16) -> u16 {
    connections.saturating_mul(streams)
}

/// Builds policies; keeps what outlives a reload.
pub struct Providers {
    outbox: Arc<OutboxChannel>,
    clock: Arc<dyn Clock>,
    /// APNs takes no second login of a key within 20 minutes: a reload must not make one.
    mints: Mints,
}

impl Providers {
    pub fn new(
        config: &Config,
        messages: Arc<dyn OutboxMessages>,
        clock: Arc<dyn Clock>,
        receipts: mpsc::Sender<Receipt>,
    ) -> Self {
        let outbox = OutboxChannel::new(messages, clock.clone(), receipts, config.outbox.keep);
        Self { outbox, clock, mints: Mints::default() }
    }

    pub fn misbehaviours(&self) -> Arc<Misbehaviours> {
        self.outbox.misbehave().clone()
    }

    /// # Errors
    /// The settings of providers that do not hold together, by key.
    pub fn policy(&self, config: &Config, listening: SocketAddr) -> Result<Policy, ConfigErrors> {
        let parts = config.policy_parts();
        let mut providers = BTreeMap::new();
        let mut problems = Vec::new();
        for (name, provider) in &config.providers {
            match self.build(config, provider) {
                Ok(built) => {
                    providers.insert(name.clone(), built);
                }
                Err(found) => {
                    let key = format!("providers.{name}.{}", found.key);
                    problems.push(Problem { origin: config.origin(&key), key, what: found.problem });
                }
            }
        }
        if !problems.is_empty() {
            return Err(ConfigErrors { problems });
        }
        providers.insert(OUTBOX.to_owned(), self.outbox_provider(config));
        Ok(Policy {
            classes: parts.classes,
            rules: parts.rules,
            caps: parts.caps,
            providers,
            routes: parts.routes,
            environments: parts.environments,
            links: config.link_policy(listening),
            keep_record: parts.keep_record,
        })
    }

    fn build(&self, config: &Config, provider: &ProviderConfig) -> Result<Provider, WrongSetting> {
        // What makes no pace was refused when the configuration was read.
        let pace = provider.pace.as_ref().and_then(|pace| pace.plan().ok());
        match &provider.kind {
            ProviderKind::Smtp(smtp) => {
                let channel: Arc<dyn Channel> = Arc::new(SmtpChannel::new(smtp)?);
                Ok(Provider { channel, concurrency: smtp.connections, pace })
            }
            ProviderKind::Apns(apns) => {
                let channel = ApnsChannel::new(apns, &self.mints, self.clock.clone())?;
                let concurrency = at_once(apns.connections, apns.streams);
                Ok(Provider { channel: Arc::new(channel), concurrency, pace })
            }
            ProviderKind::Fcm(fcm) => {
                let channel = FcmChannel::new(fcm, self.clock.clone())?;
                let concurrency = at_once(fcm.connections, fcm.streams);
                Ok(Provider { channel: Arc::new(channel), concurrency, pace })
            }
            ProviderKind::WebPush(web) => {
                let channel = WebPushChannel::new(web, self.clock.clone())?;
                // Of which each push service gets half: all that its own connections take, and none of the others'.
                let concurrency = at_once(web.connections, web.streams).saturating_mul(2);
                Ok(Provider { channel: Arc::new(channel), concurrency, pace })
            }
            ProviderKind::Outbox(_) => Ok(Provider { pace, ..self.outbox_provider(config) }),
        }
    }

    fn outbox_provider(&self, config: &Config) -> Provider {
        Provider { channel: self.outbox.clone(), concurrency: config.outbox.concurrency, pace: None }
    }
}

/// Tells until when the certificates are good that the providers know us by.
pub(super) fn tell_certificates(policy: &Policy, facts: &dyn FactSink) {
    for (name, provider) in &policy.providers {
        if let Some(end) = provider.channel.certificate_end() {
            facts.record(&Fact::Provider { provider: name.clone(), news: ProviderNews::Certificate(end) });
        }
    }
}
