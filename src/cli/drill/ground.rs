//! What a drill stands on: for every play an installation of its own, on a server of its own or a given
//! one, or in files that are gone afterwards.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::{Mutex, watch};

use super::server::OwnServer;
use crate::app::render::Templates;
use crate::app::{Stores, Surroundings};
use crate::config::{Config, StoreKind};
use crate::content::Content;
use crate::machine::MachineClock;
use crate::ops::drill::{Ground, Place};
use crate::ports::store_news::Unwatched;

/// Few, so that a play is quick; what a guard does is the same in any number.
const SHARDS: u16 = 2;

/// Gone with the drill, however it fails.
struct Folder(PathBuf);

impl Folder {
    fn make(name: &str) -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // In the folder for what may be lost: nothing depends on its end.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

pub struct DrillGround {
    config: Config,
    /// Before every key, and the name of the folder.
    prefix: String,
    content: Arc<Content>,
    /// Ends with the drill; `None` where a Redis was given or none is wanted.
    server: Option<OwnServer>,
    /// After the server, which works in it.
    folder: Folder,
    open: Mutex<Vec<Stores>>,
    /// How many plays there were.
    places: AtomicUsize,
}

impl DrillGround {
    /// `given`: on the Redis that `config` names, rather than one of the drill's own.
    ///
    /// # Errors
    /// The server does not start, or its folder cannot be made.
    pub async fn new(mut config: Config, given: bool, run: u32) -> anyhow::Result<Self> {
        let content = Content::load_or_built_in(&config.templates.path).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("the templates do not compile:\n  {}", lines.join("\n  "))
        })?;
        let prefix = format!("belfry-drill-{run:08x}");
        let folder = Folder::make(&prefix)?;
        let mut server = None;
        if config.store.kind == StoreKind::Redis {
            config.store.redis.shards = Some(SHARDS);
            if !given {
                config.store.redis.url = server.insert(OwnServer::start(&folder.0).await?).url();
            }
        }
        Ok(Self {
            config,
            prefix,
            folder,
            content: Arc::new(content),
            server,
            open: Mutex::default(),
            places: AtomicUsize::new(0),
        })
    }

    pub const fn store(&self) -> &'static str {
        match self.config.store.kind {
            StoreKind::Sqlite => "sqlite",
            StoreKind::Redis => "redis",
        }
    }

    /// Lets go of what the plays so far stood on.
    pub async fn clear(&self) {
        for stores in self.open.lock().await.drain(..) {
            stores.close().await;
        }
    }

    /// Leaves nothing behind.
    ///
    /// # Errors
    /// Some keys may be left in the Redis that was given.
    pub async fn end(self) -> anyhow::Result<()> {
        self.clear().await;
        if self.config.store.kind == StoreKind::Redis && self.server.is_none() {
            Stores::wipe(&self.config, &self.prefix).await?;
        }
        Ok(())
    }

    async fn stores(&self, config: &Config) -> Result<Stores, String> {
        let around =
            Surroundings { clock: Arc::new(MachineClock), watch: Arc::new(Unwatched), patient: false, begins: true };
        Stores::open(config, false, around).await.map_err(|error| format!("{error:#}"))
    }
}

#[async_trait]
impl Ground for DrillGround {
    async fn place(&self) -> Result<Place, String> {
        let name = format!("{}-{}", self.prefix, self.places.fetch_add(1, Ordering::SeqCst));
        let mut config = self.config.clone();
        config.store.sqlite.path = self.folder.0.join(&name).join("belfry.db");
        config.store.redis.prefix = name;
        let first = self.stores(&config).await?;
        let (deliveries, paces) = (first.deliveries.clone(), first.paces.clone());
        let (recipients, suppressions) = (first.recipients.clone(), first.suppressions.clone());
        let preferences = first.preferences.clone();
        let (pauses, gatherings) = (first.pauses.clone(), first.gatherings.clone());
        let caps = first.caps.clone();
        let (_, current) = watch::channel(self.content.clone());
        let templates = Templates::new(current, first.installation.clone(), deliveries.clone());
        let mut opened = vec![first];
        let other = match config.store.kind {
            // Its one node has the file to itself: the two share what it has open.
            StoreKind::Sqlite => deliveries.clone(),
            StoreKind::Redis => {
                let second = self.stores(&config).await?;
                let deliveries = second.deliveries.clone();
                opened.push(second);
                deliveries
            }
        };
        self.open.lock().await.append(&mut opened);
        Ok(Place {
            nodes: [deliveries, other],
            paces,
            caps,
            recipients,
            suppressions,
            preferences,
            gatherings,
            pauses,
            content: Arc::new(templates.clone()),
            render: Arc::new(templates),
        })
    }
}
