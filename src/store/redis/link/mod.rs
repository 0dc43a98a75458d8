//! The way to the servers: which of them has a shard, one bounded call after the other, and what to
//! wait for before an answer may be given. Knows scripts, keys and answers; nothing of what they mean.

use std::time::Duration;

use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::Mutex;

use super::script::Script;
use crate::ports::StoreError;

/// What an answer has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The primary has done it.
    Done,
    /// It outlives what the configured durability says it outlives.
    Durable,
}

/// One script call. All keys share the hash tag of `keys[0]`.
pub struct Call<'a> {
    pub script: &'a Script,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
    pub need: Need,
}

/// The connections of one store.
pub struct Link {
    client: redis::Client,
    open: Mutex<Option<MultiplexedConnection>>,
}

/// One call, connecting included.
const MOST_WAIT: Duration = Duration::from_millis(1_500);

impl Link {
    /// # Errors
    /// The URL is none.
    pub fn to(url: &str) -> Result<Self, StoreError> {
        let client = redis::Client::open(url).map_err(|error| StoreError::Unavailable(error.category().into()))?;
        Ok(Self { client, open: Mutex::new(None) })
    }

    /// Runs it once, or twice where the server had to be told the script first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: it may have run all the same.
    pub async fn run(&self, call: Call<'_>) -> Result<Value, StoreError> {
        let ran = tokio::time::timeout(MOST_WAIT, self.attempt(&call)).await;
        ran.map_err(|_| StoreError::Unavailable("no answer in time".into()))?
            .map_err(|error| StoreError::Unavailable(format!("{}: {error}", call.script.name)))
    }

    async fn attempt(&self, call: &Call<'_>) -> redis::RedisResult<Value> {
        let mut connection = self.connection().await?;
        match command("EVALSHA", call.script.hash(), call).query_async(&mut connection).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                command("EVAL", call.script.text(), call).query_async(&mut connection).await
            }
            other => other,
        }
    }

    async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        let mut open = self.open.lock().await;
        if let Some(connection) = open.as_ref() {
            return Ok(connection.clone());
        }
        let fresh = self.client.get_multiplexed_async_connection().await?;
        *open = Some(fresh.clone());
        Ok(fresh)
    }
}

fn command(name: &str, script: &str, call: &Call<'_>) -> redis::Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(call.keys.len()).arg(&call.keys).arg(&call.args);
    command
}

impl Link {
    /// # Errors
    /// None yet: one server's answers are all there is to wait for.
    pub async fn settled(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
