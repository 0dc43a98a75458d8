//! Making, securing, keeping and losing connections.

use std::collections::BTreeSet;
use std::sync::Arc;

use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::{AuthMechanism, SmtpConfig, SmtpReuse};
use belfry::ports::channel::Channel as _;
use belfry::ports::span::Span;
use belfry_domain::outcome::OutcomeKind;
use belfry_domain::{Outcome, WhyCode};

use super::{call, channel, code, config, mail, outgoing, outgoing_of, send};
use crate::peers::smtp_stub::{Act, At, Script, SmtpStub, StubTls};
use belfry::ports::message::EmailMessage;

#[tokio::test]
async fn one_connection_carries_many_messages() {
    for offers in [&["PIPELINING", "8BITMIME"][..], &[]] {
        let stub = SmtpStub::start(Script::default().offering(offers)).await;
        let channel = channel(&stub);
        for number in 0..20 {
            let outcome = send(&channel, &outgoing_of(&format!("n{number}"), mail(), "ann@example.com")).await;
            assert_eq!(outcome.kind(), OutcomeKind::Accepted);
        }
        assert_eq!((stub.messages().len(), stub.connections(), stub.count("RSET")), (20, 1, 0));
    }
}

#[tokio::test]
async fn no_more_connections_than_configured() {
    let stub = SmtpStub::start(Script::default()).await;
    let channel = Arc::new(SmtpChannel::new(&SmtpConfig { connections: 3, ..config(&stub.url()) }).unwrap());
    let all = (0..60).map(|number| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let out = outgoing_of(&format!("n{number}"), mail(), "ann@example.com");
            channel.send(&out, &call()).await.kind()
        })
    });
    for one in futures::future::join_all(all).await {
        assert_eq!(one.unwrap(), OutcomeKind::Accepted);
    }
    let stored = stub.messages();
    let ids: BTreeSet<_> = stored.iter().map(|one| one.header("Message-ID")).collect();
    assert_eq!((stored.len(), ids.len()), (60, 60));
    assert!(stub.connections() <= 3, "{}", stub.connections());
}

#[tokio::test]
async fn a_connection_ends_after_its_messages_and_its_age_and_its_idleness() {
    let never = Span::secs(3600);
    for reuse in [
        SmtpReuse { idle: never, age: never, messages: 1 },
        SmtpReuse { idle: never, age: Span::secs(0), messages: 9 },
        SmtpReuse { idle: Span::secs(0), age: never, messages: 9 },
    ] {
        let stub = SmtpStub::start(Script::default()).await;
        let channel = SmtpChannel::new(&SmtpConfig { reuse, ..config(&stub.url()) }).unwrap();
        for number in 0..3 {
            send(&channel, &outgoing_of(&format!("n{number}"), mail(), "ann@example.com")).await;
        }
        stub.wait_for_command("QUIT").await;
        assert_eq!((stub.messages().len(), stub.connections()), (3, 3));
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_another_message() {
    let stub = SmtpStub::start(Script::default()).await;
    let reuse = SmtpReuse { idle: "20ms".parse().unwrap(), ..SmtpReuse::default() };
    let channel = SmtpChannel::new(&SmtpConfig { reuse, ..config(&stub.url()) }).unwrap();
    send(&channel, &outgoing(mail())).await;
    stub.wait_for_command("QUIT").await;
    stub.wait_until_left().await;
}

/// The call is dropped while the server still owes its answer to the dot. lettre's pool gave such a
/// connection to the next message, which took the late answer for its own.
#[tokio::test]
async fn a_connection_whose_call_was_dropped_is_never_used_again() {
    for at in [At::Dot, At::Data, At::Rcpt] {
        let stub = SmtpStub::start(Script::default().once(at, Act::AnswerOnRelease)).await;
        let channel = Arc::new(channel(&stub));
        let sending = tokio::spawn({
            let channel = channel.clone();
            async move { channel.send(&outgoing_of("one", mail(), "ann@example.com"), &call()).await }
        });
        stub.wait_for_command("RCPT").await;
        if at == At::Dot {
            stub.wait_for(1).await;
        }
        sending.abort();
        assert!(sending.await.unwrap_err().is_cancelled());
        let outcome = send(&channel, &outgoing_of("two", mail(), "ann@example.com")).await;
        assert_eq!(outcome.kind(), OutcomeKind::Accepted);
        assert_eq!(stub.connections(), 2);
        assert_eq!(stub.messages().last().unwrap().connection, 1);
    }
}

/// Cut at each of twelve places: a message is stored only where its last byte was read, and then the
/// outcome is never "not accepted".
#[tokio::test]
async fn a_cut_at_each_of_twelve_bytes() {
    let clean = SmtpStub::start(Script::default()).await;
    send(&channel(&clean), &outgoing(mail())).await;
    let all = clean.bytes_read(0);
    let message = clean.messages()[0].bytes.len() + 3;
    let body = all - message;
    let places =
        [1, 7, body - 40, body - 20, body - 6, body - 1, body + 1, body + message / 2, all - 5, all - 3, all - 1, all];
    for place in places {
        let stub = SmtpStub::start(Script::default().cutting_first_after(place)).await;
        let outcome = send(&channel(&stub), &outgoing(mail())).await;
        stub.wait_until_left().await;
        let stored = stub.messages().len();
        assert_eq!(stored, usize::from(place == all), "{place} of {all}");
        assert_ne!(outcome.kind(), OutcomeKind::Accepted, "{place}");
        if place < body {
            assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::Unreachable), "{place}");
        }
        if stored == 1 {
            assert_eq!(outcome.kind(), OutcomeKind::Unknown, "{place}");
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_half_way_through_the_message_is_heard() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 x\r\n").await.unwrap();
        for answer in [&b"250 x\r\n"[..], b"250 x\r\n", b"250 x\r\n", b"354 x\r\n552 5.3.4 too big\r\n"] {
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
        }
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let outcome = send(&SmtpChannel::new(&config(&format!("smtp://{address}"))).unwrap(), &outgoing(mail())).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::TooLarge));
    let rest = server.await.unwrap();
    assert!(!rest.windows(5).any(|five| five == b"\r\n.\r\n"), "the dot was not written");
}

/// Sending the dot would hand it an empty message, and to whom is its own secret.
#[tokio::test]
async fn a_server_that_wants_the_message_although_it_refused_the_recipient() {
    let script = Script::default()
        .once(At::Rcpt, Act::Reply("550 5.1.1 unknown".to_owned()))
        .once(At::Data, Act::Reply("354 go on".to_owned()));
    let stub = SmtpStub::start(script).await;
    let channel = channel(&stub);
    assert_eq!(send(&channel, &outgoing(mail())).await.kind(), OutcomeKind::RecipientGone);
    assert_eq!(send(&channel, &outgoing(mail())).await.kind(), OutcomeKind::Accepted);
    assert_eq!((stub.messages().len(), stub.messages()[0].connection), (1, 1));
}

/// lettre's parser knows neither the second digit nor the encoding.
#[tokio::test]
async fn odd_replies_are_understood() {
    let stub = SmtpStub::start(Script::default().once(At::Rcpt, Act::Reply("571 5.7.1 denied".to_owned()))).await;
    let channel = channel(&stub);
    let outcome = send(&channel, &outgoing(mail())).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::PolicyRefused));
    stub.follow(Script::default().once(At::Dot, Act::Reply("250-2.6.0 ok\n250 2.6.0 queued as \u{e9}".to_owned())));
    assert_eq!(send(&channel, &outgoing(mail())).await.kind(), OutcomeKind::Accepted);
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let outcome = send(&SmtpChannel::new(&config(&format!("smtp://{address}"))).unwrap(), &outgoing(mail())).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::Unreachable));
}

fn with_tls(stub: &SmtpStub, tls: &StubTls, scheme: &str) -> SmtpConfig {
    SmtpConfig { ca_file: Some(tls.ca_file.clone()), ..config(&format!("{scheme}://{}", stub.address())) }
}

#[tokio::test]
async fn starttls_and_implicit_tls() {
    let tls = StubTls::new();
    for (script, scheme) in
        [(Script::default().with_starttls(&tls), "smtp"), (Script::default().with_implicit_tls(&tls), "smtps")]
    {
        let stub = SmtpStub::start(script).await;
        let channel = SmtpChannel::new(&with_tls(&stub, &tls, scheme)).unwrap();
        for number in 0..3 {
            let outcome = send(&channel, &outgoing_of(&format!("n{number}"), mail(), "ann@example.com")).await;
            assert_eq!(outcome.kind(), OutcomeKind::Accepted, "{scheme} {outcome:?}");
        }
        assert!(stub.messages().iter().all(|one| one.encrypted));
        assert_eq!(stub.connections(), 1, "{scheme}");
        stub.say_to_idle_and_close("421 4.4.2 idle").await;
        assert_eq!(send(&channel, &outgoing(mail())).await.kind(), OutcomeKind::Accepted);
        assert_eq!((stub.messages().len(), stub.connections(), stub.count("MAIL")), (4, 2, 4), "{scheme}");
    }
}

#[tokio::test]
async fn a_certificate_of_nobody_we_trust_or_no_starttls_at_all() {
    let (tls, other) = (StubTls::new(), StubTls::new());
    for (script, scheme) in [
        (Script::default().with_starttls(&tls), "smtp"),
        (Script::default().with_implicit_tls(&tls), "smtps"),
        (Script::default(), "smtp"),
    ] {
        let stub = SmtpStub::start(script).await;
        let channel = SmtpChannel::new(&with_tls(&stub, &other, scheme)).unwrap();
        let outcome = send(&channel, &outgoing(mail())).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TlsFailed), "{outcome:?}");
        assert_eq!(channel.check().await.unwrap_err().why.code, WhyCode::TlsFailed);
        assert_eq!(stub.count("MAIL"), 0);
    }
}

/// What a man in the middle appends in plain text must not be read as if it had come over TLS.
#[tokio::test]
async fn plain_text_after_the_answer_to_starttls_is_not_taken_over() {
    let tls = StubTls::new();
    let script =
        Script::default().with_starttls(&tls).once(At::StartTls, Act::Reply("220 go\n250 injected".to_owned()));
    let stub = SmtpStub::start(script).await;
    let outcome = send(&SmtpChannel::new(&with_tls(&stub, &tls, "smtp")).unwrap(), &outgoing(mail())).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TlsFailed));
}

#[tokio::test]
async fn every_login_mechanism() {
    let tls = StubTls::new();
    for auth in [AuthMechanism::Plain, AuthMechanism::Login, AuthMechanism::Xoauth2] {
        let stub = SmtpStub::start(Script::default().with_starttls(&tls).with_login("shop@example.com", "päss")).await;
        let url = format!("smtp://shop%40example.com@{}", stub.address());
        let with = |password: &str| {
            let ca_file = Some(tls.ca_file.clone());
            SmtpChannel::new(&SmtpConfig { auth, ca_file, password: Some(password.into()), ..config(&url) }).unwrap()
        };
        let outcome = send(&with("päss"), &outgoing(mail())).await;
        assert_eq!(outcome.kind(), OutcomeKind::Accepted, "{auth:?} {outcome:?}");
        assert_eq!(stub.messages()[0].login.as_deref(), Some("shop@example.com"));
        with("päss").check().await.unwrap();
        assert_eq!(with("wrong").check().await.unwrap_err().why.code, WhyCode::CredentialRefused, "{auth:?}");
        assert!(matches!(send(&with("wrong"), &outgoing(mail())).await, Outcome::Throttled { .. }), "{auth:?}");
    }
}

#[tokio::test]
async fn a_check_sends_nothing() {
    let stub = SmtpStub::start(Script::default()).await;
    channel(&stub).check().await.unwrap();
    stub.wait_until_left().await;
    assert_eq!((stub.count("NOOP"), stub.count("QUIT"), stub.count("MAIL")), (1, 1, 0));
    let busy = SmtpStub::start(Script::default().always(At::Greeting, Act::Reply("554 5.3.2 no".to_owned()))).await;
    let why = channel(&busy).check().await.unwrap_err().why;
    assert_eq!((why.code, why.answer.as_deref()), (WhyCode::Unreachable, Some("554 5.3.2 no")));
}

#[tokio::test]
async fn what_a_server_quotes_of_login_and_code_is_not_kept() {
    let quoting = |what: &str| Act::Reply(format!("535 5.7.8 shop may not log in with {what}"));
    let in_plain = "AHNob3AAaHVudGVyMi1TRUNSRVQ=";
    for quoted in ["hunter2-SECRET", in_plain] {
        let script = Script::default().with_login("shop", "hunter2-SECRET").once(At::Auth, quoting(quoted));
        let stub = SmtpStub::start(script).await;
        let url = format!("smtp://shop@{}", stub.address());
        let channel =
            SmtpChannel::new(&SmtpConfig { password: Some("hunter2-SECRET".into()), ..config(&url) }).unwrap();
        let told = send(&channel, &outgoing(mail())).await;
        assert_eq!(told.why().answer.as_deref(), Some("535 5.7.8 … may not log in with …"));
        stub.follow(Script::default().with_login("shop", "hunter2-SECRET").once(At::Auth, quoting(quoted)));
        assert_eq!(channel.check().await.unwrap_err().why.answer.as_deref(), Some("535 5.7.8 … may not log in with …"));
    }
    let blocked = Act::Reply("550 5.7.1 blocked: Your code is 482913".to_owned());
    let stub = SmtpStub::start(Script::default().once(At::Dot, blocked)).await;
    let code = EmailMessage { subject: "Your code is 482 913".into(), text: "482 913\n".into(), ..mail() };
    let told = send(&channel(&stub), &outgoing(code)).await;
    assert_eq!(told.why().answer.as_deref(), Some("550 5.7.1 blocked: Your code is …"));
}
