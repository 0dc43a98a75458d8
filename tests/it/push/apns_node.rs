//! A client of other people's (node-apn, from npm) against the stand-in: what it sends must pass, and it must
//! understand every answer as ours does.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::*;
use crate::peers::apns_sim::Act;

/// Where that client lies. Where a folder was named for the tests, it must.
fn modules() -> Option<String> {
    let named = std::env::var("BELFRY_TEST_NODE_MODULES");
    let modules = named.clone().unwrap_or_default();
    let tried = Command::new("node").args(["-e", "require('@parse/node-apn')"]).env("NODE_PATH", &modules).output();
    let found = tried.is_ok_and(|done| done.status.success());
    assert!(found || named.is_err(), "no node, or BELFRY_TEST_NODE_MODULES lacks @parse/node-apn");
    if !found {
        eprintln!("skipped: node has no @parse/node-apn; set BELFRY_TEST_NODE_MODULES to a folder that has");
    }
    found.then_some(modules)
}

/// What that client says of each push: whom it was sent to, and who failed.
async fn told(modules: &str, bed: &Bed, key: &SimKey, pushes: &[Value]) -> Vec<Value> {
    let token = json!({"key": key.pem, "keyId": key.id, "teamId": key.team});
    let plan = json!({"url": bed.sim.url(), "ca": bed.sim.tls().ca_pem, "token": token, "pushes": pushes});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/push/apns_node.cjs");
    let mut node = Command::new("node");
    node.arg(script).arg(&file).env("NODE_PATH", modules);
    let done = tokio::task::spawn_blocking(move || node.output()).await.unwrap().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// A simulator whose clock, as that of our channel, shows the time of the machine, which that client goes by.
async fn bed() -> Bed {
    let bed = Bed::new().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    bed.pass(now - Duration::from_secs(START.unsigned_abs()));
    bed
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn alert() -> Value {
    json!({"title": "您的订单已发货 🎉", "body": "It is on its way."})
}

/// A push with everything that a push may have.
fn push(number: usize, tokens: &[String]) -> Value {
    let notification = json!({"topic": TOPIC, "pushType": "alert", "priority": 5, "expiry": 1_900_000_000_u32,
        "id": id(number), "collapseId": format!("order-{number}"), "payload": {"order": number},
        "alert": alert(), "badge": 3, "sound": "default"});
    json!({"notification": notification, "tokens": tokens})
}

/// What is to be seen of such a push.
fn headers(number: usize) -> HashMap<String, String> {
    let (id, collapse) = (id(number), format!("order-{number}"));
    [
        ("apns-topic", TOPIC),
        ("apns-push-type", "alert"),
        ("apns-priority", "5"),
        ("apns-expiration", "1900000000"),
        ("apns-id", &id),
        ("apns-collapse-id", &collapse),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// What that client says of a push that was refused.
fn failed(token: &str, status: u16, response: Value) -> Value {
    json!({"device": token, "apns-id": id(0), "status": status, "response": response})
}

#[tokio::test]
async fn an_independent_client_sends_as_the_stand_in_wants_it() {
    let Some(modules) = modules() else { return };
    let bed = bed().await;
    let tokens = [1, 2, 3].map(token);
    let pushes: Vec<Value> = (0..20).map(|number| push(number, &tokens)).collect();
    let told = told(&modules, &bed, &bed.key, &pushes).await;
    for (number, told) in told.iter().enumerate() {
        let sent = tokens.each_ref().map(|token| json!({"device": token, "apns-id": id(number)}));
        assert_eq!(*told, json!({"sent": sent, "failed": []}));
    }
    assert_eq!((bed.sim.refusals(), bed.sim.connections(), bed.sim.logins()), (vec![], 1, 1));
    let mut taken = bed.sim.effects();
    taken.sort_by_key(|seen| (seen.header("apns-id").to_owned(), seen.token.clone()));
    let wanted = (0..20).flat_map(|number| tokens.iter().map(move |token| (number, token)));
    assert_eq!(taken.len(), 60);
    for (seen, (number, token)) in taken.iter_mut().zip(wanted) {
        assert!(seen.headers.remove("authorization").unwrap().starts_with("bearer "));
        assert_eq!((&seen.token, &seen.headers), (token, &headers(number)));
        let aps = json!({"alert": alert(), "badge": 3, "sound": "default"});
        assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), json!({"order": number, "aps": aps}));
    }
    // Ours says all that that client says. A team may have another login after 20 minutes.
    bed.pass(Duration::from_secs(1200));
    assert!(is_accepted(&send(&bed.channel(), &push_to("ours", &token(1))).await));
    let ours = bed.sim.effects().pop().unwrap();
    assert!(headers(0).keys().all(|name| ours.headers.contains_key(name)), "{ours:?}");
}

#[tokio::test]
async fn an_independent_client_reads_the_stand_ins_refusals() {
    let Some(modules) = modules() else { return };
    let bed = bed().await;
    let tokens = [1, 2, 3, 4].map(token);
    let gone_at = 1_700_000_000_123_i64;
    bed.sim.always(&tokens[0], Act::refusal(400, "BadDeviceToken"));
    bed.sim.always(&tokens[1], Act::gone("Unregistered", gone_at));
    bed.sim.always(&tokens[2], Act::busy("TooManyRequests", "7"));
    let pushes = [push(0, &tokens)];
    let wanted = json!({
        "sent": [{"device": tokens[3], "apns-id": id(0)}],
        "failed": [
            failed(&tokens[0], 400, json!({"reason": "BadDeviceToken"})),
            failed(&tokens[1], 410, json!({"reason": "Unregistered", "timestamp": gone_at})),
            failed(&tokens[2], 429, json!({"reason": "TooManyRequests"})),
        ],
    });
    assert_eq!(told(&modules, &bed, &bed.key, &pushes).await, [wanted]);
    assert_eq!((bed.sim.refusals(), bed.sim.requests().len(), bed.sim.taken()), (vec![], 4, 1));
    // Another key under the same name.
    let stranger = SimKey::new(TEAM, KEY_ID);
    let wanted = json!({
        "sent": [],
        "failed": tokens.each_ref().map(|token| failed(token, 403, json!({"reason": "InvalidProviderToken"}))),
    });
    assert_eq!(told(&modules, &bed, &stranger, &pushes).await, [wanted]);
    assert_eq!((bed.sim.refusals(), bed.sim.taken()), (vec![(403, "InvalidProviderToken"); 4], 1));
}
