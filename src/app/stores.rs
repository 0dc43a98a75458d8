//! Which store, behind the ports.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use crate::config::{Config, StoreKind};
use crate::ports::admin::{ApiKeys, Installation};
use crate::ports::clock::Clock;
use crate::ports::deliveries::Deliveries;
use crate::ports::outbox::OutboxMessages;
use crate::store::sqlite::{InlineStore, SqliteStore};

/// One store, as each room sees it.
pub struct Stores {
    pub deliveries: Arc<dyn Deliveries>,
    pub api_keys: Arc<dyn ApiKeys>,
    pub installation: Arc<dyn Installation>,
    pub outbox: Arc<dyn OutboxMessages>,
    /// One sentence: what a crash of the store can lose.
    pub durability: &'static str,
    file: Option<Arc<SqliteStore>>,
}

impl Stores {
    /// # Errors
    /// The database cannot be opened, or another process holds it.
    pub fn open(config: &Config, ephemeral: bool, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        if ephemeral {
            let store = InlineStore::open(clock);
            return Ok(Self {
                deliveries: store.clone(),
                api_keys: store.clone(),
                installation: store.clone(),
                outbox: store,
                durability: "Everything is in memory and gone when this process ends.",
                file: None,
            });
        }
        match config.store.kind {
            StoreKind::Sqlite => Self::open_file(&config.store.sqlite.path, clock),
            StoreKind::Redis => anyhow::bail!("store.kind: the Redis store is not built yet; use \"sqlite\""),
        }
    }

    fn open_file(path: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let store = SqliteStore::open(path, clock).with_context(|| format!("store.sqlite.path: {}", path.display()))?;
        Ok(Self {
            deliveries: store.clone(),
            api_keys: store.clone(),
            installation: store.clone(),
            outbox: store.clone(),
            durability: "Every answer waits for the disk (fsync): a crash loses nothing that was acknowledged.",
            file: Some(store),
        })
    }

    #[must_use]
    pub const fn are_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Writes everything back into the main file and lets go of it.
    pub async fn close(&self) {
        if let Some(store) = &self.file {
            store.close().await;
        }
    }
}
