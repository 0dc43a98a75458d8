//! The access token: one for all, in time, and no more often than needed.

use std::time::Duration;

use belfry::ports::channel::Channel as _;
use belfry_domain::outcome::{OutcomeKind, ThrottleScope};
use belfry_domain::{Outcome, Why, WhyCode};
use futures::FutureExt as _;
use futures::future::join_all;

use super::{Bed, PHONE, call, code, impatient, push_to, within};
use crate::peers::fcm_sim::{Act, FcmSim};

const HOUR: Duration = Duration::from_secs(3599);
const MINUTE: Duration = Duration::from_secs(60);

async fn fifty(bed: &Bed) -> Vec<Outcome> {
    let outs: Vec<_> = (0..50).map(|at| push_to(PHONE, &format!("intent {at}"))).collect();
    join_all(outs.iter().map(|out| bed.send(out))).await
}

fn grants(bed: &Bed) -> usize {
    bed.sim.seen(|seen| seen.grants)
}

#[tokio::test]
async fn fifty_who_wait_fetch_one_token() {
    let bed = Bed::new().await;
    assert!(fifty(&bed).await.iter().all(|outcome| code(outcome) == WhyCode::Ok));
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.effects.len())), (1, 50));
}

#[tokio::test]
async fn fifty_who_wait_share_one_failure_and_the_next_second_asks_again() {
    let bed = Bed::new().await;
    bed.sim.script_grants([Act::Answer(503, vec![("retry-after", "7".to_owned())], String::new())]);
    let why = Why::said(WhyCode::TryLater, "token endpoint: 503");
    let failed = Outcome::NotAccepted { retry_after: Some(Duration::from_secs(7)), why };
    assert_eq!(fifty(&bed).await, vec![failed.clone(); 50]);
    assert_eq!(bed.push("right after").await, failed);
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends)), (1, 0));
    bed.step(Duration::from_secs(1));
    assert_eq!(code(&bed.push("later").await), WhyCode::Ok);
    assert_eq!(grants(&bed), 2);
}

#[tokio::test]
async fn who_fetches_may_be_dropped_and_the_others_still_get_it() {
    let bed = Bed::new().await;
    bed.sim.script_grants([Act::AnswerOnRelease]);
    let (first, second) = (push_to(PHONE, "a"), push_to(PHONE, "b"));
    let call = call();
    let mut leader = Box::pin(bed.channel.send(&first, &call));
    let mut other = Box::pin(bed.channel.send(&second, &call));
    // Both wait, the first one's poll started the fetch.
    assert!(leader.as_mut().now_or_never().is_none() && other.as_mut().now_or_never().is_none());
    tokio::select! {
        outcome = &mut leader => panic!("{outcome:?}"),
        () = bed.sim.until(|seen| seen.grants == 1) => {}
    }
    drop(leader);
    bed.sim.release();
    assert_eq!(code(&within(other).await), WhyCode::Ok);
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.effects.len())), (1, 1));
}

#[tokio::test]
async fn a_fetch_that_everybody_left_is_begun_anew() {
    let bed = Bed::new().await;
    bed.sim.script_grants([Act::Stall]);
    let out = push_to(PHONE, "a");
    let call = call();
    {
        let mut alone = Box::pin(bed.channel.send(&out, &call));
        tokio::select! {
            outcome = &mut alone => panic!("{outcome:?}"),
            () = bed.sim.until(|seen| seen.grants == 1) => {}
        }
    }
    assert_eq!(code(&bed.push("b").await), WhyCode::Ok);
    assert_eq!(grants(&bed), 2);
}

#[tokio::test]
async fn renewed_once_five_minutes_before_its_end_by_the_clock_that_does_not_step() {
    let bed = Bed::new().await;
    assert_eq!(code(&bed.push("a").await), WhyCode::Ok);
    // The wall clock may jump as it likes.
    bed.clock.step_now(24 * 3600);
    assert_eq!((code(&bed.push("b").await), grants(&bed)), (WhyCode::Ok, 1));
    bed.clock.step_now(-24 * 3600);
    bed.step(HOUR - 5 * MINUTE - Duration::from_secs(1));
    assert_eq!((code(&bed.push("c").await), grants(&bed)), (WhyCode::Ok, 1));
    bed.step(Duration::from_secs(1));
    assert!(fifty(&bed).await.iter().all(|outcome| code(outcome) == WhyCode::Ok));
    assert_eq!((code(&bed.push("d").await), grants(&bed)), (WhyCode::Ok, 2));
}

#[tokio::test]
async fn a_machine_that_slept_past_the_end_sends_no_old_token() {
    let bed = Bed::new().await;
    assert_eq!(code(&bed.push("a").await), WhyCode::Ok);
    bed.step(3 * HOUR);
    assert_eq!(code(&bed.push("b").await), WhyCode::Ok);
    // Not one call was refused for it.
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends)), (2, 2));
}

#[tokio::test]
async fn a_token_of_a_short_life_is_not_fetched_for_every_call() {
    let bed = Bed::new().await;
    bed.sim.grant_for(120);
    for at in 0..4 {
        assert_eq!(code(&bed.push(&at.to_string()).await), WhyCode::Ok);
    }
    assert_eq!(grants(&bed), 1);
    bed.step(MINUTE);
    assert_eq!((code(&bed.push("later").await), grants(&bed)), (WhyCode::Ok, 2));
}

#[tokio::test]
async fn while_the_token_endpoint_is_away_the_old_token_goes_on_to_its_end() {
    let bed = Bed::new().await;
    assert_eq!(code(&bed.push("a").await), WhyCode::Ok);
    bed.step(HOUR - 5 * MINUTE);
    bed.sim.script_grants(std::iter::repeat_n(Act::Answer(503, Vec::new(), String::new()), 3));
    assert!(fifty(&bed).await.iter().all(|outcome| code(outcome) == WhyCode::Ok));
    // Asked again after half a minute, not by each of them.
    assert_eq!((code(&bed.push("b").await), grants(&bed)), (WhyCode::Ok, 2));
    bed.step(MINUTE);
    assert_eq!((code(&bed.push("c").await), grants(&bed)), (WhyCode::Ok, 3));
    bed.step(4 * MINUTE);
    let sends = bed.sim.seen(|seen| seen.sends);
    assert_eq!((code(&bed.push("d").await), grants(&bed)), (WhyCode::TryLater, 4));
    assert_eq!(bed.sim.seen(|seen| seen.sends), sends, "one that has ended is not shown to anybody");
    bed.step(Duration::from_secs(1));
    assert_eq!((code(&bed.push("e").await), grants(&bed)), (WhyCode::Ok, 5));
}

#[tokio::test]
async fn a_refused_token_is_fetched_anew_once_and_the_message_sent_again() {
    let bed = Bed::new().await;
    assert_eq!(code(&bed.push("a").await), WhyCode::Ok);
    bed.sim.revoke();
    assert_eq!(code(&bed.push("b").await), WhyCode::Ok);
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends, seen.effects.len())), (2, 3, 2));
    // Fifty find it out at once and still fetch one.
    bed.sim.revoke();
    assert!(fifty(&bed).await.iter().all(|outcome| code(outcome) == WhyCode::Ok));
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.effects.len())), (3, 52));
}

#[tokio::test]
async fn a_login_that_is_refused_again_is_no_loop() {
    let bed = Bed::new().await;
    let refused = || Act::error(401, "UNAUTHENTICATED", None, Vec::new());
    bed.sim.script(PHONE, [refused(), refused(), refused()]);
    let outcome = bed.push("a").await;
    let why = Why::said(WhyCode::CredentialRefused, "401 UNAUTHENTICATED");
    assert_eq!(outcome, Outcome::Throttled { after: MINUTE, scope: ThrottleScope::Credential, why });
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends, seen.effects.len())), (2, 2, 0));
}

#[tokio::test]
async fn no_token_is_nothing_sent() {
    let answer = |status, body: &str| Act::Answer(status, Vec::new(), body.to_owned());
    let broken = r#"{"access_token":"line\nbreak","token_type":"Bearer"}"#;
    let acts = [
        (answer(400, r#"{"error":"invalid_grant"}"#), OutcomeKind::Throttled, WhyCode::CredentialRefused),
        (answer(401, r#"{"error":"invalid_client"}"#), OutcomeKind::Throttled, WhyCode::CredentialRefused),
        (answer(429, ""), OutcomeKind::NotAccepted, WhyCode::TryLater),
        (answer(500, ""), OutcomeKind::NotAccepted, WhyCode::TryLater),
        (answer(200, "<html>"), OutcomeKind::NotAccepted, WhyCode::TryLater),
        (answer(200, broken), OutcomeKind::Throttled, WhyCode::CredentialRefused),
        (Act::Stall, OutcomeKind::NotAccepted, WhyCode::TimedOutBefore),
        (Act::StallBody(200), OutcomeKind::NotAccepted, WhyCode::TryLater),
        (Act::Endless(200), OutcomeKind::NotAccepted, WhyCode::TryLater),
    ];
    join_all(acts.iter().map(async |(act, kind, why)| {
        let bed = Bed::with(FcmSim::start().await, impatient);
        bed.sim.script_grants([act.clone()]);
        let call = call();
        let outcome = within(bed.channel.send(&push_to(PHONE, "a"), &call)).await;
        assert_eq!((outcome.kind(), code(&outcome)), (*kind, *why), "{act:?}: {outcome:?}");
        assert!(!call.committed(), "a fetch is no send");
        assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends)), (1, 0));
    }))
    .await;
}

#[tokio::test]
async fn an_unreachable_token_endpoint_is_not_accepted() {
    let bed = Bed::with(FcmSim::start().await, |config| {
        let (_, key) = nowhere(config.service_account.as_ref().unwrap());
        config.service_account = Some(key.into());
    });
    let outcome = bed.push("a").await;
    assert_eq!(outcome, Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::Unreachable) });
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends)), (0, 0));
}

/// The key file, led to a port where nobody listens.
fn nowhere(key: &secrecy::SecretString) -> (String, String) {
    use secrecy::ExposeSecret as _;
    let mut file: serde_json::Value = serde_json::from_str(key.expose_secret()).unwrap();
    let was = file["token_uri"].as_str().unwrap().to_owned();
    file["token_uri"] = "http://127.0.0.1:1/token".into();
    (was, file.to_string())
}

#[tokio::test]
async fn a_clock_that_is_off_is_said_to_be() {
    for seconds in [-7200, 120] {
        let bed = Bed::with(FcmSim::start().await.forgiving(), |_| {});
        bed.clock.step_now(seconds);
        let outcome = bed.push("a").await;
        let why = Why::said(WhyCode::ClockSkew, "token endpoint: 400 invalid_grant");
        assert_eq!(outcome, Outcome::Throttled { after: MINUTE, scope: ThrottleScope::Credential, why });
    }
}
