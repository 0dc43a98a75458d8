//! Schedules against tables of moments, and against a look at the zone's clock minute by minute.

mod expressions;
mod missed;
mod model;
mod moments;

use belfry_domain::UnixMs;
use belfry_domain::schedule::Rhythm;
use jiff::Timestamp;

fn ms(text: &str) -> UnixMs {
    UnixMs(text.parse::<Timestamp>().unwrap().as_millisecond())
}

fn text(at: UnixMs) -> String {
    Timestamp::from_millisecond(at.0).unwrap().to_string()
}

#[track_caller]
fn rhythm(cron: &str, zone: &str) -> Rhythm {
    Rhythm { cron: cron.parse().unwrap(), zone: zone.parse().unwrap(), until: None }
}
