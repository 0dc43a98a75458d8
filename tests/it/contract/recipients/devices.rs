//! Registrations, and whose a token is.

use std::iter::zip;

use belfry::ports::deliveries::Owner;
use belfry::ports::recipients::{Device, MOST_DEVICES, MOST_EARLIER, NewDevice, Recipients, Registered, Token};
use belfry_domain::device::Standing;
use belfry_domain::{ChannelKind, UnixMs};

use super::{device, of, other, token};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    a_registration_is_kept_as_it_came,
    again_with_the_same_token_only_moves_the_time_and_never_back,
    earlier_tokens_are_kept_newest_first_a_few_and_none_twice,
    what_could_no_longer_be_called_is_no_earlier_token,
    beyond_the_most_none_is_taken_and_those_that_are_there_may_change,
    a_token_that_changes_hands_leaves_its_former_device_behind,
    a_token_moves_within_a_recipient,
    the_same_text_under_another_kind_app_or_owner_is_another_token,
    an_earlier_token_belongs_to_nobody,
    a_device_that_is_gone_has_left_its_token,
    registrations_of_one_token_at_once_leave_one_device,
);

fn hashes(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(|one| one.hash.as_str()).collect()
}

/// Whose devices have the token, of those named.
async fn holders<'a>(h: &Harness, named: &[(&'a str, &'a str)], hash: &str) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for (recipient, id) in named {
        if h.device(recipient, id).await.is_some_and(|device| device.token.hash == hash) {
            found.push((*recipient, *id));
        }
    }
    found
}

async fn a_registration_is_kept_as_it_came(h: Harness) {
    let plain = NewDevice { app: None, kind: ChannelKind::WebPush, ..device("browser", "a") };
    let full = NewDevice { environment: Some("sandbox".into()), ..device("phone", "b") };
    for new in [plain, full] {
        let expected = Device {
            id: new.id.clone(),
            kind: new.kind,
            app: new.app.clone(),
            environment: new.environment.clone(),
            token: new.token.clone(),
            registered_at: START,
            standing: Standing::Live,
            earlier: Vec::new(),
        };
        assert_eq!(h.register("ann", new.clone()).await, expected);
        assert_eq!(h.device("ann", &new.id).await, Some(expected));
    }
    assert_eq!(h.device("ann", "other").await, None);
    assert_eq!(h.device("bob", "phone").await, None);
}

async fn again_with_the_same_token_only_moves_the_time_and_never_back(h: Harness) {
    let first = h.register("ann", device("phone", "a")).await;
    assert_eq!(h.register("ann", device("phone", "a")).await, first);
    h.clock.step(10);
    let later = h.register("ann", device("phone", "a")).await;
    assert_eq!(later, Device { registered_at: UnixMs(START.0 + 10), ..first });
    h.clock.step(-5);
    assert_eq!(h.register("ann", device("phone", "a")).await, later);
    // Nor with another token.
    assert_eq!(h.register("ann", device("phone", "b")).await.registered_at, later.registered_at);
}

async fn earlier_tokens_are_kept_newest_first_a_few_and_none_twice(h: Harness) {
    for (named, earlier) in [
        ("a", &[][..]),
        ("b", &["hash a"]),
        ("c", &["hash b", "hash a"]),
        ("a", &["hash c", "hash b"]),
        ("a", &["hash c", "hash b"]),
        ("d", &["hash a", "hash c", "hash b"]),
        ("e", &["hash d", "hash a", "hash c"]),
    ] {
        let kept = h.register("ann", device("phone", named)).await;
        assert_eq!((kept.token.clone(), hashes(&kept.earlier)), (token(named), earlier.to_vec()));
        assert!(earlier.len() <= MOST_EARLIER);
        assert_eq!(h.device("ann", "phone").await, Some(kept));
    }
}

async fn what_could_no_longer_be_called_is_no_earlier_token(h: Harness) {
    let plain = device("phone", "a");
    let changes = [
        NewDevice { app: Some("other.example".into()), ..device("phone", "b") },
        NewDevice { app: None, ..device("phone", "b") },
        NewDevice { environment: Some("sandbox".into()), ..device("phone", "b") },
        NewDevice { kind: ChannelKind::Fcm, ..device("phone", "b") },
    ];
    for change in changes {
        h.register("ann", plain.clone()).await;
        let kept = h.register("ann", change.clone()).await;
        assert_eq!((kept.kind, &kept.app, &kept.environment), (change.kind, &change.app, &change.environment));
        assert_eq!(kept.earlier, []);
        assert_eq!(h.register("ann", plain.clone()).await.earlier, []);
    }
}

async fn beyond_the_most_none_is_taken_and_those_that_are_there_may_change(h: Harness) {
    h.store.put_profile(&acme(), "ann", &super::profile("ann@example.com")).await.unwrap();
    for at in 0..MOST_DEVICES {
        h.register("ann", device(&format!("d{at:02}"), &at.to_string())).await;
    }
    // Nor one that would take another's token.
    for named in ["new", "7"] {
        let refused = h.store.register(&acme(), "ann", &device("more", named), h.now()).await.unwrap();
        assert_eq!(refused, Registered::TooMany);
    }
    assert_eq!(h.recipient("ann").await.unwrap().devices.len(), MOST_DEVICES);
    assert_eq!(h.device("ann", "d07").await.unwrap().token, token("7"));
    h.register("ann", device("d07", "new")).await;
    h.register("bob", device("more", "7")).await;
    assert!(h.store.remove_device(&acme(), &of("ann", "d03")).await.unwrap());
    h.register("ann", device("more", "8")).await;
    let ids: Vec<_> = h.recipient("ann").await.unwrap().devices.into_iter().map(|one| one.id).collect();
    assert_eq!(ids.len(), MOST_DEVICES - 1);
    assert!(!ids.contains(&"d08".to_owned()), "its token has moved");
}

async fn a_token_that_changes_hands_leaves_its_former_device_behind(h: Harness) {
    let phones = [("ann", "phone"), ("bob", "phone"), ("eve", "phone")];
    h.register("ann", device("pad", "b")).await;
    // Back and forth, as a phone that is sold and bought back.
    for at in [0, 1, 2, 0, 1, 1, 0] {
        let (recipient, id) = phones[at];
        let kept = h.register(recipient, device(id, "a")).await;
        assert_eq!(holders(&h, &phones, "hash a").await, [phones[at]]);
        assert_eq!(kept.earlier, []);
        for (recipient, id) in phones.iter().filter(|one| **one != phones[at]) {
            assert_eq!(h.device(recipient, id).await, None);
        }
    }
    assert_eq!(h.device("ann", "pad").await.unwrap().token, token("b"));
}

async fn a_token_moves_within_a_recipient(h: Harness) {
    h.register("ann", device("old", "a")).await;
    let kept = h.register("ann", device("new", "a")).await;
    assert_eq!(h.recipient("ann").await.unwrap().devices, [kept]);
}

async fn the_same_text_under_another_kind_app_or_owner_is_another_token(h: Harness) {
    let all = [
        device("one", "a"),
        NewDevice { kind: ChannelKind::Fcm, ..device("two", "a") },
        NewDevice { app: Some("other.example".into()), ..device("three", "a") },
        NewDevice { app: None, ..device("four", "a") },
        NewDevice { app: Some(String::new()), ..device("five", "a") },
    ];
    let mut kept = Vec::new();
    for new in &all {
        kept.push(h.register("ann", new.clone()).await);
        h.register_of(&other(), "ann", new.clone()).await;
    }
    for (new, kept) in zip(&all, kept) {
        assert_eq!(h.device("ann", &new.id).await, Some(kept));
    }
    // The environment is no part of what a token is: APNs' sandbox and production have none in common.
    h.register("bob", NewDevice { environment: Some("sandbox".into()), ..device("phone", "a") }).await;
    assert_eq!(h.device("ann", "one").await, None);
}

async fn an_earlier_token_belongs_to_nobody(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    let rotated = h.register("ann", device("phone", "b")).await;
    h.register("bob", device("phone", "a")).await;
    assert_eq!(h.device("ann", "phone").await, Some(rotated));
    // And it may be taken back, together with what it was.
    h.register("ann", device("phone", "a")).await;
    assert_eq!(h.device("bob", "phone").await, None);
}

async fn a_device_that_is_gone_has_left_its_token(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    assert!(h.store.remove_device(&acme(), &of("ann", "phone")).await.unwrap());
    assert!(!h.store.remove_device(&acme(), &of("ann", "phone")).await.unwrap());
    assert_eq!(h.recipient("ann").await, None);
    // Whoever has it now keeps it when its former owner comes with another.
    h.register("bob", device("phone", "a")).await;
    h.register("ann", device("phone", "b")).await;
    assert!(h.store.remove_device(&acme(), &of("ann", "phone")).await.unwrap());
    assert_eq!(h.device("bob", "phone").await.unwrap().token, token("a"));
}

async fn registrations_of_one_token_at_once_leave_one_device(h: Harness) {
    let names: Vec<String> = (0..6).map(|at| format!("r{at}")).collect();
    for _ in 0..5 {
        let (owner, phone, now): (Owner, _, _) = (acme(), device("phone", "a"), h.now());
        let calls = names.iter().map(|name| Recipients::register(&*h.store, &owner, name, &phone, now));
        for registered in futures::future::join_all(calls).await {
            assert!(matches!(registered.unwrap(), Registered::Kept(_)));
        }
        let named: Vec<_> = names.iter().map(|name| (name.as_str(), "phone")).collect();
        assert_eq!(holders(&h, &named, "hash a").await.len(), 1);
    }
}
