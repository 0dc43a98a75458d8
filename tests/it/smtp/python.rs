//! Python's strict `email` package as the judge of mails.

use std::path::Path;
use std::process::Command;

use belfry::ports::message::{EmailMessage, Mailbox};
use belfry_domain::Key;
use serde_json::{Value, json};

/// The interpreter that has the test packages (dkimpy), where the environment names one.
pub fn python() -> String {
    std::env::var("BELFRY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Whether the interpreter can verify DKIM. Where one was named for the tests, it must.
pub fn knows_dkim() -> bool {
    let found = Command::new(python()).args(["-c", "import dkim, nacl"]).output().unwrap().status.success();
    assert!(found || std::env::var("BELFRY_TEST_PYTHON").is_err(), "BELFRY_TEST_PYTHON lacks dkimpy and pynacl");
    found
}

/// What the parser is to find in `mail`.
pub fn expected(name: &str, key: Key, mail: &EmailMessage) -> Value {
    let boxes = |all: &[Mailbox]| -> Value {
        all.iter().map(|one| json!([one.name.clone().unwrap_or_default(), one.email.0])).collect()
    };
    let from = match &mail.from {
        Some(from) => boxes(std::slice::from_ref(from)),
        None => json!([["Shop", "shop@example.com"]]),
    };
    let domain = from[0][1].as_str().unwrap().rsplit('@').next().unwrap().to_owned();
    let all = mail.to.iter().chain(&mail.cc).chain(&mail.reply_to).chain(&mail.from);
    json!({
        "name": name,
        "message_id": format!("<{key}@{domain}>"),
        "date": super::ACCEPTED_AT.0 / 1000,
        "subject": mail.subject,
        "From": from,
        "To": boxes(&mail.to),
        "Cc": boxes(&mail.cc),
        "Reply-To": boxes(&mail.reply_to),
        "text": mail.text,
        "html": mail.html,
        "headers": mail.headers,
        "attachments": mail.attachments.iter().map(|one| json!({
            "filename": one.filename,
            "content_type": one.content_type,
            "base64": one.base64,
            "cid": one.cid,
        })).collect::<Vec<_>>(),
        "utf8": all.into_iter().any(|one| !one.email.0.is_ascii()),
    })
}

/// Runs the checker over `folder`; the test fails with everything it printed.
pub fn check(folder: &Path, wanted: &[Value], arguments: &[&str]) {
    std::fs::write(folder.join("expected.json"), serde_json::to_vec(wanted).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/smtp/check_mail.py");
    let done = Command::new(python()).arg(script).arg(folder).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{errors}");
    assert!(said.ends_with(&format!("{} mails, 0 differences\n", wanted.len())), "{said}");
}
