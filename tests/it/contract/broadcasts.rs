//! [`belfry::ports::broadcasts::Broadcasts`].

use belfry::ports::broadcasts::{
    ActivePage, ChunkAt, MOST_ACTIVE, MOST_BROADCASTS, MOST_CHUNK_BYTES, MOST_CLEARED, Made,
};
use belfry::ports::deliveries::Owner;
use belfry_domain::BroadcastId;
use belfry_domain::broadcast::{Audience, Broadcast, Halt, NewBroadcast, Plan, State};

use super::fixture::acme;
use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    a_broadcast_is_kept_whole_with_what_it_says,
    the_same_again_is_new_until_something_changes,
    others_see_nothing_of_it,
    only_over_what_was_read_before_is_written,
    there_are_so_many_of_an_owner_and_no_more,
    what_is_removed_is_gone_with_what_it_says,
    those_to_look_after_are_read_in_pages_each_once,
    rows_are_kept_as_they_were_put_last,
    rows_are_cleared_by_their_upload_and_number,
);

pub(crate) fn named(owner: &Owner, key: &str) -> Broadcast {
    let Owner { tenant, environment } = owner.clone();
    let new = NewBroadcast {
        id: BroadcastId::http(&tenant, &environment, "main", key),
        tenant,
        environment,
        name: key.to_owned(),
        class: "marketing".into(),
        by: "key_1".into(),
        plan: Plan::default(),
    };
    Broadcast::new(new, START)
}

fn other() -> Owner {
    Owner { tenant: "other".into(), environment: "live".into() }
}

/// With an audience, so that somebody has to look after it.
fn ready(it: &Broadcast) -> Broadcast {
    let audience = Audience { upload: 1, chunks: 1, rows: 1, bad: 0 };
    it.begin_upload(START).unwrap().seal(audience, Vec::new(), START).unwrap()
}

impl Harness {
    pub(crate) async fn create_new(&self, it: &Broadcast) {
        assert_eq!(self.store.create_broadcast(it, "{}").await.unwrap(), Made::New);
    }

    /// Creates it and gives it an audience.
    async fn create_ready(&self, owner: &Owner, key: &str) -> Broadcast {
        let it = named(owner, key);
        self.create_new(&it).await;
        let begun = it.begin_upload(START).unwrap();
        assert!(self.store.write_broadcast(&begun).await.unwrap());
        let ready = ready(&it);
        assert!(self.store.write_broadcast(&ready).await.unwrap());
        ready
    }

    async fn stands(&self, it: &Broadcast) -> bool {
        let owner = Owner { tenant: it.tenant.clone(), environment: it.environment.clone() };
        self.store.broadcast(&owner, it.id).await.unwrap().as_ref() == Some(it)
    }
}

async fn a_broadcast_is_kept_whole_with_what_it_says(h: Harness) {
    let it = Broadcast { name: "\"ä\" \u{1f514}\n".into(), ..named(&acme(), "k") };
    let says = "{\"data\":{\"n\":9007199254740993,\"t\":\"\\u0000\"}}".repeat(2_000);
    assert_eq!(h.store.create_broadcast(&it, &says).await.unwrap(), Made::New);
    assert!(h.stands(&it).await);
    assert_eq!(h.store.said_by(&acme(), it.id).await.unwrap(), Some(says));
    assert_eq!(h.store.broadcasts(&acme()).await.unwrap(), std::slice::from_ref(&it));
    assert_eq!(h.store.active_broadcasts(None, 10).await.unwrap(), ActivePage::default());
}

async fn the_same_again_is_new_until_something_changes(h: Harness) {
    let it = named(&acme(), "k");
    for _ in 0..2 {
        h.create_new(&it).await;
    }
    let known = |says: &str| Made::Known(Box::new(it.clone()), says.to_owned());
    assert_eq!(h.store.create_broadcast(&it, "{ }").await.unwrap(), known("{}"));
    let later = Broadcast { created_at: belfry_domain::UnixMs(START.0 + 1), ..it.clone() };
    assert_eq!(h.store.create_broadcast(&later, "{}").await.unwrap(), known("{}"));
    let begun = it.begin_upload(START).unwrap();
    assert!(h.store.write_broadcast(&begun).await.unwrap());
    let known = Made::Known(Box::new(begun.clone()), "{}".into());
    assert_eq!(h.store.create_broadcast(&it, "{}").await.unwrap(), known);
    assert!(h.stands(&begun).await);
}

async fn others_see_nothing_of_it(h: Harness) {
    let it = named(&acme(), "k");
    h.create_new(&it).await;
    let elsewhere = Owner { environment: "test".into(), ..acme() };
    for stranger in [other(), elsewhere] {
        assert_eq!(h.store.broadcast(&stranger, it.id).await.unwrap(), None);
        assert_eq!(h.store.said_by(&stranger, it.id).await.unwrap(), None);
        assert_eq!(h.store.broadcasts(&stranger).await.unwrap(), []);
        // Of the same key there is another one.
        let theirs = named(&stranger, "k");
        h.create_new(&theirs).await;
        assert_eq!(h.store.broadcasts(&stranger).await.unwrap(), [theirs]);
    }
    assert_eq!(h.store.broadcasts(&acme()).await.unwrap(), [it]);
}

async fn only_over_what_was_read_before_is_written(h: Harness) {
    let it = named(&acme(), "k");
    assert!(!h.store.write_broadcast(&it.begin_upload(START).unwrap()).await.unwrap(), "there is none");
    h.create_new(&it).await;
    let (one, two) = (it.begin_upload(START).unwrap(), it.abort(Halt::Asked, START).unwrap());
    assert_eq!((one.rev, two.rev), (2, 2));
    for _ in 0..2 {
        assert!(h.store.write_broadcast(&one).await.unwrap(), "a lost answer is asked for again");
    }
    assert!(!h.store.write_broadcast(&two).await.unwrap());
    assert!(!h.store.write_broadcast(&it).await.unwrap());
    assert!(h.stands(&one).await);
    let next = one.abort(Halt::Asked, START).unwrap();
    assert!(h.store.write_broadcast(&next).await.unwrap());
    assert!(!h.store.write_broadcast(&one).await.unwrap());
    assert!(h.stands(&next).await);
}

async fn there_are_so_many_of_an_owner_and_no_more(h: Harness) {
    let mut all = Vec::new();
    for number in 0..MOST_BROADCASTS as i64 {
        let it =
            Broadcast { created_at: belfry_domain::UnixMs(START.0 + number), ..named(&acme(), &format!("k{number}")) };
        h.create_new(&it).await;
        all.insert(0, it);
    }
    assert_eq!(h.store.create_broadcast(&named(&acme(), "more"), "{}").await.unwrap(), Made::TooMany);
    assert_eq!(h.store.create_broadcast(&all[3], "{}").await.unwrap(), Made::New, "one that is there is no more");
    assert_eq!(h.store.create_broadcast(&named(&other(), "more"), "{}").await.unwrap(), Made::New);
    assert_eq!(h.store.broadcasts(&acme()).await.unwrap(), all);
    assert!(h.store.remove_broadcast(&all[7]).await.unwrap());
    h.create_new(&named(&acme(), "more")).await;
}

async fn what_is_removed_is_gone_with_what_it_says(h: Harness) {
    let it = h.create_ready(&acme(), "k").await;
    let stale = named(&acme(), "k");
    assert!(!h.store.remove_broadcast(&stale).await.unwrap());
    assert!(h.stands(&it).await);
    for _ in 0..2 {
        assert!(h.store.remove_broadcast(&it).await.unwrap());
    }
    assert_eq!(h.store.broadcast(&acme(), it.id).await.unwrap(), None);
    assert_eq!(h.store.said_by(&acme(), it.id).await.unwrap(), None);
    assert_eq!(h.store.broadcasts(&acme()).await.unwrap(), []);
    assert_eq!(h.store.active_broadcasts(None, 10).await.unwrap(), ActivePage::default());
    assert!(!h.store.write_broadcast(&it.start(START).unwrap()).await.unwrap());
}

/// By pages of `limit`.
async fn all_active(h: &Harness, limit: u16) -> Vec<Broadcast> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = h.store.active_broadcasts(after.as_deref(), limit).await.unwrap();
        assert!(page.broadcasts.len() <= usize::from(limit.clamp(1, MOST_ACTIVE)));
        all.extend(page.broadcasts);
        after = page.next;
        if after.is_none() {
            all.sort_by_key(|it| it.id);
            return all;
        }
    }
}

async fn those_to_look_after_are_read_in_pages_each_once(h: Harness) {
    let mut expected = Vec::new();
    for number in 0..12 {
        let owner = Owner { tenant: format!("tenant-{}", number % 5), environment: "live".into() };
        let it = h.create_ready(&owner, &format!("k{number}")).await;
        expected.push(if number % 2 == 0 { it.start(START).unwrap() } else { it });
        h.create_new(&named(&owner, &format!("draft {number}"))).await;
    }
    for it in expected.iter().step_by(2) {
        assert!(h.store.write_broadcast(it).await.unwrap());
    }
    expected.sort_by_key(|it| it.id);
    for limit in [0, 1, 2, 5, 12, 1_000] {
        assert_eq!(all_active(&h, limit).await, expected, "{limit}");
    }
    assert_eq!(h.store.active_broadcasts(Some("no place"), 64).await.unwrap().broadcasts.len(), expected.len());
    // One that is over is there until its rows are cleared away.
    let aborted = expected[0].abort(Halt::Asked, START).unwrap();
    assert!(h.store.write_broadcast(&aborted).await.unwrap());
    assert!(all_active(&h, 5).await.contains(&aborted));
    let cleared = aborted.cleared(0);
    assert_eq!(cleared.state, State::Aborted(Halt::Asked));
    assert!(h.store.write_broadcast(&cleared).await.unwrap());
    assert_eq!(all_active(&h, 5).await, expected[1..]);
}

fn chunk(key: &str, upload: u32, chunk: u32) -> ChunkAt {
    ChunkAt { broadcast: named(&acme(), key).id, upload, chunk }
}

async fn rows_are_kept_as_they_were_put_last(h: Harness) {
    let at = chunk("k", 1, 0);
    assert_eq!(h.store.rows(at).await.unwrap(), None);
    let large = "ä\n".repeat(MOST_CHUNK_BYTES / 3);
    for rows in ["{\"id\":\"1\"}\n\u{1f514}", &large] {
        for _ in 0..2 {
            h.store.put_rows(at, rows).await.unwrap();
        }
        assert_eq!(h.store.rows(at).await.unwrap().as_deref(), Some(rows));
    }
    for beside in [chunk("k", 1, 1), chunk("k", 2, 0), chunk("other", 1, 0)] {
        assert_eq!(h.store.rows(beside).await.unwrap(), None);
    }
}

async fn rows_are_cleared_by_their_upload_and_number(h: Harness) {
    for at in (0..40).map(|number| chunk("k", 1, number)).chain([chunk("k", 2, 3), chunk("other", 1, 3)]) {
        h.store.put_rows(at, "rows").await.unwrap();
    }
    for _ in 0..2 {
        h.store.clear_rows(chunk("k", 1, 0).broadcast, 1, 3..39).await.unwrap();
    }
    for number in 0..40 {
        let there = h.store.rows(chunk("k", 1, number)).await.unwrap().is_some();
        assert_eq!(there, number < 3 || number == 39, "{number}");
    }
    for beside in [chunk("k", 2, 3), chunk("other", 1, 3)] {
        assert!(h.store.rows(beside).await.unwrap().is_some());
    }
    // More than may go at once: the first of them.
    h.store.put_rows(chunk("k", 1, MOST_CLEARED), "rows").await.unwrap();
    h.store.clear_rows(chunk("k", 1, 0).broadcast, 1, 0..MOST_CLEARED + 1).await.unwrap();
    assert_eq!(h.store.rows(chunk("k", 1, 0)).await.unwrap(), None);
    assert!(h.store.rows(chunk("k", 1, MOST_CLEARED)).await.unwrap().is_some());
}
