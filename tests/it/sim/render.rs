//! Renders an intent's inline text; with the planted bug, another text each time.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use belfry::engine::{Made, Render, RenderFault};
use belfry::ports::message::{Address, Rendered};
use belfry_domain::{ChannelKind, NotificationId};

use super::bugs::Bug;

/// A message with this in its text cannot even be made.
pub const UNWINDS: &str = "unwinds";

pub struct SimRender {
    pub bug: Option<Bug>,
    pub made: AtomicU64,
}

#[async_trait]
impl Render for SimRender {
    async fn render(
        &self,
        _of: NotificationId,
        inputs: &str,
        _channel: ChannelKind,
        _slot: &str,
    ) -> Result<Made, RenderFault> {
        if inputs.contains(UNWINDS) {
            // Unwinds without the panic hook's noise.
            std::panic::resume_unwind(Box::new("scripted"));
        }
        let text = match self.bug {
            Some(Bug::ThawedContent) => format!("{inputs} {}", self.made.fetch_add(1, Ordering::Relaxed)),
            _ => inputs.to_owned(),
        };
        // The planted bug also forgets to hash what it made: otherwise the engine would park it.
        Ok(Made { address: Address("ann@example.com".into()), message: Rendered::Sms { text }, hash: "frozen".into() })
    }
}
