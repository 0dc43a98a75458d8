//! Conditions that real users met.

use std::collections::HashSet;

use belfry_domain::outcome::Why;
use futures::StreamExt as _;
use futures::stream;

use super::*;
use crate::peers::apns_sim::{Act, CutShort};

#[tokio::test]
async fn case_46_one_malformed_token_costs_the_others_nothing() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let outs = [push_to("a", &token(1)), push_to("a", "not a token"), push_to("a", &token(3))];
    let outcomes = futures::future::join_all(outs.iter().map(|out| send(&channel, out))).await;
    assert!(is_accepted(&outcomes[0]) && is_accepted(&outcomes[2]));
    assert_eq!(outcomes[1], Outcome::Refused { why: Why::new(WhyCode::TokenMalformed) });
    let mut sent: Vec<String> = bed.sim.requests().into_iter().map(|seen| seen.token).collect();
    sent.sort();
    assert_eq!(sent, [token(1), token(3)]);
    for bad in ["", "abcdef", &"a".repeat(63), &"a".repeat(202), &"é".repeat(32), &format!("{}/x", "a".repeat(62))] {
        let outcome = send(&channel, &push_to("b", bad)).await;
        assert_eq!(outcome, Outcome::Refused { why: Why::new(WhyCode::TokenMalformed) }, "{bad}");
    }
    assert_eq!(bed.sim.requests().len(), 2);
    assert!(is_accepted(&send(&channel, &push_to("c", &"AB".repeat(100))).await), "tokens may grow");
}

#[tokio::test]
async fn case_47_goaway_loses_nothing_and_repeats_nothing() {
    const PUSHES: u64 = 10_000;
    const LAST: usize = 30;
    let bed = Bed::with(|options| Options {
        goaway_every: Some(500),
        cut_first: Some(CutShort { after: 80, last: LAST }),
        ..options
    })
    .await;
    let channel = bed.channel();
    let outcomes: Vec<(String, Outcome)> = stream::iter(0..PUSHES)
        .map(|number| {
            let channel = &channel;
            async move { (token(number), send(channel, &push_to(&number.to_string(), &token(number))).await) }
        })
        .buffer_unordered(150)
        .collect()
        .await;
    let unknown: HashSet<&String> = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) })
        .map(|(token, _)| token)
        .collect();
    let accepted = outcomes.iter().filter(|(_, outcome)| is_accepted(outcome)).count();
    assert_eq!((unknown.len(), accepted), (LAST, PUSHES as usize - LAST));
    let effects = bed.sim.effects();
    let on_first: HashSet<&String> =
        effects.iter().filter(|seen| seen.connection == 0).map(|seen| &seen.token).collect();
    assert_eq!(unknown, on_first, "up to the last stream: nobody knows; above it: sent again");
    let once: HashSet<&String> = effects.iter().map(|seen| &seen.token).collect();
    assert_eq!((effects.len(), once.len()), (PUSHES as usize, PUSHES as usize), "each has one effect");
    assert!(bed.sim.not_looked_at() >= 80 - LAST);
    assert!(bed.sim.connections() >= 20, "{}", bed.sim.connections());
    assert_eq!(bed.sim.refusals(), []);
    assert_eq!(bed.sim.logins(), 1);
}

#[tokio::test]
async fn case_49_a_dead_token_comes_with_its_time() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    for (reason, at) in [("Unregistered", 1_699_999_999_123), ("ExpiredToken", 1_700_000_000_456)] {
        bed.sim.always(&token(1), Act::gone(reason, at));
        let outcome = send(&channel, &push_to("a", &token(1))).await;
        let why = Why::said(WhyCode::NoSuchRecipient, format!("410 {reason}"));
        assert_eq!(outcome, Outcome::RecipientGone { since: Some(UnixMs(at)), why });
    }
    bed.sim.always(&token(1), Act::refusal(410, "Unregistered"));
    let outcome = send(&channel, &push_to("a", &token(1))).await;
    let why = Why::said(WhyCode::NoSuchRecipient, "410 Unregistered");
    assert_eq!(outcome, Outcome::RecipientGone { since: None, why });
}

#[tokio::test]
async fn case_52_a_long_collapse_key_fits_and_stays_its_own() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let long = "Déjà vu 東京 ".repeat(20);
    let keys = [long.clone(), format!("{long}1"), format!("{long}2"), format!("{}x", &"k".repeat(64)), "k".repeat(64)];
    for (at, key) in keys.iter().enumerate() {
        for send_number in [1, 2] {
            let mut out = push_to(&format!("{at}-{send_number}"), &token(1));
            out.collapse = Some(key.clone());
            assert!(is_accepted(&send(&channel, &out).await));
        }
    }
    let ids: Vec<String> = bed.sim.effects().iter().map(|seen| seen.header("apns-collapse-id").to_owned()).collect();
    assert!(ids.iter().all(|id| id.len() == 24), "{ids:?}");
    assert!(ids.chunks(2).all(|pair| pair[0] == pair[1]), "the same key, the same id: {ids:?}");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), keys.len());
}

#[tokio::test]
async fn case_53_two_intents_do_not_collapse_and_a_retry_does() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let (one, other) = (push_to("one", &token(1)), push_to("other", &token(1)));
    for out in [&one, &other, &one] {
        assert!(is_accepted(&send(&channel, out).await));
    }
    let ids: Vec<(String, String)> = bed
        .sim
        .effects()
        .iter()
        .map(|seen| (seen.header("apns-collapse-id").to_owned(), seen.header("apns-id").to_owned()))
        .collect();
    assert_eq!(ids[0], ids[2]);
    assert_ne!(ids[0].0, ids[1].0);
    assert_ne!(ids[0].1, ids[1].1);
}

#[tokio::test]
async fn case_110_what_is_written_in_utf_8_stays_so() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    let payload =
        r#"{"aps":{"alert":{"title":"طلبك في الطريق","body":"您的订单已发货 🚚 \u00e9"}},"n":12345678901234567890}"#;
    let out = push_of("a", &token(1), payload);
    assert!(is_accepted(&send(&channel, &out).await));
    let mark = format!(r#","belfry":{{"id":"{}","seen":"seen-1"}}}}"#, out.delivery);
    let sent = bed.sim.effects().pop().unwrap().body;
    assert_eq!(sent, format!("{}{mark}", payload.strip_suffix('}').unwrap()).as_bytes());
}
