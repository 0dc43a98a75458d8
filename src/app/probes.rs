//! What `doctor` and `keys` do without a server: open the store, ask a provider who it is.

use std::sync::Arc;

use super::Stores;
use crate::channel::smtp::SmtpChannel;
use crate::config::{Config, ProviderConfig};
use crate::machine::MachineClock;
use crate::ports::admin::ApiKeys;

/// The API keys of the store in `config`, opened for this command.
///
/// # Errors
/// A running server holds the store, or it cannot be opened.
pub fn open_keys(config: &Config) -> anyhow::Result<Arc<dyn ApiKeys>> {
    Ok(Stores::open(config, false, Arc::new(MachineClock))?.api_keys)
}

/// Opens the store and asks it for a real write. `Ok` says what was found.
///
/// # Errors
/// What is wrong, in words.
pub async fn probe_store(config: &Config) -> Result<String, String> {
    let stores = Stores::open(config, false, Arc::new(MachineClock)).map_err(|error| format!("{error:#}"))?;
    let probed = stores.deliveries.probe().await.map_err(|error| error.to_string());
    stores.close().await;
    probed.map(|()| format!("opened and written to. {}", stores.durability))
}

/// Connects to a provider as far as can be done without sending anything. `Ok` says what was found.
///
/// # Errors
/// What is wrong, in words.
pub async fn probe_provider(provider: &ProviderConfig) -> Result<String, String> {
    match provider {
        ProviderConfig::Smtp(smtp) => {
            let channel = SmtpChannel::new(smtp).map_err(|error| error.to_string())?;
            channel.check().await.map_err(|why| why.words())?;
            Ok("connected, secured as configured, logged in".into())
        }
        ProviderConfig::Outbox(_) => Ok("is part of this program".into()),
    }
}
