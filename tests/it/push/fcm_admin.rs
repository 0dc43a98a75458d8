//! Google's own client against the stand-in: what it sends must pass, and it must understand every
//! answer as ours does.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belfry_domain::Outcome;
use serde_json::{Value, json};

use super::{Bed, push_to};
use crate::peers::fcm_sim::{Act, FcmSim, START};

/// Sends to every token that it is given, and prints what came of each.
const SCRIPT: &str = r#"
import json, os, sys
import firebase_admin
from firebase_admin import credentials, exceptions, messaging

plan = json.load(sys.stdin)
messaging._MessagingService.FCM_URL = plan["url"] + "/v1/projects/{0}/messages:send"
firebase_admin.initialize_app(credentials.Certificate(json.loads(plan["key"])))
told = {}
for token in plan["tokens"]:
    message = messaging.Message(
        token=token,
        notification=messaging.Notification(title="你好", body="a"),
        data={"order": "42"},
        android=messaging.AndroidConfig(priority="high", ttl=3600, collapse_key="k",
            notification=messaging.AndroidNotification(tag="t", notification_count=3, priority="high")),
        apns=messaging.APNSConfig(headers={"apns-priority": "10"},
            payload=messaging.APNSPayload(aps=messaging.Aps(badge=3))),
        webpush=messaging.WebpushConfig(headers={"TTL": "15"},
            notification=messaging.WebpushNotification(title="T")),
        fcm_options=messaging.FCMOptions(analytics_label="label"))
    try:
        told[token] = messaging.send(message)
    except exceptions.FirebaseError as error:
        told[token] = type(error).__name__
print(json.dumps(told))
"#;

/// The interpreter, where it has firebase-admin. Where one was named for the tests, it must.
fn python() -> Option<String> {
    let named = std::env::var("BELFRY_TEST_PYTHON");
    let python = named.clone().unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import firebase_admin.messaging"]).output().unwrap();
    assert!(found.status.success() || named.is_err(), "BELFRY_TEST_PYTHON lacks firebase-admin");
    found.status.success().then_some(python)
}

fn run(python: &str, plan: &Value, ca: &std::path::Path) -> Value {
    let stdin = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut &stdin, plan.to_string().as_bytes()).unwrap();
    std::io::Seek::rewind(&mut &stdin).unwrap();
    let done = Command::new(python).args(["-c", SCRIPT]).env("REQUESTS_CA_BUNDLE", ca).stdin(stdin).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn googles_own_client_reads_the_stand_in_as_we_do() {
    let Some(python) = python() else { return };
    let sim = FcmSim::start().await;
    // That client reads the machine's clock.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    sim.step(now - Duration::from_secs(START.unsigned_abs()));
    let bed = Bed::with(sim, |_| {});
    bed.clock.step_now(i64::try_from(now.as_secs()).unwrap() - START);
    bed.sim.device("good");
    let rows = [
        ("invalid", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "InvalidArgumentError"),
        ("gone", 404, "NOT_FOUND", "UNREGISTERED", "UnregisteredError"),
        ("others", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderIdMismatchError"),
        ("quota", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "QuotaExceededError"),
        ("apple", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", "ThirdPartyAuthError"),
    ];
    for (token, status, name, code, _) in rows {
        // It logs in anew at any 401, Apple's included, and asks once more.
        let act = Act::error(status, name, Some(code), Vec::new());
        bed.sim.script(token, std::iter::repeat_n(act, 8));
    }
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &bed.sim.ca).unwrap();
    let tokens: Vec<&str> = rows.iter().map(|row| row.0).chain(["good"]).collect();
    let plan = json!({"url": bed.sim.url(), "key": bed.sim.key_file(), "tokens": tokens});
    let told = tokio::task::spawn_blocking(move || run(&python, &plan, &ca)).await.unwrap();
    for (token, .., error) in rows {
        assert_eq!(told[token], error);
    }
    assert_eq!(told["good"], "projects/shop-1/messages/0:1%31bd1c96");
    let taken = bed.sim.seen(|seen| seen.effects.clone());
    assert!(taken.len() == 1 && taken[0].message["notification"]["title"] == "你好", "{taken:?}");
    // Ours, to the same device, has all that that client needs for a message, and its own id.
    let ours = bed.send(&push_to("good", "a")).await;
    assert!(matches!(ours, Outcome::Accepted { .. }), "{ours:?}");
}
