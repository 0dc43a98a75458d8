//! [`belfry::ports::pauses::Pauses`].

use belfry::ports::pauses::{KeptPause, MOST_PAUSES, PausePut};
use belfry_domain::delivery::{DeferWhy, State};
use belfry_domain::pause::{Pause, Paused};
use belfry_domain::{ChannelKind, DeliveryId, UnixMs};

use super::fixture::{ask, due_in, intent, intent_of, next};
use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    a_pause_is_kept_whole_until_it_is_lifted,
    the_same_again_changes_nothing,
    a_later_word_takes_the_place_of_an_earlier_and_keeps_its_since_while_that_stands,
    pauses_of_other_things_and_tenants_stand_beside_each_other,
    what_is_over_is_dropped_once,
    there_are_so_many_and_no_more,
    what_waits_is_read_in_pages_each_once,
    what_waits_comes_with_its_notification_where_that_is_asked_for,
);

fn at(ms: i64) -> UnixMs {
    UnixMs(START.0 + ms)
}

/// Of everybody's, since the beginning and for ever.
pub(crate) fn pause_of(paused: Paused) -> KeptPause {
    let pause = Pause { paused, tenant: None, since: START, until: None, forced: false };
    KeptPause { pause, by: "key_1".into(), why: None }
}

fn class(name: &str) -> KeptPause {
    pause_of(Paused::Class(name.into()))
}

fn until(it: KeptPause, ms: i64) -> KeptPause {
    KeptPause { pause: Pause { until: Some(at(ms)), ..it.pause }, ..it }
}

impl Harness {
    /// As it is kept, and whether it is new.
    pub(crate) async fn pause(&self, new: &KeptPause) -> (KeptPause, bool) {
        match self.store.pause(new).await.unwrap() {
            PausePut::Kept { pause, is_new } => (*pause, is_new),
            PausePut::TooMany => panic!("there is room"),
        }
    }

    async fn paused(&self) -> Vec<KeptPause> {
        self.store.pauses().await.unwrap()
    }
}

async fn a_pause_is_kept_whole_until_it_is_lifted(h: Harness) {
    let pause = Pause {
        paused: Paused::Group("\"ä\" \u{1f514}\0".into()),
        tenant: Some("acme".into()),
        since: START,
        until: Some(at(100)),
        forced: true,
    };
    let full = KeptPause { pause, by: "key_1".into(), why: Some("they write\nin anger".into()) };
    assert_eq!(h.paused().await, []);
    assert_eq!(h.pause(&full).await, (full.clone(), true));
    assert_eq!(h.paused().await, std::slice::from_ref(&full));
    // What is over is for the one who asks to tell.
    h.clock.step(1_000_000);
    assert_eq!(h.paused().await, std::slice::from_ref(&full));
    assert_eq!(h.store.resume(full.id()).await.unwrap(), Some(full.clone()));
    assert_eq!(h.store.resume(full.id()).await.unwrap(), None);
    assert_eq!(h.paused().await, []);
}

async fn the_same_again_changes_nothing(h: Harness) {
    let it = class("marketing");
    assert_eq!(h.pause(&it).await, (it.clone(), true));
    for _ in 0..2 {
        assert_eq!(h.pause(&it).await, (it.clone(), false));
    }
    assert_eq!(h.paused().await, [it]);
}

async fn a_later_word_takes_the_place_of_an_earlier_and_keeps_its_since_while_that_stands(h: Harness) {
    h.pause(&until(class("marketing"), 100)).await;
    let later = |ms: i64| {
        let it = class("marketing");
        let pause = Pause { since: at(ms), until: Some(at(ms + 50)), forced: true, ..it.pause };
        KeptPause { pause, by: "key_2".into(), why: Some("again".into()) }
    };
    let mut expected = later(99);
    expected.pause.since = START;
    assert_eq!(h.pause(&later(99)).await, (expected.clone(), false));
    assert_eq!(h.paused().await, [expected]);
    // That one was over.
    assert_eq!(h.pause(&later(149)).await, (later(149), true));
    assert_eq!(h.paused().await, [later(149)]);
    // One without an end stands for ever.
    let open = KeptPause { pause: Pause { until: None, ..later(150).pause }, ..later(150) };
    let mut expected = open.clone();
    expected.pause.since = at(149);
    assert_eq!(h.pause(&open).await, (expected.clone(), false));
    let mut ends = later(900_000_000_000);
    ends.pause.since = at(149);
    assert_eq!(h.pause(&later(900_000_000_000)).await, (ends, false));
}

async fn pauses_of_other_things_and_tenants_stand_beside_each_other(h: Harness) {
    let theirs = |it: KeptPause| KeptPause { pause: Pause { tenant: Some("acme".into()), ..it.pause }, ..it };
    let mut all = vec![
        pause_of(Paused::All),
        theirs(pause_of(Paused::All)),
        pause_of(Paused::Channel(ChannelKind::Email)),
        pause_of(Paused::Provider("email".into())),
        class("email"),
        theirs(class("email")),
        pause_of(Paused::Template("email".into())),
        pause_of(Paused::Group("email".into())),
    ];
    for one in &all {
        assert!(h.pause(one).await.1);
    }
    all.sort_by_key(KeptPause::id);
    assert_eq!(h.paused().await, all);
    let lifted = all.remove(3);
    assert_eq!(h.store.resume(lifted.id()).await.unwrap(), Some(lifted));
    assert_eq!(h.paused().await, all);
}

async fn what_is_over_is_dropped_once(h: Harness) {
    let mut over = vec![until(class("a"), 100), until(class("b"), 50)];
    for one in over.iter().chain(&[until(class("c"), 101), class("d")]) {
        h.pause(one).await;
    }
    assert_eq!(h.store.drop_over(at(49)).await.unwrap(), []);
    over.sort_by_key(KeptPause::id);
    assert_eq!(h.store.drop_over(at(100)).await.unwrap(), over);
    assert_eq!(h.store.drop_over(at(100)).await.unwrap(), []);
    let mut left = vec![until(class("c"), 101), class("d")];
    left.sort_by_key(KeptPause::id);
    assert_eq!(h.paused().await, left);
}

async fn there_are_so_many_and_no_more(h: Harness) {
    for number in 0..MOST_PAUSES {
        h.pause(&class(&format!("class-{number}"))).await;
    }
    assert_eq!(h.store.pause(&class("one-more")).await.unwrap(), PausePut::TooMany);
    // One of them may still be changed, and one be lifted for another.
    assert!(!h.pause(&until(class("class-7"), 100)).await.1);
    h.store.resume(class("class-7").id()).await.unwrap();
    assert!(h.pause(&class("one-more")).await.1);
    assert_eq!(h.paused().await.len(), MOST_PAUSES);
}

/// All that waits, read by pages of `limit`.
async fn all_waiting(h: &Harness, limit: u16) -> Vec<DeliveryId> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = h.store.waiting(after.as_deref(), limit, false).await.unwrap();
        assert!(page.waiting.len() <= usize::from(limit));
        assert!(page.waiting.iter().all(|(_, notification)| notification.is_none()));
        all.extend(page.waiting.iter().map(|(one, _)| one.id));
        after = page.next;
        if after.is_none() {
            all.sort_unstable();
            return all;
        }
    }
}

async fn what_waits_is_read_in_pages_each_once(h: Harness) {
    assert_eq!(all_waiting(&h, 10).await, []);
    let mut expected = Vec::new();
    for number in 0..9 {
        let tenant = if number % 2 == 0 { "acme" } else { "other" };
        let new = due_in(intent_of(&h, &format!("k{number}"), tenant, 2), number * 100_000);
        expected.extend(new.deliveries.iter().map(|one| one.id));
        h.create(new).await;
    }
    expected.sort_unstable();
    for limit in [1, 2, 7, 100] {
        assert_eq!(all_waiting(&h, limit).await, expected, "{limit}");
    }
    // What is being sent does not wait; what was put off does.
    let claim = h.claims(ask(1, 1)).await.claims.remove(0);
    expected.retain(|id| *id != claim.delivery.id);
    assert_eq!(all_waiting(&h, 3).await, expected);
    let until = at(200_000_000_000);
    let mut held = next(&claim.delivery, State::Deferred { until, why: DeferWhy::Paused });
    held.due_at = until;
    h.settle(&claim, &held).await;
    expected.push(held.id);
    expected.sort_unstable();
    assert_eq!(all_waiting(&h, 3).await, expected);
    assert_eq!(h.store.waiting(Some("no place"), 100, false).await.unwrap().waiting.len(), expected.len());
}

async fn what_waits_comes_with_its_notification_where_that_is_asked_for(h: Harness) {
    for number in 0..5 {
        let mut new = intent(&h, &format!("k{number}"));
        new.notification.group = Some(format!("group {number}"));
        h.create(new).await;
    }
    let page = h.store.waiting(None, 100, true).await.unwrap();
    let mut groups: Vec<_> = page
        .waiting
        .iter()
        .map(|(one, notification)| {
            let notification = notification.as_ref().unwrap();
            assert_eq!(notification.id, one.notification);
            notification.group.clone().unwrap()
        })
        .collect();
    groups.sort_unstable();
    assert_eq!(groups, [0, 1, 2, 3, 4].map(|number| format!("group {number}")));
}
