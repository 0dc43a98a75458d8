//! Which circuits of this node are open, for people who ask.

use std::sync::Arc;

use belfry_domain::breaker::OpenWhy;
use belfry_domain::{UnixMs, WhyCode};

/// One that is open: messages through it wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuit {
    pub provider: String,
    /// Of the services behind the provider, the one that it is about; nothing where it is about all of it.
    pub service: Option<&'static str>,
    pub why: OpenWhy,
    /// The word that opened it.
    pub cause: WhyCode,
    pub since: UnixMs,
}

/// Those that are open now, by provider.
pub type OpenCircuits = Arc<dyn Fn() -> Vec<OpenCircuit> + Send + Sync>;
