//! What belongs to the whole installation: over the API while a server holds the store, straight in the
//! store otherwise.

use super::client::{Client, ServerArgs};
use super::exit::{Exit, Failure};
use crate::app::Stores;
use crate::app::probe::{NoStore, open_store};
use crate::config::Config;
use crate::ports::StoreError;

pub enum Way {
    Store(Box<Stores>),
    Api(Client),
}

impl Way {
    /// A server that was named is asked; else the store here, which a running server holds alone.
    /// `what` goes that way, for the error.
    ///
    /// # Errors
    /// There is no store, or no key that opens the server that holds it.
    pub async fn to_the_store(config: &Config, server: &ServerArgs, what: &str) -> Result<Self, Failure> {
        if server.is_given() {
            return Ok(Self::Api(Client::discover(server, config)?));
        }
        match open_store(config).await {
            Ok(stores) => Ok(Self::Store(Box::new(stores))),
            Err(NoStore::Held) => {
                let client = Client::discover(server, config)?;
                if client.has_key() {
                    return Ok(Self::Api(client));
                }
                let what = format!(
                    "a running server holds the store, so {what} over its API: give one that may admin by \
                     --api-key-file or BELFRY_API_KEY, or stop the server"
                );
                Err(Failure::new(Exit::Failed, what))
            }
            Err(error) => Err(Failure::new(Exit::Failed, error.to_string())),
        }
    }
}

pub fn failed(error: StoreError) -> Failure {
    let exit = match error {
        StoreError::Unavailable(_) => Exit::RetryLater,
        StoreError::Corrupt(_) => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}
