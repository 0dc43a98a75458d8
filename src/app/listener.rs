//! The address that a server listens at.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::{StartOptions, probe};
use crate::config::Config;

/// # Errors
/// Nothing can listen there; the error says what to do about it.
pub(super) async fn bind(config: &Config, options: StartOptions, address: SocketAddr) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) => Err(no_listener(config, options, address, error).await),
    }
}

/// Why nothing listens at `address`. Who starts a second server in the same folder meets the first
/// one's address before its store.
async fn no_listener(
    config: &Config,
    options: StartOptions,
    address: SocketAddr,
    error: std::io::Error,
) -> anyhow::Error {
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return anyhow::Error::new(error).context(format!("http.listen: {address}"));
    }
    let held = !options.ephemeral
        && match probe::open_store(config).await {
            Ok(stores) => {
                stores.close().await;
                false
            }
            Err(found) => matches!(found, probe::NoStore::Held),
        };
    if held {
        let path = config.store.sqlite.path.display();
        return anyhow::anyhow!(
            "Belfry runs here already: another one has {path} open and {address} is in use. Stop it, or give this one \
             a store of its own (store.sqlite.path) and another port (--port)"
        );
    }
    anyhow::anyhow!("http.listen: {address} is in use by another program; choose another one, or give --port")
}
