//! [`belfry::ports::outbox::OutboxMessages`].

use belfry::ports::deliveries::Owner;
use belfry::ports::message::Rendered;
use belfry::ports::outbox::{OutboxMessage, OutboxMessages};
use belfry_domain::{ChannelKind, DeliveryId};

use super::fixture::{acme, id_of};
use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    messages_are_listed_newest_first_under_growing_numbers,
    a_second_copy_is_a_second_message,
    addresses_compare_without_case,
    only_those_after_a_number_are_listed,
    beyond_the_number_to_keep_the_oldest_goes,
    clearing_is_by_owner_and_address,
    numbers_never_come_back,
);

pub(crate) fn message(tenant: &str, to: &str) -> OutboxMessage {
    OutboxMessage {
        seq: 0,
        at: START,
        tenant: tenant.into(),
        environment: "live".into(),
        channel: ChannelKind::Sms,
        notification: id_of("k"),
        delivery: DeliveryId::of(id_of("k"), "sms", "phone"),
        send_key: "00".into(),
        to: to.into(),
        message: Rendered::Sms { text: "hello".into() },
        collapse: None,
    }
}

async fn add(h: &Harness, message: OutboxMessage) -> u64 {
    h.store.add(message, 100).await.unwrap()
}

async fn list(h: &Harness, to: Option<&str>, after: Option<u64>, limit: u16) -> Vec<OutboxMessage> {
    OutboxMessages::list(&*h.store, &acme(), to, after, limit).await.unwrap()
}

fn seqs(messages: &[OutboxMessage]) -> Vec<u64> {
    messages.iter().map(|one| one.seq).collect()
}

async fn messages_are_listed_newest_first_under_growing_numbers(h: Harness) {
    let mut expected = Vec::new();
    for to in ["a@x.example", "b@x.example", "c@x.example"] {
        let seq = add(&h, message("acme", to)).await;
        expected.insert(0, OutboxMessage { seq, ..message("acme", to) });
    }
    let listed = list(&h, None, None, 100).await;
    assert_eq!(listed, expected);
    assert!(listed.windows(2).all(|pair| pair[0].seq > pair[1].seq));
    assert_eq!(list(&h, None, None, 2).await, expected[..2]);
}

async fn a_second_copy_is_a_second_message(h: Harness) {
    add(&h, message("acme", "a@x.example")).await;
    add(&h, message("acme", "a@x.example")).await;
    assert_eq!(list(&h, Some("a@x.example"), None, 100).await.len(), 2);
}

async fn addresses_compare_without_case(h: Harness) {
    add(&h, message("acme", "Ann@X.Example")).await;
    add(&h, message("acme", "ÅSA@x.example")).await;
    assert_eq!(list(&h, Some("aNN@x.eXAMPLE"), None, 100).await[0].to, "Ann@X.Example");
    assert_eq!(list(&h, Some("åsa@x.example"), None, 100).await.len(), 1);
    assert_eq!(list(&h, Some("ann"), None, 100).await, []);
}

async fn only_those_after_a_number_are_listed(h: Harness) {
    let first = add(&h, message("acme", "a@x.example")).await;
    assert_eq!(list(&h, None, Some(first), 100).await, []);
    let second = add(&h, message("acme", "a@x.example")).await;
    let third = add(&h, message("acme", "b@x.example")).await;
    assert_eq!(seqs(&list(&h, None, Some(first), 100).await), [third, second]);
    assert_eq!(seqs(&list(&h, Some("a@x.example"), Some(first), 100).await), [second]);
    assert_eq!(list(&h, None, Some(u64::MAX), 100).await, []);
}

async fn beyond_the_number_to_keep_the_oldest_goes(h: Harness) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.insert(0, h.store.add(message("acme", "a@x.example"), 3).await.unwrap());
    }
    assert_eq!(seqs(&list(&h, None, None, 100).await), all[..3]);
    h.store.add(message("acme", "a@x.example"), 1).await.unwrap();
    assert_eq!(list(&h, None, None, 100).await.len(), 1);
}

async fn clearing_is_by_owner_and_address(h: Harness) {
    for to in ["a@x.example", "A@x.example", "b@x.example"] {
        add(&h, message("acme", to)).await;
        add(&h, message("other", to)).await;
    }
    assert_eq!(h.store.clear(&acme(), Some("a@X.example")).await.unwrap(), 2);
    assert_eq!(h.store.clear(&acme(), Some("a@x.example")).await.unwrap(), 0);
    assert_eq!(h.store.clear(&acme(), None).await.unwrap(), 1);
    assert_eq!(list(&h, None, None, 100).await, []);
    let stranger = Owner { tenant: "stranger".into(), environment: "live".into() };
    assert_eq!(h.store.clear(&stranger, None).await.unwrap(), 0);
    let other = Owner { tenant: "other".into(), ..acme() };
    assert_eq!(OutboxMessages::list(&*h.store, &other, None, None, 100).await.unwrap().len(), 3);
    // What was cleared no longer counts towards what is kept.
    for _ in 0..2 {
        h.store.add(message("acme", "c@x.example"), 5).await.unwrap();
    }
    assert_eq!(OutboxMessages::list(&*h.store, &other, None, None, 100).await.unwrap().len(), 3);
}

async fn numbers_never_come_back(h: Harness) {
    let first = add(&h, message("acme", "a@x.example")).await;
    h.store.clear(&acme(), None).await.unwrap();
    assert!(add(&h, message("acme", "a@x.example")).await > first);
}
