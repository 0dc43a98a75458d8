//! A walk along the path of a notification with a fault at every hop: the real door, engine and store,
//! on nodes that can be killed and stopped, and a provider that knows what a person received. Each
//! fault is played twice, with all guards on and with the one off that prevents its damage.
//!
//! Guards can be switched off here and nowhere else: the switches are wrappers around the ports, in
//! this folder, which nothing that serves can name.

mod guard;
mod life;
mod line;
mod node;
mod promises;
mod provider;
mod scene;
mod stage;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use thiserror::Error;

use crate::engine::Render;
use crate::intake::content_check::ContentCheck;
use crate::ports::StoreError;
use crate::ports::caps::Caps;
use crate::ports::deliveries::Deliveries;
use crate::ports::gatherings::Gatherings;
use crate::ports::paces::Paces;
use crate::ports::pauses::Pauses;
use crate::ports::preferences::PreferenceBook;
use crate::ports::recipients::Recipients;
use crate::ports::suppressions::Suppressions;

pub use guard::Guard;
pub use scene::{Class, Fault, Hop, LATER, SCENES, Scene};

/// A store that nothing is in yet, as two nodes see it, and what makes messages.
pub struct Place {
    pub nodes: [Arc<dyn Deliveries>; 2],
    pub paces: Arc<dyn Paces>,
    pub caps: Arc<dyn Caps>,
    pub recipients: Arc<dyn Recipients>,
    pub suppressions: Arc<dyn Suppressions>,
    pub preferences: Arc<dyn PreferenceBook>,
    pub gatherings: Arc<dyn Gatherings>,
    pub pauses: Arc<dyn Pauses>,
    pub content: Arc<dyn ContentCheck>,
    pub render: Arc<dyn Render>,
}

/// Gives every play a store of its own.
#[async_trait]
pub trait Ground: Send + Sync {
    /// # Errors
    /// In words: there is no such store to be had.
    async fn place(&self) -> Result<Place, String>;
}

/// The drill itself cannot go on; nothing is known about the guards then.
#[derive(Debug, Error)]
pub enum DrillError {
    #[error("no store to drill on: {0}")]
    Ground(String),
    #[error("the drill's own look into the store failed: {0}")]
    Store(#[from] StoreError),
    #[error("the drill did not come to its fault: {0}")]
    Never(&'static str),
}

/// What came of one play.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Played {
    /// Copies that the person got.
    pub received: usize,
    /// Calls that reached the provider.
    pub calls: usize,
    /// Repeats that were recognised on the way, the provider's included.
    pub recognised: usize,
    /// Where the intent's deliveries stand in the end.
    pub states: Vec<String>,
    /// Promises that were broken, in words.
    pub broken: Vec<String>,
}

impl Played {
    /// One copy, and no promise broken.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.received == 1 && self.broken.is_empty()
    }
}

/// One fault, with its guard and without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub hop: Hop,
    pub fault: Fault,
    pub class: Class,
    pub guard: Guard,
    pub with: Played,
    pub without: Played,
}

impl Row {
    /// Whether every promise was kept with all guards on.
    #[must_use]
    pub fn was_kept(&self) -> bool {
        self.with.broken.is_empty()
    }

    /// Whether the person, or the record, is worse off without the guard.
    #[must_use]
    pub fn shows_damage(&self) -> bool {
        self.with.is_right() && !self.without.is_right()
    }
}

/// Plays scenes.
pub struct Drill {
    pub ground: Arc<dyn Ground>,
    /// Decides what is left open: who is asked first, how often, with which keys.
    pub seed: u64,
}

impl Drill {
    /// Both plays of one scene, at the same time, each on a store of its own.
    ///
    /// # Errors
    /// [`DrillError`]: the drill is at fault, or its machine.
    pub async fn play(&self, scene: &Scene) -> Result<Row, DrillError> {
        let (with, without) =
            futures::future::try_join(self.once(scene, None), self.once(scene, Some(scene.guard))).await?;
        let Scene { hop, fault, class, guard, .. } = *scene;
        Ok(Row { hop, fault, class, guard, with, without })
    }

    async fn once(&self, scene: &Scene, off: Option<Guard>) -> Result<Played, DrillError> {
        let place = self.ground.place().await.map_err(DrillError::Ground)?;
        stage::play(place, scene, off, self.seed).await
    }
}
