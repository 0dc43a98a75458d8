//! Every way for a call to end, and what `doctor` says of it.

use belfry::channel::fcm::FcmChannel;
use belfry::channel::fcm::config::FcmConfig;
use belfry::ports::channel::Channel as _;
use belfry::ports::message::Rendered;
use belfry_domain::outcome::{OutcomeKind, RepeatGuard, ThrottleScope};
use belfry_domain::{Outcome, Why, WhyCode};
use futures::future::join_all;
use serde_json::json;

use super::{Bed, PHONE, call_that_lapses_after, code, config, impatient, outgoing, push_to, within};
use crate::peers::fcm_sim::{Act, FcmSim, PROJECT};

#[tokio::test]
async fn a_message_as_fcm_gets_it_over_either_protocol() {
    for alpn in [&["h2"][..], &["http/1.1"], &["h2", "http/1.1"]] {
        let bed = Bed::with(FcmSim::speaking(alpn).await, |_| {});
        let out = push_to(PHONE, "a");
        for _ in 0..3 {
            assert_eq!(code(&bed.send(&out).await), WhyCode::Ok, "{alpn:?}");
        }
        let effects = bed.sim.seen(|seen| seen.effects.clone());
        let tag = out.send_key.to_string();
        let wanted = json!({
            "notification": {"title": "a"},
            "data": {"order": "42", "belfry_id": out.delivery.to_string(), "belfry_seen": "s33n"},
            "android": {"ttl": "3600s", "priority": "HIGH", "notification": {"tag": tag}},
            "apns": {"headers": {"apns-collapse-id": tag, "apns-expiration": "1700003600"}},
            "webpush": {
                "headers": {"TTL": "3600", "Urgency": "high", "Topic": tag},
                "notification": {"tag": tag},
            },
            "token": PHONE,
        });
        assert!(effects.iter().all(|effect| effect.message == wanted), "{effects:?}");
        // The token endpoint is another server than FCM, here by chance the same.
        assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.connections)), (1, 1));
    }
}

#[tokio::test]
async fn a_lapsed_claim_sends_nothing() {
    let bed = Bed::new().await;
    let lapsed = Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::LeaseLost) };
    let out = push_to(PHONE, "a");
    assert_eq!(within(bed.channel.send(&out, &call_that_lapses_after(0))).await, lapsed);
    assert_eq!(bed.sim.seen(|seen| (seen.sends, seen.effects.len())), (0, 0));
    // While it logged in anew after a first try that was refused.
    bed.sim.revoke();
    assert_eq!(within(bed.channel.send(&out, &call_that_lapses_after(1))).await, lapsed);
    assert_eq!(bed.sim.seen(|seen| (seen.sends, seen.effects.len())), (1, 0));
}

#[tokio::test]
async fn silence_and_answers_without_an_end_are_unknown_once_the_message_has_left() {
    let acts = [
        (Act::Stall, OutcomeKind::Unknown, WhyCode::TimedOutAfter),
        (Act::StallBody(200), OutcomeKind::Unknown, WhyCode::CutAfter),
        (Act::Endless(200), OutcomeKind::Unknown, WhyCode::CutAfter),
        (Act::StallBody(503), OutcomeKind::Unknown, WhyCode::CutAfter),
        (Act::Endless(404), OutcomeKind::NotAccepted, WhyCode::Unrecognised),
        (Act::StallBody(401), OutcomeKind::NotAccepted, WhyCode::Unrecognised),
        (Act::Endless(429), OutcomeKind::Throttled, WhyCode::RateLimited),
    ];
    let both = acts.iter().flat_map(|row| [(row, "h2"), (row, "http/1.1")]);
    join_all(both.map(async |((act, kind, why), alpn)| {
        let bed = Bed::with(FcmSim::speaking(&[alpn]).await, impatient);
        // Logged in before, so that the deadline is the message's.
        assert_eq!(within(bed.channel.check()).await.map_err(|problem| problem.why), Ok(()));
        bed.sim.script(PHONE, [act.clone()]);
        let outcome = bed.push("a").await;
        assert_eq!((outcome.kind(), code(&outcome)), (*kind, *why), "{act:?} {alpn}: {outcome:?}");
        assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.effects.len())), (1, 1));
    }))
    .await;
}

#[tokio::test]
async fn answers_of_fcm_by_their_details() {
    let bed = Bed::new().await;
    let field = |name: &str| {
        let violations = json!([{"field": name, "description": "in words"}]);
        vec![json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations})]
    };
    let invalid = Some("INVALID_ARGUMENT");
    for (act, kind, why) in [
        (Act::error(400, "INVALID_ARGUMENT", invalid, Vec::new()), OutcomeKind::Refused, WhyCode::ContentRefused),
        (Act::error(400, "INVALID_ARGUMENT", invalid, field("message.token")), OutcomeKind::Refused, WhyCode::BadToken),
        (
            Act::error(403, "PERMISSION_DENIED", Some("SENDER_ID_MISMATCH"), Vec::new()),
            { OutcomeKind::Refused },
            WhyCode::WrongApp,
        ),
        (Act::error(403, "PERMISSION_DENIED", None, Vec::new()), OutcomeKind::Throttled, WhyCode::SetupRefused),
        (Act::error(500, "INTERNAL", Some("INTERNAL"), Vec::new()), OutcomeKind::Unknown, WhyCode::ProviderFailed),
        (
            Act::error(503, "UNAVAILABLE", Some("UNAVAILABLE"), Vec::new()),
            OutcomeKind::Unknown,
            WhyCode::ProviderFailed,
        ),
        (Act::Answer(502, Vec::new(), "<html>".to_owned()), OutcomeKind::Unknown, WhyCode::ProviderFailed),
    ] {
        bed.sim.script(PHONE, [act.clone()]);
        let outcome = bed.push("a").await;
        assert_eq!((outcome.kind(), code(&outcome)), (kind, why), "{act:?}: {outcome:?}");
    }
    assert_eq!(bed.sim.seen(|seen| seen.grants), 1);
}

#[tokio::test]
async fn what_cannot_be_a_message_is_not_sent() {
    let bed = Bed::new().await;
    let large = format!(r#"{{"notification":{{"body":"{}"}}}}"#, "x".repeat(4096));
    for (payload, why) in [
        (large.as_str(), WhyCode::TooLarge),
        ("[]", WhyCode::RenderFailed),
        (r#"{"topic":"everybody"}"#, WhyCode::RenderFailed),
    ] {
        let outcome = bed.send(&outgoing(PHONE, "a", payload)).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, why), "{outcome:?}");
    }
    let mut text = push_to(PHONE, "a");
    text.message = Rendered::Sms { text: "no push".to_owned() };
    assert_eq!(code(&bed.send(&text).await), WhyCode::RenderFailed);
    let measured = bed.send(&outgoing(PHONE, "a", &large)).await.why().answer.clone().unwrap();
    // body, belfry_id and dlv_…, belfry_seen and s33n.
    let bytes = 4 + 4096 + 9 + 28 + 11 + 4;
    assert_eq!(measured, format!("{bytes} bytes of notification and data, of at most 4096"));
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends)), (0, 0));
}

#[tokio::test]
async fn an_fcm_out_of_reach_is_not_accepted_and_doctor_has_the_networks_words() {
    // Only the token endpoint is there.
    let bed = Bed::with(FcmSim::start().await, |config| config.url = "http://127.0.0.1:1".to_owned());
    let outcome = bed.push("a").await;
    assert_eq!(outcome, Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::Unreachable) });
    let problem = within(bed.channel.check()).await.unwrap_err();
    assert_eq!(problem.why.code, WhyCode::Unreachable);
    assert!(problem.detail.is_some(), "{problem}");
    assert_eq!(bed.sim.seen(|seen| seen.grants), 1);
}

#[tokio::test]
async fn an_untrusted_server_gets_neither_login_nor_message() {
    let other = FcmSim::start().await;
    let bed = Bed::with(FcmSim::start().await, |config| config.ca = Some(other.ca.clone()));
    let outcome = bed.push("a").await;
    assert_eq!(outcome, Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::TlsFailed) });
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends)), (0, 0));
}

#[tokio::test]
async fn doctor_looks_without_sending() {
    let bed = Bed::new().await;
    assert_eq!(within(bed.channel.check()).await.map_err(|problem| problem.why), Ok(()));
    assert_eq!(bed.sim.seen(|seen| (seen.grants, seen.sends, seen.effects.len())), (1, 1, 0));
    let said = async |config: &dyn Fn(&mut FcmConfig), grant: Option<Act>| {
        let bed = Bed::with(FcmSim::start().await, config);
        bed.sim.script_grants(grant);
        within(bed.channel.check()).await.unwrap_err().to_string()
    };
    let refused = r#"{"error":"invalid_grant"}"#.to_owned();
    for (project, grant, words) in [
        ("no-such-1", None, {
            "a setting of this server or at the provider is wrong: the project or the url: 404 NOT_FOUND"
        }),
        (
            "another-1",
            None,
            concat!(
                "a setting of this server or at the provider is wrong: ",
                "the service account's rights: 403 PERMISSION_DENIED IAM_PERMISSION_DENIED"
            ),
        ),
        (PROJECT, Some(Act::Answer(400, Vec::new(), refused)), {
            "the provider refused our login: token endpoint: 400 invalid_grant"
        }),
    ] {
        assert_eq!(said(&|config| config.project = Some(project.to_owned()), grant).await, words);
    }
}

#[tokio::test]
async fn what_the_channel_says_of_itself() {
    let bed = Bed::new().await;
    let host = bed.sim.url().trim_start_matches("https://").to_owned();
    assert_eq!(bed.channel.place(), format!("{host} (project {PROJECT})"));
    assert_eq!(format!("{:?}", bed.channel), format!("FcmChannel({host} (project {PROJECT}))"));
    assert_eq!((bed.channel.repeat_guard(), bed.channel.receipts()), (RepeatGuard::Collapse, false));
}

#[tokio::test]
async fn key_and_roots_may_stand_in_files_and_what_is_wrong_is_said_by_key() {
    let sim = FcmSim::start().await;
    sim.device(PHONE);
    let folder = tempfile::tempdir().unwrap();
    let (key, ca) = (folder.path().join("key.json"), folder.path().join("ca.pem"));
    std::fs::write(&key, sim.key_file()).unwrap();
    std::fs::write(&ca, &sim.ca).unwrap();
    let filed = FcmConfig {
        service_account: None,
        service_account_file: Some(key),
        ca: None,
        ca_file: Some(ca),
        ..config(&sim)
    };
    let bed = Bed::with(sim, |config| *config = filed);
    assert_eq!(code(&bed.push("a").await), WhyCode::Ok);

    let keys = |change: &dyn Fn(&mut FcmConfig)| {
        let mut config = config(&bed.sim);
        change(&mut config);
        let found = FcmChannel::problems(&config).into_iter().map(|problem| problem.key).collect::<Vec<_>>();
        let first = FcmChannel::new(&config, bed.clock.clone()).err().map(|problem| problem.key);
        assert_eq!(first, found.first().copied());
        found
    };
    assert_eq!(keys(&|_| {}), Vec::<&str>::new());
    assert_eq!(keys(&|config| config.project = Some("../x".to_owned())), ["project"]);
    assert_eq!(keys(&|config| config.ca = Some("no PEM".to_owned())), ["ca"]);
    let elsewhere = bed.sim.key_file().replace("https://127.0.0.1", "http://oauth2.example.com");
    assert_eq!(keys(&|config| config.service_account = Some(elsewhere.clone().into())), ["service_account"]);
    let nameless = bed.sim.key_file().replace("project_id", "x");
    assert_eq!(keys(&|config| config.service_account = Some(nameless.clone().into())), ["project"]);
}

#[tokio::test]
async fn a_throttled_credential_is_nobodys_message() {
    let bed = Bed::new().await;
    bed.sim.script(PHONE, [Act::error(403, "PERMISSION_DENIED", None, Vec::new())]);
    let outcome = bed.push("a").await;
    assert!(matches!(outcome, Outcome::Throttled { scope: ThrottleScope::Credential, .. }), "{outcome:?}");
}
