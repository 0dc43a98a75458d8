//! What full caps turned away, by closed labels.

use super::{Fact, FactSink, recorder, value};

#[test]
fn refusals_by_caps_are_counted_by_configured_names() {
    let recorder = recorder();
    for (cap, suppressed) in [("daily", false), ("daily", true), ("gone", true), ("gone", true)] {
        recorder.record(&Fact::Capped { cap: cap.into(), suppressed });
    }
    let text = recorder.exposition();
    for (cap, then, expected) in
        [("daily", "deferred", "1"), ("daily", "suppressed", "1"), ("other", "suppressed", "2")]
    {
        let name = format!("belfry_cap_refusals_total{{cap=\"{cap}\",then=\"{then}\"}}");
        assert_eq!(value(&text, &name).as_deref(), Some(expected), "{name} in\n{text}");
    }
}
