//! [`belfry::ports::admin::Installation`].

use std::time::Duration;

use belfry::ports::admin::KeptTemplate;
use belfry::ports::attachments::Attached;
use belfry::ports::deliveries::PurgeAsk;
use belfry_domain::State;

use super::fixture::{WINDOW_MS, intent, with_template};
use super::harness::Harness;
use super::on_every_store;

pub fn files(text: &str) -> KeptTemplate {
    KeptTemplate { files: text.to_owned(), attached: Vec::new() }
}

on_every_store!(
    whoever_asks_first_makes_the_secret,
    a_template_reads_back_by_its_version,
    a_version_in_use_is_not_purged,
    what_versions_share_is_kept_once,
);

async fn whoever_asks_first_makes_the_secret(h: Harness) {
    let (one, other) = tokio::join!(h.store.secret([1; 32]), h.store.secret([2; 32]));
    let secret = one.unwrap();
    assert_eq!(other.unwrap(), secret);
    assert!(secret == [1; 32] || secret == [2; 32]);
    assert_eq!(h.store.secret([3; 32]).await.unwrap(), secret);
}

async fn a_template_reads_back_by_its_version(h: Harness) {
    assert_eq!(h.store.template("v1").await.unwrap(), None);
    h.store.keep_template("v1", &files("files of one")).await.unwrap();
    h.store.keep_template("v2", &files("files of two")).await.unwrap();
    // The version is made from the files: keeping it again changes nothing.
    h.store.keep_template("v1", &files("files of one")).await.unwrap();
    assert_eq!(h.store.template("v1").await.unwrap(), Some(files("files of one")));
    assert_eq!(h.store.template("v2").await.unwrap(), Some(files("files of two")));
}

async fn a_version_in_use_is_not_purged(h: Harness) {
    h.store.keep_template("v1", &files("files")).await.unwrap();
    h.create(with_template(intent(&h, "k"), "v1")).await;
    h.finish(1, State::Failed).await;
    h.clock.step(WINDOW_MS - 1);
    let ask = PurgeAsk { now: h.now(), keep_record: Duration::from_secs(1), limit: 100 };
    h.store.purge(ask).await.unwrap();
    assert!(h.claims(super::fixture::ask(2, 1)).await.claims.is_empty());
    assert_eq!(h.store.template("v1").await.unwrap(), Some(files("files")));
}

async fn what_versions_share_is_kept_once(h: Harness) {
    let attached = |seed: u8| Attached::of_template(vec![seed; 5_000]);
    let first = KeptTemplate { attached: vec![attached(1), attached(2)], ..files("one") };
    let second = KeptTemplate { attached: vec![attached(2), attached(3)], ..files("two") };
    for (version, kept) in [("v1", &first), ("v2", &second), ("v1", &first)] {
        h.store.keep_template(version, kept).await.unwrap();
    }
    assert!(h.attachments_kept().is_none_or(|kept| kept == [5_000; 3]));
    for (version, expected) in [("v1", first), ("v2", second)] {
        let mut found = h.store.template(version).await.unwrap().unwrap();
        found.attached.sort_by_key(|one| one.content[0]);
        assert_eq!(found, expected);
    }
}
