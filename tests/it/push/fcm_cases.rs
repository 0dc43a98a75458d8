//! Conditions that users met.

use std::time::Duration;

use belfry::channel::fcm::classify::{Told, classify};
use belfry::ports::message::Outgoing;
use belfry_domain::class::RetryPolicy;
use belfry_domain::device::{Standing, TokenFault};
use belfry_domain::outcome::ThrottleScope;
use belfry_domain::retry::{LONGEST_RETRY_AFTER, wait};
use belfry_domain::{Outcome, UnixMs, Why, WhyCode};
use serde_json::json;

use super::{Bed, PHONE, code, outgoing, push_to};
use crate::peers::fcm_sim::{Act, FcmSim, START};

#[tokio::test]
async fn case_38_a_404_drops_a_token_only_where_fcm_says_unregistered() {
    let bed = Bed::new().await;
    bed.sim.script(
        PHONE,
        [
            Act::error(404, "NOT_FOUND", Some("UNREGISTERED"), Vec::new()),
            Act::error(404, "NOT_FOUND", None, Vec::new()),
        ],
    );
    let gone = bed.push("a").await;
    let why = Why::said(WhyCode::NoSuchRecipient, "404 NOT_FOUND UNREGISTERED");
    assert_eq!(gone, Outcome::RecipientGone { since: None, why });
    let config = bed.push("b").await;
    assert!(matches!(config, Outcome::Throttled { scope: ThrottleScope::Credential, .. }), "{config:?}");
    assert_eq!((code(&config), TokenFault::of(&config)), (WhyCode::SetupRefused, None));

    // The same from a project that there is not: nobody's token is at fault.
    let lost = Bed::with(FcmSim::start().await, |config| config.project = Some("no-such-1".to_owned()));
    let outcome = lost.push("a").await;
    assert_eq!((code(&outcome), TokenFault::of(&outcome)), (WhyCode::SetupRefused, None));
    assert_eq!(outcome.why().answer.as_deref(), Some("the project or the url: 404 NOT_FOUND"));
}

#[tokio::test]
async fn case_41_an_apns_key_missing_in_the_project_costs_no_new_login_and_no_other_platform() {
    let bed = Bed::new().await;
    bed.sim.device("iphone");
    assert_eq!(code(&bed.push("a").await), WhyCode::Ok);
    let apple = "type.googleapis.com/google.firebase.fcm.v1.ApnsError";
    let apple = json!({"@type": apple, "statusCode": 403, "reason": "InvalidProviderToken"});
    for _ in 0..3 {
        let act = Act::error(401, "UNAUTHENTICATED", Some("THIRD_PARTY_AUTH_ERROR"), vec![apple.clone()]);
        bed.sim.script("iphone", [act]);
        let outcome = bed.send(&push_to("iphone", "a")).await;
        let said =
            "the project's key for APNs or web push: 401 UNAUTHENTICATED THIRD_PARTY_AUTH_ERROR InvalidProviderToken";
        assert_eq!(outcome, Outcome::Refused { why: Why::said(WhyCode::ThirdPartyRefused, said) });
        assert_eq!(TokenFault::of(&outcome), None);
    }
    assert_eq!(code(&bed.push("b").await), WhyCode::Ok);
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends, seen.effects.len())), (1, 5, 2));
}

const POLICY: RetryPolicy = RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(60), max_attempts: 9 };

#[tokio::test]
async fn case_43_a_429_is_waited_out_as_it_asks() {
    let bed = Bed::new().await;
    let quota = |subject: &str| json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"subject": subject}]});
    let date = |seconds: i64| {
        let at = std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(START + seconds).unwrap());
        Some(httpdate::fmt_http_date(at))
    };
    let ten_years = 10 * 365 * 24 * 3600;
    for (retry_after, after, shortest) in [
        (Some("120".to_owned()), 120, 120),
        (date(120), 120, 120),
        (date(-120), 0, 0),
        (date(ten_years), ten_years.unsigned_abs(), LONGEST_RETRY_AFTER.as_secs()),
        (None, 60, 60),
    ] {
        for (subject, scope) in [("device:x", ThrottleScope::Recipient), ("project:shop-1", ThrottleScope::Provider)] {
            let headers = retry_after.iter().map(|value| ("retry-after", value.clone())).collect();
            let code = Some("QUOTA_EXCEEDED");
            bed.sim.script(PHONE, [Act::error_with(429, headers, "RESOURCE_EXHAUSTED", code, vec![quota(subject)])]);
            let outcome = bed.push("a").await;
            let Outcome::Throttled { after: asked, scope: whose, why } = outcome else { panic!("{outcome:?}") };
            assert_eq!((asked, whose, why.code), (Duration::from_secs(after), scope, WhyCode::RateLimited));
            // What the policy makes of it: never earlier, never past a day, and not all at once.
            let earliest = wait(&POLICY, 1, Some(asked), 0);
            let latest = wait(&POLICY, 1, Some(asked), u64::MAX);
            assert_eq!(earliest, Duration::from_secs(shortest));
            assert_eq!(latest, Duration::from_secs(shortest) + POLICY.base - Duration::from_millis(1));
        }
    }
    assert_eq!(bed.sim.seen(|seen| (seen.sends, seen.effects.len())), (10, 0));
}

#[tokio::test]
async fn case_46_a_malformed_token_among_several_is_refused_alone_and_never_called() {
    let bed = Bed::new().await;
    bed.sim.device("tablet");
    let long = "x".repeat(4097);
    for (at, bad) in ["", "two words", "line\nbreak", "nul\0", "ключ", long.as_str()].into_iter().enumerate() {
        let before = bed.sim.seen(|seen| (seen.sends, seen.effects.len()));
        let keys = [format!("{at}-1"), format!("{at}-2"), format!("{at}-3")];
        let outs = [push_to(PHONE, &keys[0]), push_to(bad, &keys[1]), push_to("tablet", &keys[2])];
        let outcomes = futures::future::join_all(outs.iter().map(|out| bed.send(out))).await;
        assert_eq!(outcomes.iter().map(code).collect::<Vec<_>>(), [WhyCode::Ok, WhyCode::TokenMalformed, WhyCode::Ok]);
        assert!(matches!(outcomes[1], Outcome::Refused { .. }), "{:?}", outcomes[1]);
        assert_eq!(bed.sim.seen(|seen| (seen.sends, seen.effects.len())), (before.0 + 2, before.1 + 2));
    }
    // What FCM itself calls malformed is quarantined, not dropped.
    let forgiving = Bed::with(FcmSim::start().await, |_| {});
    let refused = forgiving.send(&push_to("unknown", "a")).await;
    let fault = TokenFault::of(&refused).unwrap();
    assert_eq!(Standing::after(fault, UnixMs(1)), Standing::Quarantined { fault: TokenFault::BadToken, at: UnixMs(1) });
}

#[tokio::test]
async fn case_50_a_200_is_accepted_by_the_provider() {
    let bed = Bed::new().await;
    let outcome = bed.push("a").await;
    let id = "0:1%31bd1c96".to_owned();
    assert_eq!(outcome, Outcome::Accepted { provider_ref: Some(id), why: Why::new(WhyCode::Ok) });
    // A page that answers everything with 200 took nothing that we know of.
    bed.sim.script(PHONE, [Act::TakeThenAnswer(200, "<html>Please log in</html>".to_owned())]);
    let portal = bed.push("b").await;
    assert!(matches!(portal, Outcome::Unknown { .. }), "{portal:?}");
    let body = Some(&b"{}"[..]);
    assert!(matches!(classify(&Told { status: 200, body, retry_after: None }), Outcome::Unknown { .. }));
}

#[tokio::test]
async fn case_52_collapse_keys_of_any_length_and_script_make_short_ids_of_their_own() {
    let bed = Bed::new().await;
    let prefix = "é".repeat(100);
    for key in [prefix.clone(), format!("{prefix}1"), format!("{prefix}2"), "短".repeat(70)] {
        for intent in ["a", "b"] {
            let out = Outgoing { collapse: Some(key.clone()), ..push_to(PHONE, intent) };
            assert_eq!(code(&bed.send(&out).await), WhyCode::Ok);
        }
    }
    // Four keys, four places on the screen; the stand-in refuses ids that are too long.
    let screen = bed.sim.screen(PHONE);
    assert_eq!(screen.len(), 4);
    assert!(screen.iter().all(|(tag, title)| tag.len() <= 32 && title == "b"), "{screen:?}");
}

#[tokio::test]
async fn case_53_two_intents_are_two_notifications_and_a_retry_is_the_same_one() {
    let bed = Bed::new().await;
    bed.sim.script(PHONE, [Act::TakeThenAnswer(503, String::new())]);
    let lost = bed.push("a").await;
    assert!(matches!(lost, Outcome::Unknown { .. }), "{lost:?}");
    for key in ["a", "b"] {
        assert_eq!(code(&bed.push(key).await), WhyCode::Ok);
    }
    let effects = bed.sim.seen(|seen| seen.effects.clone());
    assert_eq!(effects[0].body, effects[1].body);
    let ids = |at: usize| {
        let message = &effects[at].message;
        let headers = [&message["apns"]["headers"]["apns-collapse-id"], &message["webpush"]["headers"]["Topic"]];
        assert!(headers.into_iter().all(|id| *id == message["android"]["notification"]["tag"]), "{message}");
        message["android"]["notification"]["tag"].clone()
    };
    assert_ne!(ids(0), ids(2));
    assert_eq!(bed.sim.screen(PHONE).values().collect::<Vec<_>>().len(), 2);
    assert!(effects.iter().all(|effect| effect.message["android"].get("collapse_key").is_none()));
}

#[tokio::test]
async fn case_110_the_bytes_on_the_wire_are_utf8() {
    let bed = Bed::new().await;
    let (title, body) = ("طلبك في الطريق", "你的订单已经发货 📦");
    let apns = r#""apns":{"payload":{"aps":{"badge":3},"order":18446744073709551617,"price":1.10}}"#;
    let payload = format!(r#"{{"notification":{{"title":"{title}","body":"{body}"}},{apns}}}"#);
    assert_eq!(code(&bed.send(&outgoing(PHONE, "a", &payload)).await), WhyCode::Ok);
    let sent = bed.sim.seen(|seen| seen.effects[0].body.clone());
    assert!(sent.contains(title) && sent.contains(body) && !sent.contains("\\u"), "{sent}");
    assert!(sent.contains(r#""order":18446744073709551617,"price":1.10"#), "{sent}");
}
