//! How often providers may be called, by configured names.

use std::time::Duration;

use belfry_domain::Pace;

use super::{Fact, FactSink, recorder, value};

pub(super) fn fact(provider: String, n: u64) -> Fact {
    let per = Duration::from_secs(1 + n % 100);
    match n % 2 {
        0 => Fact::PaceShared { provider, parts: 1, of: 2 },
        _ => Fact::Paced { provider, pace: Pace::new(5, per, None).unwrap(), warming: None },
    }
}

#[test]
fn a_pace_and_this_node_s_part_of_it_are_shown() {
    let recorder = recorder();
    let pace = Pace::new(90, Duration::from_secs(60), None).unwrap();
    recorder.record(&Fact::Paced { provider: "main".into(), pace, warming: None });
    recorder.record(&Fact::PaceShared { provider: "main".into(), parts: 1, of: 4 });
    let text = recorder.exposition();
    for (name, expected) in [("belfry_pace_calls_per_second", "1.5"), ("belfry_pace_share", "0.25")] {
        assert_eq!(value(&text, &format!("{name}{{provider=\"main\"}}")).as_deref(), Some(expected), "{text}");
    }
}
