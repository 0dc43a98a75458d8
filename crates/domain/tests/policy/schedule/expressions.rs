//! What is an expression, and what is said of what is none.

use belfry_domain::schedule::{Cron, CronField};

use super::{ms, rhythm, text};

#[track_caller]
fn first(cron: &str, after: &str, expected: &[&str]) {
    let runs: Vec<_> = rhythm(cron, "UTC").runs(ms(after), expected.len()).into_iter().map(text).collect();
    assert_eq!(runs, expected, "{cron}");
}

#[test]
fn fields_take_numbers_names_lists_ranges_and_steps() {
    // 1 January 2026 was a Thursday.
    let start = "2026-01-01T00:00:00Z";
    first("* * * * *", start, &["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]);
    first("*/20 * * * *", start, &["2026-01-01T00:20:00Z", "2026-01-01T00:40:00Z", "2026-01-01T01:00:00Z"]);
    first("5,10-12,50-59/9 3 * * *", start, &["2026-01-01T03:05:00Z", "2026-01-01T03:10:00Z", "2026-01-01T03:11:00Z"]);
    first("50-59/9 3 * * *", start, &["2026-01-01T03:50:00Z", "2026-01-01T03:59:00Z"]);
    first("0 9 * * mon-Fri", "2026-01-02T09:00:00Z", &["2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"]);
    first("0 9 * FEB,11 *", "2026-02-28T09:00:00Z", &["2026-11-01T09:00:00Z"]);
    first("0 0 31 * *", start, &["2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]);
    // Sunday is 0 and 7, and ends a week as well.
    for sunday in ["0", "7", "sun", "SUN", "0,7"] {
        first(&format!("0 0 * * {sunday}"), start, &["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"]);
    }
    for weekend in ["sat-sun", "6-7", "6,0", "sat,7"] {
        first(&format!("0 0 * * {weekend}"), start, &["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"]);
    }
    first("@weekly", start, &["2026-01-04T00:00:00Z"]);
    first("@Monthly", start, &["2026-02-01T00:00:00Z"]);
    first("@yearly", start, &["2027-01-01T00:00:00Z"]);
    first("@daily", start, &["2026-01-02T00:00:00Z"]);
}

#[test]
fn day_and_weekday_are_either_unless_one_begins_with_a_star() {
    let start = "2026-01-01T00:00:00Z";
    // The 13th, and every Friday.
    first("0 0 13 * fri", start, &["2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"]);
    // Every second day that is a Friday: the 9th, not the 2nd.
    first("0 0 */2 * fri", start, &["2026-01-09T00:00:00Z", "2026-01-23T00:00:00Z"]);
}

#[test]
fn an_expression_is_told_as_it_was_given() {
    let cron: Cron = "  */5\t 9-17  * * mon-fri ".parse().unwrap();
    assert_eq!(cron.to_string(), "*/5 9-17 * * mon-fri");
    assert_eq!("@DAILY".parse::<Cron>().unwrap().to_string(), "@DAILY");
}

#[test]
fn what_is_none_is_told_by_its_field() {
    use CronField::{Day, Hour, Minute, Month, Weekday};
    for (cron, field, says) in [
        ("60 * * * *", Minute, "minute (field 1): must be from 0 to 59"),
        ("-1 * * * *", Minute, "minute (field 1): must be `*`, or numbers from 0 to 59"),
        ("*/0 * * * *", Minute, "a step must not be 0"),
        ("*/90 * * * *", Minute, "a step of 90 reaches nothing but the first: at most 59 here"),
        ("*/x * * * *", Minute, "a step must be a number"),
        ("5/15 * * * *", Minute, "a step stands after `*` or a range, as in `*/5` or `0-59/5`"),
        ("1,,2 * * * *", Minute, "must be `*`"),
        ("+5 * * * *", Minute, "must be `*`"),
        ("0 24 * * *", Hour, "hour (field 2): must be from 0 to 23"),
        ("0 22-3 * * *", Hour, "must not run backwards; across the end write `22-23,0-3`"),
        ("0 9am * * *", Hour, "hour (field 2)"),
        ("0 0 0 * *", Day, "day of the month (field 3): must be from 1 to 31"),
        ("0 0 L * *", Day, "day of the month (field 3)"),
        ("0 0 ? * *", Day, "day of the month (field 3)"),
        ("0 0 30 2 *", Day, "none of the months that are named has such a day"),
        ("0 0 31 2,4,6,9,11 *", Day, "none of the months"),
        ("0 0 31 2 */2", Day, "none of the months"),
        ("0 0 * 13 *", Month, "month (field 4): must be from 1 to 12"),
        ("0 0 * january *", Month, "or a name from jan to dec"),
        ("0 0 * * 8", Weekday, "day of the week (field 5): must be from 0 to 7"),
        ("0 0 * * fri#2", Weekday, "or a name from sun to sat"),
        ("0 0 * * wed-mon", Weekday, "across the end write `3-7,0-1`"),
    ] {
        let refused = cron.parse::<Cron>().unwrap_err();
        assert_eq!(refused.field, Some(field), "{cron}");
        assert!(refused.to_string().contains(says), "{cron}: {refused}");
    }
    for (cron, says) in [
        ("", "must have 5 fields (minute, hour, day of the month, month, day of the week), has 0"),
        ("0 9 * *", "has 4"),
        ("0 0 9 * * *", "has 6; there are no seconds and no years"),
        ("@reboot", "of those with @ there are @hourly"),
        (&"1,".repeat(101), "at most 200 characters"),
    ] {
        let refused = cron.parse::<Cron>().unwrap_err();
        assert_eq!(refused.field, None, "{cron}");
        assert!(refused.to_string().contains(says), "{cron}: {refused}");
    }
    // What is not a number in one field is told in the others as well: a word of weekdays is none of months.
    assert_eq!("0 0 * mon *".parse::<Cron>().unwrap_err().field, Some(Month));
}
