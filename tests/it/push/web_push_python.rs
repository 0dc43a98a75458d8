//! Other people's code as the judge: `http_ece` decrypts, `cryptography` verifies.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belfry::channel::web_push::MOST_PLAINTEXT;
use belfry_domain::outcome::OutcomeKind;
use serde_json::json;

use super::*;

/// The interpreter that has the test packages, where the environment names one.
fn python() -> String {
    let python = std::env::var("BELFRY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import http_ece, cryptography"]).output().unwrap();
    assert!(
        found.status.success(),
        "{python} lacks http_ece and cryptography: run scripts/prepare and set BELFRY_TEST_PYTHON"
    );
    python
}

#[tokio::test]
async fn an_independent_browser_reads_what_was_meant() {
    let bed = Bed::new().await;
    let own = r#","belfry":{"id":"dlv_000000000000000000000000","seen":"seen.token"}"#.len();
    let longest = "x".repeat(MOST_PLAINTEXT - own - r#"{"t":""}"#.len());
    let payloads = ["{}".to_owned(), r#"{"title":"您的订单已发货 🎉"}"#.to_owned(), format!(r#"{{"t":"{longest}"}}"#)];
    let mut wanted = Vec::new();
    for payload in &payloads {
        let out = outgoing("order-42", &bed.browser(), payload);
        assert_eq!(bed.send(&out).await.kind(), OutcomeKind::Accepted);
        let comma = if payload == "{}" { "" } else { "," };
        wanted.push(format!(
            r#"{}{comma}"belfry":{{"id":"{}","seen":"seen.token"}}}}"#,
            payload.strip_suffix('}').unwrap(),
            out.delivery
        ));
    }
    let messages: Vec<_> = bed
        .service
        .taken()
        .iter()
        .zip(&wanted)
        .map(|(taken, wanted)| {
            let browser = bed.service.browser(&taken.path);
            json!({
                "body": URL_SAFE_NO_PAD.encode(&taken.body),
                "authorization": taken.header("authorization"),
                "private": URL_SAFE_NO_PAD.encode(browser.secret.to_bytes()),
                "auth": URL_SAFE_NO_PAD.encode(browser.auth),
                "key": browser.application_server_key,
                "claims": {
                    "aud": bed.service.origin(),
                    "exp": START.0 / 1000 + 12 * 3600,
                    "sub": "mailto:push@example.com",
                },
                "plaintext": wanted,
            })
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("messages.json");
    std::fs::write(&file, serde_json::to_vec(&messages).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/push/web_push_check.py");
    let done = Command::new(python()).arg(script).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said, "3 messages read\n");
}
