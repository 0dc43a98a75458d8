//! [`belfry::ports::caps::Caps`].

mod sequences;

use std::time::Duration;

use belfry::ports::caps::{Ended, Room, TakeAsk, TakeEnd, Taken};
use belfry_domain::caps::{Fate, Full};
use belfry_domain::{Key, KeyKind, UnixMs, child_key};
use futures::future::join_all;

use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    there_is_room_up_to_the_limit_and_again_once_one_is_out_of_the_window,
    a_place_counts_until_its_call_has_ended_at_the_latest,
    a_take_whose_answer_was_lost_takes_nothing_more,
    all_places_of_a_call_are_taken_or_none,
    what_reached_nobody_is_given_back,
    what_ended_counts_from_then,
    an_end_says_nothing_of_other_places,
    only_what_has_ended_makes_a_cap_full_for_good,
    a_place_that_counts_no_more_is_no_repeat,
    what_counts_no_more_does_not_pile_up,
    of_a_hundred_at_once_as_many_as_the_limit_get_in,
    a_lowered_limit_waits_for_all_that_are_beyond_it,
    many_are_answered_in_order,
);

const WINDOW: Duration = Duration::from_secs(60);
/// Of every call here.
const LONGEST: Duration = Duration::from_secs(10);

fn call(number: u32) -> Key {
    child_key(KeyKind::Take, &[&number.to_be_bytes()])
}

fn room(name: &str, limit: u32) -> Room {
    Room { ledger: child_key(KeyKind::Cap, &[name.as_bytes()]), limit, window: WINDOW }
}

fn ask(rooms: &[Room], number: u32) -> TakeAsk {
    let mut rooms = rooms.to_vec();
    rooms.sort_by_key(|room| room.ledger);
    TakeAsk { rooms, reservation: call(number), longest: LONGEST }
}

/// So many seconds after the beginning.
fn at(seconds: i64) -> UnixMs {
    UnixMs(START.0 + 1_000 * seconds)
}

impl Harness {
    async fn take(&self, rooms: &[Room], number: u32) -> Taken {
        let taken = self.store.take(vec![ask(rooms, number)]).await.unwrap();
        assert_eq!(taken.len(), 1);
        taken[0]
    }

    async fn end_call(&self, rooms: &[Room], number: u32, fate: Fate) {
        let ledgers = rooms.iter().map(|room| room.ledger).collect();
        let ended = self.store.end(vec![TakeEnd { ledgers, reservation: call(number), fate }]).await.unwrap();
        assert_eq!(ended, [Ended::Done]);
    }

    fn full(&self, until: UnixMs, open_until: Option<UnixMs>) -> Taken {
        Taken::Full { at: 0, full: Full { until, open_until }, now: self.now() }
    }
}

async fn there_is_room_up_to_the_limit_and_again_once_one_is_out_of_the_window(h: Harness) {
    let cap = [room("cap", 2)];
    for number in 0..2 {
        assert_eq!(h.take(&cap, number).await, Taken::All);
        h.end_call(&cap, number, Fate::Counts).await;
        h.clock.step(1_000);
    }
    assert_eq!(h.take(&cap, 2).await, h.full(at(60), None));
    assert_eq!(h.take(&[room("other", 2)], 2).await, Taken::All);
    h.clock.step(57_999);
    assert_eq!(h.take(&cap, 2).await, h.full(at(60), None));
    h.clock.step(1);
    assert_eq!(h.take(&cap, 2).await, Taken::All);
    assert_eq!(h.take(&cap, 3).await, h.full(at(61), Some(at(70))));
}

async fn a_place_counts_until_its_call_has_ended_at_the_latest(h: Harness) {
    let cap = [room("cap", 1)];
    assert_eq!(h.take(&cap, 0).await, Taken::All);
    // Its worker died.
    h.clock.step(69_999);
    assert_eq!(h.take(&cap, 1).await, h.full(at(70), None));
    h.clock.step(1);
    assert_eq!(h.take(&cap, 1).await, Taken::All);
}

async fn a_take_whose_answer_was_lost_takes_nothing_more(h: Harness) {
    let caps = [room("cap", 2), room("other", 2)];
    for _ in 0..5 {
        assert_eq!(h.take(&caps, 0).await, Taken::All);
        h.clock.step(1_000);
    }
    assert_eq!(h.take(&caps, 1).await, Taken::All);
    // The latest of the first began at four seconds: so long it may last.
    assert_eq!(h.take(&[caps[0]], 2).await, h.full(at(74), Some(at(14))));
    // A repeat that comes in where there is no room any more.
    assert_eq!(h.take(&caps, 1).await, Taken::All);
}

async fn all_places_of_a_call_are_taken_or_none(h: Harness) {
    let mut caps = ["a", "b", "c"].map(|name| room(name, 1));
    caps.sort_by_key(|room| room.ledger);
    caps[1].limit = 5;
    assert_eq!(h.take(&[caps[2]], 0).await, Taken::All);
    let full = Full { until: at(70), open_until: Some(at(10)) };
    for _ in 0..3 {
        assert_eq!(h.take(&caps, 1).await, Taken::Full { at: 2, full, now: h.now() });
    }
    // Nothing of the first two is gone.
    assert_eq!(h.take(&[caps[0]], 2).await, Taken::All);
    for number in 3..8 {
        assert_eq!(h.take(&[caps[1]], number).await, Taken::All);
    }
    assert_eq!(h.take(&[caps[1]], 8).await, h.full(at(70), Some(at(10))));
}

async fn what_reached_nobody_is_given_back(h: Harness) {
    let caps = [room("cap", 1), room("other", 1)];
    for number in 0..3 {
        assert_eq!(h.take(&caps, number).await, Taken::All);
        for _ in 0..2 {
            h.end_call(&caps, number, Fate::GivenBack).await;
        }
    }
}

async fn what_ended_counts_from_then(h: Harness) {
    let cap = [room("cap", 1)];
    assert_eq!(h.take(&cap, 0).await, Taken::All);
    h.clock.step(3_000);
    h.end_call(&cap, 0, Fate::Counts).await;
    assert_eq!(h.take(&cap, 1).await, h.full(at(63), None));
    // Said again, or late: it does not last longer for that.
    h.clock.step(30_000);
    h.end_call(&cap, 0, Fate::Counts).await;
    assert_eq!(h.take(&cap, 1).await, h.full(at(63), None));
}

async fn an_end_says_nothing_of_other_places(h: Harness) {
    let cap = [room("cap", 1)];
    h.end_call(&cap, 0, Fate::Counts).await;
    h.end_call(&cap, 0, Fate::GivenBack).await;
    assert_eq!(h.take(&cap, 0).await, Taken::All);
    h.end_call(&cap, 1, Fate::GivenBack).await;
    h.end_call(&cap, 1, Fate::Counts).await;
    assert_eq!(h.take(&cap, 1).await, h.full(at(70), Some(at(10))));
}

async fn only_what_has_ended_makes_a_cap_full_for_good(h: Harness) {
    let cap = [room("cap", 2)];
    for number in 0..2 {
        assert_eq!(h.take(&cap, number).await, Taken::All);
        h.clock.step(1_000);
    }
    assert_eq!(h.take(&cap, 2).await, h.full(at(70), Some(at(10))));
    h.end_call(&cap, 0, Fate::Counts).await;
    assert_eq!(h.take(&cap, 2).await, h.full(at(62), Some(at(11))));
    h.end_call(&cap, 1, Fate::Counts).await;
    assert_eq!(h.take(&cap, 2).await, h.full(at(62), None));
}

async fn a_place_that_counts_no_more_is_no_repeat(h: Harness) {
    let cap = [room("cap", 1)];
    assert_eq!(h.take(&cap, 0).await, Taken::All);
    h.clock.step(70_000);
    assert_eq!(h.take(&cap, 1).await, Taken::All);
    // The first may still lie there.
    assert_eq!(h.take(&cap, 0).await, h.full(at(140), Some(at(80))));
    h.end_call(&cap, 0, Fate::Counts).await;
    assert_eq!(h.take(&cap, 2).await, h.full(at(140), Some(at(80))));
}

async fn what_counts_no_more_does_not_pile_up(h: Harness) {
    let cap = [room("cap", 300)];
    let hundred = async |from: u32| {
        let asks = (from..from + 100).map(|number| ask(&cap, number)).collect();
        assert_eq!(h.store.take(asks).await.unwrap(), vec![Taken::All; 100]);
    };
    for from in [0, 100, 200] {
        hundred(from).await;
    }
    h.clock.step(70_000);
    for from in [300, 400, 500] {
        hundred(from).await;
    }
    assert_eq!(h.take(&cap, 600).await, h.full(at(140), Some(at(80))));
}

async fn of_a_hundred_at_once_as_many_as_the_limit_get_in(h: Harness) {
    let caps = [room("cap", 10), room("wider", 60), room("wide", 50)];
    let taken = join_all((0..100).map(|number| h.take(&caps, number))).await;
    assert_eq!(taken.iter().filter(|one| **one == Taken::All).count(), 10);
    // The wider ones have ten as well: what was refused has left nothing there.
    let rest = join_all((100..200).map(|number| h.take(&caps[2..], number))).await;
    assert_eq!(rest.iter().filter(|one| **one == Taken::All).count(), 40);
}

async fn a_lowered_limit_waits_for_all_that_are_beyond_it(h: Harness) {
    for number in 0..5 {
        assert_eq!(h.take(&[room("cap", 5)], number).await, Taken::All);
        h.end_call(&[room("cap", 5)], number, Fate::Counts).await;
        h.clock.step(1_000);
    }
    assert_eq!(h.take(&[room("cap", 2)], 5).await, h.full(at(63), None));
    assert_eq!(h.take(&[room("cap", 6)], 5).await, Taken::All);
}

async fn many_are_answered_in_order(h: Harness) {
    let rooms = |number: u32| (0..3).map(move |one| room(&format!("{number}-{one}"), 1)).collect::<Vec<_>>();
    let asks: Vec<TakeAsk> = (0..128).map(|number| ask(&rooms(number), number)).collect();
    let even = asks.iter().step_by(2).cloned().collect();
    assert_eq!(h.store.take(even).await.unwrap(), vec![Taken::All; 64]);
    let other = |ask: &TakeAsk| TakeAsk { reservation: call(1_000), ..ask.clone() };
    let others = asks.iter().map(other).collect();
    let taken = h.store.take(others).await.unwrap();
    let expected: Vec<bool> = (0..128).map(|number| number % 2 == 1).collect();
    assert_eq!(taken.iter().map(|one| *one == Taken::All).collect::<Vec<_>>(), expected);
    let end = |ask: &TakeAsk| TakeEnd {
        ledgers: ask.rooms.iter().map(|room| room.ledger).collect(),
        reservation: ask.reservation,
        fate: Fate::GivenBack,
    };
    let all = asks.iter().chain(&asks.iter().map(other).collect::<Vec<_>>()).map(end).collect::<Vec<_>>();
    for some in all.chunks(128) {
        assert_eq!(h.store.end(some.to_vec()).await.unwrap(), vec![Ended::Done; 128]);
    }
    assert_eq!(h.store.take(asks).await.unwrap(), vec![Taken::All; 128]);
    assert_eq!(h.store.take(vec![ask(&[], 1)]).await.unwrap(), [Taken::All]);
    assert_eq!((h.store.take(vec![]).await.unwrap(), h.store.end(vec![]).await.unwrap()), (vec![], vec![]));
}
