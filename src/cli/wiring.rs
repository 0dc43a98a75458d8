//! What the commands need of the composition.
//!
//! PLACEHOLDER: stands in for `crate::app` until that is there; every function here says so when it
//! is called. The shapes are what the commands are written against.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;

use crate::config::{Config, ConfigErrors, ProviderConfig};
use crate::ports::admin::ApiKeys;

#[derive(Clone, Copy, Debug, Default)]
pub struct StartOptions {
    /// Everything in memory, gone at the end.
    pub ephemeral: bool,
    /// Listen on this port instead of the configured one; 0 takes a free one.
    pub port: Option<u16>,
}

/// A server that listens.
pub struct RunningApp {
    pub address: SocketAddr,
    /// Made because there was none; shown once, stored hashed.
    pub first_key: Option<String>,
}

impl RunningApp {
    /// # Errors
    /// What keeps it from starting: the port is taken, the store is held or unreadable.
    pub async fn start(_config: Config, _options: StartOptions) -> anyhow::Result<Self> {
        bail!("the server is not wired in yet")
    }

    /// Takes over a reloaded configuration, or records why it was refused; all or nothing.
    pub async fn reload(&self, _loaded: Result<Config, ConfigErrors>) {}

    /// Begins the graceful end; returns at once.
    pub fn shut_down(&self) {}

    /// Returns once everything has ended.
    ///
    /// # Errors
    /// What it ended of, where that was not [`Self::shut_down`].
    pub async fn ended(self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The API keys of the store in `config`, opened for this command.
///
/// # Errors
/// A running server holds the store, or it cannot be opened.
pub async fn open_keys(_config: &Config) -> anyhow::Result<Arc<dyn ApiKeys>> {
    bail!("the store is not wired in yet")
}

/// Opens the store and asks it for a real write. `Ok` says what was found.
///
/// # Errors
/// What is wrong, in words.
pub async fn probe_store(_config: &Config) -> Result<String, String> {
    Err("the store is not wired in yet".into())
}

/// Connects to a provider as far as can be done without sending anything. `Ok` says what was found.
///
/// # Errors
/// What is wrong, in words.
pub async fn probe_provider(_name: &str, _provider: &ProviderConfig) -> Result<String, String> {
    Err("providers are not wired in yet".into())
}
