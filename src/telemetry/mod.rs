//! Log lines and metrics: what facts become. Lines may carry ids; neither lines nor labels ever
//! carry an address, a message, a secret or a provider's own words.

use std::sync::Arc;

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{LogConfig, LogFormat};
use crate::facts::{Fact, FactSink};
use crate::ports::circuits::OpenCircuit;
use crate::ports::clock::Clock;
use crate::ports::store_news::{StoreNews, StoreWatch};

mod circuits;
mod depth;
mod families;
mod labels;
mod lines;
mod metrics;
mod outages;
mod pace;
mod schedules;
#[cfg(test)]
mod tests;

use circuits::Circuits;
pub use labels::Names;
use metrics::Metrics;
use outages::Outages;

/// What [`Recorder::exposition`] is: OpenMetrics text.
pub const EXPOSITION_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The real sink: each fact one log line and its metrics.
pub struct Recorder {
    metrics: Metrics,
    outages: Outages,
    circuits: Circuits,
}

impl Recorder {
    /// `names`: the configured names that may stand as labels.
    #[must_use]
    pub fn new(names: Names, clock: Arc<dyn Clock>) -> Self {
        let circuits = Circuits::new(clock.clone());
        Self { metrics: Metrics::new(names), outages: Outages::new(clock), circuits }
    }

    /// After a reload.
    pub fn set_names(&self, names: Names) {
        self.circuits.keep(|provider| names.has_provider(provider));
        self.metrics.set_names(names);
    }

    /// The circuits of this node that are open now.
    #[must_use]
    pub fn open_circuits(&self) -> Vec<OpenCircuit> {
        self.circuits.open()
    }

    /// Every metric, as [`EXPOSITION_TYPE`].
    #[must_use]
    pub fn exposition(&self) -> String {
        self.metrics.exposition()
    }
}

impl FactSink for Recorder {
    fn record(&self, fact: &Fact) {
        if self.outages.is_news(fact) {
            lines::write(fact);
        }
        self.metrics.count(fact);
        self.circuits.hear(fact);
        if let Fact::CircuitOpened { provider, service: Some(service), .. }
        | Fact::CircuitClosed { provider, service: Some(service) } = fact
        {
            self.metrics.set_open(provider, service.name, self.circuits.of_that_name(provider, service));
        }
    }
}

impl StoreWatch for Recorder {
    fn tell(&self, news: StoreNews) {
        self.record(&Fact::Store(news));
    }
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("log.level: {0}")]
    Level(#[from] ParseError),
    #[error(transparent)]
    Twice(#[from] TryInitError),
}

/// Sends log lines to standard error from now on.
///
/// # Errors
/// The level is no filter, or logging has been started before.
pub fn start_logging(config: &LogConfig, colour: bool) -> Result<(), LoggingError> {
    let filter: Targets = config.level.parse()?;
    let registry = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match config.format {
        LogFormat::Pretty => registry.with(lines.with_ansi(colour)).try_init()?,
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init()?,
    }
    Ok(())
}
