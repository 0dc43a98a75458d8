//! Renders an intent's inline text; with the planted bug, another text each time.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use belfry::engine::{Made, Render, RenderFault};
use belfry::ports::message::{Address, Rendered};
use belfry_domain::ChannelKind;

use super::bugs::Bug;

pub struct SimRender {
    pub bug: Option<Bug>,
    pub made: AtomicU64,
}

#[async_trait]
impl Render for SimRender {
    async fn render(&self, inputs: &str, _channel: ChannelKind, _slot: &str) -> Result<Made, RenderFault> {
        let text = match self.bug {
            Some(Bug::ThawedContent) => format!("{inputs} {}", self.made.fetch_add(1, Ordering::Relaxed)),
            _ => inputs.to_owned(),
        };
        // The planted bug also forgets to hash what it made: otherwise the engine would park it.
        Ok(Made { address: Address("ann@example.com".into()), message: Rendered::Sms { text }, hash: "frozen".into() })
    }
}
