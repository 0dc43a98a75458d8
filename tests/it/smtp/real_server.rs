//! Through Postfix and Dovecot: what was sent is read back over IMAP and compared.

use std::sync::Arc;

use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::SmtpConfig;
use belfry::ports::message::{EmailMessage, Outgoing};
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::{Outcome, WhyCode};
use futures::StreamExt as _;

use super::building::{mails, signer_for_tests};
use super::python::{check, expected, knows_dkim};
use super::{code, config, corpus, mail, mailbox, outgoing_of, send};
use crate::peers::mail_server::{MailServer, PASSWORD};

/// Sends all over four connections.
async fn send_all(channel: &Arc<SmtpChannel>, all: Vec<Outgoing>) {
    let outcomes: Vec<Outcome> = futures::stream::iter(all)
        .map(|out| async move { send(channel, &out).await })
        .buffer_unordered(4)
        .collect()
        .await;
    for outcome in outcomes {
        assert_eq!(outcome.kind(), OutcomeKind::Accepted, "{outcome:?}");
    }
}

#[tokio::test]
async fn case_32_the_corpus_through_postfix_and_dovecot() {
    let server = MailServer::start();
    let folder = tempfile::tempdir().unwrap();
    let (dkim, keys) = signer_for_tests();
    let config = SmtpConfig { connections: 4, dkim: Some(dkim), ..config(&server.url()) };
    let channel = Arc::new(SmtpChannel::new(&config).unwrap());
    let subjects = corpus::subjects().into_iter().enumerate();
    let subjects = subjects.map(|(at, subject)| (format!("s{at}"), EmailMessage { subject, ..mail() }));
    let structures = mails().into_iter().map(|(name, mail)| (name.to_owned(), mail));
    let mut wanted = Vec::new();
    let mut all = Vec::new();
    for (name, mail) in structures.chain(subjects) {
        let out = outgoing_of(&name, mail.clone(), "ann@example.com");
        wanted.push(expected(&name, out.message_key, &mail));
        all.push(out);
    }
    send_all(&channel, all).await;
    std::fs::write(folder.path().join("dkim.json"), keys.to_string()).unwrap();
    let imap = server.imap();
    let mut arguments = vec!["--imap", imap.as_str(), "ann@example.com", PASSWORD];
    if knows_dkim() {
        arguments.push("--dkim");
    }
    check(folder.path(), &wanted, &arguments);
}

#[tokio::test]
async fn case_100_a_utf8_address_through_postfix() {
    let server = MailServer::start();
    let channel = SmtpChannel::new(&config(&server.url())).unwrap();
    let address = "josé@utf8.test";
    let mail = EmailMessage { to: vec![mailbox(address)], ..mail() };
    let outcome = send(&channel, &outgoing_of("utf8", mail, address)).await;
    assert_eq!(outcome.kind(), OutcomeKind::Accepted, "{outcome:?} {}", server.logs());
    let arrived = server.maildir(1);
    let text = String::from_utf8(arrived[0].clone()).unwrap();
    assert!(text.contains(&format!("\nTo: {address}\n")), "{text}");
}

#[tokio::test]
async fn a_real_server_names_its_queue_id_and_refuses_an_unknown_mailbox() {
    let server = MailServer::start();
    let channel = SmtpChannel::new(&config(&server.url())).unwrap();
    channel.check().await.unwrap();
    let gone = send(&channel, &outgoing_of("gone", mail(), "nobody@example.com")).await;
    assert_eq!((gone.kind(), code(&gone)), (OutcomeKind::RecipientGone, WhyCode::NoSuchRecipient), "{gone:?}");
    assert!(!gone.why().answer.as_deref().unwrap().contains("nobody"));
    let Outcome::Accepted { provider_ref: Some(id), .. } =
        send(&channel, &outgoing_of("one", mail(), "ann@example.com")).await
    else {
        panic!("no queue id");
    };
    assert!(server.logs().contains(&format!("{id}: ")), "{id}");
}
