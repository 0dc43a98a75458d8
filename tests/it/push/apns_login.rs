//! Provider tokens: one for all, renewed in time, never twice within 20 minutes. And certificates.

use belfry::ports::certificate::Left;
use belfry_domain::outcome::{ThrottleScope, Why};

use super::*;
use crate::peers::apns_sim::Act;

const MINUTE: Duration = Duration::from_secs(60);

async fn two_hundred(channel: &ApnsChannel, name: &str) -> usize {
    let outs: Vec<Outgoing> = (0..200).map(|number| push_to(&format!("{name}-{number}"), &token(number))).collect();
    let outcomes = futures::future::join_all(outs.iter().map(|out| send(channel, out))).await;
    outcomes.iter().filter(|outcome| is_accepted(outcome)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_20_all_tasks_share_one_token_and_one_renews_it() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    assert_eq!((two_hundred(&channel, "first").await, bed.sim.logins()), (200, 1));
    bed.pass(39 * MINUTE);
    assert_eq!((two_hundred(&channel, "young").await, bed.sim.logins()), (200, 1));
    bed.pass(MINUTE);
    assert_eq!((two_hundred(&channel, "due").await, bed.sim.logins()), (200, 2));
    assert_eq!(bed.sim.refusals(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_20_what_apple_calls_expired_is_renewed_once_for_all() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    assert!(is_accepted(&send(&channel, &push_to("first", &token(1))).await));
    // Apple's clock and the wall clock were set right; by the boot clock 25 minutes have passed.
    bed.pass(25 * MINUTE);
    bed.clock.set(3_600_000);
    bed.sim.step(60 * MINUTE);
    assert_eq!((two_hundred(&channel, "due").await, bed.sim.logins()), (200, 2));
    let expired = bed.sim.refusals();
    assert!(!expired.is_empty() && expired.iter().all(|one| *one == (403, "ExpiredProviderToken")), "{expired:?}");
    assert_eq!(bed.sim.effects().len(), 201);
}

#[tokio::test]
async fn case_56_a_wrong_wall_clock_mints_nothing_and_is_told_of() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    assert!(is_accepted(&send(&channel, &push_to("first", &token(1))).await));
    for step in [7_200_000, -14_400_000, 7_200_000] {
        bed.clock.set(step);
        assert!(is_accepted(&send(&channel, &push_to(&step.to_string(), &token(1))).await), "no token is older for it");
    }
    assert_eq!(bed.sim.logins(), 1);
    // Renewed in time, but two hours behind: Apple does not take it.
    bed.clock.set(-7_200_000);
    bed.pass(41 * MINUTE);
    for number in 0..5 {
        let outcome = send(&channel, &push_to(&format!("skewed-{number}"), &token(1))).await;
        let why = Why::said(WhyCode::ClockSkew, "403 ExpiredProviderToken");
        assert_eq!(outcome, Outcome::Throttled { after: MINUTE, scope: ThrottleScope::Credential, why });
    }
    assert_eq!(bed.sim.requests().len(), 9, "one call each: nothing is sent again with a token made a moment ago");
    // Somebody sets it right: taken again as soon as a second token may be made.
    bed.clock.set(7_200_000);
    bed.pass(19 * MINUTE);
    assert_eq!(code(&send(&channel, &push_to("early", &token(1))).await), WhyCode::ClockSkew);
    bed.pass(MINUTE);
    assert!(is_accepted(&send(&channel, &push_to("mended", &token(1))).await));
    assert_eq!(bed.sim.logins(), 2);
    let refused: Vec<&str> = bed.sim.refusals().iter().map(|(_, reason)| *reason).collect();
    assert_eq!(refused, ["ExpiredProviderToken"; 7]);
}

#[tokio::test]
async fn a_reload_of_the_configuration_makes_no_second_token() {
    let bed = Bed::new().await;
    for number in 0..3 {
        // The old channel is gone before the new one is made.
        let channel = bed.channel();
        assert!(is_accepted(&send(&channel, &push_to(&number.to_string(), &token(1))).await));
    }
    let other_topic = ApnsConfig { streams: 7, ..bed.config() };
    assert!(is_accepted(&send(&bed.channel_of(&other_topic), &push_to("x", &token(1))).await));
    assert_eq!((bed.sim.logins(), bed.sim.connections()), (1, 4));
    assert_eq!(bed.sim.refusals(), []);
}

#[tokio::test]
async fn a_strangers_key_pauses_the_login_and_blames_no_message() {
    let bed = Bed::new().await;
    let stranger = SimKey::new(TEAM, KEY_ID);
    let channel = bed.channel_of(&ApnsConfig { key: Some(stranger.pem.into()), ..bed.config() });
    let outcome = send(&channel, &push_to("a", &token(1))).await;
    let why = Why::said(WhyCode::CredentialRefused, "403 InvalidProviderToken");
    assert_eq!(outcome, Outcome::Throttled { after: MINUTE, scope: ThrottleScope::Credential, why });
    assert_eq!(bed.sim.requests().len(), 1);
}

#[tokio::test]
async fn too_many_tokens_is_everybodys_wait() {
    let bed = Bed::new().await;
    let channel = bed.channel();
    bed.sim.next(1, &Act::busy("TooManyProviderTokenUpdates", "30"));
    let outcome = send(&channel, &push_to("a", &token(1))).await;
    let why = Why::said(WhyCode::RateLimited, "429 TooManyProviderTokenUpdates");
    let after = Duration::from_secs(30);
    assert_eq!(outcome, Outcome::Throttled { after, scope: ThrottleScope::Provider, why });
}

#[tokio::test]
async fn teams_and_apps_have_connections_of_their_own() {
    let keys = [SimKey::new("TEAM000001", "KEY0000001"), SimKey::new("TEAM000002", "KEY0000002")];
    let topics = ["com.example.one", "com.example.two", "com.example.three"];
    let bed =
        Bed::with(|options| Options { keys: keys.to_vec(), topics: topics.map(str::to_owned).to_vec(), ..options })
            .await;
    let of = |key: &SimKey, topic: &str| {
        bed.channel_of(&ApnsConfig {
            topic: topic.to_owned(),
            team_id: Some(key.team.clone()),
            key_id: Some(key.id.clone()),
            key: Some(key.pem.clone().into()),
            ..bed.config()
        })
    };
    let channels = [of(&keys[0], topics[0]), of(&keys[1], topics[1]), of(&keys[1], topics[2])];
    for round in 0..2 {
        for channel in &channels {
            assert!(is_accepted(&send(channel, &push_to(&round.to_string(), &token(1))).await));
        }
    }
    let connections: Vec<usize> = bed.sim.effects().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 1, 2, 0, 1, 2]);
    assert_eq!(bed.sim.logins(), 2, "two apps of one team have one token");
}

#[tokio::test]
async fn a_certificate_does_in_place_of_a_token() {
    let bed = Bed::with(|options| Options { wants_certificates: true, ..options }).await;
    let (certificate, key) = bed.sim.tls().identity();
    let with = |certificate: String, key: String| ApnsConfig {
        team_id: None,
        key_id: None,
        key: Some(key.into()),
        certificate: Some(certificate),
        ..bed.config()
    };
    let channel = bed.channel_of(&with(certificate, key));
    assert_eq!(channel.certificate_end().map(|end| end.left), Some(Left::Enough));
    assert_eq!(bed.channel().certificate_end(), None, "a token has no end to be told");
    assert!(is_accepted(&send(&channel, &push_to("a", &token(1))).await));
    assert_eq!(bed.sim.effects().pop().unwrap().headers.get("authorization"), None);
    channel.check().await.unwrap();
    // Of another authority, and none at all: turned away before anything is sent.
    let (certificate, key) = crate::peers::apns_sim::tls::SimTls::new().identity();
    for config in [with(certificate, key), bed.config()] {
        let outcome = send(&bed.channel_of(&config), &push_to("b", &token(1))).await;
        assert_eq!(outcome, Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::TlsFailed) });
    }
    assert_eq!(bed.sim.effects().len(), 2);
}
