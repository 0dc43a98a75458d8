//! What is kept, and written over what was read.

use belfry::ports::deliveries::Owner;
use belfry::ports::schedules::{MOST_LISTED, MOST_SCHEDULES, Paused, Ran, Run, Schedule, Wrote};
use belfry_domain::UnixMs;
use belfry_domain::schedule::Missed;

use super::{of, schedule};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, in_memory, in_redis};
use crate::contract::on_every_store;
use crate::contract::recipients::other;

on_every_store!(
    what_is_kept_comes_back_whole,
    it_is_written_only_over_what_was_read,
    the_same_write_again_says_the_same,
    the_list_is_in_the_order_of_names_and_pages_hold_each_once,
);

async fn what_is_kept_comes_back_whole(h: Harness) {
    let refused = Ran::Refused { errors: vec![("/template".into(), "there is no \"ä\"".into())] };
    let full = Schedule {
        missed: Missed::CatchUp { most: 7 },
        until: Some(UnixMs(9)),
        paused: Some(Paused { since: UnixMs(3), by: "key_2".into() }),
        last: Some(Run { slot: UnixMs(4), at: UnixMs(5), outcome: refused }),
        missed_count: u64::from(u32::MAX),
        ..schedule("weekly.report_1-a", 5)
    };
    assert_eq!(h.scheduled(&acme(), &full.name).await, None);
    h.keep(&full).await;
    assert_eq!(h.scheduled(&acme(), &full.name).await.unwrap().schedule, full);
    let elsewhere = Owner { environment: "test".into(), ..acme() };
    for stranger in [other(), elsewhere] {
        assert_eq!(h.scheduled(&stranger, &full.name).await, None);
        assert_eq!(h.store.schedules(&stranger, None, 10).await.unwrap(), Default::default());
    }
}

async fn it_is_written_only_over_what_was_read(h: Harness) {
    let (first, second) = (schedule("daily", 5), Schedule { by: "key_2".into(), ..schedule("daily", 9) });
    let write =
        async |before: Option<&str>, next| h.store.write_schedule(&acme(), "daily", before, next).await.unwrap();
    assert_eq!(write(Some("{}"), Some(&first)).await, Wrote::Other, "there is none");
    assert_eq!(write(None, Some(&first)).await, Wrote::Done);
    assert_eq!(write(None, Some(&second)).await, Wrote::Other, "another was first");
    assert_eq!(write(Some("{}"), None).await, Wrote::Other);
    let read = h.scheduled(&acme(), "daily").await.unwrap();
    assert_eq!(read.schedule, first);
    assert_eq!(write(Some(&read.written), Some(&second)).await, Wrote::Done);
    assert_eq!(write(Some(&read.written), None).await, Wrote::Other, "it was written since");
    assert_eq!(h.scheduled(&acme(), "daily").await.unwrap().schedule, second);
    assert_eq!(h.scheduled(&acme(), "dail").await, None);
}

async fn the_same_write_again_says_the_same(h: Harness) {
    let (first, second) = (schedule("daily", 5), schedule("daily", 6));
    let mut before = None::<String>;
    for next in [Some(&first), Some(&second), None] {
        for _ in 0..3 {
            let wrote = h.store.write_schedule(&acme(), "daily", before.as_deref(), next).await;
            assert_eq!(wrote, Ok(Wrote::Done));
            assert_eq!(h.scheduled(&acme(), "daily").await.map(|kept| kept.schedule).as_ref(), next);
        }
        before = h.scheduled(&acme(), "daily").await.map(|kept| kept.written);
    }
}

async fn all_names(h: &Harness, limit: u16) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = h.store.schedules(&acme(), after.as_deref(), limit).await.unwrap();
        assert!(page.schedules.len() <= usize::from(limit));
        all.extend(page.schedules.into_iter().map(|one| one.name));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

async fn the_list_is_in_the_order_of_names_and_pages_hold_each_once(h: Harness) {
    let names = ["a", "a-", "a.b", "a0", "aa", "ab", "b", "z_", "zz"];
    for name in names.iter().rev() {
        h.keep(&schedule(name, 5)).await;
        h.keep(&of(&other(), &format!("{name}x"), 5)).await;
    }
    for limit in [1, 2, 4, 9, 10, MOST_LISTED] {
        assert_eq!(all_names(&h, limit).await, names, "{limit}");
    }
    let whole = h.store.schedules(&acme(), None, 9).await.unwrap();
    assert_eq!((whole.schedules.len(), whole.next), (9, None));
    assert_eq!(h.store.schedules(&acme(), None, 0).await.unwrap().schedules.len(), 1);
    // The very one that a page ended with.
    let written = h.scheduled(&acme(), "a0").await.unwrap().written;
    h.store.write_schedule(&acme(), "a0", Some(&written), None).await.unwrap();
    let rest = h.store.schedules(&acme(), Some("a0"), 2).await.unwrap();
    assert_eq!(rest.schedules.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["aa", "ab"]);
}

#[tokio::test]
async fn an_owner_has_so_many_and_no_more() {
    for h in [in_memory(), in_redis()] {
        let keep = |number: usize| {
            let (h, new) = (&h, schedule(&format!("s{number}"), 5));
            async move { h.store.write_schedule(&acme(), &new.name, None, Some(&new)).await.unwrap() }
        };
        for hundred in (0..MOST_SCHEDULES).step_by(100) {
            let wrote = futures::future::join_all((hundred..hundred + 100).map(keep)).await;
            assert!(wrote.iter().all(|wrote| *wrote == Wrote::Done));
        }
        assert_eq!(keep(MOST_SCHEDULES).await, Wrote::TooMany);
        // Another owner's, and one that is there already.
        h.keep(&of(&other(), "daily", 5)).await;
        assert_eq!(keep(0).await, Wrote::Done);
        let written = h.scheduled(&acme(), "s0").await.unwrap().written;
        assert_eq!(h.store.write_schedule(&acme(), "s0", Some(&written), None).await, Ok(Wrote::Done));
        assert_eq!(keep(MOST_SCHEDULES).await, Wrote::Done);
    }
}
