//! [`belfry::ports::gatherings::Gatherings`].

use std::collections::BTreeSet;
use std::time::Duration;

use belfry::ports::deliveries::Owner;
use belfry::ports::gatherings::{DueSlot, DueSlots, Join, MOST_LOOKED_AT};
use belfry_domain::gather::{Gather, Slot};
use belfry_domain::{DeliveryId, Key, KeyKind, UnixMs, child_key};

use super::fixture::acme;
use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    the_first_item_opens_a_slot_and_others_join_it,
    a_repeat_joins_nothing_anew,
    after_its_end_another_slot_opens,
    a_full_slot_is_due_at_once_and_the_next_opens_another,
    groups_gather_apart,
    what_is_due_comes_longest_due_first_in_pages_and_says_when_the_next_is,
    items_leave_and_with_the_last_the_slot_goes,
    what_came_back_late_makes_its_slot_due_again,
    what_is_put_off_is_due_later,
    many_at_once_lose_nobody,
);

const SPAN: Duration = Duration::from_secs(3_600);
const SPAN_MS: i64 = 3_600_000;

fn at(ms: i64) -> UnixMs {
    UnixMs(START.0 + ms)
}

fn group(number: u16) -> Key {
    // All over the shards.
    child_key(KeyKind::Gather, &[&number.to_be_bytes()])
}

fn item(number: u32) -> DeliveryId {
    DeliveryId(child_key(KeyKind::Delivery, &[&number.to_be_bytes()]))
}

fn join(group_number: u16, item_number: u32, ms: i64) -> Join {
    Join {
        group: group(group_number),
        item: item(item_number),
        owner: acme(),
        at: at(ms),
        gather: Gather { span: SPAN, most: 100 },
    }
}

fn slot(group_number: u16, until: i64) -> Slot {
    Slot { group: group(group_number), until: at(until) }
}

fn due(group_number: u16, until: i64) -> DueSlot {
    DueSlot { slot: slot(group_number, until), owner: acme() }
}

impl Harness {
    async fn join(&self, one: Join) -> Slot {
        self.store.join(vec![one]).await.unwrap().remove(0)
    }

    async fn due_slots(&self, ms: i64) -> DueSlots {
        self.store.due(at(ms), 10).await.unwrap()
    }

    async fn items_of(&self, slot: Slot) -> BTreeSet<DeliveryId> {
        self.store.items(slot).await.unwrap().into_iter().collect()
    }
}

fn items(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<DeliveryId> {
    numbers.into_iter().map(item).collect()
}

async fn the_first_item_opens_a_slot_and_others_join_it(h: Harness) {
    let batch = vec![join(1, 1, 0), join(2, 2, 5), join(1, 3, 9)];
    let ends = h.store.join(batch).await.unwrap();
    assert_eq!(ends, [slot(1, SPAN_MS), slot(2, SPAN_MS + 5), slot(1, SPAN_MS)]);
    // Until a moment before its end.
    assert_eq!(h.join(join(1, 4, SPAN_MS - 1)).await, slot(1, SPAN_MS));
    assert_eq!(h.items_of(slot(1, SPAN_MS)).await, items([1, 3, 4]));
    assert_eq!(h.items_of(slot(2, SPAN_MS + 5)).await, items([2]));
}

async fn a_repeat_joins_nothing_anew(h: Harness) {
    let gather = Gather { span: SPAN, most: 2 };
    for ms in [0, 700] {
        assert_eq!(h.join(Join { gather, ..join(1, 1, ms) }).await, slot(1, SPAN_MS));
    }
    assert_eq!(h.items_of(slot(1, SPAN_MS)).await, items([1]));
    assert_eq!(h.due_slots(700).await, DueSlots { slots: vec![], next: Some(at(SPAN_MS)) });
}

async fn after_its_end_another_slot_opens(h: Harness) {
    h.join(join(1, 1, 0)).await;
    assert_eq!(h.join(join(1, 2, SPAN_MS)).await, slot(1, 2 * SPAN_MS));
    assert_eq!(h.items_of(slot(1, SPAN_MS)).await, items([1]));
    assert_eq!(h.items_of(slot(1, 2 * SPAN_MS)).await, items([2]));
    // A clock that is behind opens none of its own.
    assert_eq!(h.join(join(1, 3, SPAN_MS - 1)).await, slot(1, 2 * SPAN_MS));
}

async fn a_full_slot_is_due_at_once_and_the_next_opens_another(h: Harness) {
    let full = |number, ms| Join { gather: Gather { span: SPAN, most: 2 }, ..join(1, number, ms) };
    assert_eq!(h.join(full(1, 0)).await, slot(1, SPAN_MS));
    assert_eq!(h.due_slots(0).await.slots, []);
    assert_eq!(h.join(full(2, 10)).await, slot(1, SPAN_MS));
    assert_eq!(h.due_slots(9).await.slots, []);
    assert_eq!(h.due_slots(10).await.slots, [due(1, SPAN_MS)]);
    // Another one, also in the same moment.
    assert_eq!(h.join(full(3, 0)).await, slot(1, SPAN_MS + 1));
    assert_eq!(h.items_of(slot(1, SPAN_MS)).await, items([1, 2]));
    assert_eq!(h.items_of(slot(1, SPAN_MS + 1)).await, items([3]));
}

async fn groups_gather_apart(h: Harness) {
    let other = Owner { tenant: "\"ä\" \u{1f514}".into(), environment: "test".into() };
    h.join(join(1, 1, 0)).await;
    h.join(Join { owner: other.clone(), ..join(2, 1, 0) }).await;
    let found = h.due_slots(SPAN_MS).await.slots;
    let owners: Vec<_> = found.iter().map(|one| (one.slot, one.owner.clone())).collect();
    let mut expected = vec![(slot(1, SPAN_MS), acme()), (slot(2, SPAN_MS), other)];
    expected.sort_by_key(|(slot, _)| owners.iter().position(|(one, _)| one == slot));
    assert_eq!(owners, expected);
}

async fn what_is_due_comes_longest_due_first_in_pages_and_says_when_the_next_is(h: Harness) {
    for number in 0..5_u16 {
        h.join(join(number, number.into(), i64::from(number))).await;
    }
    assert_eq!(h.due_slots(SPAN_MS - 1).await, DueSlots { slots: vec![], next: Some(at(SPAN_MS)) });
    let found = h.due_slots(SPAN_MS + 2).await;
    assert_eq!(found.slots, [due(0, SPAN_MS), due(1, SPAN_MS + 1), due(2, SPAN_MS + 2)]);
    assert_eq!(found.next, Some(at(SPAN_MS + 3)));
    let page = h.store.due(at(SPAN_MS + 9), 2).await.unwrap();
    assert_eq!(page, DueSlots { slots: vec![due(0, SPAN_MS), due(1, SPAN_MS + 1)], next: None });
}

async fn items_leave_and_with_the_last_the_slot_goes(h: Harness) {
    for number in 1..=3 {
        h.join(join(1, number, 0)).await;
    }
    let it = slot(1, SPAN_MS);
    for _ in 0..2 {
        h.store.leave(it, vec![item(1), item(9)]).await.unwrap();
        assert_eq!(h.items_of(it).await, items([2, 3]));
        assert_eq!(h.due_slots(SPAN_MS).await.slots, [due(1, SPAN_MS)]);
    }
    for _ in 0..2 {
        h.store.leave(it, vec![item(2), item(3)]).await.unwrap();
        assert_eq!(h.items_of(it).await, items([]));
        assert_eq!(h.due_slots(SPAN_MS).await, DueSlots::default());
    }
    // Nothing of it is in the way of the next.
    assert_eq!(h.join(join(1, 4, 10)).await, slot(1, SPAN_MS + 10));
    h.store.leave(slot(7, 7), vec![]).await.unwrap();
    assert_eq!(h.items_of(slot(1, SPAN_MS + 10)).await, items([4]));
}

async fn what_came_back_late_makes_its_slot_due_again(h: Harness) {
    h.join(join(1, 1, 0)).await;
    h.store.put_off(slot(1, SPAN_MS), at(9 * SPAN_MS)).await.unwrap();
    for number in [1, 2, 2] {
        h.store.rejoin(due(1, SPAN_MS), item(number)).await.unwrap();
    }
    assert_eq!(h.items_of(slot(1, SPAN_MS)).await, items([1, 2]));
    // Of one that is gone.
    h.store.rejoin(due(2, SPAN_MS - 5), item(3)).await.unwrap();
    assert_eq!(h.due_slots(SPAN_MS).await.slots, [due(2, SPAN_MS - 5), due(1, SPAN_MS)]);
    // Nobody joins what came back.
    assert_eq!(h.join(join(2, 4, 0)).await, slot(2, SPAN_MS));
}

async fn what_is_put_off_is_due_later(h: Harness) {
    h.join(join(1, 1, 0)).await;
    h.store.put_off(slot(1, SPAN_MS), at(2 * SPAN_MS)).await.unwrap();
    assert_eq!(h.due_slots(SPAN_MS).await, DueSlots { slots: vec![], next: Some(at(2 * SPAN_MS)) });
    assert_eq!(h.due_slots(2 * SPAN_MS).await.slots, [due(1, SPAN_MS)]);
    // One that is gone stays it.
    h.store.put_off(slot(2, SPAN_MS), at(0)).await.unwrap();
    assert_eq!(h.due_slots(SPAN_MS).await.slots, []);
}

/// As many tasks as there are items, into few slots with room for ten each.
async fn many_at_once_lose_nobody(h: Harness) {
    const ITEMS: u32 = 95;
    let one = |number| Join { gather: Gather { span: SPAN, most: 10 }, ..join(1, number, 0) };
    let joins = (0..ITEMS).map(|number| h.store.join(vec![one(number)]));
    let ends = futures::future::try_join_all(joins).await.unwrap();
    let slots: BTreeSet<Slot> = ends.into_iter().map(|slots| slots[0]).collect();
    let mut found = BTreeSet::new();
    for it in &slots {
        let here = h.items_of(*it).await;
        assert!((1..=10).contains(&here.len()), "{} in one slot", here.len());
        found.extend(here);
    }
    assert_eq!((found, slots.len()), (items(0..ITEMS), 10));
    // A look is bounded, however many there are.
    for number in 0..u32::from(MOST_LOOKED_AT) + 20 {
        h.store.rejoin(due(3, SPAN_MS), item(number)).await.unwrap();
    }
    assert_eq!(h.items_of(slot(3, SPAN_MS)).await.len(), usize::from(MOST_LOOKED_AT));
}
