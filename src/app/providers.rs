//! Which channels, out of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::channel::outbox::OutboxChannel;
use crate::channel::smtp::{SmtpChannel, SmtpConfigError};
use crate::config::{Config, ConfigErrors, Problem, ProviderConfig, ProviderKind};
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
    /// The settings of providers that do not hold together, by key.
    pub fn policy(&self, config: &Config) -> Result<Policy, ConfigErrors> {
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
            providers,
            routes: parts.routes,
            environments: parts.environments,
            keep_record: parts.keep_record,
        })
    }

    fn build(&self, config: &Config, provider: &ProviderConfig) -> Result<Provider, SmtpConfigError> {
        // What makes no pace was refused when the configuration was read.
        let pace = provider.pace.and_then(|pace| pace.pace().ok());
        match &provider.kind {
            ProviderKind::Smtp(smtp) => {
                let channel: Arc<dyn Channel> = Arc::new(SmtpChannel::new(smtp)?);
                Ok(Provider { channel, concurrency: smtp.connections, pace })
            }
            ProviderKind::Outbox(_) => Ok(Provider { pace, ..self.outbox_provider(config) }),
        }
    }

    fn outbox_provider(&self, config: &Config) -> Provider {
        Provider { channel: self.outbox.clone(), concurrency: config.outbox.concurrency, pace: None }
    }
}
