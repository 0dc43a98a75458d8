use belfry::ports::deliveries::{Owner, Written};
use belfry_domain::{Delivery, DeliveryId, State, UnixMs};

use crate::contract::fixture::{acme, ask, ended, id_of, intent_of, next};
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    only_the_owner_reads_a_record,
    a_record_is_found_by_each_of_its_deliveries,
    load_leaves_out_what_is_absent,
    absent_inputs_are_none,
    receipts_are_overdue_when_their_window_has_closed,
    a_probe_is_written_and_read,
);

async fn only_the_owner_reads_a_record(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 1)).await;
    let delivery = h.record("k").await.unwrap().deliveries.remove(0);
    for (tenant, environment) in [("acme", "test"), ("other", "live"), ("", "")] {
        let foreign = Owner { tenant: tenant.into(), environment: environment.into() };
        assert_eq!(h.store.read(&foreign, id_of("k")).await.unwrap(), None);
        assert_eq!(h.store.read_by_delivery(&foreign, delivery.id).await.unwrap(), None);
    }
    assert_eq!(h.store.read(&acme(), id_of("absent")).await.unwrap(), None);
}

async fn a_record_is_found_by_each_of_its_deliveries(h: Harness) {
    h.create(intent_of(&h, "j", "acme", 3)).await;
    h.create(intent_of(&h, "k", "acme", 3)).await;
    let record = h.record("k").await.unwrap();
    for delivery in &record.deliveries {
        assert_eq!(h.store.read_by_delivery(&acme(), delivery.id).await.unwrap().as_ref(), Some(&record));
    }
}

async fn load_leaves_out_what_is_absent(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 2)).await;
    let mut stored = h.record("k").await.unwrap().deliveries;
    let absent = DeliveryId::of(id_of("k"), "email", "nobody");
    let mut loaded = h.store.load(vec![stored[1].id, absent, stored[0].id]).await.unwrap();
    loaded.sort_by_key(|one| one.id);
    stored.sort_by_key(|one| one.id);
    assert_eq!(loaded, stored);
    assert_eq!(h.store.load(Vec::new()).await.unwrap(), []);
}

async fn absent_inputs_are_none(h: Harness) {
    assert_eq!(h.store.inputs(id_of("absent")).await.unwrap(), None);
}

async fn receipts_are_overdue_when_their_window_has_closed(h: Harness) {
    h.create(intent_of(&h, "k", "acme", 4)).await;
    let claims = h.claims(ask(1, 4)).await.claims;
    let mut open = Vec::new();
    for (claim, ms) in claims.iter().zip([300, 100, 200]) {
        let receipt_until = Some(UnixMs(h.now().0 + ms));
        let next = Delivery { receipt_until, ..next(&claim.delivery, State::Accepted) };
        assert_eq!(h.settle(claim, &next).await, Written::Done);
        open.push(next);
    }
    let overdue = |ms, limit| {
        let (store, now) = (h.store.clone(), UnixMs(h.now().0 + ms));
        async move {
            let found = store.receipts_overdue(now, limit).await.unwrap();
            found.into_iter().map(|one| one.receipt_until.unwrap().0 - now.0 + ms).collect::<Vec<_>>()
        }
    };
    assert_eq!(overdue(99, 10).await, [0; 0]);
    assert_eq!(overdue(200, 10).await, [100, 200]);
    assert_eq!(overdue(1_000, 2).await, [100, 200]);
    assert_eq!(h.apply(&ended(&h, &open[1], State::Accepted)).await, Written::Done);
    assert_eq!(h.apply(&ended(&h, &open[2], State::Delivered)).await, Written::Done);
    assert_eq!(overdue(1_000, 10).await, [300]);
}

async fn a_probe_is_written_and_read(h: Harness) {
    for _ in 0..3 {
        h.store.probe().await.unwrap();
        h.clock.step(-1);
    }
}
