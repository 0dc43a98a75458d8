//! What belongs to the whole installation: over the API while a server holds the store, straight in the
//! store otherwise.

use super::client::{Client, Patience, ServerArgs};
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
            Err(NoStore::Held) => Self::over_the_api(config, server, "a running server holds the store", what),
            Err(absent @ NoStore::Absent(_)) => {
                // A server with another configuration may have left its address here.
                let near = Client::look_for(server, config, Patience::Short)?;
                if near.get("/livez").await.is_ok_and(|answer| answer.status.is_success()) {
                    return Self::over_the_api(config, server, &format!("a server answers at {}", near.base()), what);
                }
                let text = format!("{absent}. Where one was started with a configuration file, give the same --config");
                Err(Failure::new(Exit::Failed, text))
            }
            Err(error @ NoStore::Away(_)) => Err(Failure::new(Exit::RetryLater, error.to_string())),
            Err(error) => Err(Failure::new(Exit::Failed, error.to_string())),
        }
    }

    fn over_the_api(config: &Config, server: &ServerArgs, why: &str, what: &str) -> Result<Self, Failure> {
        let client = Client::discover(server, config)?;
        if client.has_key() {
            return Ok(Self::Api(client));
        }
        let text = format!(
            "{why}, so {what} over its API: give a key that may admin by --api-key-file or BELFRY_API_KEY, or stop \
             the server"
        );
        Err(Failure::new(Exit::Failed, text))
    }
}

pub fn failed(error: StoreError) -> Failure {
    let exit = match error {
        StoreError::Unavailable(_) => Exit::RetryLater,
        StoreError::Corrupt(_) => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}
