//! Conditions that real users met, by the numbers of the list, against the scripted stub.

use std::sync::Arc;

use belfry::channel::smtp::SmtpChannel;
use belfry::channel::smtp::config::{SmtpConfig, SmtpTimeouts};
use belfry::ports::channel::Channel as _;
use belfry::ports::span::Span;
use belfry_domain::outcome::{OutcomeKind, RepeatGuard, ThrottleScope};
use belfry_domain::{Outcome, WhyCode};

use super::{call, channel, code, config, lapsed_call, mail, outgoing, outgoing_of, send};
use crate::peers::smtp_stub::{Act, At, PATIENCE, Script, SmtpStub};

fn reply(text: &str) -> Act {
    Act::Reply(text.to_owned())
}

/// An accepted outcome, or the test fails saying what it was.
#[track_caller]
fn accepted(outcome: &Outcome) {
    assert_eq!(outcome.kind(), OutcomeKind::Accepted, "{outcome:?}");
}

#[tokio::test]
async fn case_1_a_cut_after_the_whole_message_is_unknown_and_its_repeat_is_the_same_message() {
    let stub = SmtpStub::start(Script::default().once(At::Dot, Act::Cut)).await;
    let channel = channel(&stub);
    let outcome = send(&channel, &outgoing(mail())).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Unknown, WhyCode::CutAfter));
    assert_eq!(stub.wait_for(1).await.len(), 1, "one call is one message: nothing is sent again by itself");
    accepted(&send(&channel, &outgoing(mail())).await);
    let copies = stub.wait_for(2).await;
    assert_eq!(copies[0].bytes, copies[1].bytes);
    assert_eq!(copies[0].header("Message-ID"), copies[1].header("Message-ID"));
}

/// With a deadline per phase: everything but the answer to the dot is given little time, and the
/// answer comes only after all of that has run out. (The 600 s default has its own test.)
#[tokio::test]
async fn case_2_a_late_answer_to_the_dot_is_waited_for_on_the_same_connection() {
    let stub = SmtpStub::start(Script::default().once(At::Dot, Act::AnswerOnRelease)).await;
    let timeouts = SmtpTimeouts {
        connect: Span::secs(20),
        greeting: Span::secs(20),
        command: Span::secs(20),
        data: SHORT,
        block: SHORT,
        end_of_data: Span::secs(600),
    };
    let channel = Arc::new(SmtpChannel::new(&SmtpConfig { timeouts, ..config(&stub.url()) }).unwrap());
    let sending = tokio::spawn({
        let channel = channel.clone();
        async move { channel.send(&outgoing(mail()), &call()).await }
    });
    stub.wait_for(1).await;
    // Another call runs into a deadline as short as these: theirs have passed too by then.
    let silent = SmtpStub::start(Script::default().always(At::Greeting, Act::Stall)).await;
    let mut other = config(&silent.url());
    other.timeouts.greeting = SHORT;
    let outcome = send(&SmtpChannel::new(&other).unwrap(), &outgoing(mail())).await;
    assert_eq!(code(&outcome), WhyCode::TimedOutBefore);
    assert!(!sending.is_finished());
    stub.release();
    accepted(&tokio::time::timeout(PATIENCE, sending).await.unwrap().unwrap());
    assert_eq!((stub.messages().len(), stub.connections()), (1, 1));
}

/// Which deadline a stall runs into, and what it means.
async fn stalled(at: At, shorten: impl FnOnce(&mut SmtpTimeouts)) -> (Outcome, SmtpStub) {
    let stub = SmtpStub::start(Script::default().once(at, Act::Stall)).await;
    let mut config = config(&stub.url());
    shorten(&mut config.timeouts);
    let channel = SmtpChannel::new(&config).unwrap();
    let outcome = send(&channel, &outgoing(mail())).await;
    // The only connection of the pool is free again, and the stalled one is not used for it.
    accepted(&send(&channel, &outgoing_of("next", mail(), "ann@example.com")).await);
    assert_eq!(stub.connections(), 2);
    (outcome, stub)
}

const SHORT: Span = Span(std::time::Duration::from_millis(200));

#[tokio::test]
async fn case_7_a_a_server_that_never_greets() {
    let (outcome, stub) = stalled(At::Greeting, |limits| limits.greeting = SHORT).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TimedOutBefore));
    assert_eq!(stub.messages().len(), 1);
}

#[tokio::test]
async fn case_7_b_a_server_that_stalls_after_ehlo() {
    let (outcome, stub) = stalled(At::Ehlo, |limits| limits.greeting = SHORT).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TimedOutBefore));
    assert_eq!(stub.messages().len(), 1);
}

#[tokio::test]
async fn case_7_c_a_server_that_stalls_after_rcpt() {
    let (outcome, stub) = stalled(At::Rcpt, |limits| limits.command = SHORT).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TimedOutBefore));
    assert_eq!(stub.messages().len(), 1);
}

#[tokio::test]
async fn case_7_d_a_server_that_stalls_at_data() {
    let stub = SmtpStub::start(Script::default().offering(&["8BITMIME"]).once(At::Data, Act::Stall)).await;
    let mut config = config(&stub.url());
    config.timeouts.data = SHORT;
    let channel = SmtpChannel::new(&config).unwrap();
    let outcome = send(&channel, &outgoing(mail())).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TimedOutBefore));
    assert_eq!(stub.messages().len(), 0);
    accepted(&send(&channel, &outgoing(mail())).await);
    assert_eq!(stub.connections(), 2);
}

/// The kernel's buffers fill, and a block is not taken.
#[tokio::test]
async fn case_7_d_a_server_that_answers_354_and_reads_no_more() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let deaf = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 x\r\n").await.unwrap();
        for answer in [&b"250 x\r\n"[..], b"250 x\r\n", b"250 x\r\n", b"354 x\r\n"] {
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let mut config = config(&format!("smtp://{address}"));
    config.timeouts.block = SHORT;
    let channel = SmtpChannel::new(&config).unwrap();
    let mut large = mail();
    large.text = "All work and no play.\n".repeat(400_000);
    let outcome = send(&channel, &outgoing(large)).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TimedOutBefore));
    deaf.abort();
}

#[tokio::test]
async fn case_7_e_a_server_that_stalls_after_the_dot_is_unknown() {
    let (outcome, stub) = stalled(At::Dot, |limits| limits.end_of_data = SHORT).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Unknown, WhyCode::TimedOutAfter));
    assert_eq!(stub.messages().len(), 2);
}

#[tokio::test]
async fn case_28_any_4yz_is_deferred_in_every_phase_and_the_second_try_gets_through() {
    for at in [At::Mail, At::Rcpt, At::Data, At::Dot] {
        for offers in [&["PIPELINING"][..], &["8BITMIME"]] {
            let script = Script::default().offering(offers).once(at, reply("422 4.2.2 come back"));
            let stub = SmtpStub::start(script).await;
            let channel = channel(&stub);
            let outcome = send(&channel, &outgoing(mail())).await;
            assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::TryLater), "{at:?}");
            assert_eq!(outcome.why().answer.as_deref(), Some("422 4.2.2 come back"));
            let before = stub.messages().len();
            accepted(&send(&channel, &outgoing(mail())).await);
            assert_eq!((stub.messages().len(), stub.connections()), (before + 1, 1), "{at:?}");
        }
    }
}

#[tokio::test]
async fn case_29_a_refused_login_throttles_the_credential_and_the_queue_drains_after_the_fix() {
    let stub = SmtpStub::start(Script::default().with_login("shop", "right")).await;
    let with = |password: &str| {
        let url = format!("smtp://shop@{}", stub.address());
        SmtpChannel::new(&SmtpConfig { password: Some(password.into()), ..config(&url) }).unwrap()
    };
    for outcome in [send(&with("wrong"), &outgoing(mail())).await, send(&channel(&stub), &outgoing(mail())).await] {
        let Outcome::Throttled { scope: ThrottleScope::Credential, why, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(why.code, WhyCode::CredentialRefused);
    }
    assert_eq!(stub.messages().len(), 0);
    accepted(&send(&with("right"), &outgoing(mail())).await);
    assert_eq!(stub.messages()[0].login.as_deref(), Some("shop"));
}

/// One recipient per transaction: each copy has its own answer, and the copies are one mail.
#[tokio::test]
async fn case_44_each_recipient_has_its_own_outcome() {
    let script = Script::default().holding(At::Rcpt, "bob@", reply("550 5.1.1 <bob@example.com> unknown")).holding(
        At::Rcpt,
        "cy@",
        reply("451 4.3.0 later"),
    );
    let stub = SmtpStub::start(script).await;
    let channel = channel(&stub);
    let mut mail = mail();
    mail.cc = vec![super::mailbox("bob@example.com"), super::mailbox("cy@example.com")];
    let to = |address: &str| outgoing_of("one", mail.clone(), address);
    accepted(&send(&channel, &to("ann@example.com")).await);
    let bob = send(&channel, &to("bob@example.com")).await;
    assert_eq!((bob.kind(), code(&bob)), (OutcomeKind::RecipientGone, WhyCode::NoSuchRecipient));
    assert_eq!(bob.why().answer.as_deref(), Some("550 5.1.1 <…@example.com> unknown"));
    let cy = send(&channel, &to("cy@example.com")).await;
    assert_eq!((cy.kind(), code(&cy)), (OutcomeKind::NotAccepted, WhyCode::TryLater));
    assert_eq!(stub.messages().len(), 1);
    stub.follow(Script::default());
    accepted(&send(&channel, &to("cy@example.com")).await);
    let stored = stub.messages();
    assert_eq!(stored.iter().map(|one| one.to.join(",")).collect::<Vec<_>>(), ["ann@example.com", "cy@example.com"]);
    assert_eq!(stored[0].bytes, stored[1].bytes, "the copies of one mail are one message");
    assert_eq!(stub.connections(), 1, "a refused recipient costs no connection");
}

#[tokio::test]
async fn case_50_a_250_is_accepted_by_the_provider_and_no_receipt_is_promised() {
    let stub = SmtpStub::start(Script::default()).await;
    let channel = channel(&stub);
    let outcome = send(&channel, &outgoing(mail())).await;
    let Outcome::Accepted { provider_ref, why } = outcome else { panic!("{outcome:?}") };
    assert_eq!(provider_ref.as_deref(), Some("STUB1"));
    assert_eq!(why.answer.as_deref(), Some("250 2.0.0 Ok: queued as STUB1"));
    assert!(!channel.receipts());
    assert_eq!(channel.repeat_guard(), RepeatGuard::None);
}

/// For mail the id that tells intents apart is the Message-ID.
#[tokio::test]
async fn case_53_two_intents_have_two_message_ids_and_retries_of_one_have_one() {
    let stub = SmtpStub::start(Script::default().nth(At::Dot, 2, reply("451 4.3.0 later"))).await;
    let channel = channel(&stub);
    accepted(&send(&channel, &outgoing_of("one", mail(), "ann@example.com")).await);
    send(&channel, &outgoing_of("two", mail(), "ann@example.com")).await;
    accepted(&send(&channel, &outgoing_of("two", mail(), "ann@example.com")).await);
    let ids: Vec<_> = stub.messages().iter().map(|one| one.header("Message-ID").unwrap()).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[1], ids[2]);
}

#[tokio::test]
async fn case_98_a_a_421_that_waits_on_an_idle_connection_costs_nothing() {
    for farewell in ["421 4.4.2 idle too long", ""] {
        let stub = SmtpStub::start(Script::default()).await;
        let channel = channel(&stub);
        accepted(&send(&channel, &outgoing_of("one", mail(), "ann@example.com")).await);
        stub.say_to_idle_and_close(farewell).await;
        accepted(&send(&channel, &outgoing_of("two", mail(), "ann@example.com")).await);
        assert_eq!((stub.messages().len(), stub.connections(), stub.count("MAIL")), (2, 2, 2), "seen before use");
    }
}

/// In the same packet as the 250 before it: read already, so no look at the socket would find it.
#[tokio::test]
async fn case_98_a_a_421_that_came_with_the_last_answer() {
    let script = Script::default().once(At::Dot, Act::ReplyThenCut("250 2.0.0 Ok\n421 4.3.2 going down".to_owned()));
    let stub = SmtpStub::start(script).await;
    let channel = channel(&stub);
    accepted(&send(&channel, &outgoing_of("one", mail(), "ann@example.com")).await);
    stub.wait_until_left().await;
    accepted(&send(&channel, &outgoing_of("two", mail(), "ann@example.com")).await);
    assert_eq!((stub.messages().len(), stub.connections()), (2, 2));
}

#[tokio::test]
async fn case_98_b_a_421_after_mail_on_a_reused_connection_sends_once_on_a_new_one() {
    for at in [At::Mail, At::Rcpt, At::Data] {
        for act in [Act::ReplyThenCut("421 4.7.0 closing".to_owned()), Act::Cut] {
            let stub = SmtpStub::start(Script::default().nth(at, 2, act)).await;
            let channel = channel(&stub);
            accepted(&send(&channel, &outgoing_of("one", mail(), "ann@example.com")).await);
            accepted(&send(&channel, &outgoing_of("two", mail(), "ann@example.com")).await);
            let stored = stub.messages();
            assert_eq!((stored.len(), stub.connections()), (2, 2), "{at:?}");
            assert_eq!((stored[0].connection, stored[1].connection), (0, 1));
        }
    }
}

/// A fresh connection that answers 421 has nothing to be mended by another: others wait a moment.
#[tokio::test]
async fn case_98_b_a_421_on_a_fresh_connection_is_the_providers_not_the_recipients() {
    for at in [At::Greeting, At::Ehlo, At::Mail, At::Rcpt, At::Data, At::Dot] {
        let stub = SmtpStub::start(Script::default().once(at, Act::ReplyThenCut("421 4.3.2 busy".to_owned()))).await;
        let channel = channel(&stub);
        let outcome = send(&channel, &outgoing(mail())).await;
        assert!(matches!(outcome, Outcome::Throttled { scope: ThrottleScope::Provider, .. }), "{at:?} {outcome:?}");
        accepted(&send(&channel, &outgoing(mail())).await);
        assert_eq!(stub.connections(), 2, "{at:?}");
    }
}

#[tokio::test]
async fn case_100_a_non_ascii_local_part_needs_smtputf8_on_both_sides() {
    let address = "josé@exämple.test";
    let mut utf8 = mail();
    utf8.to = vec![super::named("José", address)];
    let offering = SmtpStub::start(Script::default()).await;
    accepted(&send(&channel(&offering), &outgoing_of("one", utf8.clone(), address)).await);
    let stored = &offering.messages()[0];
    assert_eq!(stored.to, [address]);
    assert!(stored.parameters.split(' ').any(|one| one == "SMTPUTF8"), "{}", stored.parameters);
    assert!(stored.header("To").unwrap().ends_with(&format!("<{address}>")));

    let plain = SmtpStub::start(Script::default().offering(&["PIPELINING", "8BITMIME"])).await;
    let channel = channel(&plain);
    let outcome = send(&channel, &outgoing_of("one", utf8.clone(), address)).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::NotSupported));
    assert_eq!(outcome.why().answer.as_deref(), Some("the address needs SMTPUTF8"));
    // The header needs it too, whoever this copy goes to.
    utf8.cc = vec![super::mailbox("ann@example.com")];
    let outcome = send(&channel, &outgoing_of("one", utf8, "ann@example.com")).await;
    assert_eq!(code(&outcome), WhyCode::NotSupported);
    assert_eq!((plain.count("MAIL"), plain.count("DATA")), (0, 0));

    let mut ascii = mail();
    ascii.to = vec![super::mailbox("jose@exämple.test")];
    accepted(&send(&channel, &outgoing_of("two", ascii, "jose@exämple.test")).await);
    let stored = &plain.messages()[0];
    assert_eq!(stored.to, ["jose@xn--exmple-cua.test"]);
    assert_eq!(stored.header("To").unwrap(), "jose@xn--exmple-cua.test");
    assert!(!stored.parameters.contains("SMTPUTF8"));
}

#[tokio::test]
async fn a_lapsed_lease_sends_nothing() {
    let stub = SmtpStub::start(Script::default()).await;
    let channel = channel(&stub);
    let call = lapsed_call();
    let outcome = channel.send(&outgoing(mail()), &call).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::NotAccepted, WhyCode::LeaseLost));
    assert!(!call.committed());
    stub.wait_until_left().await;
    assert_eq!((stub.messages().len(), stub.count("DATA")), (0, 1));
}

#[tokio::test]
async fn a_message_larger_than_the_servers_size_is_refused_before_mail() {
    let stub = SmtpStub::start(Script::default().offering(&["PIPELINING", "SIZE 2000"])).await;
    let channel = channel(&stub);
    let mut large = mail();
    large.text = "x\n".repeat(2_000);
    let outcome = send(&channel, &outgoing(large)).await;
    assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Refused, WhyCode::TooLarge));
    assert_eq!(stub.count("MAIL"), 0);
    accepted(&send(&channel, &outgoing(mail())).await);
    assert_eq!(stub.connections(), 1);
    let size = format!("SIZE={}", stub.messages()[0].bytes.len());
    assert!(stub.messages()[0].parameters.contains(&size));
}

#[tokio::test]
async fn an_answer_to_the_dot_that_is_none_is_unknown() {
    for odd in ["hello", "354 go on", "999 what", "250_ok"] {
        let stub = SmtpStub::start(Script::default().once(At::Dot, reply(odd))).await;
        let channel = channel(&stub);
        let outcome = send(&channel, &outgoing(mail())).await;
        assert_eq!((outcome.kind(), code(&outcome)), (OutcomeKind::Unknown, WhyCode::Unrecognised), "{odd}");
        accepted(&send(&channel, &outgoing(mail())).await);
    }
}
