//! Which channels, out of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use tokio::sync::mpsc;

use crate::channel::outbox::OutboxChannel;
use crate::channel::smtp::SmtpChannel;
use crate::config::{Config, ProviderConfig};
use crate::ports::channel::{Channel, Receipt};
use crate::ports::clock::Clock;
use crate::ports::outbox::{Misbehaviours, OutboxMessages};
use crate::ports::policy::{OUTBOX, Policy, Provider};

/// Builds policies; keeps what outlives a reload.
pub struct Providers {
    outbox: Arc<OutboxChannel>,
}

impl Providers {
    pub fn new(
        config: &Config,
        messages: Arc<dyn OutboxMessages>,
        clock: Arc<dyn Clock>,
        receipts: mpsc::Sender<Receipt>,
    ) -> Self {
        Self { outbox: OutboxChannel::new(messages, clock, receipts, config.outbox.keep) }
    }

    pub fn misbehaviours(&self) -> Arc<Misbehaviours> {
        self.outbox.misbehave().clone()
    }

    /// # Errors
    /// A provider's settings do not hold together; the key is named.
    pub fn policy(&self, config: &Config) -> anyhow::Result<Policy> {
        let parts = config.policy_parts();
        let mut providers = BTreeMap::new();
        for (name, provider) in &config.providers {
            let built = self.build(config, provider).with_context(|| format!("providers.{name}"))?;
            providers.insert(name.clone(), built);
        }
        providers.insert(OUTBOX.to_owned(), self.outbox_provider(config));
        Ok(Policy {
            classes: parts.classes,
            providers,
            routes: parts.routes,
            environments: parts.environments,
            keep_record: parts.keep_record,
        })
    }

    fn build(&self, config: &Config, provider: &ProviderConfig) -> anyhow::Result<Provider> {
        match provider {
            ProviderConfig::Smtp(smtp) => {
                let channel: Arc<dyn Channel> = Arc::new(SmtpChannel::new(smtp)?);
                Ok(Provider { channel, concurrency: smtp.connections })
            }
            ProviderConfig::Outbox(_) => Ok(self.outbox_provider(config)),
        }
    }

    fn outbox_provider(&self, config: &Config) -> Provider {
        Provider { channel: self.outbox.clone(), concurrency: config.outbox.concurrency }
    }
}
