//! Quiet hours against tables of moments, and against a look at the recipient's clock minute by minute.

use belfry_domain::UnixMs;
use belfry_domain::quiet::{NoQuietHours, QuietHours};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

fn ms(text: &str) -> UnixMs {
    UnixMs(text.parse::<Timestamp>().unwrap().as_millisecond())
}

fn text(at: UnixMs) -> String {
    Timestamp::from_millisecond(at.0).unwrap().to_string()
}

#[track_caller]
fn opens((from, to): (&str, &str), zone: &str, table: &[(&str, &str)]) {
    // A fallback that would tell, were it taken.
    let quiet = QuietHours::new(from, to, "Pacific/Marquesas").unwrap();
    for (now, expected) in table {
        assert_eq!(text(quiet.open_at(ms(now), Some(zone))), *expected, "{zone}, quiet {from} to {to}, at {now}");
    }
}

const NIGHT: (&str, &str) = ("22:00", "07:00");

#[test]
fn case_80_every_zone_has_its_own_night() {
    opens(
        NIGHT,
        "Africa/Nairobi",
        &[
            ("2026-03-10T18:59:59.999Z", "2026-03-10T18:59:59.999Z"),
            ("2026-03-10T19:00:00Z", "2026-03-11T04:00:00Z"),
            ("2026-03-10T21:00:00Z", "2026-03-11T04:00:00Z"),
            ("2026-03-11T03:59:59.999Z", "2026-03-11T04:00:00Z"),
            ("2026-03-11T04:00:00Z", "2026-03-11T04:00:00Z"),
        ],
    );
    opens(
        NIGHT,
        "Asia/Kolkata",
        &[
            ("2026-03-10T16:29:00Z", "2026-03-10T16:29:00Z"),
            ("2026-03-10T16:30:00Z", "2026-03-11T01:30:00Z"),
            ("2026-03-11T01:29:59Z", "2026-03-11T01:30:00Z"),
            ("2026-03-11T01:30:00Z", "2026-03-11T01:30:00Z"),
        ],
    );
    opens(
        NIGHT,
        "Asia/Kathmandu",
        &[("2026-03-10T16:14:00Z", "2026-03-10T16:14:00Z"), ("2026-03-10T16:15:00Z", "2026-03-11T01:15:00Z")],
    );
    // A day ahead of UTC's for most of the day.
    opens(
        NIGHT,
        "Pacific/Apia",
        &[
            ("2026-03-10T08:59:00Z", "2026-03-10T08:59:00Z"),
            ("2026-03-10T09:00:00Z", "2026-03-10T18:00:00Z"),
            ("2026-03-10T12:00:00Z", "2026-03-10T18:00:00Z"),
            ("2026-03-10T18:00:00Z", "2026-03-10T18:00:00Z"),
        ],
    );
    // The night before, of and after the clocks go forward, and the one in which they go back.
    opens(
        NIGHT,
        "America/Los_Angeles",
        &[
            ("2026-03-07T06:00:00Z", "2026-03-07T15:00:00Z"),
            ("2026-03-08T06:00:00Z", "2026-03-08T14:00:00Z"),
            ("2026-03-09T04:59:00Z", "2026-03-09T04:59:00Z"),
            ("2026-03-09T05:00:00Z", "2026-03-09T14:00:00Z"),
            ("2026-11-01T05:00:00Z", "2026-11-01T15:00:00Z"),
        ],
    );
}

#[test]
fn case_80_a_zone_that_is_missing_or_not_known_is_the_stated_one() {
    let quiet = QuietHours::new("22:00", "07:00", "Europe/Stockholm").unwrap();
    for zone in [None, Some(""), Some("Mars/Olympus"), Some("Etc/Unknown"), Some("+02:00"), Some("../../etc/passwd")] {
        assert_eq!(text(quiet.open_at(ms("2026-01-10T20:59:00Z"), zone)), "2026-01-10T20:59:00Z", "{zone:?}");
        assert_eq!(text(quiet.open_at(ms("2026-01-10T21:00:00Z"), zone)), "2026-01-11T06:00:00Z", "{zone:?}");
    }
    let utc = QuietHours::new("22:00", "07:00", "UTC").unwrap();
    assert_eq!(text(utc.open_at(ms("2026-07-10T22:00:00Z"), None)), "2026-07-11T07:00:00Z");
}

#[test]
fn hours_that_do_not_span_midnight_and_those_that_end_at_it() {
    opens(
        ("12:30", "14:00"),
        "UTC",
        &[
            ("2026-03-10T12:29:00Z", "2026-03-10T12:29:00Z"),
            ("2026-03-10T12:30:00Z", "2026-03-10T14:00:00Z"),
            ("2026-03-10T23:30:00Z", "2026-03-10T23:30:00Z"),
        ],
    );
    opens(
        ("18:00", "00:00"),
        "UTC",
        &[("2026-03-10T18:00:00Z", "2026-03-11T00:00:00Z"), ("2026-03-11T00:00:00Z", "2026-03-11T00:00:00Z")],
    );
    opens(
        ("00:00", "06:00"),
        "UTC",
        &[("2026-03-10T23:59:59Z", "2026-03-10T23:59:59Z"), ("2026-03-11T00:00:00Z", "2026-03-11T06:00:00Z")],
    );
    // All but a minute.
    opens(("00:01", "00:00"), "UTC", &[("2026-03-10T00:01:00Z", "2026-03-11T00:00:00Z")]);
}

#[test]
fn an_end_that_clocks_jump_over_comes_with_the_jump() {
    // 02:00 becomes 03:00 at 07:00Z.
    opens(
        ("22:00", "02:30"),
        "America/New_York",
        &[("2026-03-08T06:59:59Z", "2026-03-08T07:00:00Z"), ("2026-03-08T07:00:00Z", "2026-03-08T07:00:00Z")],
    );
    // A beginning that is jumped over: quiet from the jump on.
    opens(
        ("02:30", "06:00"),
        "America/New_York",
        &[("2026-03-08T06:59:59Z", "2026-03-08T06:59:59Z"), ("2026-03-08T07:00:00Z", "2026-03-08T10:00:00Z")],
    );
    // Both: there is no such hour that night.
    opens(
        ("02:10", "02:50"),
        "America/New_York",
        &[("2026-03-08T06:59:59Z", "2026-03-08T06:59:59Z"), ("2026-03-08T07:00:00Z", "2026-03-08T07:00:00Z")],
    );
    // Half an hour: 02:00 becomes 02:30 at 15:30Z.
    opens(("22:00", "02:15"), "Australia/Lord_Howe", &[("2026-10-03T15:29:00Z", "2026-10-03T15:30:00Z")]);
}

#[test]
fn an_hour_that_comes_twice_is_quiet_twice() {
    // 02:00 becomes 01:00 at 06:00Z: 01:00 to 02:00 is shown from 05:00Z and from 06:00Z on.
    opens(
        ("22:00", "01:30"),
        "America/New_York",
        &[
            ("2026-11-01T05:29:00Z", "2026-11-01T05:30:00Z"),
            ("2026-11-01T05:59:59Z", "2026-11-01T05:59:59Z"),
            ("2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"),
            ("2026-11-01T06:30:00Z", "2026-11-01T06:30:00Z"),
        ],
    );
    // They would end at the moment at which clocks are put back into them.
    opens(("22:00", "02:00"), "America/New_York", &[("2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z")]);
    // Half an hour: 02:00 becomes 01:30 at 15:00Z.
    opens(
        ("22:00", "01:45"),
        "Australia/Lord_Howe",
        &[("2026-04-04T14:44:00Z", "2026-04-04T14:45:00Z"), ("2026-04-04T15:00:00Z", "2026-04-04T15:15:00Z")],
    );
}

#[test]
fn days_that_begin_at_one_and_a_day_that_was_left_out() {
    // Sunday began at 01:00 in Sao Paulo: Saturday's 24:00 is 03:00Z.
    opens(
        ("20:00", "00:00"),
        "America/Sao_Paulo",
        &[("2018-11-04T02:59:59Z", "2018-11-04T03:00:00Z"), ("2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z")],
    );
    opens(("20:00", "00:30"), "Africa/Cairo", &[("2026-04-23T21:59:00Z", "2026-04-23T22:00:00Z")]);
    // In Cairo 24:00 of a Thursday becomes 23:00 of it.
    opens(NIGHT, "Africa/Cairo", &[("2026-10-29T20:30:00Z", "2026-10-30T05:00:00Z")]);
    // After 29 December 2011 came the 31st; 24:00 of the 29th was 10:00Z.
    opens(
        NIGHT,
        "Pacific/Apia",
        &[
            ("2011-12-30T07:59:00Z", "2011-12-30T07:59:00Z"),
            ("2011-12-30T08:00:00Z", "2011-12-30T17:00:00Z"),
            ("2011-12-30T09:59:59Z", "2011-12-30T17:00:00Z"),
            ("2011-12-30T10:00:00Z", "2011-12-30T17:00:00Z"),
        ],
    );
    opens(("20:00", "00:00"), "Pacific/Apia", &[("2011-12-30T09:00:00Z", "2011-12-30T10:00:00Z")]);
}

#[test]
fn what_makes_no_quiet_hours_is_told_by_its_key() {
    let refused = |from, to, zone| QuietHours::new(from, to, zone).unwrap_err();
    let time = |key| NoQuietHours { key, problem: "must be a time from 00:00 to 23:59" };
    for bad in ["", "22", "22:0", "24:00", "22:60", "+2:00", "22:00:00", " 2:00", "٢٢:٠٠"] {
        assert_eq!(refused(bad, "07:00", "UTC"), time("from"), "{bad}");
        assert_eq!(refused("22:00", bad, "UTC"), time("to"), "{bad}");
    }
    assert_eq!(refused("07:00", "07:00", "UTC").key, "to");
    assert_eq!(refused("22:00", "07:00", "Mars/Olympus").key, "zone");
    let all: Vec<_> = QuietHours::read("25:00", "7", "Mars/Olympus").unwrap_err().iter().map(|one| one.key).collect();
    assert_eq!(all, ["from", "to", "zone"]);
}

#[test]
fn the_ends_of_time_are_no_fault() {
    let quiet = QuietHours::new("22:00", "07:00", "America/New_York").unwrap();
    for now in [UnixMs(i64::MIN), UnixMs(i64::MAX)] {
        assert_eq!(quiet.open_at(now, None), now);
    }
}

/// Zones with changes at midnight, of half an hour, backwards in winter, and with none.
const ZONES: [&str; 16] = [
    "Africa/Nairobi",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Pacific/Chatham",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Havana",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Antarctica/Troll",
];

/// Minutes since the local midnight, by the recipient's own clock.
fn shown(zone: &TimeZone, at: UnixMs) -> u32 {
    let clock = zone.to_datetime(Timestamp::from_millisecond(at.0).unwrap()).time();
    u32::try_from(i32::from(clock.hour()) * 60 + i32::from(clock.minute())).unwrap()
}

#[derive(Debug)]
struct World {
    name: &'static str,
    zone: TimeZone,
    from: u32,
    to: u32,
    quiet: QuietHours,
    now: UnixMs,
}

impl World {
    fn is_quiet(&self, at: UnixMs) -> bool {
        let shown = shown(&self.zone, at);
        if self.from < self.to { (self.from..self.to).contains(&shown) } else { shown >= self.from || shown < self.to }
    }

    fn open_at(&self, now: UnixMs) -> UnixMs {
        self.quiet.open_at(now, Some(self.name))
    }
}

/// A moment within two days of one of the zone's changes, or any.
fn worlds() -> impl Strategy<Value = World> {
    let minutes = (0u32..1440, 1u32..1440).prop_map(|(from, long)| (from, (from + long) % 1440));
    let near = (0usize..16, any::<bool>(), -2_880i64..2_880);
    (0..ZONES.len(), minutes, 978_307_200i64..2_145_916_800, near).prop_map(|(zone, (from, to), second, near)| {
        let name = ZONES[zone];
        let zone = TimeZoneDatabase::bundled().get(name).unwrap();
        let start = Timestamp::from_second(second - second % 60).unwrap();
        let (nth, is_near, minutes) = near;
        let change = is_near.then(|| zone.following(start).nth(nth)).flatten();
        let now = change.map_or(start, |change| change.timestamp() + minutes.minutes());
        let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let quiet = QuietHours::new(&time(from), &time(to), "UTC").unwrap();
        World { name, zone, from, to, quiet, now: UnixMs(now.as_millisecond()) }
    })
}

const MINUTE: i64 = 60_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_moment_is_the_first_that_is_not_quiet(world in worlds()) {
        let open = world.open_at(world.now);
        let looked = (0..).map(|n| UnixMs(world.now.0 + n * MINUTE)).find(|at| !world.is_quiet(*at)).unwrap();
        prop_assert_eq!(text(open), text(looked));
        prop_assert_eq!(world.open_at(open), open);
    }

    #[test]
    fn whoever_asks_later_hears_nothing_sooner(world in worlds(), later in 0i64..200_000_000) {
        let (now, then) = (UnixMs(world.now.0 + later % 997), UnixMs(world.now.0 + later));
        let (first, second) = (now.min(then), now.max(then));
        prop_assert!(first <= world.open_at(first));
        prop_assert!(world.open_at(first) <= world.open_at(second));
        prop_assert!(!world.is_quiet(world.open_at(second)));
    }
}
