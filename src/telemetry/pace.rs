//! How often providers may be called, and what part of that is this node's.

use std::sync::atomic::AtomicU64;

use belfry_domain::Pace;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::Label;

type OfProvider = Family<[(&'static str, Label); 1], Gauge<f64, AtomicU64>>;

#[derive(Default)]
pub(super) struct PaceGauges {
    calls: OfProvider,
    share: OfProvider,
}

impl PaceGauges {
    pub fn register(&self, registry: &mut Registry) {
        let help = "How often all nodes together may call a provider, a second";
        registry.register("pace_calls_per_second", help, self.calls.clone());
        registry.register("pace_share", "This node's share of a provider's pace, 0 to 1", self.share.clone());
    }

    pub fn set(&self, provider: Label, pace: &Pace) {
        let a_second = f64::from(pace.rate()) / pace.per().as_secs_f64();
        self.calls.get_or_create(&[("provider", provider)]).set(a_second);
    }

    pub fn set_share(&self, provider: Label, parts: u32, of: u32) {
        self.share.get_or_create(&[("provider", provider)]).set(f64::from(parts) / f64::from(of.max(1)));
    }
}
