//! [`belfry::ports::admin::ApiKeys`].

use belfry::ports::admin::{ApiKey, ApiKeys, Can};
use belfry_domain::UnixMs;

use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    a_key_is_found_by_its_hash_and_by_its_name,
    the_same_id_again_replaces_nothing,
    keys_are_listed_oldest_first,
    a_revoked_key_stays_listed_with_its_first_time,
);

pub(crate) fn key(n: i64) -> ApiKey {
    ApiKey {
        id: format!("key_{n:012x}"),
        name: Some(format!("number {n}")),
        tenant: "acme".into(),
        environment: "live".into(),
        namespace: "main".into(),
        can: vec![Can::Send, Can::Read],
        hash: format!("{n:064x}"),
        operator: false,
        created_at: UnixMs(START.0 + n),
        revoked_at: None,
    }
}

async fn create(h: &Harness, key: &ApiKey) {
    ApiKeys::create(&*h.store, key.clone()).await.unwrap();
}

async fn list(h: &Harness) -> Vec<ApiKey> {
    ApiKeys::list(&*h.store).await.unwrap()
}

async fn a_key_is_found_by_its_hash_and_by_its_name(h: Harness) {
    assert_eq!(h.store.by_hash(&key(1).hash).await.unwrap(), None);
    create(&h, &key(1)).await;
    create(&h, &key(2)).await;
    assert_eq!(h.store.by_hash(&key(1).hash).await.unwrap(), Some(key(1)));
    assert_eq!(h.store.by_hash(&key(3).hash).await.unwrap(), None);
    assert_eq!(h.store.by_id(&key(2).id).await.unwrap(), Some(key(2)));
    assert_eq!(h.store.by_id(&key(3).id).await.unwrap(), None);
}

async fn the_same_id_again_replaces_nothing(h: Harness) {
    create(&h, &key(1)).await;
    let other = ApiKey { tenant: "evil".into(), hash: key(2).hash, ..key(1) };
    create(&h, &other).await;
    assert_eq!(list(&h).await, [key(1)]);
    assert_eq!(h.store.by_hash(&other.hash).await.unwrap(), None);
}

async fn keys_are_listed_oldest_first(h: Harness) {
    assert_eq!(list(&h).await, []);
    for n in [3, 1, 2] {
        create(&h, &key(n)).await;
    }
    assert_eq!(list(&h).await, [key(1), key(2), key(3)]);
}

async fn a_revoked_key_stays_listed_with_its_first_time(h: Harness) {
    create(&h, &key(1)).await;
    create(&h, &key(2)).await;
    let revoked = ApiKey { revoked_at: Some(UnixMs(7)), ..key(1) };
    for at in [7, 9] {
        assert!(h.store.revoke(&key(1).id, UnixMs(at)).await.unwrap());
        assert_eq!(list(&h).await, [revoked.clone(), key(2)]);
        assert_eq!(h.store.by_hash(&key(1).hash).await.unwrap(), Some(revoked.clone()));
        assert_eq!(h.store.by_id(&key(1).id).await.unwrap(), Some(revoked.clone()));
    }
    assert!(!h.store.revoke("key_absent", UnixMs(7)).await.unwrap());
    // Making it again does not bring it back.
    create(&h, &key(1)).await;
    assert_eq!(list(&h).await[0], revoked);
}
