//! What a word about a token does to the device that has it.

use belfry::ports::recipients::{DeadToken, NewDevice, Recipients};
use belfry_domain::UnixMs;
use belfry_domain::device::{Standing, TokenFault};

use super::{all_dead, device, of, other, word};
use crate::contract::fixture::acme;
use crate::contract::harness::{Harness, START};
use crate::contract::on_every_store;

on_every_store!(
    a_fault_says_how_the_device_stands,
    case_49_a_word_older_than_the_registration_says_nothing_of_the_device,
    case_49_registering_again_lifts_what_was_said,
    the_same_word_again_changes_nothing,
    of_two_words_the_later_can_be_taken_back,
    the_quarantined_may_die_and_the_dead_stay,
    a_word_about_another_token_changes_nothing,
    a_word_about_another_app_or_environment_changes_nothing,
    a_token_of_a_request_is_only_listed,
    what_was_said_can_be_taken_back,
    what_another_word_left_is_not_taken_back,
);

const FAULTS: [TokenFault; 3] = [TokenFault::Unregistered, TokenFault::BadToken, TokenFault::WrongApp];

async fn standing(h: &Harness) -> Standing {
    h.device("ann", "phone").await.unwrap().standing
}

fn said(fault: TokenFault, at: i64) -> DeadToken {
    word(&of("ann", "phone"), "a", fault, UnixMs(START.0 + at))
}

async fn a_fault_says_how_the_device_stands(h: Harness) {
    let at = UnixMs(START.0 + 5);
    for (fault, left) in [
        (TokenFault::Unregistered, Standing::Dead { at }),
        (TokenFault::BadToken, Standing::Quarantined { fault: TokenFault::BadToken, at }),
        (TokenFault::WrongApp, Standing::Quarantined { fault: TokenFault::WrongApp, at }),
    ] {
        let kept = h.register("ann", device("phone", "a")).await;
        assert!(h.bury(&said(fault, 5)).await);
        let stands = h.device("ann", "phone").await.unwrap();
        assert_eq!(stands, belfry::ports::recipients::Device { standing: left, ..kept });
        assert_eq!(h.recipient("ann").await.unwrap().devices, [stands]);
    }
    let found: Vec<_> = all_dead(&h, &acme(), UnixMs(0), 10).await.into_iter().map(|one| one.fault).collect();
    assert_eq!(found.len(), FAULTS.len());
}

async fn case_49_a_word_older_than_the_registration_says_nothing_of_the_device(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    let older = DeadToken { since: Some(UnixMs(START.0 - 1)), ..said(TokenFault::Unregistered, 5) };
    assert!(!h.bury(&older).await);
    assert_eq!(standing(&h).await, Standing::Live);
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, [older]);
    // Not by when it was heard, where it says since when; and without that by when it was heard.
    assert!(!h.bury(&said(TokenFault::BadToken, -1)).await);
    assert_eq!(standing(&h).await, Standing::Live);
    let equal = DeadToken { since: Some(START), ..said(TokenFault::Unregistered, 6) };
    assert!(h.bury(&equal).await);
    assert_eq!(standing(&h).await, Standing::Dead { at: START });
    h.register("ann", device("phone", "a")).await;
    assert!(h.bury(&said(TokenFault::Unregistered, 0)).await);
}

async fn case_49_registering_again_lifts_what_was_said(h: Harness) {
    for fault in FAULTS {
        h.register("ann", device("phone", "a")).await;
        assert!(h.bury(&said(fault, 5)).await);
        h.clock.step(10);
        let again = h.register("ann", device("phone", "a")).await;
        assert_eq!((again.standing, again.registered_at), (Standing::Live, h.now()));
        // What was heard before it is no longer about it, though it is told again.
        assert!(!h.bury(&said(fault, 5)).await);
        assert_eq!(standing(&h).await, Standing::Live);
        assert!(h.store.remove_device(&acme(), &of("ann", "phone")).await.unwrap());
        h.clock.step(-10);
    }
}

async fn the_same_word_again_changes_nothing(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    for fault in [TokenFault::BadToken, TokenFault::Unregistered] {
        let word = said(fault, 5);
        assert!(h.bury(&word).await);
        let stands = standing(&h).await;
        for _ in 0..2 {
            assert!(h.bury(&word).await, "it had changed it");
            assert_eq!(standing(&h).await, stands);
        }
    }
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await.len(), 2);
}

async fn the_quarantined_may_die_and_the_dead_stay(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    let (first, second) = (said(TokenFault::WrongApp, 1), said(TokenFault::BadToken, 2));
    assert!(h.bury(&first).await);
    assert!(!h.bury(&second).await);
    let quarantined = Standing::Quarantined { fault: TokenFault::WrongApp, at: UnixMs(START.0 + 1) };
    assert_eq!(standing(&h).await, quarantined);
    assert!(h.bury(&said(TokenFault::Unregistered, 3)).await);
    let dead = Standing::Dead { at: UnixMs(START.0 + 3) };
    for word in [first, second, said(TokenFault::Unregistered, 4), said(TokenFault::BadToken, 5)] {
        assert!(!h.bury(&word).await);
        assert_eq!(standing(&h).await, dead);
    }
}

/// Two calls at once heard the same: only the later word is on the list, and takes back both.
async fn of_two_words_the_later_can_be_taken_back(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    let (first, second) = (said(TokenFault::BadToken, 1), said(TokenFault::BadToken, 2));
    assert!(h.bury(&first).await && h.bury(&second).await);
    assert_eq!(standing(&h).await, Standing::Quarantined { fault: TokenFault::BadToken, at: UnixMs(START.0 + 2) });
    assert!(!h.bury(&first).await, "the later one stands");
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, std::slice::from_ref(&second));
    Recipients::exhume(&*h.store, &acme(), &second).await.unwrap();
    assert_eq!(standing(&h).await, Standing::Live);
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, []);
}

async fn a_word_about_another_token_changes_nothing(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    h.register("ann", device("phone", "b")).await;
    // An earlier one, one of nobody, one of a device that is not there, and the right one of another owner.
    assert!(!h.bury(&said(TokenFault::Unregistered, 5)).await);
    assert!(!h.bury(&word(&of("ann", "phone"), "c", TokenFault::Unregistered, UnixMs(START.0 + 5))).await);
    assert!(!h.bury(&word(&of("ann", "pad"), "b", TokenFault::Unregistered, UnixMs(START.0 + 5))).await);
    let theirs = word(&of("ann", "phone"), "b", TokenFault::Unregistered, UnixMs(START.0 + 5));
    assert!(!Recipients::bury(&*h.store, &other(), &theirs).await.unwrap());
    assert_eq!(standing(&h).await, Standing::Live);
    let listed = all_dead(&h, &acme(), UnixMs(0), 10).await;
    assert_eq!(listed.len(), 3);
    assert_eq!(all_dead(&h, &other(), UnixMs(0), 10).await, [theirs]);
}

async fn a_word_about_another_app_or_environment_changes_nothing(h: Harness) {
    let full = NewDevice { environment: Some("production".into()), ..device("phone", "a") };
    h.register("ann", full).await;
    let word = said(TokenFault::BadToken, 5);
    let sandbox = DeadToken { environment: Some("sandbox".into()), ..word.clone() };
    let app = DeadToken { app: Some("other.example".into()), ..word.clone() };
    let kind = DeadToken { kind: belfry_domain::ChannelKind::Fcm, ..word.clone() };
    for about_another in [sandbox, app, kind] {
        assert!(!h.bury(&about_another).await);
        assert_eq!(standing(&h).await, Standing::Live);
    }
    // One that does not say is about what there is.
    assert!(h.bury(&DeadToken { app: None, ..word }).await);
}

async fn a_token_of_a_request_is_only_listed(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    let inline = DeadToken { recipient: None, device: None, ..said(TokenFault::Unregistered, 5) };
    assert!(!h.bury(&inline).await);
    assert_eq!(standing(&h).await, Standing::Live);
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, std::slice::from_ref(&inline));
    h.store.exhume(&acme(), &inline).await.unwrap();
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, []);
}

async fn what_was_said_can_be_taken_back(h: Harness) {
    let before = h.register("ann", device("phone", "a")).await;
    for fault in FAULTS {
        let word = said(fault, 5);
        assert!(h.bury(&word).await);
        for _ in 0..2 {
            h.store.exhume(&acme(), &word).await.unwrap();
            assert_eq!(h.device("ann", "phone").await.as_ref(), Some(&before));
            assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, []);
        }
    }
    // What never was there, and of an owner that nobody knows.
    h.store.exhume(&other(), &said(TokenFault::BadToken, 7)).await.unwrap();
    h.store.exhume(&acme(), &word(&of("bob", "pad"), "z", TokenFault::BadToken, START)).await.unwrap();
}

async fn what_another_word_left_is_not_taken_back(h: Harness) {
    h.register("ann", device("phone", "a")).await;
    let (first, second) = (said(TokenFault::BadToken, 5), said(TokenFault::Unregistered, 6));
    h.bury(&first).await;
    h.bury(&second).await;
    h.store.exhume(&acme(), &first).await.unwrap();
    assert_eq!(standing(&h).await, Standing::Dead { at: UnixMs(START.0 + 6) });
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, std::slice::from_ref(&second));
    // A later word of the same fault stands in the earlier one's place.
    let third = said(TokenFault::Unregistered, 7);
    h.bury(&third).await;
    h.store.exhume(&acme(), &second).await.unwrap();
    assert_eq!(all_dead(&h, &acme(), UnixMs(0), 10).await, [third]);
    assert_eq!(standing(&h).await, Standing::Live);
}
