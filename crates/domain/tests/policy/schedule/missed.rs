//! Slots at which nobody was there.

use belfry_domain::UnixMs;
use belfry_domain::schedule::{Due, MOST_CAUGHT_UP, Missed};

use super::{ms, rhythm, text};

fn sent(due: &Due) -> Vec<String> {
    due.send.iter().copied().map(text).collect()
}

#[test]
fn what_is_on_time_is_sent_by_every_policy() {
    let daily = rhythm("0 9 * * *", "UTC");
    let slot = ms("2026-03-02T09:00:00Z");
    for policy in [Missed::Skip, Missed::CatchUp { most: 1 }, Missed::CatchUp { most: 100 }] {
        for now in ["2026-03-02T09:00:00Z", "2026-03-02T09:05:00Z"] {
            let next = Some(ms("2026-03-03T09:00:00Z"));
            assert_eq!(daily.due(slot, policy, ms(now)), Due { send: vec![slot], missed: 0, and_older: false, next });
        }
        let early = daily.due(slot, policy, UnixMs(slot.0 - 1));
        assert_eq!(early, Due { send: Vec::new(), missed: 0, and_older: false, next: Some(slot) });
    }
}

#[test]
fn skip_lets_go_of_what_was_missed() {
    let daily = rhythm("0 9 * * *", "UTC");
    let late = daily.due(ms("2026-03-02T09:00:00Z"), Missed::Skip, ms("2026-03-04T09:05:00.001Z"));
    assert_eq!(late, Due { send: Vec::new(), missed: 3, and_older: false, next: Some(ms("2026-03-05T09:00:00Z")) });
    // Of several within the grace the latest.
    let often = rhythm("* * * * *", "UTC");
    let late = often.due(ms("2026-03-02T09:00:00Z"), Missed::Skip, ms("2026-03-02T09:03:30Z"));
    assert_eq!((sent(&late), late.missed), (vec!["2026-03-02T09:03:00Z".to_owned()], 3));
    assert_eq!(late.next, Some(ms("2026-03-02T09:04:00Z")));
}

#[test]
fn catching_up_is_bounded_by_number_and_by_age() {
    let daily = rhythm("0 9 * * *", "UTC");
    let from = ms("2026-03-02T09:00:00Z");
    let late = daily.due(from, Missed::CatchUp { most: 3 }, ms("2026-03-06T12:00:00Z"));
    assert_eq!(sent(&late), ["2026-03-04T09:00:00Z", "2026-03-05T09:00:00Z", "2026-03-06T09:00:00Z"]);
    assert_eq!((late.missed, late.next), (2, Some(ms("2026-03-07T09:00:00Z"))));
    // A month later the last week is made up for, and nothing is known of what was before.
    let late = daily.due(from, Missed::CatchUp { most: 100 }, ms("2026-04-02T08:00:00Z"));
    assert_eq!((sent(&late).len(), late.missed, late.and_older), (7, 0, true));
    assert_eq!(sent(&late)[0], "2026-03-26T09:00:00Z");
    // Whatever is asked for.
    let often = rhythm("* * * * *", "UTC");
    let late = often.due(from, Missed::CatchUp { most: u16::MAX }, ms("2030-01-01T00:00:00Z"));
    assert_eq!(late.send.len(), usize::from(MOST_CAUGHT_UP));
    assert_eq!(late.missed, 7 * 24 * 60 - u32::from(MOST_CAUGHT_UP));
    assert_eq!(late.next, Some(ms("2030-01-01T00:01:00Z")));
}

#[test]
fn after_the_end_there_is_no_next() {
    let mut daily = rhythm("0 9 * * *", "UTC");
    daily.until = Some(ms("2026-03-03T12:00:00Z"));
    let last = daily.due(ms("2026-03-02T09:00:00Z"), Missed::CatchUp { most: 5 }, ms("2026-03-05T09:00:00Z"));
    assert_eq!((sent(&last).len(), last.missed, last.next), (2, 0, None));
}
