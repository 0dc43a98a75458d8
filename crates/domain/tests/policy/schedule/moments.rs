//! The hours that clocks leave out and show twice.

use belfry_domain::zone::{LocalTime, NoLocalTime, Zone};

use super::{ms, rhythm, text};

/// The runs after a moment are these.
#[track_caller]
fn runs(cron: &str, zone: &str, after: &str, expected: &[&str]) {
    let runs: Vec<_> = rhythm(cron, zone).runs(ms(after), expected.len()).into_iter().map(text).collect();
    assert_eq!(runs, expected, "{cron} in {zone} after {after}");
}

#[test]
fn case_79_a_time_that_clocks_jump_over_is_the_moment_of_the_jump() {
    // 02:00 becomes 03:00 at 07:00Z.
    let new_york = &["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"];
    runs("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", new_york);
    // 01:00 becomes 02:00 at 01:00Z.
    let london = &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    runs("30 1 * * *", "Europe/London", "2026-03-28T00:00:00Z", london);
    // 02:00 becomes 02:30 at 15:30Z.
    let lord_howe = &["2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"];
    runs("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T12:00:00Z", lord_howe);
    // The jump itself is a time that there is.
    runs("0 3 * * *", "America/New_York", "2026-03-08T00:00:00Z", &["2026-03-08T07:00:00Z", "2026-03-09T07:00:00Z"]);
}

#[test]
fn case_79_several_times_within_one_jump_are_one() {
    let runs_of_the_night = &["2026-03-08T06:50:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:10:00Z"];
    runs("*/10 1-3 * * *", "America/New_York", "2026-03-08T06:40:00Z", runs_of_the_night);
    runs(
        "0,30 2,3 * * *",
        "America/New_York",
        "2026-03-08T00:00:00Z",
        &["2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"],
    );
}

#[test]
fn case_79_a_time_that_clocks_show_twice_is_the_first() {
    // 02:00 becomes 01:00 at 06:00Z: 01:30 is at 05:30Z and at 06:30Z.
    let new_york = &["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"];
    runs("30 1 * * *", "America/New_York", "2026-10-31T00:00:00Z", new_york);
    runs("30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", &["2026-11-02T06:30:00Z"]);
    // Where the second showing begins: 01:00.
    runs("0 1,2 * * *", "America/New_York", "2026-11-01T00:00:00Z", &["2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z"]);
    // 02:00 becomes 01:00 at 01:00Z.
    let london = &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    runs("30 1 * * *", "Europe/London", "2026-10-24T00:00:00Z", london);
    // 02:00 becomes 01:30 at 15:00Z.
    let lord_howe = &["2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"];
    runs("45 1 * * *", "Australia/Lord_Howe", "2026-04-03T12:00:00Z", lord_howe);
}

#[test]
fn case_79_every_quarter_of_an_hour_is_that_in_those_nights_too() {
    let spring = &["2026-03-08T06:45:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:15:00Z"];
    runs("*/15 * * * *", "America/New_York", "2026-03-08T06:30:00Z", spring);
    let autumn = &["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"];
    runs("*/30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", autumn);
    // An hour apart, not at the jump in between.
    runs("30 * * * *", "America/New_York", "2026-03-08T06:00:00Z", &["2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z"]);
    runs(
        "30 0-23 * * *",
        "America/New_York",
        "2026-11-01T05:00:00Z",
        &["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"],
    );
    // The minute that begins with a change is shown.
    runs("@hourly", "America/New_York", "2026-03-08T06:59:59Z", &["2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z"]);
    runs("@hourly", "Australia/Lord_Howe", "2026-10-03T14:59:59Z", &["2026-10-03T16:00:00Z", "2026-10-03T17:00:00Z"]);
}

#[test]
fn case_79_days_that_begin_at_one_and_a_day_that_was_left_out() {
    // Sunday began at 01:00 in Sao Paulo.
    runs("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"]);
    // Saturday's last hour came twice.
    runs("30 23 * * 6", "America/Sao_Paulo", "2018-02-17T12:00:00Z", &["2018-02-18T01:30:00Z", "2018-02-25T02:30:00Z"]);
    runs("30 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", &["2026-04-23T22:00:00Z", "2026-04-24T21:30:00Z"]);
    runs("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", &["2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"]);
    runs("15 0 * * *", "America/Asuncion", "2023-09-30T12:00:00Z", &["2023-10-01T04:00:00Z", "2023-10-02T03:15:00Z"]);
    // After 29 December 2011 came the 31st; 24:00 of the 29th was 10:00Z.
    let apia = &["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"];
    runs("0 9 * * *", "Pacific/Apia", "2011-12-29T18:00:00Z", apia);
    runs("0 9 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", &["2011-12-30T10:00:00Z", "2012-12-29T19:00:00Z"]);
}

#[test]
fn case_79_a_local_time_is_one_moment() {
    for (zone, local, at) in [
        ("America/New_York", "2026-03-08T02:30:00", "2026-03-08T07:00:00Z"),
        ("America/New_York", "2026-03-08T01:59:59", "2026-03-08T06:59:59Z"),
        ("America/New_York", "2026-03-08T03:00:00", "2026-03-08T07:00:00Z"),
        ("America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"),
        ("America/New_York", "2026-11-01T02:00:00", "2026-11-01T07:00:00Z"),
        ("Europe/London", "2026-03-29T01:30:00", "2026-03-29T01:00:00Z"),
        ("Europe/London", "2026-10-25T01:30:00", "2026-10-25T00:30:00Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:10:00", "2026-10-03T15:30:00Z"),
        ("Australia/Lord_Howe", "2026-04-05T01:40:00", "2026-04-04T14:40:00Z"),
        ("Pacific/Apia", "2011-12-30T17:00:00", "2011-12-30T10:00:00Z"),
        ("Asia/Kathmandu", "2026-12-24T09:00:00", "2026-12-24T03:15:00Z"),
        ("UTC", "2026-12-24T09:00:01", "2026-12-24T09:00:01Z"),
    ] {
        let zone_of: Zone = zone.parse().unwrap();
        let read: LocalTime = local.parse().unwrap();
        assert_eq!(zone_of.at(read).map(text).as_deref(), Some(at), "{local} in {zone}");
        assert_eq!(read.to_string(), local);
    }
}

#[test]
fn local_times_are_written_one_way() {
    for bad in [
        "",
        "2026-12-24",
        "2026-12-24T09:00",
        "2026-12-24 09:00:00",
        "2026-12-24T09:00:00Z",
        "2026-12-24T09:00:00+01:00",
        "2026-12-24T09:00:00.5",
        "2026-02-29T09:00:00",
        "2026-12-24T24:00:00",
        "2026-12-24T09:60:00",
        "2026-12-24T09:59:60",
        "+002026-12-24T09:00",
    ] {
        assert_eq!(bad.parse::<LocalTime>(), Err(NoLocalTime), "{bad}");
    }
}

#[test]
fn the_last_slot_is_no_later_than_the_end() {
    let mut daily = rhythm("0 9 * * *", "UTC");
    daily.until = Some(ms("2026-03-02T09:00:00Z"));
    let runs: Vec<_> = daily.runs(ms("2026-02-28T12:00:00Z"), 5).into_iter().map(text).collect();
    assert_eq!(runs, ["2026-03-01T09:00:00Z", "2026-03-02T09:00:00Z"]);
}

#[test]
fn days_that_are_rare_are_found_and_the_ends_of_time_are_no_fault() {
    runs("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
    // Both: a 29 February at a weekend. 2100 has none.
    runs("0 0 29 2 */6", "UTC", "2089-01-01T00:00:00Z", &["2116-02-29T00:00:00Z"]);
    for cron in ["* * * * *", "0 0 1 1 *"] {
        let rhythm = rhythm(cron, "America/New_York");
        for at in [i64::MIN, i64::MAX, 253_402_207_200_000, 253_402_207_200_999] {
            assert_eq!(rhythm.after(belfry_domain::UnixMs(at)), None, "{cron} at {at}");
        }
    }
}
