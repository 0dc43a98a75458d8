//! One token for each push service, renewed by a clock that never steps.

use belfry_domain::outcome::{OutcomeKind, ThrottleScope};

use super::*;

async fn token(bed: &Bed, address: &str) -> String {
    let outcome = bed.send(&outgoing("a", address, "{}")).await;
    assert_eq!(outcome.kind(), OutcomeKind::Accepted, "{:?}", bed.service.refusals());
    bed.service.taken().pop().unwrap().header("authorization").to_owned()
}

#[tokio::test]
async fn a_token_is_kept_until_half_its_life_has_passed() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let first = token(&bed, &address).await;
    bed.clock.pass(6 * HOUR - Duration::from_millis(1));
    bed.service.set_now(bed.clock.now().0);
    assert_eq!(token(&bed, &bed.browser()).await, first);
    bed.clock.pass(Duration::from_millis(1));
    bed.service.set_now(bed.clock.now().0);
    assert_ne!(token(&bed, &address).await, first);
}

#[tokio::test]
async fn each_service_gets_a_token_of_its_own() {
    let bed = Bed::new().await;
    let mut both = config(&bed.service.ca);
    let other = PushService::start(Speaks::Http1, START.0).await;
    both.ca = Some(format!("{}{}", bed.service.ca, other.ca));
    let channel = WebPushChannel::new(&both, bed.clock.clone()).unwrap();
    for service in [&bed.service, &other, &bed.service, &other] {
        let address = service.subscribe(channel.application_server_key());
        assert_eq!(send(&channel, &outgoing("a", &address, "{}"), &call()).await.kind(), OutcomeKind::Accepted);
    }
    let tokens = [&bed.service, &other].map(|service| {
        service.taken().iter().map(|taken| taken.header("authorization").to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(tokens[0][0], tokens[0][1]);
    assert_eq!(tokens[1][0], tokens[1][1]);
    assert_ne!(tokens[0][0], tokens[1][0]);
}

#[tokio::test]
async fn case_56_a_wall_clock_that_steps_is_no_reason_for_a_new_token() {
    let bed = Bed::new().await;
    let address = bed.browser();
    let first = token(&bed, &address).await;
    for _ in 0..10 {
        for stepped in [START.plus(2 * HOUR), START.minus(2 * HOUR)] {
            bed.clock.step_to(stepped);
            assert_eq!(token(&bed, &address).await, first);
        }
    }
}

#[tokio::test]
async fn case_56_a_clock_that_is_hours_wrong_is_told_as_that_and_heals() {
    for (wrong, refusal) in [(START.minus(13 * HOUR), "expired"), (START.plus(13 * HOUR), "exp too far")] {
        let bed = Bed::new().await;
        let address = bed.browser();
        bed.clock.step_to(wrong);
        let out = Outgoing { expires_at: wrong.plus(HOUR), ..outgoing("a", &address, "{}") };
        let outcome = bed.send(&out).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Throttled, WhyCode::ClockSkew));
        // Of a service that nobody knows: what it says of us counts for its own recipients.
        let Outcome::Throttled { scope, after, .. } = outcome else { panic!("not throttled") };
        assert_eq!((scope, after), (ThrottleScope::Recipient, Duration::from_secs(60)));
        assert_eq!(bed.service.refusals(), [refusal]);
        // Set right, with no time passing: the token made by the wrong clock is not used again.
        bed.clock.step_to(START);
        token(&bed, &address).await;
    }
}

#[tokio::test]
async fn a_channel_made_anew_from_the_same_key_reaches_the_same_browsers() {
    let bed = Bed::new().await;
    let address = bed.browser();
    token(&bed, &address).await;
    let folder = tempfile::tempdir().unwrap();
    let mut kept = config(&bed.service.ca);
    let pem = kept.vapid_key.take().unwrap();
    let file = folder.path().join("vapid.pem");
    std::fs::write(&file, secrecy::ExposeSecret::expose_secret(&pem)).unwrap();
    kept.vapid_key_file = Some(file);
    let [one, other] = [(), ()].map(|()| WebPushChannel::new(&kept, bed.clock.clone()).unwrap());
    assert_eq!(one.application_server_key(), other.application_server_key());
    let address = bed.service.subscribe(one.application_server_key());
    for channel in [&one, &other] {
        assert_eq!(send(channel, &outgoing("a", &address, "{}"), &call()).await.kind(), OutcomeKind::Accepted);
    }
}
