//! From draft to done, whatever is said in between.

use std::time::Duration;

use belfry_domain::UnixMs;
use belfry_domain::broadcast::{
    Audience, Broadcast, Counts, Cursor, Halt, LEFT_ALONE, Leftover, LocalSend, MOST_CHUNKS, MOST_LEFTOVERS, MOST_TOLD,
    Plan, RESERVED, Refused, RowProblem, State,
};

use super::{NOW, audience, draft, ready, running, step};

fn problems(count: u64) -> Vec<RowProblem> {
    (1..=count).map(|line| RowProblem { line, field: "email".into(), wrong: "is no address".into() }).collect()
}

#[test]
fn a_broadcast_goes_from_draft_to_done() {
    let it = running(Plan::default(), 2);
    assert!(it.is_walked_by("node-1") && !it.is_walked_by("node-2"));
    assert!(it.is_due(NOW));
    let half = it.stepped(step(10, 1, 0), NOW);
    assert_eq!((half.state, half.left(), half.cursor), (State::Running, 10, Cursor { chunk: 1, row: 0 }));
    let done = half.stepped(step(10, 2, 0), UnixMs(NOW.0 + 5));
    assert_eq!((done.state, done.ended_at, done.walker.as_ref()), (State::Done, Some(UnixMs(NOW.0 + 5)), None));
    assert_eq!(done.counts, Counts { walked: 20, accepted: 20, ..Counts::default() });
    // Addresses are not kept for longer than they are needed.
    assert_eq!((done.audience, done.leftovers.clone()), (None, vec![Leftover { upload: 1, chunks: 2 }]));
    assert!(done.is_active());
    assert!(!done.cleared(0).is_active());
}

#[test]
fn every_change_has_the_next_rev_and_a_word_that_changes_nothing_has_none() {
    let it = running(Plan::default(), 2);
    for (before, next) in [
        (&it, it.taken("node-2")),
        (&it, it.renewed()),
        (&it, it.stepped(step(1, 0, 1), NOW)),
        (&it, it.stepped(step(20, 2, 0), NOW)),
        (&it, it.lost_rows()),
        (&it, it.pause(NOW).unwrap()),
        (&it, it.abort(Halt::Asked, NOW).unwrap()),
    ] {
        assert_eq!(next.rev, before.rev + 1, "{next:?}");
    }
    assert_eq!(it.start(UnixMs(1)).unwrap(), it);
    let paused = it.pause(NOW).unwrap();
    assert_eq!(paused.pause(UnixMs(1)).unwrap(), paused);
    let aborted = it.abort(Halt::Asked, NOW).unwrap();
    assert_eq!(aborted.abort(Halt::LeftAlone, UnixMs(1)).unwrap(), aborted);
    let done = it.stepped(step(20, 2, 0), NOW);
    assert_eq!(done.start(UnixMs(1)).unwrap(), done, "a second start of what is through does nothing");
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let draft = draft(Plan::default());
    let uploading = draft.begin_upload(NOW).unwrap();
    let ready = ready(Plan::default(), 2);
    let running = running(Plan::default(), 2);
    let paused = running.pause(NOW).unwrap();
    let done = running.stepped(step(20, 2, 0), NOW);
    let aborted = paused.abort(Halt::Asked, NOW).unwrap();
    let of = |it: &Broadcast| {
        let no = |done: Result<Broadcast, Refused>| done.err();
        [no(it.start(NOW)), no(it.pause(NOW)), no(it.abort(Halt::Asked, NOW)), no(it.begin_upload(NOW))]
    };
    assert_eq!(of(&draft), [Some(Refused::NoAudience), Some(Refused::NotRunning), None, None]);
    assert_eq!(of(&uploading), [Some(Refused::Uploading), Some(Refused::NotRunning), None, None]);
    assert_eq!(of(&ready), [None, Some(Refused::NotRunning), None, None]);
    assert_eq!(of(&running), [None, None, None, Some(Refused::Running)]);
    assert_eq!(of(&paused), [None, None, None, None]);
    assert_eq!(of(&done), [None, Some(Refused::Over), Some(Refused::Over), None]);
    assert_eq!(of(&aborted), [Some(Refused::Over), Some(Refused::Over), None, Some(Refused::Over)]);
}

#[test]
fn a_canary_pauses_by_itself_and_goes_on_when_somebody_says_so() {
    let it = running(Plan { canary: Some(3), ..Plan::default() }, 2);
    assert_eq!(it.until_canary(), Some(3));
    let first = it.stepped(step(2, 0, 2), NOW);
    assert_eq!((first.state, first.until_canary()), (State::Running, Some(1)));
    let out = first.stepped(step(1, 0, 3), NOW);
    assert_eq!((out.state, out.walker.as_ref()), (State::Paused(Halt::Canary), None));
    let on = out.start(NOW).unwrap();
    assert_eq!((on.state, on.until_canary()), (State::Running, None));
    // One that was paused by hand before its end is one still.
    let again = first.pause(NOW).unwrap().start(NOW).unwrap();
    assert_eq!(again.until_canary(), Some(1));
    // One that is the whole audience ends it.
    let all = running(Plan { canary: Some(20), ..Plan::default() }, 2);
    assert_eq!(all.stepped(step(20, 2, 0), NOW).state, State::Done);
}

#[test]
fn an_upload_counts_once_it_is_complete_and_takes_the_place_of_the_one_before() {
    let begun = draft(Plan::default()).begin_upload(NOW).unwrap();
    assert_eq!((begun.state, begun.audience), (State::Draft, None));
    let again = begun.begin_upload(NOW).unwrap();
    assert_eq!(again.leftovers, [Leftover { upload: 1, chunks: RESERVED }], "what was reserved may have been written");
    assert_eq!(begun.reserve(1).unwrap().upload.unwrap().reserved, 2 * RESERVED);
    assert_eq!(again.reserve(1), Err(Refused::Overtaken));
    assert_eq!(again.seal(audience(1, 2), Vec::new(), NOW), Err(Refused::Overtaken));
    assert_eq!(again.give_up_upload(1), Err(Refused::Overtaken));
    let sealed = again.seal(audience(2, 2), problems(30), NOW).unwrap();
    assert_eq!((sealed.state, sealed.bad.len()), (State::Ready, MOST_TOLD));
    assert_eq!(sealed.seal(audience(2, 2), Vec::new(), NOW).unwrap(), sealed, "said twice it is sealed once");
    // A file that is given again later: its walk begins at the first row, and who was accepted is recognised.
    let walked = sealed.start(NOW).unwrap().taken("node-1").stepped(step(5, 0, 5), NOW).pause(NOW).unwrap();
    let third = walked.begin_upload(NOW).unwrap();
    assert_eq!((third.audience, third.start(NOW)), (sealed.audience, Err(Refused::Uploading)));
    let third = third.seal(audience(3, 4), Vec::new(), NOW).unwrap();
    assert_eq!((third.state, third.cursor, third.counts), (State::Ready, Cursor::default(), Counts::default()));
    assert_eq!(third.leftovers.last(), Some(&Leftover { upload: 2, chunks: 2 }));
    // One that broke off leaves the audience as it was.
    let broken = third.begin_upload(NOW).unwrap().give_up_upload(4).unwrap();
    assert_eq!((broken.audience, broken.upload), (third.audience, None));
    assert!(broken.start(NOW).is_ok());
}

#[test]
fn a_file_without_a_row_is_no_audience() {
    let begun = ready(Plan::default(), 2).begin_upload(NOW).unwrap();
    let none = Audience { upload: 2, chunks: 0, rows: 0, bad: 7 };
    let sealed = begun.seal(none, problems(7), NOW).unwrap();
    assert_eq!((sealed.state, sealed.audience, sealed.bad.len()), (State::Draft, None, 7));
    assert_eq!(sealed.start(NOW), Err(Refused::NoAudience));
    assert_eq!(sealed.leftovers, [Leftover { upload: 1, chunks: 2 }, Leftover { upload: 2, chunks: RESERVED }]);
}

#[test]
fn uploads_and_what_they_leave_are_bounded() {
    let mut it = draft(Plan::default());
    while let Ok(next) = it.begin_upload(NOW) {
        it = next;
    }
    assert_eq!(it.begin_upload(NOW), Err(Refused::Clearing));
    let full = Broadcast { audience: Some(audience(99, 1)), ..it.clone() };
    assert!(full.abort(Halt::Asked, NOW).unwrap().leftovers.len() <= MOST_LEFTOVERS, "an end has room for all");
    let before = it.leftovers.clone();
    let part = it.cleared(10);
    assert_eq!((part.leftovers[0].chunks, &part.leftovers[1..]), (10, &before[1..]));
    assert_eq!(part.cleared(0).leftovers, before[1..]);
    assert!(part.cleared(0).begin_upload(NOW).is_ok());
    let mut it = draft(Plan::default()).begin_upload(NOW).unwrap();
    while let Ok(next) = it.reserve(1) {
        it = next;
    }
    assert_eq!(it.reserve(1), Err(Refused::TooLarge));
    assert!(it.upload.unwrap().reserved >= MOST_CHUNKS);
}

#[test]
fn who_takes_over_has_a_higher_fence_and_only_so_many_refusals_are_told() {
    let it = running(Plan::default(), 2);
    let other = it.taken("node-2");
    assert_eq!((it.fence, other.fence), (1, 2));
    assert!(other.is_walked_by("node-2") && !other.is_walked_by("node-1"));
    let mut refused = step(1, 0, 1);
    refused.refused = problems(1);
    let mut next = it;
    for _ in 0..50 {
        next = next.stepped(refused.clone(), NOW);
    }
    assert_eq!((next.refused.len(), next.counts.walked), (MOST_TOLD, 50));
}

#[test]
fn what_nobody_touches_is_aborted_in_the_end() {
    let later = |by: Duration| NOW.plus(by);
    let short = LEFT_ALONE.checked_sub(Duration::from_millis(1)).unwrap();
    let ready = ready(Plan::default(), 2);
    assert!(!ready.is_left_alone(later(short)));
    assert!(ready.is_left_alone(later(LEFT_ALONE)));
    assert!(!running(Plan::default(), 2).is_left_alone(later(LEFT_ALONE)), "it is walked");
    let aborted = ready.abort(Halt::LeftAlone, later(LEFT_ALONE)).unwrap();
    assert_eq!((aborted.state, aborted.audience), (State::Aborted(Halt::LeftAlone), None));
    assert!(!aborted.is_left_alone(later(2 * LEFT_ALONE)));
}

#[test]
fn the_end_is_estimated_by_the_speed_since_it_went_on() {
    let it = running(Plan::default(), 10);
    assert_eq!(it.estimated_end(NOW), None, "nothing is known yet");
    let at = |ms: i64| UnixMs(NOW.0 + ms);
    let half = it.stepped(step(50, 5, 0), at(1_000));
    assert_eq!(half.estimated_end(at(1_000)), Some(at(2_000)));
    let again = half.pause(at(1_000)).unwrap();
    assert_eq!(again.estimated_end(at(5_000)), None);
    let again = again.start(at(9_000)).unwrap().taken("node-1").stepped(step(10, 6, 0), at(10_000));
    assert_eq!(again.estimated_end(at(10_000)), Some(at(14_000)));
}

#[test]
fn it_begins_no_earlier_than_it_may() {
    let later = UnixMs(NOW.0 + 1_000);
    let it = running(Plan { starts_at: Some(later), ..Plan::default() }, 2);
    assert!(!it.is_due(NOW) && it.is_due(later));
    assert_eq!(it.stretch.map(|stretch| stretch.since), Some(later));
}

#[test]
fn a_local_time_is_a_moment_of_its_own_in_every_zone() {
    let local = LocalSend { at: "2026-12-24T09:00:00".into(), zone: "Europe/Stockholm".into() };
    let hour = |zone: Option<&str>| local.moment(zone).map(|at| at.0 / 3_600_000 % 24);
    assert_eq!(hour(None), Some(8));
    assert_eq!(hour(Some("America/New_York")), Some(14));
    assert_eq!(hour(Some("Asia/Tokyo")), Some(0));
    assert_eq!(hour(Some("No/Where")), Some(8), "a zone that is none is as good as none");
}
