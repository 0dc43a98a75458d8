//! Profiles, and what goes with a recipient.

use belfry::ports::recipients::{Profile, Recipient};

use super::{device, of, other, profile};
use crate::contract::fixture::acme;
use crate::contract::harness::Harness;
use crate::contract::on_every_store;

on_every_store!(
    a_profile_is_kept_whole_in_place_of_the_one_before,
    profile_and_devices_leave_each_other_alone,
    an_empty_profile_is_a_recipient_all_the_same,
    owners_are_apart,
    a_removal_takes_all_and_nothing_of_others,
    names_do_not_run_together,
);

async fn a_profile_is_kept_whole_in_place_of_the_one_before(h: Harness) {
    assert_eq!(h.recipient("ann").await, None);
    let first = profile("ann@example.com");
    h.store.put_profile(&acme(), "ann", &first).await.unwrap();
    assert_eq!(h.recipient("ann").await, Some(Recipient { profile: first, devices: Vec::new() }));
    let second = Profile { locale: Some("en".into()), ..Profile::default() };
    for _ in 0..2 {
        h.store.put_profile(&acme(), "ann", &second).await.unwrap();
        assert_eq!(h.recipient("ann").await.unwrap().profile, second);
    }
}

async fn profile_and_devices_leave_each_other_alone(h: Harness) {
    let phone = h.register("ann", device("phone", "a")).await;
    assert_eq!(h.recipient("ann").await, Some(Recipient { profile: Profile::default(), devices: vec![phone.clone()] }));
    h.store.put_profile(&acme(), "ann", &profile("ann@example.com")).await.unwrap();
    // In the order of their ids, whatever that of their coming.
    let pad = h.register("ann", device("pad", "b")).await;
    let watch = h.register("ann", device("Watch", "c")).await;
    let all = h.recipient("ann").await.unwrap();
    assert_eq!(all, Recipient { profile: profile("ann@example.com"), devices: vec![watch, pad, phone] });
    assert!(h.store.remove_device(&acme(), &of("ann", "pad")).await.unwrap());
    let left = h.recipient("ann").await.unwrap();
    assert_eq!((left.profile, left.devices.len()), (profile("ann@example.com"), 2));
}

async fn an_empty_profile_is_a_recipient_all_the_same(h: Harness) {
    h.store.put_profile(&acme(), "ann", &Profile::default()).await.unwrap();
    assert_eq!(h.recipient("ann").await, Some(Recipient::default()));
    assert!(h.store.remove_recipient(&acme(), "ann").await.unwrap());
    assert_eq!(h.recipient("ann").await, None);
}

async fn owners_are_apart(h: Harness) {
    let test = belfry::ports::deliveries::Owner { environment: "test".into(), ..acme() };
    for owner in [other(), test] {
        h.store.put_profile(&owner, "ann", &profile("x@example.com")).await.unwrap();
        h.register_of(&owner, "ann", device("phone", "a")).await;
    }
    assert_eq!(h.recipient("ann").await, None);
    assert_eq!(h.device("ann", "phone").await, None);
    assert!(!h.store.remove_device(&acme(), &of("ann", "phone")).await.unwrap());
    assert!(!h.store.remove_recipient(&acme(), "ann").await.unwrap());
    let theirs = belfry::ports::recipients::Recipients::recipient(&*h.store, &other(), "ann").await.unwrap().unwrap();
    assert_eq!((theirs.profile, theirs.devices.len()), (profile("x@example.com"), 1));
}

async fn a_removal_takes_all_and_nothing_of_others(h: Harness) {
    for recipient in ["ann", "bob"] {
        h.store.put_profile(&acme(), recipient, &profile("x@example.com")).await.unwrap();
        for id in ["phone", "pad"] {
            h.register(recipient, device(id, &format!("{recipient} {id}"))).await;
        }
    }
    assert!(h.store.remove_recipient(&acme(), "ann").await.unwrap());
    assert!(!h.store.remove_recipient(&acme(), "ann").await.unwrap());
    assert_eq!(h.recipient("ann").await, None);
    assert_eq!(h.device("ann", "phone").await, None);
    assert_eq!(h.recipient("bob").await.unwrap().devices.len(), 2);
    // Who registers the tokens now takes them from nobody.
    let eve = h.register("eve", device("phone", "ann phone")).await;
    assert_eq!(h.recipient("eve").await.unwrap().devices, [eve]);
}

async fn names_do_not_run_together(h: Harness) {
    let names = ["a:b", "a", "b:a", "", " ", "a b", "ä", "d:a", "p"];
    for (at, name) in names.iter().enumerate() {
        h.register(name, device(name, &at.to_string())).await;
    }
    for (at, name) in names.iter().enumerate() {
        let devices = h.recipient(name).await.unwrap().devices;
        assert_eq!(devices.len(), 1, "{name}");
        assert_eq!(devices[0], h.device(name, name).await.unwrap());
        assert_eq!(devices[0].token.hash, format!("hash {at}"));
    }
}
